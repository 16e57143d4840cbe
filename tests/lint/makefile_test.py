"""What the Makefile's targets would run."""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def commands_of(*arguments: str) -> str:
    command = ["make", "--no-print-directory", "-n", "-C", str(ROOT), *arguments]
    outer = ("MAKEFLAGS", "MAKEOVERRIDES", "TORCH")  # of the make that runs the tests
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


@unittest.skipUnless(shutil.which("make"), "no make")
class DemoTest(unittest.TestCase):
    def test_runs_the_programs_that_were_built(self):
        self.assertIn("demo.sh --programs build/release/bin", commands_of("demo"))
        self.assertIn("demo.sh --programs build/release-2.14.1/bin", commands_of("demo", "TORCH=2.14.1"))


if __name__ == "__main__":
    unittest.main()
