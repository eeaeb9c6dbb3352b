# SPDX-License-Identifier: Apache-2.0
"""The proximal functions of SigPy: `p(alpha, x)`.

Steps may be arrays, as for preconditioned methods. `p.function(double)` is the Prox of this package, which planned
solvers take.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from palimpsest import _core
from palimpsest.sigpy import _base, _functions as _f, linop as _linop
from palimpsest.sigpy._missing import refuse


class Prox:
    """A proximal function of arrays of one shape. Derived classes have `_prox(alpha, input)`."""

    def __init__(self, shape: Any, repr_str: str | None = None) -> None:
        self.shape = list(shape)
        self.repr_str = repr_str or type(self).__name__

    def __call__(self, alpha: Any, input: Any) -> Any:
        input = np.asarray(input)
        if list(input.shape) != self.shape:
            raise ValueError(f"[{self.repr_str}] x: got the shape {input.shape}, expected {tuple(self.shape)}.")
        return self._prox(alpha, input)

    def _prox(self, alpha: Any, input: Any) -> Any:
        raise NotImplementedError(f"[{self.repr_str}] expected a class with _prox.")

    def function(self, double: bool = True) -> _core.Prox:
        """The Prox of this package, for data of double or single precision."""
        raise refuse(f"prox.{self.repr_str} as a step of a plan", "palimpsest.CustomProx")

    def _graph(self, v: Any, t: Any) -> Any:
        """The proximal function as part of a graph."""
        raise refuse(f"prox.{self.repr_str} after a transform as a step of a plan", "palimpsest.CustomProx")

    def __repr__(self) -> str:
        return f"<{self.repr_str} Prox of {self.shape}>"


def _data(value: Any, shape: Any, double: bool) -> Any:
    value = np.broadcast_to(np.asarray(value), shape)
    return value.astype((_base._DOUBLE if double else _base._SINGLE)["c" if value.dtype.kind == "c" else "f"])


class Conj(Prox):
    """Of the convex conjugate."""

    def __init__(self, prox: Prox) -> None:
        self.prox = prox
        super().__init__(prox.shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return input - alpha * self.prox(1 / alpha, input / alpha)

    def function(self, double: bool = True) -> _core.Prox:
        return self.prox.function(double).conjugate()


class NoOp(Prox):
    """Of the function 0: x itself."""

    def __init__(self, shape: Any) -> None:
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return input

    def function(self, double: bool = True) -> _core.Prox:
        return _core.ZeroProx()


class Stack(Prox):
    """Each part of a vector by a function of its own."""

    def __init__(self, proxs: Sequence[Prox]) -> None:
        self.proxs = list(proxs)
        super().__init__([sum(math.prod(p.shape) for p in proxs)])

    def _prox(self, alpha: Any, input: Any) -> Any:
        shapes = [p.shape for p in self.proxs]
        steps = [alpha] * len(shapes) if np.isscalar(alpha) else _f.split(alpha, shapes)
        return _f.vec([p(a, x) for p, a, x in zip(self.proxs, steps, _f.split(input, shapes))])


class UnitaryTransform(Prox):
    """g(A x), for a unitary A."""

    def __init__(self, prox: Prox, A: _linop.Linop) -> None:
        self.prox, self.A = prox, A
        super().__init__(A.ishape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return self.A.H(self.prox(alpha, self.A(input)))

    def function(self, double: bool = True) -> _core.Prox:
        A, of_A = self.A.linop(double), self.prox.function(double)
        try:
            return of_A.with_unitary(A)
        except _core.errors.ValueError:  # the library does not see that A is unitary
            return _core.CustomProx(lambda v, t: A.H(self.prox._graph(A(v), t)), name=self.repr_str)


class L2Reg(Prox):
    """lamda / 2 |x - y|^2, and h(x) if proxh is given."""

    def __init__(self, shape: Any, lamda: float, y: Any = None, proxh: Prox | None = None) -> None:
        self.lamda, self.y, self.proxh = lamda, y, proxh
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        t = self.lamda * alpha
        output = (input if self.y is None else input + t * self.y) / (1 + t)
        return output if self.proxh is None else self.proxh(alpha / (1 + t), output)

    def function(self, double: bool = True) -> _core.Prox:
        center = None if self.y is None else _data(self.y, self.shape, double)
        if self.proxh is None:
            return _core.SquaredL2(self.lamda, center=center)
        return self.proxh.function(double).plus_quadratic(self.lamda, center)


class L1Reg(Prox):
    """lamda |x|_1."""

    def __init__(self, shape: Any, lamda: Any) -> None:
        self.lamda = lamda
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return _f.soft_thresh(self.lamda * alpha, input)

    def function(self, double: bool = True) -> _core.Prox:
        if np.ndim(self.lamda) == 0:
            return _core.L1(float(self.lamda))
        return _core.L1(1.0, weights=_data(self.lamda, self.shape, double))

    def _graph(self, v: Any, t: Any) -> Any:
        size = _core.ops.abs(v)
        lamda = _data(self.lamda, np.shape(self.lamda), v.dtype.name in ("float64", "complex128"))
        return v * (_core.ops.maximum(size - lamda * t, 0) / _core.ops.maximum(size, np.finfo(size.dtype.name).tiny))


class L1Proj(Prox):
    """|x|_1 <= epsilon."""

    def __init__(self, shape: Any, epsilon: float) -> None:
        self.epsilon = epsilon
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return _f.l1_proj(self.epsilon, input)


class L2Proj(Prox):
    """|x - y|_2 <= epsilon, the norm over axes."""

    def __init__(self, shape: Any, epsilon: float, y: Any = 0, axes: Any = None) -> None:
        self.epsilon, self.y, self.axes = epsilon, y, axes
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return _f.l2_proj(self.epsilon, input - self.y, self.axes) + self.y

    def function(self, double: bool = True) -> _core.Prox:
        names = [f"A{k}" for k in range(len(self.shape))]
        over = [names[a] for a in _base._axes(self.axes, len(names))]
        options: dict[str, Any] = {} if len(over) == len(names) else {"over": over, "dims": names}
        if np.any(self.y):
            options["center"] = _data(self.y, self.shape, double)
        return _core.Ball(self.epsilon, **options)


class LInfProj(Prox):
    """|x - bias| <= epsilon for each element."""

    def __init__(self, shape: Any, epsilon: float, bias: Any = None, axes: Any = None) -> None:
        self.epsilon, self.bias, self.axes = epsilon, bias, axes
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return _f.linf_proj(self.epsilon, input, self.bias)

    def function(self, double: bool = True) -> _core.Prox:
        bounded = _core.L1(self.epsilon).conjugate()
        return bounded if self.bias is None else bounded.translated(_data(self.bias, self.shape, double))


class PsdProj(Prox):
    """Hermitian matrices without negative eigenvalues."""

    def _prox(self, alpha: Any, input: Any) -> Any:
        return _f.psd_proj(input)


class BoxConstraint(Prox):
    """lower <= x <= upper."""

    def __init__(self, shape: Any, lower: Any, upper: Any) -> None:
        self.lower, self.upper = lower, upper
        super().__init__(shape)

    def _prox(self, alpha: Any, input: Any) -> Any:
        return np.clip(input, self.lower, self.upper)

    def function(self, double: bool = True) -> _core.Prox:
        if np.ndim(self.lower) or np.ndim(self.upper):
            return super().function(double)
        return _core.Box(float(self.lower), float(self.upper))
