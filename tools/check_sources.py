"""Every source is listed by name in a CMakeLists.txt above it, and every listed source exists."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import source_tree
from source_tree import Finding

LISTED = re.compile(r"(?<![\w./${}-])([\w./-]+\.(?:cpp|cc|cu))(?![\w.])")
SOURCE_SUFFIXES = (".cpp", ".cc", ".cu")


def expanded(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments; those inside foreach(name a b c) once for each value."""
    loops: list[tuple[str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0]
        loop = re.match(r"\s*foreach\s*\(\s*(\w+)\s+([^()]*)\)", line)
        if loop:
            loops.append((loop.group(1), loop.group(2).split()))
        elif re.match(r"\s*endforeach\s*\(", line) and loops:
            loops.pop()
        lines = [line]
        for name, values in loops:
            lines = [one.replace(f"${{{name}}}", value) for one in lines for value in values]
        yield from ((number, one) for one in lines)


def listed_in(root: Path, path: str) -> dict[str, int]:
    """Sources that a CMakeLists.txt names, relative to the root, with their line. Generated ones (${...}) are not."""
    folder = posixpath.dirname(path)
    found = {}
    for number, line in expanded(source_tree.read(root, path)):
        for match in LISTED.finditer(line):
            found[posixpath.normpath(posixpath.join(folder, match.group(1)))] = number
    return found


def check(root: Path) -> list[Finding]:
    files = source_tree.files_of(root)
    findings, listed = [], set()
    for path in files:
        if posixpath.basename(path) != "CMakeLists.txt":
            continue
        for source, number in listed_in(root, path).items():
            listed.add(source)
            if not (root / source).is_file():
                findings.append(Finding(path, number, f"{source} does not exist"))
    for path in files:
        if path.endswith(SOURCE_SUFFIXES) and path not in listed:
            findings.append(Finding(path, 0, "in no CMakeLists.txt; add it to that of its folder"))
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
