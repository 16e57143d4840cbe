"""No path of one person's machine and no package registry's host name in any file: both break elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import source_tree
from source_tree import Finding

# Written in two parts, so that this file passes its own check.
MACHINE = ["/" + name + "/" for name in ("work", "root", "home", "Users", "mnt", "workspace")]
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("conda", "anaconda", "org"),
        ("registry", "npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("nvcr", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
    )
]
PATTERN = re.compile(
    r"(?<![\w.}~-])(?:"
    + "|".join(map(re.escape, MACHINE))
    + r")|"
    + r"(?<![\w-])(?:"
    + "|".join(map(re.escape, HOSTS))
    + r")(?![\w-])"
)


def check(root: Path) -> list[Finding]:
    findings = []
    for path in source_tree.files_of(root):
        data = (root / path).read_bytes()
        if b"\0" in data[:8192]:
            continue
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            match = PATTERN.search(line)
            if match:
                findings.append(Finding(path, number, f"{match.group()}: true on one machine only"))
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
