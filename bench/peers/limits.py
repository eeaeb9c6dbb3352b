#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits behind the ratios of run_all, on one thread: calls, loops in cache, and where arrays begin.

    taskset -c 0 env PALIMPSEST_FLAGS=threads=1 PYTHONPATH=MODULE:bench/peers python bench/peers/limits.py

Sides take turns; the least of 15 times counts, in microseconds.
"""

import time

import numpy as np

import palimpsest as ps
import palimpsest.ops as pt
from compare import ONE_THREAD
from peer_cases import compiled, random


def least(calls, repeat=15):
    """The least time of each call in microseconds, by turns of a millisecond."""
    counts, times = {}, dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        call()
        counts[name] = max(1, int(1e-3 / (time.perf_counter() - begin)))
    for _ in range(repeat):
        for name, call in calls.items():
            begin = time.perf_counter()
            while time.perf_counter() - begin < ONE_THREAD.warm_up:
                call()
            begin = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name] = min(times[name], (time.perf_counter() - begin) / counts[name] * 1e6)
    return times


def show(what, calls):
    print(what + ": " + ", ".join(f"{name} {t:.4g}" for name, t in least(calls).items()))


def placed(n, offset):
    """An array of float32 that begins so many bytes behind the beginning of a cache line."""
    memory = np.empty(4 * n + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    return memory[begin:begin + 4 * n].view(np.float32)


def sums(n):
    a, b, at_line, behind = random(n, np.float32), random(n, np.float32), placed(n, 0), placed(n, 16)
    show(f"a + b of {n} float32",
         {"ours": compiled(lambda x, y: x + y, [a, b]),
          "NumPy into whole cache lines": lambda: np.add(a, b, out=at_line),
          "NumPy 16 bytes behind": lambda: np.add(a, b, out=behind)})


def products(n):
    a, b, out = random(n, np.complex64), random(n, np.complex64), np.empty(n, np.complex64)
    x = pt.tensor("complex64", (None,))
    moved = ps.function([x], x * 1.0)
    large = [np.asarray(moved(v)) for v in (a, b)]
    show(f"a b of {n} complex64 in arrays of NumPy",
         {"ours": compiled(lambda x, y: x * y, [a, b]), "NumPy": lambda: np.multiply(a, b, out=out)})
    show(f"a b of {n} complex64 in arrays of Palimpsest",
         {"ours": compiled(lambda x, y: x * y, large), "NumPy": lambda: np.multiply(*large, out=out)})


if __name__ == "__main__":
    sums(16)
    sums(100_000)
    products(1 << 21)
