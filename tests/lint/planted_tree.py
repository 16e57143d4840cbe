"""A temporary tree with planted files, and what a check says about it."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))


def quietly(work: Callable[[], int]) -> int:
    """Runs `work` with what it and the programs it starts print going nowhere."""
    saved, nowhere = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return work()
    finally:
        for number, descriptor in enumerate(saved, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nowhere)


class PlantedTree(unittest.TestCase):
    """Subclasses name the check; each test plants files and states what is found."""

    check_name = ""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.check = importlib.import_module(self.check_name) if self.check_name else None

    def plant(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def findings(self) -> list[str]:
        return [f"{f.path}:{f.line}: {f.text}" for f in self.check.check(self.root)]

    def assert_clean(self) -> None:
        self.assertEqual(self.findings(), [])

    def assert_finds(self, *fragments: str) -> None:
        """Exactly one finding for each fragment, in any order."""
        found = self.findings()
        self.assertEqual(len(found), len(fragments), found)
        for fragment in fragments:
            self.assertTrue(any(fragment in one for one in found), f"no {fragment!r} in {found}")
