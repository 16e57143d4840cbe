"""ASCII in every source and document, no tabs outside makefiles, no trailing blanks, a newline at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import source_tree
from source_tree import Finding

SUFFIXES = source_tree.CPP_SUFFIXES | {
    ".py",
    ".pyi",
    ".sh",
    ".cmake",
    ".in",
    ".md",
    ".json",
    ".toml",
    ".txt",
    ".supp",
    ".yml",
    ".yaml",
    ".patch",
}
NAMES = {"Makefile", "LICENSE", "run", ".clang-format", ".clang-tidy", ".gitignore"}


def line_problem(path: str, line: str) -> str | None:
    odd = next((letter for letter in line if not letter.isascii()), None)
    if odd:
        return f"not ASCII: U+{ord(odd):04X}"
    if path.endswith((".patch", "LICENSE")):
        return None
    if "\t" in line and Path(path).name != "Makefile":
        return "tab"
    if "\r" in line:
        return "carriage return"
    return "blanks at the end of the line" if line != line.rstrip() else None


def check(root: Path) -> list[Finding]:
    findings = []
    for path in source_tree.files_of(root):
        if Path(path).suffix not in SUFFIXES and Path(path).name not in NAMES:
            continue
        text = source_tree.read(root, path)
        for number, line in enumerate(text.split("\n"), 1):
            problem = line_problem(path, line)
            if problem:
                findings.append(Finding(path, number, problem))
        if text and not text.endswith("\n"):
            findings.append(Finding(path, text.count("\n") + 1, "no newline at the end of the file"))
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
