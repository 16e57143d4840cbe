"""Sizes: files median <= 120 lines, 90 % <= 400, none over 600; functions 90 % <= 30 lines, none over 60."""

from __future__ import annotations

import ast
import math
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import source_tree
from source_tree import Finding

FILE_MEDIAN, FILE_MOST, FILE_ALL = 120, 400, 600
FUNCTION_MOST, FUNCTION_ALL = 30, 60
SHARE = 0.9


class Function(NamedTuple):
    path: str
    line: int
    name: str
    lines: int


_NOT_A_FUNCTION = re.compile(r"\s*(?:inline\s+)?(namespace|enum|union|extern)\b")
_TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:typedef\s+)?(class|struct)\s+[^()]*$", re.DOTALL)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAME = re.compile(r"([~\w:]+|operator\s*\S+?)\s*\(")


def _is_function(head: str) -> bool:
    """Whether the text before an opening brace, since the last statement, is that of a function."""
    if _NOT_A_FUNCTION.match(head) or _TYPE.match(head.strip()) or "(" not in head:
        return False
    outside = head
    while True:  # what is left without parentheses
        shorter = re.sub(r"\([^()]*\)", "", outside)
        if shorter == outside:
            break
        outside = shorter
    return "operator" in outside or "=" not in outside.replace("==", "") or "[" in outside


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(text) - 1


def _goes_on(text: str, after: int) -> bool:
    """True when a brace that just closed was an initializer: `: a_{1}, b_{2} {`."""
    rest = text[after:].lstrip()
    return rest.startswith((",", "{"))


def cpp_functions(path: str, source: str) -> Iterator[Function]:
    text = source_tree.without_comments_and_strings(source)
    text = _PREPROCESSOR.sub(lambda match: "\n" * match.group().count("\n"), text)
    head, at, parentheses = 0, 0, 0
    while at < len(text):
        letter = text[at]
        parentheses += {"(": 1, ")": -1}.get(letter, 0)
        if parentheses <= 0 and letter in ";}":
            head = at + 1
        elif letter == "{" and parentheses > 0:
            at = _closing(text, at)
        elif letter == "{":
            signature = text[head:at]
            block = _is_function(signature) or "=" in signature
            if block:
                at = _closing(text, at)
                if not _goes_on(text, at + 1):
                    yield from _function(path, text, head, at, signature)
                    head = at + 1
            else:
                head = at + 1
        at += 1


def _function(path: str, text: str, head: int, end: int, signature: str) -> Iterator[Function]:
    if not _is_function(signature):
        return
    start = head + len(signature) - len(signature.lstrip())
    first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    name = _NAME.search(signature)
    yield Function(path, first, name.group(1) if name else "lambda", last - first + 1)


def python_functions(path: str, source: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(source, filename=path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(path, node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)


def functions_of(path: str, source: str) -> list[Function]:
    return list(python_functions(path, source) if path.endswith(".py") else cpp_functions(path, source))


def _share_finding(what: str, lengths: list[int], limit: int) -> list[Finding]:
    allowed = math.floor(len(lengths) * (1 - SHARE) + 1e-9)
    over = sum(length > limit for length in lengths)
    if over <= allowed:
        return []
    return [Finding(".", 0, f"{over} of {len(lengths)} {what} are over {limit} lines, want at most {allowed}")]


def file_findings(lengths: dict[str, int]) -> list[Finding]:
    findings = [
        Finding(path, 0, f"{lines} lines; want at most {FILE_ALL}; split it by what it does")
        for path, lines in lengths.items()
        if lines > FILE_ALL
    ]
    if lengths and statistics.median(lengths.values()) > FILE_MEDIAN:
        median = statistics.median(lengths.values())
        findings.append(Finding(".", 0, f"median file has {median:.0f} lines, want at most {FILE_MEDIAN}"))
    return findings + _share_finding("files", list(lengths.values()), FILE_MOST)


def function_findings(functions: list[Function]) -> list[Finding]:
    findings = [
        Finding(f.path, f.line, f"{f.name} has {f.lines} lines; want at most {FUNCTION_ALL}")
        for f in functions
        if f.lines > FUNCTION_ALL
    ]
    return findings + _share_finding("functions", [f.lines for f in functions], FUNCTION_MOST)


def check(root: Path) -> list[Finding]:
    paths = [p for p in source_tree.files_of(root) if source_tree.is_cpp(p) or p.endswith((".py", ".sh"))]
    sources = {path: source_tree.read(root, path) for path in paths}
    functions = [f for path, text in sources.items() if not path.endswith(".sh") for f in functions_of(path, text)]
    return file_findings({path: text.count("\n") for path, text in sources.items()}) + function_findings(functions)


if __name__ == "__main__":
    sys.exit(source_tree.main(check))
