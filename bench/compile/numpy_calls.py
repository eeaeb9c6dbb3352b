#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's time for the small expressions of compile_bench.cpp, for orientation."""

import timeit

import numpy as np


def nanoseconds(statement, names):
    timer = timeit.Timer(statement, globals=names)
    loops, _ = timer.autorange()
    return min(timer.repeat(5, loops)) / loops * 1e9


def main():
    for n in (1, 1000):
        names = {"np": np, "x": np.ones(n), "y": np.ones(n), "out": np.ones(n)}
        print(f"numpy_add_into/float64_{n}    {nanoseconds('np.add(x, y, out=out)', names):8.0f} ns")
        print(f"numpy_add/float64_{n}         {nanoseconds('x + y', names):8.0f} ns")
        print(f"numpy_fused/float64_{n}       {nanoseconds('(x + y) * x - y * 2.0', names):8.0f} ns")


if __name__ == "__main__":
    main()
