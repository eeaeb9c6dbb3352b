# SPDX-License-Identifier: Apache-2.0
"""Operators of SigPy that move, add or multiply elements."""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from palimpsest import _core
from palimpsest._core import NamedLinop
from palimpsest.sigpy._base import (
    _DOUBLE, _SINGLE, Adjoint, Linop, _axes, _chain, _is_double, _names, _reshape, _same, _shape,
)


class Identity(Linop):
    """x."""

    def __init__(self, shape: Any) -> None:
        super().__init__(shape, shape)

    def _build(self, double: bool) -> NamedLinop:
        return _core.Identity(_names(self.ishape))


class ToDevice(Identity):
    """x: all is on the host. Compare palimpsest.ToDevice."""

    def __init__(self, shape: Any, odevice: Any, idevice: Any) -> None:
        super().__init__(shape)


class Reshape(Linop):
    """The elements of x in another shape."""

    def __init__(self, oshape: Any, ishape: Any) -> None:
        super().__init__(oshape, ishape)
        _same("elements", [[math.prod(self.oshape)], [math.prod(self.ishape)]])

    def _build(self, double: bool) -> NamedLinop:
        return _reshape(self.ishape, self.oshape)


class Transpose(Linop):
    """The axes of x in another order; None: reversed."""

    def __init__(self, ishape: Any, axes: Any = None) -> None:
        ishape = _shape(ishape)
        self.axes = list(range(len(ishape)))[::-1] if axes is None else [int(a) % len(ishape) for a in axes]
        super().__init__([ishape[a] for a in self.axes], ishape)

    def _build(self, double: bool) -> NamedLinop:
        names = _names(self.ishape)
        return _core.Permute(names, [names[a] for a in self.axes])


def _moved(shape: Any, axes: Sequence[int], make: Any) -> NamedLinop:
    """make(batch names, names) acts on some axes, which are moved to the end and back."""
    names = _names(shape)
    batch = [name for k, name in enumerate(names) if k not in axes]
    A = make(batch, [names[a] for a in axes])
    moved = [*batch, *(names[a] for a in axes)]
    if moved == names:
        return A  # type: ignore[no-any-return]
    out = [str(d) for d in A.oshape]
    back = [out[moved.index(name)] for name in names]
    return _core.Chain(_core.Permute(names, moved), A, _core.Permute(out, back))


class FFT(Linop):
    """The unitary Fourier transform over `axes`."""

    def __init__(self, shape: Any, axes: Any = None, center: bool = True) -> None:
        super().__init__(shape, shape)
        self.axes, self.center = _axes(axes, len(self.ishape)), center

    def _build(self, double: bool) -> NamedLinop:
        return _moved(self.ishape, self.axes, lambda batch, grid: _core.Fft(
            len(grid), batch=batch, grid=(grid, _names(grid)), centered=self.center))


class IFFT(FFT):
    """The inverse of FFT, which is its adjoint."""

    def _build(self, double: bool) -> NamedLinop:
        return super()._build(double).H


def _broadcast(wshape: Any, ishape: Any, side: str) -> tuple[Any, ...]:
    """How NumPy multiplies a weight and x, `side` "left" or "right" being `weight @ x` and `x @ weight`.

    Returns
    -------
    tuple
        Names of x, of the weight and of the result; extents of the weight, without the axes that stretch, and of the
        result.
    """
    inner = 2 if side else 0
    if min(len(wshape), len(ishape)) < inner:
        raise ValueError(f"[MatMul] got the shapes {tuple(wshape)} and {tuple(ishape)}, expected two axes or more.")
    n = max(len(ishape), len(wshape)) - inner
    names = _names(ishape)
    onames, oshape, wnames, extents = [], [], [], []
    for name, i, w in zip([""] * (n + inner - len(ishape)) + names, [0] * (n + inner - len(ishape)) + list(ishape),
                          [0] * (n + inner - len(wshape)) + list(wshape[:len(wshape) - inner])):
        if i > 1 and w > 1 and i != w:
            raise ValueError(f"[linop] got the shapes {tuple(wshape)} and {tuple(ishape)}, expected ones that "
                             "broadcast.")
        if i and (w <= 1 or i == w):  # an axis of x
            onames.append(name)
            oshape.append(i)
            if w > 1:
                wnames.append(name)
                extents.append(w)
            continue
        new, = _names([0])  # an axis of the weight
        onames.append(new)
        oshape.append(w)
        wnames += [new, name] if i else [new]  # that of x has one element, and is summed
        extents += [w, 1] if i else [w]
    if side:
        row, column = wshape[-2:]
        new, = _names([0])
        left = side == "left"
        if (column if left else row) != ishape[-2 if left else -1]:
            raise ValueError(f"[MatMul] got the shapes {tuple(wshape)} and {tuple(ishape)}, expected equal inner "
                             "extents.")
        onames += [new, names[-1]] if left else [names[-2], new]
        oshape += [row, ishape[-1]] if left else [ishape[-2], column]
        wnames += [new, names[-2]] if left else [names[-1], new]
        extents += [row, column]
    return names, wnames, onames, extents, oshape


