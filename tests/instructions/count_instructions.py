#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of small calls under callgrind and holds them to bounds.

    count_instructions.py PROGRAM BOUNDS [--write]

PROGRAM marks where a case begins and ends, and prints the names in order. BOUNDS holds a line
"name count" per case: the count of a build without optimization for speed (-O1), with AVX2, which is
the most that valgrind knows. A case fails above LARGEST times its count: clocks would not say. With
--write the file is made anew. Exits with 77, a skipped test, where valgrind or AVX2 is missing.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

LARGEST = 1.3


def counted(program):
    """The instructions of each case, by name."""
    environment = dict(os.environ, PALIMPSEST_FLAGS="threads=1")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "counts")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--combine-dumps=no",
             "--zero-before=begin_of_case", "--dump-before=end_of_case", program],
            env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"count_instructions.py: valgrind failed\n{run.stdout}{run.stderr}")
        names = run.stdout.split()
        counts = []
        for number in range(1, len(names) + 1):
            with open(f"{out}.{number}", encoding="utf-8") as file:
                counts.append(int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M)[1]))
    return dict(zip(names, counts))


def read_bounds(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {name: int(count) for name, count in lines}


def write_bounds(path, counts):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# SPDX-License-Identifier: Apache-2.0\n"
                   "# Made by count_instructions.py --write\n")
        file.writelines(f"{name} {count}\n" for name, count in counts.items())


def failures(counts, bounds):
    """What is wrong, as lines of text."""
    lines = [f"{name}: no count" for name in bounds if name not in counts]
    lines += [f"{name}: no bound" for name in counts if name not in bounds]
    for name, count in counts.items():
        if name in bounds and count > LARGEST * bounds[name]:
            lines.append(f"{name}: got {count} instructions, expected at most {LARGEST} times "
                         f"{bounds[name]}. Try to find the cause with callgrind_annotate, or write "
                         "the bounds again")
    return lines


def has_avx2():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return " avx2 " in file.read()
    except OSError:
        return False


def main(arguments):
    program, path = arguments[0], arguments[1]
    if shutil.which("valgrind") is None or not has_avx2():
        print("valgrind or AVX2 is missing")
        return 77
    counts = counted(program)
    for name, count in counts.items():
        print(f"{name} {count}")
    if "--write" in arguments:
        write_bounds(path, counts)
        return 0
    wrong = failures(counts, read_bounds(path))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
