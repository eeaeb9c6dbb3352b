# SPDX-License-Identifier: Apache-2.0
"""Operators of SigPy with points off the grid, wavelets and convolutions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from palimpsest import _core
from palimpsest._core import NamedLinop
from palimpsest.sigpy._base import (
    _DOUBLE, _SINGLE, Adjoint, Compose, Linop, _axes, _between, _chain, _each, _is_double, _names, _reshape, _shape,
)
from palimpsest.sigpy._leaves import ArrayToBlocks, Embed, Resize, Slice
from palimpsest.sigpy._missing import refuse


# -- points off the grid ------------------------------------------------------------------------


def _spline(u: Any, order: Any) -> Any:
    """B-splines on |u| <= 1, as SigPy scales them."""
    u = abs(u)
    if order == 0:
        return np.ones_like(u)
    if order == 1:
        return 1 - u
    if order == 2:
        return np.where(u > 1 / 3, 9 / 8 * (1 - u) ** 2, 3 / 4 * (1 - 3 * u**2))
    raise ValueError(f"[Interpolate] param: got {order}, expected the order 0, 1 or 2 of a spline.")


_KERNELS: dict[str, Any] = {
    "spline": _spline, "kaiser_bessel": lambda u, beta: np.i0(beta * np.sqrt(np.maximum(1 - u**2, 0)))}


class Interpolate(Linop):
    """Reads the last axes at `coord`, in elements of the grid, which goes on periodically: one sparse matrix."""

    def __init__(self, ishape: Any, coord: Any, kernel: str = "spline", width: Any = 2, param: Any = 1) -> None:
        ishape, self.coord = _shape(ishape), np.asarray(coord, dtype="float64")
        if kernel not in _KERNELS:
            raise ValueError(f"[Interpolate] kernel: got {kernel!r}, expected one of {', '.join(_KERNELS)}.")
        self.kernel, self.width, self.param, self.n = kernel, width, param, self.coord.shape[-1]
        super().__init__([*ishape[:-self.n], *self.coord.shape[:-1]], ishape)

    def _matrix(self) -> tuple[Any, Any]:
        """Weights and places in the grid, both (points, elements of the kernel)."""
        points = self.coord.reshape(-1, self.n)
        weights, places = np.ones((len(points), 1)), np.zeros((len(points), 1), "int64")
        for k, extent, width, param in zip(points.T, self.ishape[-self.n:], _each(self.width, self.n),
                                           _each(self.param, self.n)):
            first = np.ceil(k - width / 2)
            grid = first[:, None] + np.arange(math.floor(width) + 1)
            u = (grid - k[:, None]) / (width / 2)
            weight = _KERNELS[self.kernel](np.clip(u, -1, 1), param) * (grid <= np.floor(k + width / 2)[:, None])
            weights = (weights[:, :, None] * weight[:, None]).reshape(len(points), -1)
            places = (places[:, :, None] * extent + (grid.astype("int64") % extent)[:, None]).reshape(len(points), -1)
        return weights, places

    def _build(self, double: bool) -> NamedLinop:
        weights, places = self._matrix()
        outer, grid, flat = self.ishape[:-self.n], self.ishape[-self.n:], math.prod(self.ishape[-self.n:])
        matrix = _core.Sparse(weights.reshape(-1).astype("float64" if double else "float32"), places.reshape(-1),
                              np.arange(len(weights) + 1) * weights.shape[1], flat, batch=_names(outer),
                              in_=_names([0]), out=_names([0]))
        parts = [_reshape(self.ishape, [*outer, flat])] if len(grid) > 1 else []
        parts.append(matrix)
        if self.coord.ndim != 2:
            parts.append(_reshape([*outer, len(weights)], self.oshape))
        return _chain(*parts)


class Gridding(Adjoint):
    """The adjoint of Interpolate."""

    def __init__(self, oshape: Any, coord: Any, kernel: str = "spline", width: Any = 2, param: Any = 1) -> None:
        super().__init__(Interpolate(oshape, coord, kernel, width, param))


class NUFFT(Linop):
    """The Fourier transform of the last axes at `coord`, in cycles per field of view."""

    def __init__(self, ishape: Any, coord: Any, oversamp: float = 1.25, width: float = 4,
                 toeplitz: bool = False) -> None:
        ishape, self.coord = _shape(ishape), np.asarray(coord)
        self.n = self.coord.shape[-1]
        beta = math.pi * math.sqrt((width / oversamp * (oversamp - 0.5)) ** 2 - 0.8)
        self.options: dict[str, Any] = {"oversamp": float(oversamp), "width": float(width), "beta": beta}
        self.toeplitz = toeplitz
        super().__init__([*ishape[:-self.n], *self.coord.shape[:-1]], ishape)

    def _build(self, double: bool) -> NamedLinop:
        return _core.Nufft(self.coord.astype("float64" if double else "float32"), self.ishape[-self.n:],
                           _names(self.coord.shape[:-1]), input=_names(range(self.n)),
                           kspace=_names(range(self.n)), batch=_names(self.ishape[:-self.n]), fast_size=False,
                           toeplitz=self.toeplitz, **self.options)


class NUFFTAdjoint(Adjoint):
    """The adjoint of NUFFT."""

    def __init__(self, oshape: Any, coord: Any, oversamp: float = 1.25, width: float = 4) -> None:
        super().__init__(NUFFT(oshape, coord, oversamp, width))


# -- wavelets -----------------------------------------------------------------------------------


def _filter(wave_name: str) -> Any:
    """The taps of the low-pass filter, first of the synthesis, from a line of the periodic transform."""
    try:
        matrix = _core.to_dense(_core.Wavelet("N", "N", family=wave_name, levels=1), sizes={"N": 64})
    except _core.errors.ValueError as error:
        raise refuse(f"Wavelet {wave_name!r}", "haar, db1 to db10") from error
    line = np.asarray(matrix).real[0]
    return line[:np.flatnonzero(line)[-1] + 1]


def _levels(shape: Any, axes: Any, taps: Any, level: int | None) -> int:
    if level is not None:
        return int(level)
    n = min(shape[a] for a in axes)
    return int(math.log2(n / (len(taps) - 1))) if n >= len(taps) - 1 and len(taps) > 1 else 0


def _even(shape: Any) -> list[int]:
    return [n + n % 2 for n in shape]


def _halves(shape: Any, axes: Any, taps: Any) -> list[int]:
    return [(n + len(taps) - 1) // 2 if k in axes else n for k, n in enumerate(shape)]


def _packed(shape: Any, axes: Any, taps: Any, level: int) -> list[int]:
    """The extents of all coefficients: those of the next level, and beside them the details of this one."""
    if level == 0:
        return list(shape)
    half = _halves(shape, axes, taps)
    inner = _packed(half, axes, taps, level - 1)
    return [n + h if k in axes else n for k, (n, h) in enumerate(zip(inner, half))]


def _analysis(n: int, taps: Any) -> Any:
    """Both filters, the low-pass first, of a line of n elements between zeros, at every second place."""
    half, size = (n + len(taps) - 1) // 2, len(taps)
    matrix = np.zeros((2 * half, n))
    high = taps[::-1] * (-1.0) ** np.arange(size)
    for k in range(half):
        for m in range(size):
            if 0 <= 2 * k + 2 - size + m < n:
                matrix[k, 2 * k + 2 - size + m] = taps[m]
                matrix[half + k, 2 * k + 2 - size + m] = high[m]
    return matrix


def _details(axes: Any, half: Any, inner: Any) -> dict[str, tuple[slice, ...]]:
    """The places of the blocks of one level among the packed coefficients, by letters for each axis."""
    places = {}
    for key in itertools.product("ad", repeat=len(axes)):
        letter = dict(zip(axes, key))
        places["".join(key)] = tuple(
            slice(inner[k], inner[k] + h) if letter.get(k) == "d" else slice(0, h) for k, h in enumerate(half))
    return places


def _wavelet(shape: Any, axes: Any, taps: Any, level: int, dtype: str) -> NamedLinop:
    if level == 0:
        return _core.Identity(_names(shape))
    half = _halves(shape, axes, taps)
    inner = _packed(half, axes, taps, level - 1)
    packed = _packed(shape, axes, taps, level)
    i = names = _names(shape)
    lines = []
    for a in axes:
        new, = _names([0])
        out = [*names[:a], new, *names[a + 1:]]
        lines.append(_core.Dense(_analysis(shape[a], taps).astype(dtype), [new, names[a]], names, out))
        names = out
    both = _chain(*lines)
    double = dtype == "float64"
    both_shape = [2 * h if k in axes else h for k, h in enumerate(half)]
    blocks, o = [], None
    for key, place in _details(axes, half, inner).items():
        letter = dict(zip(axes, key))
        cut = tuple(slice(h, 2 * h) if letter.get(k) == "d" else slice(0, h) for k, h in enumerate(half))
        if set(key) == {"a"}:
            place = tuple(slice(0, n) for n in inner)
        parts = [Slice(both_shape, cut).linop(double)]
        parts += [_wavelet(half, axes, taps, level - 1, dtype)] if set(key) == {"a"} else []
        block = _chain(*parts, Embed(packed, place).linop(double))
        o = o or block.oshape
        blocks.append(_between(names, block, o))
    return _between(i, _core.Chain(both, _core.Add(*blocks)), o)


class Wavelet(Linop):
    """The wavelet transform of SigPy: between zeros, all coefficients packed into one array."""

    def __init__(self, ishape: Any, axes: Any = None, wave_name: str = "db4", level: int | None = None) -> None:
        ishape = _shape(ishape)
        self.axes, self.taps = _axes(axes, len(ishape)), _filter(wave_name)
        self.level = _levels(_even(ishape), self.axes, self.taps, level)
        super().__init__(_packed(_even(ishape), self.axes, self.taps, self.level), ishape)

    def _build(self, double: bool) -> NamedLinop:
        even = _even(self.ishape)
        W = _wavelet(even, self.axes, self.taps, self.level, "float64" if double else "float32")
        return W if even == self.ishape else _chain(Resize(even, self.ishape).linop(double), W)


class InverseWavelet(Adjoint):
    """The inverse of Wavelet, which is its adjoint."""

    def __init__(self, oshape: Any, axes: Any = None, wave_name: str = "db4", level: int | None = None) -> None:
        super().__init__(Wavelet(oshape, axes, wave_name, level))


# -- convolutions -------------------------------------------------------------------------------


class _Convolve(Linop):
    """A convolution, by blocks of the data, so that strides and channels are those of one product."""

    def _keep(self, data_shape: Any, filt_shape: Any, mode: str, strides: Any, multi_channel: bool) -> Any:
        """Returns the shape of the result."""
        self.data_shape, self.filt_shape = _shape(data_shape), _shape(filt_shape)
        n = len(self.filt_shape) - 2 * multi_channel
        m = self.data_shape[-n:]
        self.filter = self.filt_shape[-n:]
        self.strides = tuple(int(s) for s in strides) if strides is not None else (1,) * n
        longer = [d >= f for d, f in zip(m, self.filter)]
        if mode not in ("full", "valid"):
            raise ValueError(f"[convolve] mode: got {mode!r}, expected 'full' or 'valid'.")
        if mode == "valid" and any(longer) and not all(longer):
            raise ValueError(f"[convolve] got data {m} and a filter {self.filter}, expected one inside the other.")
        self.pads = [f - 1 if mode == "full" else max(f - d, 0) for d, f in zip(m, self.filter)]
        self.padded = [d + 2 * p for d, p in zip(m, self.pads)]
        blocks = [(d - f) // s + 1 for d, f, s in zip(self.padded, self.filter, self.strides)]
        self.batch = self.data_shape[:-n - multi_channel]
        self.multi_channel = multi_channel
        if multi_channel and self.data_shape[-n - 1] != self.filt_shape[1]:
            raise ValueError(f"[convolve] got {self.data_shape[-n - 1]} and {self.filt_shape[1]} channels of data, "
                             "expected as many.")
        return [*self.batch, *self.filt_shape[:1 * multi_channel], *blocks]

    def _dims(self) -> tuple[Any, ...]:
        """Names: batch, channels of the data, of the result, blocks, filter."""
        channels = [0] * self.multi_channel
        return tuple(_names(part) for part in (self.batch, channels, channels, self.filter, self.filter))

    def _blocks(self, shape: Any) -> Linop:
        outer = shape[:len(shape) - len(self.pads)]
        padded = [*outer, *self.padded]
        between_zeros = Resize(padded, shape, [0] * len(shape), [0] * len(outer) + self.pads)
        return Compose([ArrayToBlocks(padded, self.filter, self.strides), between_zeros])

    def _flipped(self, array: Any, double: bool) -> Any:
        array = array[(..., *(slice(None, None, -1) for _ in self.filter))]
        return array.astype((_DOUBLE if double else _SINGLE)["c" if array.dtype.kind == "c" else "f"])


class ConvolveData(_Convolve):
    """The convolution of x with a filter."""

    def __init__(self, data_shape: Any, filt: Any, mode: str = "full", strides: Any = None,
                 multi_channel: bool = False) -> None:
        self.filt, self._double = np.asarray(filt), _is_double(filt)
        super().__init__(self._keep(data_shape, self.filt.shape, mode, strides, multi_channel), data_shape)

    def _build(self, double: bool) -> NamedLinop:
        b, c, o, p, f = self._dims()
        product = _core.Dense(self._flipped(self.filt, double), [*o, *c, *f], [*b, *c, *p, *f], [*b, *o, *p])
        return _chain(self._blocks(self.ishape).linop(double), product)


class ConvolveFilter(_Convolve):
    """The convolution of data with a filter x."""

    def __init__(self, filt_shape: Any, data: Any, mode: str = "full", strides: Any = None,
                 multi_channel: bool = False) -> None:
        self.data, self._double = np.asarray(data), _is_double(data)
        super().__init__(self._keep(self.data.shape, filt_shape, mode, strides, multi_channel), filt_shape)

    def _build(self, double: bool) -> NamedLinop:
        b, c, o, p, f = self._dims()
        blocks = self._blocks(self.data_shape)(self.data)
        return _core.Dense(self._flipped(blocks, double), [*b, *c, *p, *f], [*o, *c, *f], [*b, *o, *p])


class ConvolveDataAdjoint(Adjoint):
    """The adjoint of ConvolveData."""

    def __init__(self, data_shape: Any, filt: Any, mode: str = "full", strides: Any = None,
                 multi_channel: bool = False) -> None:
        super().__init__(ConvolveData(data_shape, filt, mode, strides, multi_channel))


class ConvolveFilterAdjoint(Adjoint):
    """The adjoint of ConvolveFilter."""

    def __init__(self, filt_shape: Any, data: Any, mode: str = "full", strides: Any = None,
                 multi_channel: bool = False) -> None:
        super().__init__(ConvolveFilter(filt_shape, data, mode, strides, multi_channel))
