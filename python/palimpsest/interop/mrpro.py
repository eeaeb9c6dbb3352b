# SPDX-License-Identifier: Apache-2.0
"""Conversions of operators from and to MRpro."""

import functools
from typing import Any

import mrpro.operators
import numpy as np
import torch

from palimpsest.interop import _opaque
from palimpsest.interop.torch import Module, by_batch


class PalimpsestOp(mrpro.operators.LinearOperator):
    """A named operator as one of MRpro. Its trainable parameters are those of the module."""

    def __init__(self, A: Any) -> None:
        super().__init__()
        self.module = Module(A)

    def forward(self, x: Any) -> Any:
        return (by_batch(self.module.linop, x),)

    def adjoint(self, x: Any) -> Any:
        return (by_batch(self.module.linop.H, x),)

    @property
    def gram(self) -> Any:
        return PalimpsestOp(self.module.linop.N)


def as_mrpro(A: Any) -> Any:
    """A mrpro.operators.LinearOperator of an operator; `gram` is the normal operator.

    Returns
    -------
    mrpro.operators.LinearOperator
        Tensors may have more axes in front than the operator. `module.linop` is A.
    """
    return PalimpsestOp(A)


def from_mrpro(Op: Any, ishape: Any, oshape: Any, sizes: Any, *, check: bool = True) -> Any:
    """An operator of a mrpro.operators.LinearOperator; see palimpsest.from_mrpro."""
    if not isinstance(Op, mrpro.operators.LinearOperator):
        raise TypeError(f"[from_mrpro] got {type(Op).__name__}, expected a mrpro.operators.LinearOperator.")
    shapes = _opaque.named_extents("from_mrpro", ishape, oshape, sizes)


    def called(function: Any, x: Any) -> Any:
        with torch.no_grad():
            return function(torch.tensor(x))[0].numpy()  # a copy of x, which is released after the call

    @functools.cache
    def dtype_of(given: Any) -> Any:
        return np.result_type(called(Op, np.zeros(shapes[0], given)).dtype, given)

    return _opaque.opaque("from_mrpro", lambda x: called(Op, x), lambda y: called(Op.adjoint, y), ishape, oshape,
                          shapes, dtype_of, np.dtype("complex64") if check else None)
