# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to SciPy. Vectors are arrays in row-major order and are not copied."""

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from palimpsest import _core
from palimpsest.interop import _opaque


def as_scipy(A: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A scipy.sparse.linalg.LinearOperator of an operator.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know.
    dtype : dtype, optional
        Default: that of its parameters, complex where it is not known to be real.
    """
    ishape, oshape = _opaque.extents("as_scipy", A, sizes)
    dtype = np.dtype(dtype) if dtype is not None else _opaque.dtype_of_parameters(A)

    def matvec(x: Any) -> Any:
        return A(np.asarray(x, dtype=np.result_type(dtype, x)).reshape(ishape)).ravel()

    def rmatvec(y: Any) -> Any:
        return A.H(np.asarray(y, dtype=np.result_type(dtype, y)).reshape(oshape)).ravel()

    return LinearOperator((math.prod(oshape), math.prod(ishape)), matvec=matvec, rmatvec=rmatvec,
                          dtype=dtype)


def from_scipy(L: Any, ishape: Any, oshape: Any, sizes: Any, *, check: bool = True) -> Any:
    """An operator of a LinearOperator; see palimpsest.from_scipy."""
    L = aslinearoperator(L)
    sizes = {str(dim): int(size) for dim, size in sizes.items()}
    shapes = []
    for dims, side in ((_core.Dims(ishape), "input"), (_core.Dims(oshape), "output")):
        missing = [str(d) for d in dims if str(d) not in sizes]
        if missing:
            raise _core.errors.ValueError(
                f"[from_scipy] sizes of the {side}: got none for {', '.join(missing)}.")
        shapes.append(tuple(sizes[str(d)] for d in dims))
    if (math.prod(shapes[1]), math.prod(shapes[0])) != tuple(L.shape):
        raise _core.errors.ShapeError(
            f"[from_scipy] sizes: got {shapes[1]} and {shapes[0]}, expected products "
            f"{L.shape[0]} and {L.shape[1]}.")
    return _opaque.typed("from_scipy", L, ishape, oshape, shapes, check)
