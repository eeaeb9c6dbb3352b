# SPDX-License-Identifier: Apache-2.0
"""Operators as physics of deepinv, whose images are tensors (batch, ..)."""

from typing import Any

import deepinv
import torch

from palimpsest.interop.torch import Module, by_batch


class PalimpsestPhysics(deepinv.physics.LinearPhysics):
    """A named operator as a linear physics. Its trainable parameters are those of the module."""

    def __init__(self, A: Any, pairs: bool, options: Any) -> None:
        super().__init__(**options)
        self.module = Module(A)
        self.pairs = pairs

    def _applied(self, A: Any, x: Any) -> Any:
        if not self.pairs:
            return by_batch(A, x, 1)
        y = by_batch(A, torch.view_as_complex(x.movedim(1, -1).contiguous()), 1)
        return torch.view_as_real(y).movedim(-1, 1)

    def A(self, x: Any, **ignored: Any) -> Any:
        return self._applied(self.module.linop, x)

    def A_adjoint(self, y: Any, **ignored: Any) -> Any:
        return self._applied(self.module.linop.H, y)

    def A_adjoint_A(self, x: Any, **ignored: Any) -> Any:
        return self._applied(self.module.linop.N, x)


def as_deepinv(A: Any, pairs: bool = False, **options: Any) -> Any:
    """A deepinv.physics.LinearPhysics of an operator; `A_adjoint_A` is the normal operator.

    Parameters
    ----------
    pairs : bool
        Real tensors (batch, 2, ..), of real and imaginary parts, take the place of complex ones, as in deepinv's MRI.
    options
        Those of LinearPhysics: noise_model, solver, max_iter, tol, ..

    Returns
    -------
    deepinv.physics.LinearPhysics
        Its tensors have a first axis, the batch, whose elements are applied in one call where the operator has the
        dimensions '...' first. `module.linop` is A.
    """
    return PalimpsestPhysics(A, pairs, options)
