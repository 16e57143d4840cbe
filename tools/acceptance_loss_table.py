"""The table of tools/acceptance_loss.sh: acceptance_loss_table.py FOLDER. Exit status 1 when a limit is exceeded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

# run, compared with, largest relative difference of the validation loss
LIMITS = [("dense", "plain", 0.005), ("one_bit", "dense", 0.01), ("predicted", "one_bit", 0.005)]
FEWER_BYTES = 10.0


def read_results(folder: Path) -> dict[str, dict[int, dict]]:
    results: dict[str, dict[int, dict]] = {}
    for path in sorted(folder.glob("*.*.json")):
        name, seed, _ = path.name.split(".")
        results.setdefault(name, {})[int(seed)] = json.loads(path.read_text())
    return results


def mean_loss(runs: dict[int, dict], seeds: list[int]) -> float:
    return sum(runs[seed]["val_loss"] for seed in seeds) / len(seeds)


def print_losses(results: dict[str, dict[int, dict]]) -> None:
    print(f"{'run':11}{'seed':>5}{'val loss':>10}{'train loss':>12}{'frozen at':>11}{'MB sent':>10}{'s':>8}")
    for name, runs in results.items():
        for seed, run in runs.items():
            sent = run.get("sent_bytes", 0) / 1e6
            print(
                f"{name:11}{seed:5}{run['val_loss']:10.4f}{run['train_loss']:12.4f}{run.get('frozen_at', -1):11}"
                f"{sent:10.1f}{run['seconds']:8.0f}"
            )


def print_comparisons(results: dict[str, dict[int, dict]]) -> bool:
    good = True
    for name, other, limit in LIMITS:
        seeds = sorted(set(results.get(name, {})) & set(results.get(other, {})))
        if not seeds:
            continue
        difference = mean_loss(results[name], seeds) / mean_loss(results[other], seeds) - 1
        # Better than the run it is compared with is no failure, but two forms of the same algorithm must agree.
        passed = difference <= limit if name == "one_bit" else abs(difference) <= limit
        good &= passed
        print(f"{name} against {other}, {len(seeds)} seeds: {100 * difference:+.2f} %, limit {100 * limit:.1f} %"
              f": {'passed' if passed else 'FAILED'}")
    seeds = sorted(set(results.get("dense", {})) & set(results.get("one_bit", {})))
    for seed in seeds:
        ratio = results["dense"][seed]["sent_bytes"] / results["one_bit"][seed]["sent_bytes"]
        good &= ratio >= FEWER_BYTES
        print(f"bytes of the whole run, seed {seed}: {ratio:.1f} times fewer, limit {FEWER_BYTES:.0f}"
              f": {'passed' if ratio >= FEWER_BYTES else 'FAILED'}")
    return good


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    results = read_results(Path(sys.argv[1]))
    if not results:
        print(f"acceptance_loss: no results in {sys.argv[1]}", file=sys.stderr)
        return 1
    print_losses(results)
    return 0 if print_comparisons(results) else 1


if __name__ == "__main__":
    sys.exit(main())
