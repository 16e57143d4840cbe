#!/usr/bin/env bash
# Does compressed training reach the loss of dense training, and how soon? char_gpt, 2 ranks, several seeds; takes long.
#   tools/acceptance_loss.sh --text FILE [--seeds "1 2 3"] [--runs "plain dense one_bit predicted"] [--steps N]
#                            [--link RATE] [--programs DIR] [--out DIR]
# plain: one process of plain LibTorch on the joined batch. Further runs: dense4 one_bit4 (micro-batch 4) and times, the
# step times of those two on the link RATE. Runs that have a result in --out are not repeated, interrupted ones go on.
set -euo pipefail
cd "$(dirname "$0")/.."
text='' seeds='1 2 3' runs='plain dense one_bit predicted' steps=2000 programs=build/release/bin out=runs/acceptance_loss
link=100mbit

stop() { echo "acceptance_loss: $1" >&2; exit "${2:-1}"; }
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' tools/acceptance_loss.sh; exit 0 ;;
    --text | --seeds | --runs | --steps | --link | --programs | --out)
      [ $# -ge 2 ] || stop "$1 needs a value; see --help" 2
      declare "${1#--}=$2"; shift 2 ;;
    *) stop "unknown option $1; see --help" 2 ;;
  esac
done
[ -r "$text" ] || stop "cannot read the text \"$text\"; try --text FILE" 2
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# two_ranks NAME SEED FLAGS... : goes on from its checkpoint when it was interrupted
two_ranks() {
  local saved=$out/$1.$2.checkpoint
  shift 2
  "$programs/thinwire" run -n 2 -- "$programs/char_gpt" "${common[@]}" --checkpoint "$saved" --save-every 200 --resume "$@"
}

# 60 steps with the variance frozen at once, or not at all: the step of either stage by itself.
on_the_link() {
  "$programs/thinwire" run -n 2 --link "$link" -- "$programs/char_gpt" --text "$text" --result "$result" --steps 60 \
    --micro-batch 4 --eval-windows 64 "$@"
}

train() {
  local name=$1 seed=$2 result=$out/$1.$2.json
  local common=(--text "$text" --steps "$steps" --seed "$seed" --result "$result")
  [ ! -s "$result" ] || return 0
  echo "== $name, seed $seed" >&2
  case $name in
    plain) "$programs/char_gpt_plain" "${common[@]}" --micro-batch 24 ;;
    dense) two_ranks "$name" "$seed" --optimizer adamw ;;
    one_bit) two_ranks "$name" "$seed" --optimizer one_bit ;;
    predicted) two_ranks "$name" "$seed" --optimizer one_bit --clip-mode predicted ;;
    dense4) two_ranks "$name" "$seed" --optimizer adamw --micro-batch 4 ;;
    one_bit4) two_ranks "$name" "$seed" --optimizer one_bit --micro-batch 4 --eval-every 100 ;;
    time_dense) on_the_link --optimizer adamw ;;
    time_warm_up) on_the_link --optimizer one_bit --freeze-step 1000 ;;
    time_one_bit) on_the_link --optimizer one_bit --freeze-step 2 ;;
    *) stop "unknown run $name; want plain, dense, one_bit, predicted, dense4, one_bit4 or times" 2 ;;
  esac >"$out/$name.$seed.log" || stop "run $name with seed $seed failed; see $out/$name.$seed.log"
}
mkdir -p "$out"
for seed in $seeds; do
  for name in ${runs/times/time_dense time_warm_up time_one_bit}; do train "$name" "$seed"; done
done
python3 tools/acceptance_loss_table.py "$out"
