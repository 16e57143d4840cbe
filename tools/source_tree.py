"""What the checks share: which files a tree has, how C++ text is read, and how a finding is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

CPP_SUFFIXES = {".cpp", ".hpp", ".h", ".cc", ".cu", ".cuh"}
HEADER_SUFFIXES = {".hpp", ".h", ".cuh"}
SKIPPED_FOLDERS = {".git", "build", "__pycache__", "runs"}


class Finding(NamedTuple):
    path: str  # relative to the root of the tree
    line: int  # 0: the file as a whole
    text: str


def files_of(root: Path) -> list[str]:
    """Paths that belong to the tree, sorted: tracked ones and new ones that git does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        names = {name for name in listed.stdout.decode().split("\0") if name}
        return sorted(name for name in names if (root / name).is_file())
    return sorted(_walk(root))


def _walk(root: Path) -> Iterable[str]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in SKIPPED_FOLDERS and not s.startswith(".venv")]
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def read(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8", errors="replace")


def is_cpp(path: str) -> bool:
    return Path(path).suffix in CPP_SUFFIXES


def is_header(path: str) -> bool:
    return Path(path).suffix in HEADER_SUFFIXES


_CPP_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',  # strings and characters
    re.DOTALL,
)


def without_comments_and_strings(text: str) -> str:
    """The same lines with comments blanked and literals emptied, so that braces and words in them do not count."""

    def blank(match: re.Match[str]) -> str:
        token = match.group(0)
        newlines = "\n" * token.count("\n")
        return newlines if token.startswith(("//", "/*")) else f'""{newlines}'

    return _CPP_TOKEN.sub(blank, text)


def main(check: Callable[[Path], list[Finding]], argv: list[str] | None = None) -> int:
    """Runs `check` on the tree named on the command line (default: this one); prints findings; 1 if there are any."""
    arguments = sys.argv[1:] if argv is None else argv
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent).resolve()
    findings = check(root)
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.text}")
    name = check.__module__ if check.__module__ != "__main__" else Path(sys.argv[0]).stem
    print(f"{name}: {len(findings)} findings in {root}" if findings else f"{name}: clean")
    return 1 if findings else 0
