#!/usr/bin/env bash
# Repeats the tests of 4 processes until one fails: each run has a seed of its own for the order in which buckets become
# ready. No retries.
#   tools/stress.sh BUILD_DIR [RUNS]
set -euo pipefail
build=${1:?the build directory, for example build/dev} runs=${2:-50}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
filter='Worlds/*/4'
log=$(mktemp)
trap 'rm -f "$log"' EXIT

programs=()
for name in dist_gloo_test dist_train_gloo_test dist_train_bytes_test; do
  program=$(find "$build" -type f -name "$name" -perm -u+x -print -quit)
  [ -n "$program" ] || { echo "stress: no $name in $build; try make test" >&2; exit 2; }
  programs+=("$program")
done
for ((run = 1; run <= runs; ++run)); do
  for program in "${programs[@]}"; do
    if ! "$program" --gtest_filter="$filter" >"$log" 2>&1; then
      cat "$log"
      echo "stress: run $run of $runs: $(basename "$program") failed" >&2
      exit 1
    fi
    grep -q '\[  PASSED  \] [1-9]' "$log" || { echo "stress: $(basename "$program") has no test $filter" >&2; exit 2; }
  done
  echo "stress: run $run of $runs passed"
done