class _Weighted(Linop):
    """Multiplies by an array, which decides on the precision with x. It is copied at the first use."""

    side = ""

    def _keep(self, weight: Any, ishape: Any, is_adjoint: bool) -> None:
        self._weight, self._is_adjoint, self._double = weight, is_adjoint, _is_double(weight)
        wshape = list(np.shape(weight))
        self._wshape = wshape[:-2] + wshape[:-3:-1] if is_adjoint and self.side else wshape
        Linop.__init__(self, _broadcast(self._wshape, _shape(ishape), self.side)[-1], ishape)

    def _build(self, double: bool) -> NamedLinop:
        weight = np.asarray(self._weight)
        weight = weight.astype((_DOUBLE if double else _SINGLE)["c" if weight.dtype.kind == "c" else "f"], copy=False)
        if self._is_adjoint:
            weight = np.conj(weight.swapaxes(-1, -2) if self.side else weight)
        i, w, o, extents, _ = _broadcast(self._wshape, self.ishape, self.side)
        weight = weight.reshape(extents)
        if not extents:
            return _core.Scalar(weight.item(), i)
        if i == o:
            return _core.Diagonal(weight, i, weight_shape=w)
        return _core.Dense(weight, w, i, o)


class Multiply(_Weighted):
    """The product with a number or an array, elementwise."""

    def __init__(self, ishape: Any, mult: Any, conj: bool = False) -> None:
        self.mult = mult
        self._keep(mult, ishape, conj)


class MatMul(_Weighted):
    """`mat @ x`, of the last two axes."""

    side = "left"

    def __init__(self, ishape: Any, mat: Any, adjoint: bool = False) -> None:
        self.mat = mat
        self._keep(mat, ishape, adjoint)


class RightMatMul(MatMul):
    """`x @ mat`, of the last two axes."""

    side = "right"


class Slice(Linop):
    """`x[idx]`, for whole numbers and slices."""

    def __init__(self, ishape: Any, idx: Any) -> None:
        ishape = _shape(ishape)
        self.idx = idx if isinstance(idx, tuple) else (idx,)
        super().__init__(np.empty(ishape, bool)[idx].shape, ishape)

    def _build(self, double: bool) -> NamedLinop:
        i = _names(self.ishape)
        whole = [s if isinstance(s, slice) else slice(s, None if s == -1 else s + 1) for s in self.idx]
        ranges = [range(n)[s] for n, s in zip(self.ishape, whole)]
        inner, sizes = [len(r) for r in ranges] + self.ishape[len(ranges):], dict(zip(i, self.ishape))
        if any(r.step != 1 and len(r) > 1 for r in ranges):
            o, kept = _names(i), tuple(whole)
            A = _core.SimpleLinop(lambda x: x[kept], ishape=i, oshape=o, name=self.repr_str)
            A = A.with_sizes({**sizes, **dict(zip(o, inner))})
        else:
            cuts = {name: slice(r[0], r[0] + len(r)) for name, r, n in zip(i, ranges, self.ishape) if len(r) != n}
            A = _core.Restrict(i, cuts, sizes=sizes, out=_names(cuts)) if cuts else _core.Identity(i)
        return A if inner == self.oshape else _chain(A, _reshape(inner, self.oshape))


class Embed(Adjoint):
    """x at `idx` of an array of zeros."""

    def __init__(self, oshape: Any, idx: Any) -> None:
        super().__init__(Slice(oshape, idx))


class Downsample(Slice):
    """Every `factors`-th element, from `shift` on."""

    def __init__(self, ishape: Any, factors: Any, shift: Any = None) -> None:
        super().__init__(ishape, tuple(slice(s, None, f) for s, f in zip(shift or [0] * len(factors), factors)))


class Upsample(Adjoint):
    """The adjoint of Downsample."""

    def __init__(self, oshape: Any, factors: Any, shift: Any = None) -> None:
        super().__init__(Downsample(oshape, factors, shift))


