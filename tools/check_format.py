"""clang-format over every C++ file (--fix rewrites them). One release decides, since releases disagree: major 14."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import source_tree

ROOT = Path(__file__).resolve().parent.parent
MAJOR = 14
SKIPPED = 77


def candidates(root: Path) -> list[str]:
    venv = root / ".venv/bin/clang-format"
    found = [str(venv) if venv.exists() else None] + [
        shutil.which(n) for n in (f"clang-format-{MAJOR}", "clang-format")
    ]
    return [path for path in found if path]


def clang_format(root: Path) -> str | None:
    for path in candidates(root):
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        match = re.search(r"version (\d+)", version)
        if match and int(match.group(1)) == MAJOR:
            return path
    return None


def run(root: Path, fix: bool) -> int:
    program = clang_format(root)
    if program is None:
        print(f"check_format: skipped, there is no clang-format {MAJOR} (make setup installs it)")
        return SKIPPED
    files = [path for path in source_tree.files_of(root) if source_tree.is_cpp(path)]
    how = ["-i"] if fix else ["--dry-run", "-Werror", "--ferror-limit=1"]
    result = subprocess.run([program, *how, *files], cwd=root, check=False) if files else None
    status = result.returncode if result else 0
    print(f"check_format: {len(files)} files, {'clean' if status == 0 else 'run: make format'}")
    return status


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--fix"]
    sys.exit(run(Path(arguments[0]).resolve() if arguments else ROOT, "--fix" in sys.argv))
