# SPDX-License-Identifier: Apache-2.0
"""Time of calls from Python beside those from C++: best of 7 runs of 20,000 calls, in microseconds of the thread.

    python bench/python/call_bench.py [build/bench/bench/python/bench_python_calls]

Arrays have one element, so that what is measured is the way to the library and back. NumPy's own a + b stands
beside it. With the program of C++, which must be built against the same library, differences are printed beside
their targets. Use the package that `pip install .` makes.
"""

import subprocess
import sys
import time
import timeit

import numpy as np

import palimpsest as ps

CALLS = 20_000
# By name: the call in C++ (empty: none), and the maximum number of microseconds above its time.
TARGETS = {
    "f(x, y), arrays of NumPy": ("f(x, y)", 3.0),
    "f(x, y), tensors": ("f(x, y)", 0.4),
    "f(x, y), tensors, borrowed": ("f(x, y), borrowed", 0.4),
    "f.call_into(out, x, y), arrays of NumPy": ("f.call_into(out, x, y)", 1.8),
    "A(x), array of NumPy": ("A(x)", 2.5),
    "A(x), tensor": ("A(x)", 0.4),
    "import of an array": ("", 0.5),
    "export of a tensor": ("", 1.0),
    "property": ("", 0.1),
    "op applied to Variables": ("", 3.0),
}


def best(call):
    return min(timeit.repeat(call, number=CALLS, repeat=7, timer=time.thread_time)) / CALLS * 1e6


def times_of_cpp(program):
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: float(time) for name, time in (line.split("\t") for line in lines)}


def main():
    x, y = ps.dvectors("x", "y")
    f = ps.function([x, y], x + y)
    lent = ps.function([x, y], ps.Out(x + y, borrow=True))
    A = ps.Diagonal(np.ones(1), "N")
    a, b, out = np.ones(1), np.ones(1), np.ones(1)
    s, t = ps.ones(1), ps.ones(1)
    cases = {
        "numpy: a + b": lambda: a + b,
        "f(x, y), arrays of NumPy": lambda: f(a, b),
        "f(x, y), tensors": lambda: f(s, t),
        "f(x, y), tensors, borrowed": lambda: lent(s, t),
        "f.call_into(out, x, y), arrays of NumPy": lambda: f.call_into(out, a, b),
        "A(x), array of NumPy": lambda: A(a),
        "A(x), tensor": lambda: A(s),
        "import of an array": lambda: ps.asarray(a),
        "export of a tensor": lambda: s.numpy(),
        "property": lambda: s.ndim,
        "op applied to Variables": lambda: x + y,
    }
    cpp = times_of_cpp(sys.argv[1]) if len(sys.argv) > 1 else {}
    empty = best(lambda: None)
    print(f"{'':40} {'us':>7} {'C++':>7} {'above':>7} {'target':>7}")
    for name, call in cases.items():
        mine = best(call) - empty
        of_cpp, target = TARGETS.get(name, ("", 0.0))
        theirs = cpp.get(of_cpp, 0.0) if of_cpp else 0.0
        known = of_cpp in cpp or (name in TARGETS and not of_cpp)
        beside = f" {theirs:7.2f} {mine - theirs:7.2f} {target:7.1f}" if known else ""
        print(f"{name:40} {mine:7.2f}{beside}")


if __name__ == "__main__":
    main()
