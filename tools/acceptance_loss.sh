#!/usr/bin/env bash
# Does compressed training reach the loss of dense training? char_gpt, 2 ranks, several seeds; takes long.
#   tools/acceptance_loss.sh --text FILE [--seeds "1 2 3"] [--runs "plain dense one_bit predicted"] [--steps N]
#                            [--programs DIR] [--out DIR]
# plain: one process of plain LibTorch on the joined batch. Runs that have a result in --out are not repeated.
set -euo pipefail
cd "$(dirname "$0")/.."
text='' seeds='1 2 3' runs='plain dense one_bit predicted' steps=2000 programs=build/release/bin out=runs/acceptance_loss

stop() { echo "acceptance_loss: $1" >&2; exit "${2:-1}"; }
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' tools/acceptance_loss.sh; exit 0 ;;
    --text | --seeds | --runs | --steps | --programs | --out)
      [ $# -ge 2 ] || stop "$1 needs a value; see --help" 2
      declare "${1#--}=$2"; shift 2 ;;
    *) stop "unknown option $1; see --help" 2 ;;
  esac
done
[ -r "$text" ] || stop "cannot read the text \"$text\"; try --text FILE" 2
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

train() {
  local name=$1 seed=$2 result=$out/$1.$2.json
  local common=(--text "$text" --steps "$steps" --seed "$seed" --result "$result")
  local two_ranks=("$programs/thinwire" run -n 2 -- "$programs/char_gpt" "${common[@]}")
  [ ! -s "$result" ] || return 0
  echo "== $name, seed $seed" >&2
  case $name in
    plain) "$programs/char_gpt_plain" "${common[@]}" --micro-batch 24 ;;
    dense) "${two_ranks[@]}" --optimizer adamw ;;
    one_bit) "${two_ranks[@]}" --optimizer one_bit ;;
    predicted) "${two_ranks[@]}" --optimizer one_bit --clip-mode predicted ;;
    *) stop "unknown run $name; want plain, dense, one_bit or predicted" 2 ;;
  esac >"$out/$name.$seed.log" || stop "run $name with seed $seed failed; see $out/$name.$seed.log"
}
mkdir -p "$out"
for seed in $seeds; do for name in $runs; do train "$name" "$seed"; done; done
python3 tools/acceptance_loss_table.py "$out"
