#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products, eigenvalues and singular values beside NumPy, on one thread, by turns.

    bench/peers/blas_numpy.py build/bench/bench/peers/peer_blas_turns [--turns N]

NumPy of the package index has an OpenBLAS of its own, which chooses kernels for this processor. So
must ours. Each side runs 30 ms a turn; times are those of the thread, so another program counts
little. Columns: the least and the median over the turns, in milliseconds, and ratios ours/NumPy.
"""

import argparse
import os
import statistics
import subprocess
import time

for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402: it reads the environment

CASES = [("matmul", dtype, n) for dtype in ("float32", "float64", "complex64", "complex128")
         for n in (64, 256, 768)]
CASES += [(what, dtype, n) for what in ("eigh", "svd") for dtype in ("float64", "complex128")
          for n in (32, 256)]


def numpy_call(what, dtype, n):
    draw = np.random.default_rng(1)
    a = draw.standard_normal((n, n))
    if dtype.startswith("complex"):
        a = a + 1j * draw.standard_normal((n, n))
    a = a.astype(dtype)
    if what == "matmul":
        b, out = a.copy(), np.empty_like(a)
        return lambda: np.matmul(a, b, out=out)
    if what == "eigh":
        a = a + a.conj().T
        return lambda: np.linalg.eigh(a)
    return lambda: np.linalg.svd(a, full_matrices=False)


def least(call):
    result, begin = float("inf"), time.thread_time()
    while time.thread_time() - begin < 0.03:
        at = time.thread_time()
        call()
        result = min(result, time.thread_time() - at)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    ours = subprocess.Popen([arguments.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{ours.stdout.readline().strip()}\nNumPy {np.__version__}\n")
    print("| case | ours, least | median | NumPy, least | median | ratio of least | of medians |")
    print("|---|---|---|---|---|---|---|")
    for what, dtype, n in CASES:
        call, times = numpy_call(what, dtype, n), ([], [])
        for _ in range(arguments.turns):
            print(what, dtype, n, file=ours.stdin, flush=True)
            times[0].append(float(ours.stdout.readline()) * 1e3)
            times[1].append(least(call) * 1e3)
        cells = [f(t) for t in times for f in (min, statistics.median)]
        ratios = [cells[0] / cells[2], cells[1] / cells[3]]
        print(f"| {what} {dtype} {n} | " + " | ".join(f"{c:.4g}" for c in cells) + " | "
              + " | ".join(f"{r:.2f}" for r in ratios) + " |", flush=True)
    ours.stdin.close()
    ours.wait()


if __name__ == "__main__":
    main()
