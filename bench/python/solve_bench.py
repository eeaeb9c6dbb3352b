# SPDX-License-Identifier: Apache-2.0
"""Solves and calls of two threads from Python, as ratios.

    python bench/python/solve_bench.py [build/bench/bench/python/bench_python_solves]

A solve of 20 iterations, plain and with a callback, beside the same solve in C++ (targets 1.02 and 1.05): time of the
process, best of 7. Calls of two threads on arrays of 10^6 elements beside the same calls in turn (target 0.6 on an idle
machine with two processors): time of the clock, best of 7.
"""

import subprocess
import sys
import threading
import time

import numpy as np

import palimpsest as ps

RUNS = 7


def best(run, clock):
    times = []
    for _ in range(RUNS):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def solves(program):
    maps = ps.random_normal((8, 256, 256), "complex64", key=1)
    mask = np.zeros((256, 256), bool)
    mask[::4] = True
    A = ps.Chain(ps.Dense(maps, "CNxNy,NxNy->CNxNy"), ps.Fft(2, batch="C"), ps.SamplingFromMask(mask, batch="C"))
    b = np.ones((256, 256), "complex64")
    options = {"tolerance": 0, "max_iterations": 20}
    n = ps.conjugate_gradients(A.N, b, **options).iterations
    plain = best(lambda: ps.conjugate_gradients(A.N, b, **options), time.process_time) / n
    called = best(lambda: ps.conjugate_gradients(A.N, b, callback=lambda info: None, **options), time.process_time) / n
    print(f"a solve: {plain * 1e3:.2f} ms an iteration, with a callback {called * 1e3:.2f} ms")
    if program:
        theirs = float(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
        print(f"beside C++, {theirs * 1e3:.2f} ms: {plain / theirs:.3f} (1.02), {called / theirs:.3f} (1.05)")


def two_threads():
    v = ps.dvector("v")
    f = ps.function([v], ps.ops.exp(ps.ops.sin(v)) + ps.ops.sqrt(ps.ops.abs(v)))
    x = np.random.default_rng(1).normal(size=1_000_000)

    def calls():
        for _ in range(10):
            f(x)

    def both():
        threads = [threading.Thread(target=calls) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def in_turn():
        calls()
        calls()

    together, after = best(both, time.perf_counter), best(in_turn, time.perf_counter)
    print(f"two threads: {together:.3f} s, in turn {after:.3f} s: {together / after:.2f} (0.6)")


def main():
    with ps.config.using(threads=1):
        solves(sys.argv[1] if len(sys.argv) > 1 else None)
    ps.config.threads = 1  # of all threads
    two_threads()


if __name__ == "__main__":
    main()
