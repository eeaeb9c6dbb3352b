# SPDX-License-Identifier: Apache-2.0
"""Operators of SigPy as operators of this package: the class, and those of other operators.

A Linop has extents where a NamedLinop has names. It makes its NamedLinop, with names of its own, at the first use in
each precision: `linop(precision)`. Those of compositions, sums and stacks are one NamedLinop of all parts, with one
plan. A class derived from Linop that has `_apply` and `_adjoint_linop`, as SigPy wants, is one opaque step of it.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Sequence

import numpy as np

from palimpsest import _core
from palimpsest._core import NamedLinop

_counter = itertools.count()
_SINGLE = {"f": "float32", "c": "complex64"}
_DOUBLE = {"f": "float64", "c": "complex128"}


def _names(shape: Any) -> list[str]:
    """New names, one for each axis: a name has one size, so no two axes share one."""
    return [f"A{next(_counter)}" for _ in shape]


def _shape(shape: Any) -> tuple[int, ...]:
    extents: Any = (shape,) if np.isscalar(shape) else shape
    found = tuple(int(n) for n in extents)
    if any(n <= 0 for n in found):
        raise ValueError(f"[linop] got the shape {found}, expected positive extents.")
    return found


def _axes(axes: Any, n: int) -> list[int]:
    """Axes from 0 on, in rising order; None: all."""
    axes = range(n) if axes is None else (axes,) if np.isscalar(axes) else axes
    found = sorted(int(a) % n if -n <= a < n else n for a in axes)
    if len(set(found)) < len(found) or n in found:
        raise ValueError(f"[linop] got the axes {tuple(axes)}, expected different ones of {n}.")
    return found


def _each(value: Any, n: int) -> list[Any]:
    return [value] * n if np.isscalar(value) else list(value)


def _is_double(x: Any) -> bool:
    """Whether x decides for double precision: integers, bool and numbers of Python do not."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype in ("float64", "complex128")


def _chain(first: NamedLinop, *others: NamedLinop) -> NamedLinop:
    """first, then the others, whose names are matched by position."""
    parts = [first]
    for A in others:
        if list(parts[-1].oshape) != list(A.ishape):
            parts.append(_core.ShapeSpec(parts[-1].oshape, A.ishape))
        parts.append(A)
    return parts[0] if len(parts) == 1 else _core.Chain(*parts)


def _between(i: Any, A: NamedLinop, o: Any) -> NamedLinop:
    """A with other names."""
    return _chain(_core.Identity(i), A, _core.Identity(o))


def _reshape(ishape: Any, oshape: Any) -> NamedLinop:
    """The elements in row-major order."""
    if tuple(ishape) == tuple(oshape):
        return _core.Identity(_names(ishape))
    if len(oshape) != 1:  # to a vector and from it
        flat = [math.prod(ishape)]
        return _chain(_reshape(ishape, flat), _reshape(oshape, flat).H)
    if not len(ishape):
        return _core.Repeat({(new := _names([0])[0]): 1}, (), new)
    letters = [f"x{k}" for k in range(len(ishape))]
    return _core.Rearrange("{0} -> ({0})".format(" ".join(letters)), dict(zip(letters, ishape)), in_=_names(ishape),
                           out=_names([0]))


