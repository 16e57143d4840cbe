"""CMake commands that act on whole folders, guess at sources, or download: none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import source_tree
from source_tree import Finding

BANNED = [
    (re.compile(r"\b(FetchContent|ExternalProject)(_\w+|\b)", re.I), "downloads while configuring"),
    (re.compile(r"\bfile\s*\(\s*GLOB", re.I), "guesses the sources; list them by name"),
    (re.compile(r"(?<!\w)include_directories\s*\(", re.I), "use target_include_directories"),
    (re.compile(r"(?<!\w)link_(libraries|directories)\s*\(", re.I), "use target_link_libraries"),
    (re.compile(r"(?<!\w)add_(definitions|compile_definitions)\s*\(", re.I), "use target_compile_definitions"),
    (re.compile(r"(?<!\w)add_(compile|link)_options\s*\(", re.I), "use target_compile_options, target_link_options"),
    (re.compile(r"\bset\s*\(\s*CMAKE_(CXX|C|CUDA|EXE_LINKER)_FLAGS", re.I), "use target properties or a preset"),
]


def check(root: Path) -> list[Finding]:
    findings = []
    for path in source_tree.files_of(root):
        if Path(path).name != "CMakeLists.txt" and Path(path).suffix not in (".cmake", ".in"):
            continue
        for number, line in enumerate(source_tree.read(root, path).splitlines(), 1):
            for pattern, reason in BANNED:
                match = pattern.search(line.split("#")[0])
                if match:
                    findings.append(Finding(path, number, f"{match.group().strip()}: {reason}"))
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
