#!/usr/bin/env bash
# Lines that the last test run reached, from a tree built with preset coverage: coverage.sh BUILD_DIR
set -euo pipefail
build=${1:?usage: coverage.sh BUILD_DIR}
python3 -m gcovr --version >/dev/null 2>&1 || python3 -m pip install -qq gcovr
python3 -m gcovr --root . --filter thinwire/ --exclude-throw-branches --gcov-ignore-parse-errors=all \
  --txt "$build/coverage.txt" --txt-metric line "$build"
tail -n 5 "$build/coverage.txt"
echo "coverage: $build/coverage.txt"
