# SPDX-License-Identifier: Apache-2.0
"""Time of calls from Python: best of 7 runs of 20,000 calls, in microseconds.

    python bench/python/call_bench.py

Arrays have one element, so that what is measured is the way to the library and back. NumPy's own x + y stands
beside it. Run it on an idle machine, with the package that `pip install .` makes.
"""

import timeit

import numpy as np

import palimpsest as ps

CALLS = 20_000


def best(call):
    return min(timeit.repeat(call, number=CALLS, repeat=7)) / CALLS * 1e6


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
    for name, call in cases.items():
        print(f"{name:40} {best(call):6.2f} us")


if __name__ == "__main__":
    main()
