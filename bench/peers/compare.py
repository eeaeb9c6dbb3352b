#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times cases of peer_cases.py and prints what was timed; run_all calls it.

    compare.py run --threads N --repeat K --filter TEXT --out FILE
    compare.py table FILE...
    compare.py plot FILE... --out PICTURE

Contestants of a case take turns, K rounds of at least a millisecond each; the least time of each
counts. A turn begins with 10 ms that are not timed: the others have filled the caches, and it takes
several passes until large arrays are there again. On several threads each rests before its turn:
threads of NumPy's OpenBLAS spin for 80 ms after their last work and would take a core from the
next one. Then 50 ms are not timed: a thread that wakes up may begin on the core of another one.
Results are compared with ours first: a peer that disagrees is reported and not timed.
"""

import argparse
import importlib
import json
import math
import sys
import time
from typing import NamedTuple

import numpy as np

LARGEST_RATIO = 1.10


class Pace(NamedTuple):
    """Seconds before a turn is timed."""
    rest: float
    warm_up: float


ONE_THREAD, SEVERAL_THREADS = Pace(0, 0.01), Pace(0.1, 0.05)


def largest_difference(a, b):
    """Relative to the largest element."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return float("inf")
    wide = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    scale = np.max(np.abs(b), initial=0) or 1
    return float(np.max(np.abs(a - b), initial=0) / scale)


def seconds_of_round(call, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def times(contestants, repeat, pace):
    calls, least = {}, {}
    for name, call in contestants.items():
        call()
        calls[name] = max(1, int(1e-3 / max(seconds_of_round(call, 1), 1e-9)))
        least[name] = float("inf")
    for _ in range(repeat):
        for name, call in contestants.items():
            time.sleep(pace.rest)
            begin = time.perf_counter()
            while time.perf_counter() - begin < pace.warm_up:
                call()
            least[name] = min(least[name], seconds_of_round(call, calls[name]))
    return least


def run_case(case, repeat, pace):
    contestants = case.contestants()
    ours = contestants["ours"]()
    kept, notes = {"ours": contestants["ours"]}, []
    for name, call in contestants.items():
        if name == "ours":
            continue
        difference = largest_difference(case.to_numpy(call()), case.to_numpy(ours))
        if difference <= case.tolerance:
            kept[name] = call
        else:
            notes.append(f"{name} differs by {difference:.1e}")
    return {"case": case.name, "times": times(kept, repeat, pace), "notes": notes}


def run(arguments):
    cases = importlib.import_module("peer_cases").all_cases()
    results = []
    pace = SEVERAL_THREADS if arguments.threads > 1 else ONE_THREAD
    for case in cases:
        if arguments.filter not in case.name:
            continue
        try:
            results.append(run_case(case, arguments.repeat, pace))
        except Exception as error:  # a peer's failure is a line of the table, not the end
            results.append({"case": case.name, "times": {}, "notes": [f"{type(error).__name__}: {error}"]})
        print(f"{arguments.threads} threads: {case.name}", file=sys.stderr)
    with open(arguments.out, "w", encoding="utf-8") as file:
        json.dump({"threads": arguments.threads, "results": results}, file, indent=1)


def row(threads, result):
    ours = result["times"].get("ours")
    peers = {name: t for name, t in result["times"].items() if name != "ours"}
    notes = "; ".join(result["notes"])
    if ours is None or not peers:
        return [result["case"], str(threads), "" if ours is None else f"{ours * 1e6:.4g}", "", "", notes]
    best = min(peers, key=peers.get)
    ratio = ours / peers[best]
    shown = f"**{ratio:.2f}**" if ratio > LARGEST_RATIO else f"{ratio:.2f}"
    others = ", ".join(f"{name} {ours / t:.2f}" for name, t in sorted(peers.items(), key=lambda p: p[1]))
    return [result["case"], str(threads), f"{ours * 1e6:.4g}", shown, others, notes]


def table(arguments):
    rows = [["case", "threads", "ours, us", "ratio to the best", "ratios to all", "notes"]]
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        rows += [row(data["threads"], result) for result in data["results"]]
    for i, cells in enumerate(rows):
        print("| " + " | ".join(cells) + " |")
        if i == 0:
            print("|" + "---|" * len(cells))
    slower = sum("**" in cells[3] for cells in rows)
    print(f"\n{len(rows) - 1} lines; a peer is more than 10 % faster in {slower}.")


def ratios(paths):
    """(threads, ours over the best peer), least first."""
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        for result in data["results"]:
            peers = [t for name, t in result["times"].items() if name != "ours"]
            if peers and "ours" in result["times"]:
                found.append((data["threads"], result["times"]["ours"] / min(peers)))
    return sorted(found, key=lambda pair: pair[1])


def plot(arguments):
    """All ratios in order on a logarithmic axis, as SVG: a point for each case."""
    width, height, left, bottom, largest = 720, 330, 60, 40, 8.0
    points = ratios(arguments.files)
    across = (width - left - 10) / max(len(points), 1)

    def y(ratio):
        share = math.log(min(max(ratio, 1 / largest), largest)) / math.log(largest)
        return (height - bottom) / 2 * (1 - share) + 5

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             "<!-- SPDX-License-Identifier: Apache-2.0 -->",
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for ratio in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8):
        color = "black" if ratio == 1 else "#cccccc"
        lines.append(f'<path d="M{left} {y(ratio):.1f}H{width - 10}" stroke="{color}"/>'
                     f'<text x="{left - 8}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for k, (threads, ratio) in enumerate(points):
        color = "#1f77b4" if threads == 1 else "#ff7f0e"
        lines.append(f'<circle cx="{left + (k + 0.5) * across:.1f}" cy="{y(ratio):.1f}" r="2.5" fill="{color}"/>')
    faster = sum(ratio <= LARGEST_RATIO for _, ratio in points)
    lines.append(f'<text x="{left}" y="{height - 12}">time of Palimpsest / time of the fastest peer, '
                 f'{len(points)} cases in order (1 thread: blue, 2 threads: orange); '
                 f'at most {LARGEST_RATIO} in {faster}</text></svg>')
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("--threads", type=int, required=True)
    command.add_argument("--repeat", type=int, default=15)
    command.add_argument("--filter", default="")
    command.add_argument("--out", required=True)
    command.set_defaults(call=run)
    command = commands.add_parser("table")
    command.add_argument("files", nargs="+")
    command.set_defaults(call=table)
    command = commands.add_parser("plot")
    command.add_argument("files", nargs="+")
    command.add_argument("--out", required=True)
    command.set_defaults(call=plot)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