class Linop:
    """A linear operator from arrays of shape `ishape` to arrays of shape `oshape`.

    `A(x)`, `A * x`; `A * B`, `A + B`, `A - B`, `a * A`, `-A`; `A.H`, `A.N`. Complex results of real x keep the
    precision of x. Derived classes of one's own have `_apply(input)`, and `_adjoint_linop()` if `A.H` is used.
    """

    _double = False
    _adjoint: Linop
    _normal: Linop

    def __init__(self, oshape: Any, ishape: Any, repr_str: str | None = None) -> None:
        self.oshape = list(_shape(oshape))
        self.ishape = list(_shape(ishape))
        self.repr_str = repr_str or type(self).__name__

    # What derived classes have.

    def _build(self, double: bool) -> NamedLinop:
        """The operator, in one precision. Here: of `_apply` and `_adjoint_linop`."""
        from palimpsest.interop import _opaque

        def adjoint(y: Any) -> Any:
            return self.H._apply(y)

        if type(self)._apply is Linop._apply:
            raise NotImplementedError(f"[{self.repr_str}] expected a class with _apply.")
        made: NamedLinop = _opaque.opaque(
            self.repr_str, self._apply, adjoint, _names(self.ishape), _names(self.oshape), (self.ishape, self.oshape),
            lambda given: np.result_type(given, "complex64"), None)
        return made

    def _apply(self, input: Any) -> Any:
        x = np.asarray(input)
        kind = "c" if x.dtype.kind == "c" else "f"
        double = self._double or x.dtype not in ("float32", "complex64")
        return self.linop(double)(x.astype((_DOUBLE if double else _SINGLE)[kind], copy=False))

    def _adjoint_linop(self) -> Linop:
        return Adjoint(self)

    def _normal_linop(self) -> Linop:
        return Normal(self)

    # What users call.

    def linop(self, double: Any = True) -> NamedLinop:
        """The NamedLinop in double precision, or in single: False or the name of a dtype of it."""
        if not isinstance(double, bool):
            double = np.dtype(double) in ("float64", "complex128")
        built: dict[bool, NamedLinop] = self.__dict__.setdefault("_built", {})
        if double not in built:
            A = self._build(double)
            sizes = dict(zip([str(d) for d in A.ishape], self.ishape))
            built[double] = A.with_sizes({**sizes, **dict(zip([str(d) for d in A.oshape], self.oshape))})
        return built[double]

    def apply(self, input: Any) -> Any:
        if list(input.shape) != self.ishape:
            raise ValueError(f"[{self.repr_str}] x: got the shape {tuple(input.shape)}, expected {tuple(self.ishape)}.")
        output = self._apply(input)
        if list(output.shape) != self.oshape:
            raise ValueError(
                f"[{self.repr_str}] got a result of shape {tuple(output.shape)}, expected {tuple(self.oshape)}.")
        return output

    @property
    def H(self) -> Linop:
        if "_adjoint" not in self.__dict__:
            self._adjoint = self._adjoint_linop()
        return self._adjoint

    @property
    def N(self) -> Linop:
        if "_normal" not in self.__dict__:
            self._normal = self._normal_linop()
        return self._normal

    def __call__(self, input: Any) -> Any:
        return self * input

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Linop):
            return Compose([self, other])
        if np.isscalar(other):
            return Compose([self, _number(self.ishape, other)])
        if hasattr(other, "shape"):
            return self.apply(other)
        return NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return Compose([_number(self.oshape, other), self]) if np.isscalar(other) else NotImplemented

    def __add__(self, other: Any) -> Any:
        return Add([self, other]) if isinstance(other, Linop) else NotImplemented

    def __neg__(self) -> Linop:
        negative: Linop = -1 * self
        return negative

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Linop) else NotImplemented

    __array_ufunc__ = None  # the numbers of NumPy leave products to this class

    def __repr__(self) -> str:
        return f"<{self.oshape}x{self.ishape}> {self.repr_str} Linop>"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_built", "_adjoint", "_normal")}


class Adjoint(Linop):
    """The adjoint of A, which is `A.H`. Classes of it are the operators that are adjoints of others."""

    def __init__(self, A: Linop) -> None:
        super().__init__(A.ishape, A.oshape, A.repr_str + ".H" if type(self) is Adjoint else None)
        self.A, self._double = A, A._double
        A._adjoint = self

    def _build(self, double: bool) -> NamedLinop:
        return self.A.linop(double).H

    def _adjoint_linop(self) -> Linop:
        return self.A


class Normal(Linop):
    """A^H A, which is `A.N`."""

    def __init__(self, A: Linop) -> None:
        super().__init__(A.ishape, A.ishape, A.repr_str + ".N")
        self.A, self._double = A, A._double

    def _build(self, double: bool) -> NamedLinop:
        return self.A.linop(double).N

    def _adjoint_linop(self) -> Linop:
        return self


def _number(shape: Any, a: Any) -> Linop:
    from palimpsest.sigpy.linop import Multiply

    return Multiply(shape, a)


# -- of other operators -------------------------------------------------------------------------


class _Of(Linop):
    """Of a list of operators."""

    def __init__(self, linops: Sequence[Linop], oshape: Any, ishape: Any, repr_str: str | None = None) -> None:
        super().__init__(oshape, ishape, repr_str)
        self.linops = list(linops)
        self._double = any(A._double for A in linops)


def _same(what: str, shapes: Sequence[Any]) -> Any:
    if any(list(shape) != list(shapes[0]) for shape in shapes):
        raise ValueError(f"[linop] {what}: got the shapes {[tuple(s) for s in shapes]}, expected one.")
    return shapes[0]


