"""Prints where torch lies and its version, one a line, without importing it; exit status 3 when there is none."""

import importlib.util
import os
import re

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    raise SystemExit(3)
root = os.path.dirname(spec.origin)
with open(os.path.join(root, "version.py"), encoding="utf-8") as file:
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", file.read(), re.MULTILINE)
if found is None:
    raise SystemExit(3)
print(root)
print(found.group(1), end="")
