# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to SciPy. Vectors are arrays in row-major order and are not copied."""

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from palimpsest import _core
from palimpsest.interop import _opaque


class PalimpsestOperator(LinearOperator):
    """A named operator as one of SciPy."""

    def __init__(self, A: Any, ishape: Any, oshape: Any, dtype: Any) -> None:
        super().__init__(dtype, (math.prod(oshape), math.prod(ishape)))
        self.linop = A
        self.ishape = ishape
        self.oshape = oshape

    def _matvec(self, x: Any) -> Any:
        return _opaque.applied(self.linop, x, self.ishape, self.dtype)

    def _rmatvec(self, y: Any) -> Any:
        return _opaque.applied(self.linop.H, y, self.oshape, self.dtype)

    def _matmat(self, X: Any) -> Any:
        Y = _opaque.applied_to_columns(self.linop, X, self.ishape, self.dtype)
        return super()._matmat(X) if Y is None else Y

    def _rmatmat(self, X: Any) -> Any:
        Y = _opaque.applied_to_columns(self.linop.H, X, self.oshape, self.dtype)
        return super()._rmatmat(X) if Y is None else Y

    def _adjoint(self) -> Any:
        return PalimpsestOperator(self.linop.H, self.oshape, self.ishape, self.dtype)


def as_scipy(A: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A scipy.sparse.linalg.LinearOperator of an operator.

    It promotes as SciPy does: a vector of another precision is converted to that of the operator, and the
    result has the dtype to which both promote. The columns of a matrix are one application where the operator begins
    with the dimensions '...'.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know. The dimensions '...' are none, unless they are
        given as a tuple of extents: `{"...": (8, 2)}`.
    dtype : dtype, optional
        Default: that of the results for real vectors, in the precision of the parameters.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        Its `linop` is A.
    """
    ishape, oshape = _opaque.extents("as_scipy", A, sizes)
    return PalimpsestOperator(A, ishape, oshape, np.dtype(dtype) if dtype is not None else _opaque.dtype_of(A, ishape))


def from_scipy(L: Any, ishape: Any, oshape: Any, sizes: Any, *, check: bool = True) -> Any:
    """An operator of a LinearOperator; see palimpsest.from_scipy."""
    L = aslinearoperator(L)
    shapes = _opaque.named_extents("from_scipy", ishape, oshape, sizes)
    if (math.prod(shapes[1]), math.prod(shapes[0])) != tuple(L.shape):
        raise _core.errors.ShapeError(
            f"[from_scipy] sizes: got {shapes[1]} and {shapes[0]}, expected products "
            f"{L.shape[0]} and {L.shape[1]}.")
    return _opaque.typed("from_scipy", L, ishape, oshape, shapes, check)
