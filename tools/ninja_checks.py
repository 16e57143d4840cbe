"""Runs one compiler-like command per file with ninja: in parallel, and only where something it includes changed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

KEPT_FLAGS = ("-I", "-D", "-std=", "-f", "-W", "-m", "-pthread", "--sysroot")
KEPT_PAIRS = ("-isystem", "-I", "-D", "-iquote", "-idirafter")


class Check(NamedTuple):
    name: str  # a path; also the name of its stamp
    source: Path
    command: str  # a shell command; must write its dependencies to {stamp}.d where the placeholder stands


def load_commands(build: Path) -> dict[Path, list[str]]:
    """Source -> include folders, definitions and language flags, as the build compiles it."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return {Path(entry["file"]).resolve(): _flags(shlex.split(entry["command"])) for entry in entries}


def _flags(words: list[str]) -> list[str]:
    kept, words = [], iter(words)
    for word in words:
        if word in KEPT_PAIRS:
            kept += [word, next(words)]
        elif word in ("-include", "-o", "-MF", "-MT", "-c"):
            next(words)
        elif word.startswith(KEPT_FLAGS) and word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    return kept


def _escaped(text: str) -> str:
    return text.replace("$", "$$")


def run(folder: Path, checks: list[Check], keep_going: bool = True) -> int:
    """Writes folder/build.ninja and runs it; its exit status. Stamps and dependency files lie in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "ninja_required_version = 1.5",
        "rule check",
        "  command = $run && touch $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
    ]
    for check in checks:
        stamp = folder / (check.name.replace("/", "__") + ".ok")
        lines += [
            f"build {stamp}: check {check.source}",
            f"  run = {_escaped(check.command.format(stamp=shlex.quote(str(stamp))))}",
        ]
    manifest, text = folder / "build.ninja", "\n".join(lines) + "\n"
    if not manifest.exists() or manifest.read_text(encoding="utf-8") != text:
        manifest.write_text(text, encoding="utf-8")
    jobs = os.environ.get("THINWIRE_JOBS", str(os.cpu_count() or 1))
    starts = {check.command.split("{stamp}")[0].split(" -", 1)[0] for check in checks}  # ninja repeats whole commands
    command = ["ninja", "--quiet", "-C", str(folder), "-j", jobs] + (["-k", "0"] if keep_going else [])
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    shown = (line for line in result.stdout.splitlines() if not any(line.startswith(word) for word in starts))
    print(*shown, sep="\n", end="\n" if result.stdout else "", flush=True)
    return result.returncode


def launcher() -> list[str]:
    ccache = shutil.which("ccache")
    return [ccache] if ccache else []
