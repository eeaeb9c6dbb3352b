#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the number of instructions of each case of bench_growth grows with the number of parts.

    bench/growth/instructions.py [--sizes 100,1000,10000] PATH/TO/bench_growth [name]...

Counts by callgrind, which neither other work on the machine nor its caches change, and fits the
exponent p of instructions = c n^p as bench_growth does that of times. Ends with the cases above 1.2;
the exit status says whether there are any.
"""

import argparse
import math
import os
import re
import subprocess
import sys

HIGHEST_EXPONENT = 1.2


def instructions(program, parts, name):
    """Of one case, once; None where it does not run so large."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         "--toggle-collect=*counted_work*", program, "--once", str(parts), name],
        capture_output=True, text=True, check=False,
        env=dict(os.environ, PALIMPSEST_FLAGS="threads=1"))
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"instructions.py: {name}: {done.stderr[-2000:]}")
    return int(found.group(1)) or None


def exponent(points):
    """The slope of log(count) over log(parts), by least squares."""
    logs = [(math.log(n), math.log(count)) for n, count in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x)**2 for x, _ in logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", help="cases whose name contains one of these")
    parser.add_argument("--sizes", default="100,1000,10000", help="numbers of parts")
    options = parser.parse_args()
    listed = subprocess.run([options.program, "--list"], capture_output=True, text=True, check=True)
    sizes = [int(n) for n in options.sizes.split(",")]
    above = []
    print(f"{'instructions in millions at':<44}" + "".join(f"{n:>11}" for n in sizes)
          + "    exp.   last", flush=True)
    for name in listed.stdout.splitlines():
        if options.names and not any(part in name for part in options.names):
            continue
        counts = [(n, instructions(options.program, n, name)) for n in sizes]
        points = [(n, count) for n, count in counts if count]
        fitted, last = exponent(points), exponent(points[-2:])
        print(f"{name:<44}" + "".join(f"{(count or 0) / 1e6:>11.2f}" for _, count in counts)
              + f"{fitted:>8.2f}{last:>7.2f}", flush=True)
        if fitted > HIGHEST_EXPONENT:
            above.append(name)
    print(f"\n{len(above)} cases with an exponent above {HIGHEST_EXPONENT}")
    for name in above:
        print(f"  {name}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
