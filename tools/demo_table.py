"""The table of `make demo`, from the results of its two runs: demo_table.py FOLDER (with dense/ and one_bit/ in it)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

MARGIN = 0.005  # of accuracy: one evaluation's noise, so that the comparison does not hang on a single image
RUNS = {"dense": "dense (fp32)", "one_bit": "1-bit Adam"}


class Missing(Exception):
    pass


def read_result(folder: Path) -> dict:
    path = folder / "result.json"
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise Missing(f"cannot read {path}: {error.strerror}; did that run fail?") from error
    except ValueError as error:
        raise Missing(f"{path} is no JSON: {error}") from error
    if not result.get("evaluations") or not result.get("steps"):
        raise Missing(f"{path} holds no finished run")
    return result


def link_text(folder: Path, result: dict) -> str:
    """What the launcher said; the network can be real (shaped namespaces) or emulated inside the program."""
    log = folder / "output.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = next((line for line in lines if line.startswith("link: ")), None)
    return said.removeprefix("link: ") if said else result.get("link", "unknown")


def seconds_to(result: dict, target: float) -> float | None:
    return next((e["seconds"] for e in result["evaluations"] if e["accuracy"] >= target), None)


def rows(results: dict[str, dict], target: float) -> list[tuple[str, list[str]]]:
    def row(title: str, cell) -> tuple[str, list[str]]:
        return title, [cell(result) for result in results.values()]

    def reached(result: dict) -> str:
        seconds = seconds_to(result, target)
        return f"not reached in {result['seconds']:.0f} s" if seconds is None else f"{seconds:.1f} s"

    def exposed(result: dict) -> str:
        share = result["mean_exposed_s"] * result["steps"] / result["seconds"]
        return f"{1e3 * result['mean_exposed_s']:.0f} ms ({100 * share:.0f} %)"

    return [
        row("samples/s", lambda r: f"{r['samples_per_s']:.0f}"),
        row("step time, median", lambda r: f"{1e3 * r['median_step_s']:.0f} ms"),
        row("exposed communication", exposed),
        row("bytes per step and rank", lambda r: f"{r['sent_bytes'] / r['steps'] / 1e6:.2f} MB"),
        row("  of it in the last step", lambda r: f"{r['sent_bytes_last_step'] / 1e6:.2f} MB"),
        row("variance frozen at step", lambda r: str(r["frozen_at"]) if r["frozen_at"] >= 0 else "-"),
        row("test accuracy", lambda r: f"{100 * r['accuracy']:.1f} %"),
        row("time to dense's accuracy", reached),
    ]


def print_table(root: Path) -> None:
    results = {name: read_result(root / name) for name in RUNS}
    final = results["dense"]["evaluations"][-1]["accuracy"]
    target = final - MARGIN
    print(f"\nlink: {link_text(root / 'dense', results['dense'])}; {results['dense']['ranks']} ranks")
    print(f"{'':26}" + "".join(f"{title:>22}" for title in RUNS.values()))
    for title, cells in rows(results, target):
        print(f"{title:26}" + "".join(f"{cell:>22}" for cell in cells))
    times = [seconds_to(results[name], target) for name in RUNS]
    if all(times):
        print(f"1-bit Adam reached it {times[0] / times[1]:.1f} times as fast")
    print(
        f"\nTime to dense's accuracy: training time until the first evaluation with at least {100 * target:.1f} %,"
        f"\nthat is dense's last evaluation ({100 * final:.1f} %) less {100 * MARGIN:.1f} points. Evaluations (a fixed"
        f"\npart of the test set) are not counted as training time; test accuracy is that of the whole test set."
    )
    for name in RUNS:
        print(f"{RUNS[name]:13} steps: {root}/{name}/steps.*.jsonl   Chrome trace: {root}/{name}/trace.*.json")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print_table(Path(sys.argv[1]))
    except (Missing, KeyError) as error:
        print(f"demo: {'missing number ' if isinstance(error, KeyError) else ''}{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