class Add(_Of):
    """The sum of operators."""

    def __init__(self, linops: Sequence[Linop]) -> None:
        super().__init__(linops, _same("oshape", [A.oshape for A in linops]),
                         _same("ishape", [A.ishape for A in linops]), " + ".join(A.repr_str for A in linops))

    def _build(self, double: bool) -> NamedLinop:
        first, *others = [A.linop(double) for A in self.linops]
        return _core.Add(first, *(_between(first.ishape, A, first.oshape) for A in others)) if others else first


class Compose(_Of):
    """The product of operators; the last one is applied first."""

    def __init__(self, linops: Sequence[Linop]) -> None:
        parts: list[Linop] = []
        for A in linops:
            parts += A.linops if isinstance(A, Compose) else [A]
        for A, B in zip(parts[:-1], parts[1:]):
            _same(f"{A.repr_str} after {B.repr_str}", [A.ishape, B.oshape])
        super().__init__(parts, parts[0].oshape, parts[-1].ishape, " * ".join(A.repr_str for A in parts))

    def _build(self, double: bool) -> NamedLinop:
        return _chain(*(A.linop(double) for A in reversed(self.linops)))


def _side_by_side(shapes: Sequence[Any], axis: int | None) -> tuple[Any, int | None]:
    """The extents of arrays side by side, and the axis along which they lie; None: one after the other as vectors."""
    if axis is None:
        return [sum(math.prod(shape) for shape in shapes)], None
    axis %= len(shapes[0])
    _same("other axes", [(*shape[:axis], *shape[axis + 1:]) for shape in shapes])
    return [*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1:]], axis


def _stack(linops: Sequence[Linop], double: bool, iaxis: Any, oaxis: Any) -> NamedLinop:
    """Operators side by side; an axis "same" is the same array for all."""
    parts = []
    shapes = [([math.prod(A.ishape)] if iaxis is None else A.ishape,
               [math.prod(A.oshape)] if oaxis is None else A.oshape) for A in linops]
    i, o = _names(shapes[0][0]), _names(shapes[0][1])
    for A, (ishape, oshape) in zip(linops, shapes):
        part = _chain(_reshape(ishape, A.ishape), A.linop(double), _reshape(A.oshape, oshape))
        parts.append(_between(i, part, o).with_sizes(dict(zip([*i, *o], [*ishape, *oshape]))))
    options: dict[str, Any] = {} if iaxis == "same" else {"in_": i[iaxis or 0]}
    options.update({} if oaxis == "same" else {"out": o[oaxis or 0]})
    return (_core.BlockDiagonal if len(options) == 2 else _core.Concat)(parts, **options)


class Hstack(_Of):
    """The sum of operators, each of its own part of x."""

    def __init__(self, linops: Sequence[Linop], axis: int | None = None) -> None:
        ishape, self.axis = _side_by_side([A.ishape for A in linops], axis)
        super().__init__(linops, _same("oshape", [A.oshape for A in linops]), ishape)

    def _build(self, double: bool) -> NamedLinop:
        return _stack(self.linops, double, self.axis, "same")


class Vstack(_Of):
    """The results of operators side by side."""

    def __init__(self, linops: Sequence[Linop], axis: int | None = None) -> None:
        oshape, self.axis = _side_by_side([A.oshape for A in linops], axis)
        super().__init__(linops, oshape, _same("ishape", [A.ishape for A in linops]))

    def _build(self, double: bool) -> NamedLinop:
        return _stack(self.linops, double, "same", self.axis)


class Diag(_Of):
    """Operators side by side, each from its part of x to its part of the result."""

    def __init__(self, linops: Sequence[Linop], oaxis: int | None = None, iaxis: int | None = None) -> None:
        ishape, self.iaxis = _side_by_side([A.ishape for A in linops], iaxis)
        oshape, self.oaxis = _side_by_side([A.oshape for A in linops], oaxis)
        super().__init__(linops, oshape, ishape)

    def _build(self, double: bool) -> NamedLinop:
        return _stack(self.linops, double, self.iaxis, self.oaxis)


class Conj(_Of):
    """The complex conjugate of the result of A for the complex conjugate of x."""

    def __init__(self, A: Linop) -> None:
        super().__init__([A], A.oshape, A.ishape)

    def _build(self, double: bool) -> NamedLinop:
        A, conj = self.linops[0].linop(double), _core.ops.conj
        return _core.SimpleLinop(lambda x: conj(A(conj(x))), lambda y: conj(A.H(conj(y))),
                                 ishape=A.ishape, oshape=A.oshape, name="Conj")
