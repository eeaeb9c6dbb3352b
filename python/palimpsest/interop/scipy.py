# SPDX-License-Identifier: Apache-2.0
"""Operators for the solvers of SciPy: vectors are the arrays in row-major order, without copies."""

import math

import numpy as np
from scipy.sparse.linalg import LinearOperator


def _extents(dims, sizes, side):
    missing = [str(d) for d in dims if str(d) not in sizes]
    if missing:
        raise ValueError(
            f"[as_scipy] the size of {', '.join(missing)} of the {side} is unknown. "
            f"Try sizes={{'{missing[0]}': 64}}."
        )
    return tuple(sizes[str(d)] for d in dims)


def as_scipy(A, sizes=None, dtype=None):
    """A scipy.sparse.linalg.LinearOperator of an operator.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know.
    dtype : dtype, optional
        Default: that of its parameters, complex where it is not known to be real.
    """
    known = A.with_sizes(sizes or {})
    ishape = _extents(known.ishape, {**known.sizes, **(sizes or {})}, "input")
    oshape = tuple(known.output_shape(ishape))
    if dtype is None:
        kinds = [p.dtype.name for p in _all_parameters(A)]
        dtype = np.result_type(*kinds) if kinds else np.dtype("complex128")
        if dtype.kind not in "fc":
            dtype = np.dtype("float64")
    dtype = np.dtype(dtype)

    def matvec(x):
        return A(np.asarray(x, dtype=np.result_type(dtype, x)).reshape(ishape)).ravel()

    def rmatvec(y):
        return A.H(np.asarray(y, dtype=np.result_type(dtype, y)).reshape(oshape)).ravel()

    return LinearOperator((math.prod(oshape), math.prod(ishape)), matvec=matvec, rmatvec=rmatvec,
                          dtype=dtype)


def _all_parameters(A):
    found = [p for p in A.params.values() if p is not None]
    for child in A.linops:
        found += _all_parameters(child)
    return found