class Flip(Slice):
    """The axes backwards."""

    def __init__(self, shape: Any, axes: Any = None) -> None:
        n = len(_shape(shape))
        backwards = _axes(axes, n)
        super().__init__(shape, tuple(slice(None, None, -1 if k in backwards else 1) for k in range(n)))


class Resize(Linop):
    """Cut or padded by zeros: element `ishift` of x becomes element `oshift`; by default centre becomes centre."""

    def __init__(self, oshape: Any, ishape: Any, ishift: Any = None, oshift: Any = None) -> None:
        super().__init__(oshape, ishape)
        pairs = list(zip(self.ishape, self.oshape, strict=True))
        self.ishift = [max(i // 2 - o // 2, 0) for i, o in pairs] if ishift is None else [int(s) for s in ishift]
        self.oshift = [max(o // 2 - i // 2, 0) for i, o in pairs] if oshift is None else [int(s) for s in oshift]

    def _build(self, double: bool) -> NamedLinop:
        shifts = list(zip(self.ishape, self.ishift, self.oshape, self.oshift))
        n = [min(i - a, o - b) for i, a, o, b in shifts]
        cut = Slice(self.ishape, tuple(slice(a, a + k) for a, k in zip(self.ishift, n)))
        put = Embed(self.oshape, tuple(slice(b, b + k) for b, k in zip(self.oshift, n)))
        return _chain(cut.linop(double), put.linop(double))


class Circshift(Linop):
    """Shifted by whole elements, around the ends."""

    def __init__(self, shape: Any, shift: Any, axes: Any = None) -> None:
        super().__init__(shape, shape)
        self.axes = list(range(len(self.ishape))) if axes is None else [int(a) for a in axes]
        self.shift = [int(s) for s in shift]

    def _build(self, double: bool) -> NamedLinop:
        names = _names(self.ishape)
        return _core.Roll(names, [names[a] for a in self.axes], self.shift)


class Sum(Linop):
    """The sum over axes."""

    def __init__(self, ishape: Any, axes: Any) -> None:
        ishape = _shape(ishape)
        self.axes = _axes(axes, len(ishape))
        super().__init__([n for k, n in enumerate(ishape) if k not in self.axes], ishape)

    def _build(self, double: bool) -> NamedLinop:
        i = _names(self.ishape)
        kept = [name for k, name in enumerate(i) if k not in self.axes]
        return _core.SumReduce(i, kept, sizes=dict(zip(i, self.ishape)))


class Tile(Adjoint):
    """The adjoint of Sum: x once for each element of new axes."""

    def __init__(self, oshape: Any, axes: Any) -> None:
        super().__init__(Sum(oshape, axes))


class ArrayToBlocks(Linop):
    """Blocks of the last axes, which may overlap: (.., number of blocks, block)."""

    def __init__(self, ishape: Any, blk_shape: Any, blk_strides: Any) -> None:
        ishape = _shape(ishape)
        self.blk_shape, self.blk_strides, n = _shape(blk_shape), _shape(blk_strides), len(blk_shape)
        blocks = [(i - b) // s + 1 for i, b, s in zip(ishape[-n:], self.blk_shape, self.blk_strides, strict=True)]
        super().__init__([*ishape[:-n], *blocks, *self.blk_shape], ishape)

    def _build(self, double: bool) -> NamedLinop:
        n = len(self.blk_shape)
        return _core.ArrayToBlocks(self.ishape[-n:], self.blk_shape, self.blk_strides, batch=_names(self.ishape[:-n]),
                                   array=_names(self.blk_shape), blocks=_names(self.blk_shape),
                                   inner=_names(self.blk_shape))


class BlocksToArray(Adjoint):
    """The sum of blocks at their places."""

    def __init__(self, oshape: Any, blk_shape: Any, blk_strides: Any) -> None:
        super().__init__(ArrayToBlocks(oshape, blk_shape, blk_strides))


class FiniteDifference(Linop):
    """`x - circshift(x, 1)` along each of the axes, in a new first axis."""

    def __init__(self, ishape: Any, axes: Any = None) -> None:
        ishape = _shape(ishape)
        self.axes = _axes(axes, len(ishape))
        super().__init__([len(self.axes), *ishape], ishape)

    def _build(self, double: bool) -> NamedLinop:
        names = _names(self.ishape)
        return _core.Gradient(names, [names[a] for a in self.axes], boundary="periodic", direction="backward",
                              out=_names([0])[0])


Gradient = FiniteDifference
