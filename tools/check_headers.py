"""Every header of ours compiles alone: check_headers.py BUILD compiles a source that includes nothing else.

A header whose own source is built by BUILD and includes it before anything else needs no further proof.

Flags are those with which BUILD compiles the nearest source. Headers of a part that BUILD leaves out (the training half
without Torch) are not checked there, and named.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import check_layering as layering
import ninja_checks
import source_tree

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("thinwire/", "tests/", "bench/", "examples/", "python/")


def richest(folder: Path, commands: dict[Path, list[str]]) -> list[str] | None:
    """Flags of the source below `folder` with most include folders: a folder may mix those with and without Torch."""
    found = [flags for source, flags in sorted(commands.items()) if source.is_relative_to(folder)]
    return max(found, key=lambda flags: sum(f.startswith(("-I", "-isystem")) for f in flags), default=None)


def flags_for(header: Path, commands: dict[Path, list[str]], root: Path) -> list[str] | None:
    """Those of the nearest folder above that has sources, up to the room; else those of a stand-in room."""
    folder = header.parent
    while folder not in (root, root / "thinwire", root / "tests", root / "examples"):
        flags = richest(folder, commands)
        if flags is not None:
            return flags
        folder = folder.parent
    room = layering.room_of(header.relative_to(root).as_posix())
    needs_torch = room is None or room in ("comm", "train", "profile")
    return richest(root / ("thinwire/train" if needs_torch else "thinwire/base"), commands)


def proven_by_source(header: Path, commands: dict[Path, list[str]]) -> bool:
    """The source of the same name includes it first (and is not compiled behind a precompiled header)."""
    source = header.with_suffix(".cpp")
    flags = commands.get(source)
    if flags is None or "-Winvalid-pch" in flags:
        return False
    first = re.search(r'^\s*#include\s+["<]([^">]+)', source.read_text(encoding="utf-8"), re.MULTILINE)
    return first is not None and header.as_posix().endswith("/" + first.group(1))


def check_of(header: str, flags: list[str], folder: Path, root: Path) -> ninja_checks.Check:
    source = folder / (header.replace("/", "__") + ".cpp")
    text = f'#include "{header}"\n#include "{header}"  // twice: it is guarded\n'
    if not source.exists() or source.read_text(encoding="utf-8") != text:
        source.write_text(text, encoding="utf-8")
    words = ninja_checks.launcher() + ["g++", *flags, f"-I{root}", "-O0", "-MMD", "-c", str(source)]
    command = " ".join(shlex.quote(word).replace("{", "{{").replace("}", "}}") for word in words)
    return ninja_checks.Check(header, source, command + " -MF {stamp}.d -MT {stamp} -o {stamp}.o")


def run(root: Path, build: Path) -> int:
    commands = ninja_checks.load_commands(build)
    folder = build / "lint/headers"
    folder.mkdir(parents=True, exist_ok=True)
    checks, left_out, proven = [], [], 0
    for header in source_tree.files_of(root):
        if not source_tree.is_header(header) or not header.startswith(PLACES) or "/consumer_cmake/" in header:
            continue
        if proven_by_source(root / header, commands):
            proven += 1
            continue
        flags = flags_for(root / header, commands, root)
        if flags is None:
            left_out.append(header)
        else:
            checks.append(check_of(header, flags, folder, root))
    for header in left_out:
        print(f"not checked, since {build.name} does not build that part: {header}")
    status = ninja_checks.run(folder, checks)
    print(f"check_headers: {proven + len(checks)} headers compile alone, {proven} of them first in their own source"
          if status == 0 else "check_headers: see above")
    return status


if __name__ == "__main__":
    sys.exit(run(ROOT, Path(sys.argv[1]).resolve()))
