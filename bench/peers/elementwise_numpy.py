#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds that NumPy and numexpr take for the expressions of bench_kernels_report.

    elementwise_numpy.py EXPRESSION N THREADS FILE [processor]

FILE holds the operands one after the other, then room for the result. Prints the least and the
middle time of each peer, or "-" for one that is missing; `processor`: time that it computes, not the
clock's.
"""

import statistics
import sys
import time

import numpy as np

try:
    import numexpr
except ImportError:
    numexpr = None

SCALE = np.complex64(0.5 - 0.25j)


def product_sum(z, a, b, c):
    np.multiply(a, b, out=z)
    np.add(z, c, out=z)


def conj_product_sum(z, a, b, c):
    np.conjugate(b, out=z)
    np.multiply(a, z, out=z)
    np.add(z, SCALE * c, out=z)


def chain(z, a, b, c, d):
    np.multiply(a, b, out=z)
    np.add(z, c, out=z)
    np.multiply(z, d, out=z)
    np.subtract(z, a, out=z)
    np.multiply(z, b, out=z)
    np.add(z, d, out=z)
    np.multiply(z, c, out=z)
    np.subtract(z, b, out=z)
    np.multiply(z, a, out=z)
    np.add(z, c, out=z)


EXPRESSIONS = {
    "product_sum": (product_sum, 3, np.float32, "a*b + c"),
    "conj_product_sum": (conj_product_sum, 3, np.complex64, "a*conj(b) + s*c"),
    "chain": (chain, 4, np.float32, "((((a*b + c)*d - a)*b + d)*c - b)*a + c"),
}


CLOCK = time.process_time if "processor" in sys.argv[5:] else time.perf_counter


def times(call, budget=0.5):
    call()
    results = []
    start = CLOCK()
    while len(results) < 5 or CLOCK() - start < budget:
        begin = CLOCK()
        call()
        results.append(CLOCK() - begin)
    return f"{min(results):.3e} {statistics.median(results):.3e}"


def main():
    function, operands, dtype, text = EXPRESSIONS[sys.argv[1]]
    n, threads, path = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    arrays = np.memmap(path, dtype=dtype, mode="r+", shape=(operands + 1, n))
    arguments = [np.asarray(arrays[i]) for i in range(operands)]
    z = np.asarray(arrays[operands])
    print("numpy", times(lambda: function(z, *arguments)))
    if numexpr is None:
        print("numexpr - -")
        return
    numexpr.set_num_threads(threads)
    names = dict(zip("abcd", arguments), s=SCALE)
    print(
        "numexpr",
        times(lambda: numexpr.evaluate(text, local_dict=names, out=z, casting="unsafe")),
    )


if __name__ == "__main__":
    main()
