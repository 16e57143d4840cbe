"""clang-tidy with the allow list of .clang-tidy over the rooms that need no Torch: check_tidy.py BUILD."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ninja_checks
from check_layering import MAY_USE

ROOT = Path(__file__).resolve().parent.parent
ROOMS = sorted(set(MAY_USE) - {"comm", "train", "profile"})
SKIPPED = 77


def clang_tidy() -> str | None:
    return next((path for path in map(shutil.which, ("clang-tidy-14", "clang-tidy")) if path), None)


def check_of(tidy: str, source: Path, flags: list[str], root: Path) -> ninja_checks.Check:
    kept = shlex.join([flag for flag in flags if not flag.startswith(("-W", "-fsanitize", "-fno-"))]).replace("{", "{{")
    config = shlex.quote(f"--config-file={root / '.clang-tidy'}")
    name = shlex.quote(str(source))
    command = (
        f"g++ {kept} -MM -MF {{stamp}}.d -MT {{stamp}} {name} && "
        f"{tidy} --quiet {config} --warnings-as-errors='*' {name} -- {kept} 2>{{stamp}}.log || "
        f"{{{{ grep error: {{stamp}}.log; exit 1; }}}}"
    )
    return ninja_checks.Check(source.relative_to(root).as_posix(), source, command)


def run(root: Path, build: Path) -> int:
    tidy = clang_tidy()
    if tidy is None:
        print("check_tidy: skipped, there is no clang-tidy (apt-get install clang-tidy)")
        return SKIPPED
    version = subprocess.run([tidy, "--version"], capture_output=True, text=True, check=True).stdout
    folders = tuple(root / "thinwire" / room for room in ROOMS)
    commands = ninja_checks.load_commands(build)
    sources = [s for s in sorted(commands) if any(s.is_relative_to(folder) for folder in folders)]
    status = ninja_checks.run(build / "lint/tidy", [check_of(tidy, s, commands[s], root) for s in sources])
    print(
        f"check_tidy: {len(sources)} sources, {'clean' if status == 0 else 'see above'} ({' '.join(version.split())})"
    )
    return status


if __name__ == "__main__":
    sys.exit(run(ROOT, Path(sys.argv[1]).resolve()))
