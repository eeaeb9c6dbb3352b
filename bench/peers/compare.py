#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times cases of peer_cases.py and prints what was timed; run_all calls it.

    compare.py run --threads N --repeat K --filter TEXT --out FILE
    compare.py table FILE...

Contestants of a case take turns, K rounds of at least a millisecond each; the least time of each
counts. Results are compared with ours first: a peer that disagrees is reported and not timed.
"""

import argparse
import importlib
import json
import sys
import time

import numpy as np

LARGEST_RATIO = 1.10


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


def times(contestants, repeat):
    calls, least = {}, {}
    for name, call in contestants.items():
        call()
        calls[name] = max(1, int(1e-3 / max(seconds_of_round(call, 1), 1e-9)))
        least[name] = float("inf")
    for _ in range(repeat):
        for name, call in contestants.items():
            least[name] = min(least[name], seconds_of_round(call, calls[name]))
    return least


def run_case(case, repeat):
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
    return {"case": case.name, "times": times(kept, repeat), "notes": notes}


def run(arguments):
    cases = importlib.import_module("peer_cases").all_cases()
    results = []
    for case in cases:
        if arguments.filter not in case.name:
            continue
        try:
            results.append(run_case(case, arguments.repeat))
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
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
