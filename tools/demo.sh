#!/usr/bin/env bash
# Trains a small vision transformer on 2 ranks over a slow link, dense and then with 1-bit Adam, and compares the two.
#   tools/demo.sh [--data DIR] [--link RATE] [--steps N] [--seed N] [--programs DIR] [--out DIR]
# DIR of --data holds the four IDX files of Fashion-MNIST; RATE as tc writes it. Results lie in --out (runs/demo).
set -euo pipefail
cd "$(dirname "$0")/.."
data=/usr/share/datasets/fashion-mnist link=100mbit steps=240 programs=build/release/bin out=runs/demo seed=1

stop() { echo "demo: $1" >&2; exit "${2:-1}"; }
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' tools/demo.sh; exit 0 ;;
    --data | --link | --steps | --seed | --programs | --out)
      [ $# -ge 2 ] || stop "$1 needs a value; see --help" 2
      declare "${1#--}=$2"; shift 2 ;;
    *) stop "unknown option $1; see --help" 2 ;;
  esac
done
for program in thinwire fashion_vit; do
  [ -x "$programs/$program" ] || stop "no $programs/$program; try make build"
done
ls "$data"/train-images-idx3-ubyte* >/dev/null 2>&1 ||
  stop "no Fashion-MNIST in $data; try apt-get install dataset-fashion-mnist, or --data DIR"

# train NAME TITLE FLAGS...: results in $out/NAME. Not shown: the result line, and that a namespace has no host names.
train() {
  local dir=$out/$1 title=$2
  shift 2
  rm -rf "$dir"
  mkdir -p "$dir"
  echo "== $title"
  "$programs/thinwire" run -n 2 --link "$link" -- "$programs/fashion_vit" --data "$data" --steps "$steps" \
    --seed "$seed" --progress-every 3 --log "$dir/steps.{rank}.jsonl" --trace "$dir/trace.{rank}.json" \
    --result "$dir/result.json" "$@" 2>&1 | tee "$dir/output.log" | grep --line-buffered -v -e '^\[[0-9]*\] {' -e 'hostname of the client socket' ||
    stop "the run \"$title\" failed; its output is in $dir/output.log"
  [ -s "$dir/result.json" ] || stop "the run \"$title\" left no result; its output is in $dir/output.log"
}
train dense "dense: AdamW, gradients as fp32" --optimizer adamw --codec fp32
train one_bit "1-bit Adam: int4 until the variance is stable, then one bit" --optimizer one_bit
python3 tools/demo_table.py "$out"
