# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to SigPy."""

import functools
from typing import Any

import numpy as np
import sigpy.linop

from palimpsest.interop import _opaque


def from_sigpy(L: Any, ishape: Any, oshape: Any, *, check: bool = True) -> Any:
    """An operator of a sigpy.linop.Linop; see palimpsest.from_sigpy.

    A Linop does not tell the dtype of its results: it is applied once to zeros to find it.
    """
    if not isinstance(L, sigpy.linop.Linop):
        raise TypeError(f"[from_sigpy] got {type(L).__name__}, expected a sigpy.linop.Linop.")

    @functools.cache
    def dtype_of(given: Any) -> Any:
        return np.result_type(L(np.zeros(L.ishape, given)).dtype, given)

    adjoint = L.H
    return _opaque.opaque("from_sigpy", L, adjoint, ishape, oshape,
                          (tuple(L.ishape), tuple(L.oshape)), dtype_of,
                          dtype_of(np.dtype("float64")) if check else None)


class PalimpsestLinop(sigpy.linop.Linop):
    """A named operator as one of SigPy."""

    def __init__(self, A: Any, oshape: Any, ishape: Any) -> None:
        super().__init__(list(oshape), list(ishape), repr_str=A.name)
        self.linop = A

    def _apply(self, input: Any) -> Any:
        result = _opaque.applied(self.linop, input, self.ishape, input.dtype)
        return result.reshape(self.oshape)

    def _adjoint_linop(self) -> Any:
        return PalimpsestLinop(self.linop.H, self.ishape, self.oshape)


def as_sigpy(A: Any, sizes: Any = None) -> Any:
    """A sigpy.linop.Linop of an operator, whose `linop` is A.

    Parameters
    ----------
    sizes : dict of str to int
        Sizes of dimensions that the operator does not know; see palimpsest.interop.scipy.as_scipy.
    """
    ishape, oshape = _opaque.extents("as_sigpy", A, sizes)
    return PalimpsestLinop(A, oshape, ishape)
