"""Shell scripts pass `bash -n`, Python compiles, ruff (`make setup` installs it) finds no unknown or unused name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import source_tree
from source_tree import Finding

RUFF_RULES = "E9,E501,F,B,UP,I"


def is_shell(root: Path, path: str) -> bool:
    if "." in Path(path).name:
        return path.endswith(".sh")
    return source_tree.read(root, path).startswith("#!/usr/bin/env bash")


def shell_findings(root: Path, path: str) -> list[Finding]:
    result = subprocess.run(["bash", "-n", path], cwd=root, capture_output=True, text=True, check=False)
    return [Finding(path, 0, result.stderr.strip())] if result.returncode else []


def python_findings(root: Path, path: str) -> list[Finding]:
    try:
        compile(source_tree.read(root, path), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return [Finding(path, error.lineno or 0, error.msg)]
    return []


def ruff() -> str | None:
    beside = Path(sys.executable).parent / "ruff"
    return str(beside) if beside.exists() else shutil.which("ruff")


def ruff_findings(root: Path, paths: list[str]) -> list[Finding]:
    program = ruff()
    if program is None or not paths:
        return []
    command = [
        program,
        "check",
        "--isolated",
        "--no-cache",
        "--quiet",
        "--line-length=120",
        f"--select={RUFF_RULES}",
        "--output-format=concise",
        "--target-version=py310",
        *paths,
    ]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    lines = (result.stdout + result.stderr).strip().splitlines() if result.returncode else []
    return [Finding("ruff", 0, line) for line in lines]


def check(root: Path) -> list[Finding]:
    files = source_tree.files_of(root)
    python = [path for path in files if path.endswith((".py", ".pyi"))]
    findings = [f for path in files if is_shell(root, path) for f in shell_findings(root, path)]
    findings += [f for path in python for f in python_findings(root, path)]
    return findings if findings else ruff_findings(root, python)


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
