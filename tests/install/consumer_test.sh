#!/usr/bin/env bash
# consumer_test.sh SOURCE_DIR BUILD_DIR PYTHON CMAKE: the installed package serves a project outside this tree.
set -euo pipefail
source_dir=$1 build_dir=$2 python=$3 cmake=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_consumer: $*" >&2
  exit 1
}

configure() {
  "$cmake" -G Ninja -S "$work/consumer" -B "$work/$1" -DCMAKE_PREFIX_PATH="$work/prefix" -DTHINWIRE_PYTHON="$2" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="${THINWIRE_LAUNCHER:-}"
}

loss_after() {
  sed -n "s/^step $1 loss //p" "$work/output"
}

"$cmake" --install "$build_dir" --prefix "$work/prefix" >"$work/log"
cp -r "$source_dir/examples/consumer_cmake" "$work/consumer"
if grep -rlF "$source_dir" "$work/prefix" --include='*.cmake' --include='*.hpp'; then
  fail "these installed files point back into the source tree"
fi
for header in $(grep -rhoP '#include "\Kthinwire/[^"]+' "$work/prefix/include" | sort -u); do
  [[ -f $work/prefix/include/$header ]] ||
    fail "an installed header includes $header, which is not installed (cmake/ThinwireInstall.cmake)"
done

configure build "$python" >>"$work/log" 2>&1 || { cat "$work/log"; fail "the consumer does not configure"; }
"$cmake" --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; fail "the consumer does not build"; }
"$work/build/consumer" | tee "$work/output"
awk -v first="$(loss_after 20)" -v last="$(loss_after 100)" 'BEGIN { exit !(last > 0 && last < first / 2) }' ||
  fail "the loss did not fall by half between step 20 and step 100"

# The installed command starts it on two ranks.
"$work/prefix/bin/thinwire" run -n 2 -- "$work/build/consumer" >"$work/output" || fail "two ranks did not end well"
grep -q 'step 100 loss' "$work/output" || fail "two ranks did not train"

# A torch of another minor release is refused, and both are named.
mkdir -p "$work/other/torch"
touch "$work/other/torch/__init__.py"
echo "__version__ = '2.1.0'" >"$work/other/torch/version.py"
printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "$work/other" "$python" >"$work/other/python"
chmod +x "$work/other/python"
if configure refused "$work/other/python" >"$work/refused.log" 2>&1; then
  fail "a torch of another minor release was accepted"
fi
built=$("$python" "$source_dir/cmake/find_torch.py" | tail -n 1)
tr -s ' \n' ' ' <"$work/refused.log" | grep -q "got 2.1.0 .*built with ${built%%+*}" ||
  { cat "$work/refused.log"; fail "the refusal does not name both releases"; }
echo "install_consumer: passed"
