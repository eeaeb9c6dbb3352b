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

    def _apply(self, A: Any, x: Any, shape: Any) -> Any:
        x = np.asarray(x, dtype=np.result_type(self.dtype, x))
        return A(x.reshape(shape)).reshape(-1)

    def _matvec(self, x: Any) -> Any:
        return self._apply(self.linop, x, self.dims)

    def _rmatvec(self, y: Any) -> Any:
        return self._apply(self.linop.H, y, self.dimsd)


def as_pylops(A: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A pylops.LinearOperator of an operator.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know.
    dtype : dtype, optional
        Default: that of its parameters, complex where it is not known to be real.

    Returns
    -------
    pylops.LinearOperator
        Its dims and dimsd are the extents of x and of y, its `linop` is A.
    """
    dims, dimsd = _opaque.extents("as_pylops", A, sizes)
    dtype = np.dtype(dtype) if dtype is not None else _opaque.dtype_of_parameters(A)
    return PalimpsestOperator(A, dims, dimsd, dtype)
