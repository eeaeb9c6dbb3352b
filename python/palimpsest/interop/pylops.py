# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to PyLops."""

import numpy as np
import pylops
from typing import Any

from palimpsest.interop import _opaque


def from_pylops(Op: Any, ishape: Any, oshape: Any, *, check: bool = True) -> Any:
    """An operator of a pylops.LinearOperator; see palimpsest.from_pylops."""
    if not isinstance(Op, pylops.LinearOperator):
        raise TypeError(f"[from_pylops] got {type(Op).__name__}, expected a pylops.LinearOperator.")
    return _opaque.typed(
        "from_pylops", Op, ishape, oshape, (tuple(Op.dims), tuple(Op.dimsd)), check)


class PalimpsestOperator(pylops.LinearOperator):
    """A named operator as one of PyLops."""

    def __init__(self, A: Any, dims: Any, dimsd: Any, dtype: Any) -> None:
        super().__init__(dtype=dtype, dims=dims, dimsd=dimsd)
        self.linop = A

    def _matvec(self, x: Any) -> Any:
        return _opaque.applied(self.linop, x, self.dims, self.dtype)

    def _rmatvec(self, y: Any) -> Any:
        return _opaque.applied(self.linop.H, y, self.dimsd, self.dtype)


def as_pylops(A: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A pylops.LinearOperator of an operator.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know; see palimpsest.interop.scipy.as_scipy.
    dtype : dtype, optional
        Default: that of the results for real vectors, in the precision of the parameters.

    Returns
    -------
    pylops.LinearOperator
        Its dims and dimsd are the extents of x and of y, its `linop` is A.
    """
    dims, dimsd = _opaque.extents("as_pylops", A, sizes)
    dtype = np.dtype(dtype) if dtype is not None else _opaque.dtype_of(A, dims)
    return PalimpsestOperator(A, dims, dimsd, dtype)
