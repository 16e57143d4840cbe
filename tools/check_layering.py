"""Who may include whom: the rooms of thinwire/, and where headers of Torch, c10d, Gloo, MPI and NCCL may appear."""

from __future__ import annotations

import fnmatch
import re
import sys
from pathlib import Path

import source_tree
from source_tree import Finding

MAY_USE = {
    "base": set(),
    "schema": {"base"},
    "codec": {"base", "schema"},
    "watch": {"base", "schema"},
    "comm": {"base", "schema", "codec", "watch"},
    "train": {"base", "schema", "codec", "watch", "comm"},
    "profile": {"base", "schema", "watch", "comm"},
    "cost": {"base", "schema", "codec"},
    "sim": {"base", "schema", "cost"},
    "plan": {"base", "schema", "cost", "sim"},
    "tune": {"base", "schema", "cost"},
}
MAY_USE["cli"] = set(MAY_USE)
FRONT_HEADER = "thinwire/thinwire.hpp"  # short names for users; no room includes it
TORCH_PLACES = (
    "thinwire/comm/",
    "thinwire/train/",
    "thinwire/profile/",
    FRONT_HEADER,
    "python/",
    "bench/",
    "examples/",
    "tests/",
)
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")

# (what, pattern of the header, files of thinwire/ that may include it)
CONFINED = [
    ("c10d headers", re.compile(r"torch/csrc/distributed/c10d/"), ["thinwire/comm/c10d_group*"]),
    ("Gloo headers", re.compile(r"gloo/"), ["thinwire/comm/c10d_group*"]),
    ("MPI headers", re.compile(r"mpi\.h$"), ["thinwire/comm/mpi_group*"]),
    ("NCCL headers", re.compile(r"nccl[\w/]*\.h$"), ["thinwire/tune/nccl/abi/*"]),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
ROOM_RULE = re.compile(r"\bthinwire_room\s*\(([^)]*)\)")


def room_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "thinwire" else None


def room_problem(path: str, header: str) -> str | None:
    room, used = room_of(path), room_of(header)
    if room is None:
        outside = path.split("/")[0] in ("python", "bench", "examples") or path == FRONT_HEADER
        return "nothing includes cli" if used == "cli" and outside else None
    if header == FRONT_HEADER:
        return None if room == "cli" else f"{FRONT_HEADER} is for users; rooms include what they need"
    if used is None or used == room:
        return None
    if room not in MAY_USE:
        return f"unknown room {room}; add it to MAY_USE in tools/check_layering.py"
    allowed = ", ".join(sorted(MAY_USE[room])) or "nothing"
    return None if used in MAY_USE[room] else f"{room} may not use {used} (it may use {allowed})"


def outside_problems(path: str, header: str) -> list[str]:
    problems = []
    if TORCH.match(header) and not path.startswith(TORCH_PLACES):
        problems.append(f"Torch header {header} outside {', '.join(TORCH_PLACES)}")
    if header == "torch/torch.h" and source_tree.is_header(path):
        problems.append("torch/torch.h in a header costs every includer 15 s; include ATen/core/Tensor.h or declare")
    for what, pattern, places in CONFINED:
        confined = path.startswith("thinwire/") and pattern.match(header)
        if confined and not any(fnmatch.fnmatch(path, place) for place in places):
            problems.append(f"{what} only in {', '.join(places)}; got {header}")
    return problems


def include_findings(root: Path, path: str) -> list[Finding]:
    findings = []
    for number, line in enumerate(source_tree.read(root, path).splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        room = room_problem(path, match.group(1))
        problems = ([room] if room else []) + outside_problems(path, match.group(1))
        findings += [Finding(path, number, problem) for problem in problems]
    return findings


def link_findings(root: Path, path: str) -> list[Finding]:
    """The same table for USES and PRIVATE_USES in thinwire_room(...); a folder may hold more than one library."""
    findings = []
    text = re.sub(r"#[^\n]*", "", source_tree.read(root, path))
    for match in ROOM_RULE.finditer(text):
        room, words = room_of(path) or "", match.group(1).split()
        for word in words[words.index("USES") if "USES" in words else len(words) :]:
            used = word.removeprefix("thinwire_").removeprefix("thinwire::")
            if used in MAY_USE and used != room and used not in MAY_USE.get(room, set()):
                line = text[: match.start()].count("\n") + 1
                findings.append(Finding(path, line, f"{room} may not link {used}"))
    return findings


def check(root: Path) -> list[Finding]:
    findings = []
    for path in source_tree.files_of(root):
        if source_tree.is_cpp(path):
            findings += include_findings(root, path)
        elif path.startswith("thinwire/") and path.endswith("CMakeLists.txt"):
            findings += link_findings(root, path)
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
