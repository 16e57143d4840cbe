"""Plants each fault of tests/mutations/ in a copy of the tree and requires that the test named for it fails.

A patch begins with comment lines: `# what:` (the fault), `# target:` (the test program) and `# filter:` (its
--gtest_filter). The copy and its build directory lie in build/mutations and are kept, so that a second run compiles
only what the patches touch.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import source_tree

RUN_TIMEOUT_S = 120
BUILD_TIMEOUT_S = 1800
HEADER = re.compile(r"^# (what|target|filter): (.+)$", re.MULTILINE)
PATCHED_FILE = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)


class Mutant(NamedTuple):
    name: str
    patch: Path
    what: str
    target: str
    filter: str

    def files(self) -> list[str]:
        return PATCHED_FILE.findall(self.patch.read_text(encoding="utf-8"))


class Result(NamedTuple):
    name: str
    killed: bool
    how: str
    seconds: float


def read_mutant(patch: Path) -> Mutant:
    head = patch.read_text(encoding="utf-8").split("--- a/", 1)[0]
    fields = dict(HEADER.findall(head))
    return Mutant(patch.stem, patch, fields.get("what", ""), fields.get("target", ""), fields.get("filter", "*"))


class Scratch:
    """A copy of the tree with a build directory of its own."""

    def __init__(self, root: Path, jobs: int, python: str) -> None:
        self.root, self.jobs, self.python = root, jobs, python
        self.tree = root / "build" / "mutations" / "tree"
        self.build = root / "build" / "mutations" / "build"
        self.environment = os.environ | {
            "CCACHE_BASEDIR": str(self.tree),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime",
            "OMP_NUM_THREADS": "1",
        }
        if shutil.which("ccache"):
            self.environment["THINWIRE_LAUNCHER"] = "ccache"

    def copy(self) -> None:
        """Writes only what differs, so that ninja sees no change where there is none."""
        names = source_tree.files_of(self.root)
        for name in names:
            self.restore(name)
        copies = {path.relative_to(self.tree).as_posix() for path in self.tree.rglob("*") if path.is_file()}
        for stale in copies - set(names):
            (self.tree / stale).unlink()

    def restore(self, name: str) -> None:
        source, copy = self.root / name, self.tree / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            return
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
        os.utime(copy)

    def configure(self) -> None:
        command = ["cmake", "--log-level=WARNING", f"-DTHINWIRE_PYTHON={self.python}", "--preset", "dev"]
        self._call([*command, "-S", str(self.tree), "-B", str(self.build)], BUILD_TIMEOUT_S).check_returncode()

    def compile(self, targets: Iterable[str]) -> subprocess.CompletedProcess[str]:
        return self._call(["ninja", "-C", str(self.build), f"-j{self.jobs}", *targets], BUILD_TIMEOUT_S)

    def run(self, mutant: Mutant) -> str:
        """"" when the test passes, else how it failed."""
        program = next((self.build / "tests").rglob(mutant.target))
        command = [str(program), f"--gtest_filter={mutant.filter}"]
        try:
            done = self._call(command, RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"hangs for {RUN_TIMEOUT_S} s"
        if done.returncode == 0 and "[  PASSED  ] 0 tests" in done.stdout:
            raise RuntimeError(f"{mutant.name}: no test of {mutant.target} matches {mutant.filter}")
        if done.returncode == 77:
            raise RuntimeError(f"{mutant.name}: {mutant.target} was skipped")
        failed = re.findall(r"^\[  FAILED  \] ([\w/.]+)", done.stdout, re.MULTILINE)
        return "" if done.returncode == 0 else (failed[0] if failed else f"exit status {done.returncode}")

    def apply(self, mutant: Mutant) -> None:
        command = ["patch", "--strip=1", "--forward", "--silent", "--no-backup-if-mismatch", f"--input={mutant.patch}"]
        done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{mutant.name}: the patch does not apply any more\n{done.stdout}")

    def _call(self, command: list[str], timeout_s: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.tree, env=self.environment, capture_output=True, text=True, check=False, timeout=timeout_s
        )


def judge(scratch: Scratch, mutant: Mutant) -> Result:
    begin = time.monotonic()
    try:
        scratch.apply(mutant)
        built = scratch.compile([mutant.target])
        if built.returncode != 0:
            return Result(mutant.name, False, "does not compile:\n" + built.stdout[-2000:], time.monotonic() - begin)
        how = scratch.run(mutant)
        return Result(mutant.name, bool(how), how or "SURVIVES: " + mutant.what, time.monotonic() - begin)
    except RuntimeError as error:
        return Result(mutant.name, False, str(error), time.monotonic() - begin)
    finally:
        for name in mutant.files():
            scratch.restore(name)


def healthy(scratch: Scratch, mutants: list[Mutant]) -> bool:
    """The tests pass without a fault: otherwise a red one would prove nothing."""
    built = scratch.compile(sorted({mutant.target for mutant in mutants}))
    if built.returncode != 0:
        print("the tree does not build:\n" + built.stdout[-4000:])
        return False
    red = [f"{m.target} --gtest_filter={m.filter}: {how}" for m in mutants if (how := scratch.run(m))]
    print("\n".join(["red without any fault:", *red]) if red else f"{len(mutants)} tests pass without a fault")
    return not red


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("THINWIRE_JOBS", os.cpu_count() or 1)))
    parser.add_argument("--python", default=sys.executable, help="the Python whose torch is used")
    parser.add_argument("names", nargs="*", help="patches without .patch; none: all")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    patches = sorted((root / "tests" / "mutations").glob("*.patch"))
    mutants = [read_mutant(patch) for patch in patches if not arguments.names or patch.stem in arguments.names]
    nameless = [mutant.name for mutant in mutants if not mutant.target]
    if nameless or not mutants:
        print(f"patches without a '# target:' line: {', '.join(nameless)}" if nameless else "no such patch")
        return 1
    scratch = Scratch(root, arguments.jobs, arguments.python)
    scratch.copy()
    scratch.configure()
    if not healthy(scratch, mutants):
        return 1
    results = []
    for mutant in mutants:
        result = judge(scratch, mutant)
        verdict = "killed" if result.killed else "ALIVE"
        print(f"{verdict:8}{result.seconds:6.1f} s  {result.name:32}{result.how}", flush=True)
        results.append(result)
    alive = sum(not result.killed for result in results)
    print(f"{len(results) - alive} of {len(results)} faults make their test fail")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
