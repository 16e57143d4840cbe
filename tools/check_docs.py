"""Links of the documents resolve; every make target and every verb of `thinwire` that they show exists."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

import source_tree
from source_tree import Finding

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE_SPAN = re.compile(r"`([^`]+)`")
VERB = re.compile(r"(?:^|(?<=[\s/;|]))thinwire[ ]+([a-z][a-z_-]*)")
MAKE = re.compile(r"(?:^|(?<=[\s;|]))make[ ]+([a-z][a-z0-9_-]*)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")


def split(text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Numbered lines of prose (code spans emptied) and numbered pieces of code."""
    prose, code, fenced = [], [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            code.append((number, line.lstrip().removeprefix("$ ")))
        else:
            code += [(number, span) for span in CODE_SPAN.findall(line)]
            prose.append((number, CODE_SPAN.sub("``", line)))
    return prose, code


def anchors(text: str) -> set[str]:
    found = set()
    for _, line in split(text)[0]:
        match = HEADING.match(line)
        if match:
            found.add(re.sub(r"[^\w\- ]", "", match.group(1).lower()).replace(" ", "-"))
    return found


def link_problem(root: Path, path: str, target: str) -> str | None:
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
    if not (root / file).exists():
        return f"link to {target}: no {file}"
    if anchor and file.endswith(".md") and anchor not in anchors(source_tree.read(root, file)):
        return f"link to {target}: no heading #{anchor} in {file}"
    return None


def make_targets(root: Path) -> set[str]:
    if not (root / "Makefile").is_file():
        return set()
    lines = source_tree.read(root, "Makefile").splitlines()
    heads = [line.split(":")[0].split() for line in lines if re.match(r"[a-z][\w \-]*:(?!=)", line)]
    return {target for head in heads for target in head}


def cli_words(root: Path, files: list[str]) -> set[str]:
    words = set()
    for path in files:
        if path.startswith("thinwire/cli/") and source_tree.is_cpp(path):
            words |= set(re.findall(r'"([a-z][a-z_-]*)"', source_tree.read(root, path)))
    return words


def check(root: Path) -> list[Finding]:
    files = source_tree.files_of(root)
    targets, words, findings = make_targets(root), cli_words(root, files), []
    for path in (p for p in files if p.endswith(".md")):
        prose, code = split(source_tree.read(root, path))
        links = [(number, link) for number, line in prose for link in LINK.findall(line)]
        problems = [(number, link_problem(root, path, link)) for number, link in links]
        for number, text in code:
            problems += [(number, f"make {t}: no such target") for t in MAKE.findall(text) if t not in targets]
            problems += [
                (number, f"thinwire {v}: no such verb in thinwire/cli")
                for v in VERB.findall(text)
                if v not in words and "import " not in text
            ]
        findings += [Finding(path, number, problem) for number, problem in problems if problem]
    return findings


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
