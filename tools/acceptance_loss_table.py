"""The table of tools/acceptance_loss.sh: acceptance_loss_table.py FOLDER. Exit status 1 when a limit is exceeded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

# run, compared with, largest relative difference of the validation loss
LIMITS = [("dense", "plain", 0.005), ("one_bit", "dense", 0.01), ("predicted", "one_bit", 0.005)]
FEWER_BYTES = 10.0
WORSE = 1.01  # of dense's final loss: what the shorter training has to reach
FASTER = 4.0


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
        if name.startswith("time_"):
            continue
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


def steps_needed(run: dict, loss: float) -> int | None:
    return next((e["step"] for e in run["evaluations"] if e["val_loss"] <= loss), None)


def link_text(folder: Path, seed: int) -> str:
    """What the launcher said; the network can be real (shaped namespaces) or emulated inside the program."""
    lines = (folder / f"time_dense.{seed}.log").read_text(errors="replace").splitlines()
    return next((line.removeprefix("link: ") for line in lines if line.startswith("link: ")), "unknown link")


def compare_times(seed: int, runs: dict[str, dict]) -> bool:
    """Steps needed times the step times measured on the slow link."""
    dense, one_bit = runs["dense4"], runs["one_bit4"]
    step_s = {name: runs[f"time_{name}"]["median_step_s"] for name in ("dense", "warm_up", "one_bit")}
    steps = steps_needed(one_bit, WORSE * dense["val_loss"])
    if steps is None:
        print(f"micro-batch 4, seed {seed}: {WORSE * dense['val_loss']:.4f} was not reached: FAILED")
        return False
    warm_up = min(one_bit["frozen_at"], steps)
    dense_s = dense["steps"] * step_s["dense"]
    one_bit_s = warm_up * step_s["warm_up"] + (steps - warm_up) * step_s["one_bit"]
    ratio = dense_s / one_bit_s
    print(f"micro-batch 4, seed {seed}, time to {WORSE} times dense's loss {dense['val_loss']:.4f}")
    print(f"  dense: {dense['steps']} steps of {1e3 * step_s['dense']:.0f} ms = {dense_s:.0f} s")
    print(
        f"  1-bit: {warm_up} steps of {1e3 * step_s['warm_up']:.0f} ms and {steps - warm_up} of"
        f" {1e3 * step_s['one_bit']:.0f} ms = {one_bit_s:.0f} s"
    )
    print(f"  {ratio:.1f} times shorter, limit {FASTER:.0f}: {'passed' if ratio >= FASTER else 'FAILED'}")
    return ratio >= FASTER


def print_times(folder: Path, results: dict[str, dict[int, dict]]) -> bool:
    names = ("dense4", "one_bit4", "time_dense", "time_warm_up", "time_one_bit")
    good = True
    for seed in sorted(set.intersection(*(set(results.get(name, {})) for name in names))):
        print(f"link: {link_text(folder, seed)}")
        good &= compare_times(seed, {name: results[name][seed] for name in names})
    return good


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    results = read_results(folder)
    if not results:
        print(f"acceptance_loss: no results in {folder}", file=sys.stderr)
        return 1
    print_losses(results)
    losses_good = print_comparisons(results)
    return 0 if print_times(folder, results) and losses_good else 1


if __name__ == "__main__":
    sys.exit(main())
