# SPDX-License-Identifier: Apache-2.0
"""The functions of SigPy: those of arrays that are linear apply the operator of that name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palimpsest._core import modified_shepp_logan as _modified_shepp_logan
from palimpsest.sigpy import _base, _transforms, linop as _linop
from palimpsest.sigpy._missing import missing as _missing, refuse as _refuse

# -- devices: there is the host -----------------------------------------------------------------


class Device:
    """The host, -1; `with device:` has no effect."""

    id = -1

    def __init__(self, id_or_device: Any = -1) -> None:
        if getattr(id_or_device, "id", id_or_device) != -1:
            raise _refuse(f"Device({id_or_device})", "the host, Device(-1)")

    @property
    def xp(self) -> Any:
        return np

    def use(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def __int__(self) -> int:
        return -1

    def __eq__(self, other: object) -> bool:
        return other == -1 or isinstance(other, Device)

    def __hash__(self) -> int:
        return -1

    def __repr__(self) -> str:
        return "<CPU Device>"


cpu_device = Device()


def get_device(array: Any) -> Device:
    """The host."""
    return cpu_device


def get_array_module(array: Any) -> Any:
    """NumPy."""
    return np


def to_device(input: Any, device: Any = cpu_device) -> Any:
    """The array itself."""
    Device(device)
    return input


def copyto(output: Any, input: Any) -> None:
    """Writes input into output."""
    np.copyto(output, input)


# -- rearrangements -----------------------------------------------------------------------------


def _applied(A: _linop.Linop, x: Any) -> Any:
    """A x; whole numbers stay whole numbers."""
    x = np.asarray(x)
    y = A(x)
    return y.astype(x.dtype, copy=False) if x.dtype.kind in "iub" else y


def resize(input: Any, oshape: Any, ishift: Any = None, oshift: Any = None) -> Any:
    """Cut or padded by zeros; see linop.Resize. Missing axes have one element."""
    input, oshape = np.asarray(input), list(oshape)
    n = max(input.ndim, len(oshape))
    ishape, padded = [1] * (n - input.ndim) + list(input.shape), [1] * (n - len(oshape)) + oshape
    return _applied(_linop.Resize(padded, ishape, ishift, oshift), input.reshape(ishape)).reshape(oshape)


def flip(input: Any, axes: Any = None) -> Any:
    """The axes backwards."""
    return _applied(_linop.Flip(input.shape, axes), input)


def circshift(input: Any, shifts: Any, axes: Any = None) -> Any:
    """Shifted around the ends."""
    return _applied(_linop.Circshift(input.shape, shifts, axes), input)


def downsample(input: Any, factors: Any, shift: Any = None) -> Any:
    """Every factors-th element."""
    return _applied(_linop.Downsample(input.shape, factors, shift), input)


def upsample(input: Any, oshape: Any, factors: Any, shift: Any = None) -> Any:
    """The adjoint of downsample."""
    return _applied(_linop.Upsample(oshape, factors, shift), input)


def array_to_blocks(input: Any, blk_shape: Any, blk_strides: Any) -> Any:
    """Blocks of the last axes."""
    return _applied(_linop.ArrayToBlocks(input.shape, blk_shape, blk_strides), input)


def blocks_to_array(input: Any, oshape: Any, blk_shape: Any, blk_strides: Any) -> Any:
    """The sum of blocks."""
    return _applied(_linop.BlocksToArray(oshape, blk_shape, blk_strides), input)


# -- transforms ---------------------------------------------------------------------------------


def fft(input: Any, oshape: Any = None, axes: Any = None, center: bool = True, norm: Any = "ortho") -> Any:
    """The Fourier transform, after a change of the size to oshape."""
    return _fourier(_linop.FFT, 0.5, input, oshape, axes, center, norm)


def ifft(input: Any, oshape: Any = None, axes: Any = None, center: bool = True, norm: Any = "ortho") -> Any:
    """The inverse of fft."""
    return _fourier(_linop.IFFT, -0.5, input, oshape, axes, center, norm)


def _fourier(make: Any, power: float, input: Any, oshape: Any, axes: Any, center: bool, norm: Any) -> Any:
    if norm not in ("ortho", None):
        raise ValueError(f"[fft] norm: got {norm!r}, expected 'ortho' or None.")
    input = np.asarray(input)
    if oshape is not None:
        input = resize(input, oshape, *([] if center else [[0] * input.ndim] * 2))
    F = make(input.shape, axes, center)
    y = F(input)
    return y if norm else y * y.real.dtype.type(math.prod(input.shape[a] for a in F.axes) ** power)


def nufft(input: Any, coord: Any, oversamp: float = 1.25, width: float = 4) -> Any:
    """The Fourier transform at coord."""
    return _linop.NUFFT(input.shape, coord, oversamp, width)(input)


def nufft_adjoint(input: Any, coord: Any, oshape: Any = None, oversamp: float = 1.25, width: float = 4) -> Any:
    """The adjoint of nufft."""
    if oshape is None:
        oshape = [*input.shape[:input.ndim - coord.ndim + 1], *estimate_shape(coord)]
    return _linop.NUFFTAdjoint(oshape, coord, oversamp, width)(input)


def estimate_shape(coord: Any) -> list[int]:
    """The whole part of the extent of coord along each axis."""
    flat = np.asarray(coord).reshape(-1, coord.shape[-1])
    return [int(n) for n in flat.max(0) - flat.min(0)]


def interpolate(input: Any, coord: Any, kernel: str = "spline", width: Any = 2, param: Any = 1) -> Any:
    """Reads the last axes at coord."""
    return _linop.Interpolate(input.shape, coord, kernel, width, param)(input)


def gridding(input: Any, coord: Any, shape: Any, kernel: str = "spline", width: Any = 2, param: Any = 1) -> Any:
    """The adjoint of interpolate."""
    return _linop.Gridding(shape, coord, kernel, width, param)(input)


def get_wavelet_shape(shape: Any, wave_name: str = "db4", axes: Any = None, level: int | None = None) -> Any:
    """The shape of the coefficients, and the places of the blocks among them, as those of PyWavelets."""
    W = _linop.Wavelet(shape, axes, wave_name, level)
    extents, slices = _transforms._even(shape), []
    for k in range(W.level):
        half = _transforms._halves(extents, W.axes, W.taps)
        inner = _transforms._packed(half, W.axes, W.taps, W.level - k - 1)
        places = _transforms._details(W.axes, half, inner)
        places.pop("a" * len(W.axes))
        slices.append(places)
        extents = half
    return tuple(W.oshape), [tuple(slice(0, n) for n in extents), *slices[::-1]]


def fwt(input: Any, wave_name: str = "db4", axes: Any = None, level: int | None = None) -> Any:
    """The wavelet transform."""
    return _linop.Wavelet(input.shape, axes, wave_name, level)(input)


def iwt(input: Any, oshape: Any, coeff_slices: Any = None, wave_name: str = "db4", axes: Any = None,
        level: int | None = None) -> Any:
    """The inverse of fwt; places follow from the other arguments."""
    return _linop.InverseWavelet(oshape, axes, wave_name, level)(input)


def convolve(data: Any, filt: Any, mode: str = "full", strides: Any = None, multi_channel: bool = False) -> Any:
    """The convolution of data with a filter."""
    return _linop.ConvolveData(data.shape, filt, mode, strides, multi_channel)(data)


def convolve_data_adjoint(output: Any, filt: Any, data_shape: Any, mode: str = "full", strides: Any = None,
                          multi_channel: bool = False) -> Any:
    """The adjoint of convolve, with respect to the data."""
    return _linop.ConvolveDataAdjoint(data_shape, filt, mode, strides, multi_channel)(output)


def convolve_filter_adjoint(output: Any, data: Any, filt_shape: Any, mode: str = "full", strides: Any = None,
                            multi_channel: bool = False) -> Any:
    """The adjoint of convolve, with respect to the filter."""
    return _linop.ConvolveFilterAdjoint(filt_shape, data, mode, strides, multi_channel)(output)


# -- arrays -------------------------------------------------------------------------------------


def prod(shape: Any) -> int:
    """The number of elements of a shape."""
    return math.prod(int(n) for n in shape)


def vec(inputs: Any) -> Any:
    """Arrays one after the other as one vector."""
    return np.concatenate([np.ravel(x) for x in inputs])


def split(vec: Any, oshapes: Any) -> list[Any]:
    """The arrays of such a vector."""
    ends = np.cumsum([prod(shape) for shape in oshapes])
    return [part.reshape(shape) for part, shape in zip(np.split(vec, ends[:-1]), oshapes)]


def rss(input: Any, axes: Any = (0,)) -> Any:
    """The root of the sum of squares over axes."""
    return np.sqrt(np.sum(np.abs(input) ** 2, axis=tuple(_base._axes(axes, input.ndim))))


def dirac(shape: Any, dtype: Any = np.float64, device: Any = cpu_device) -> Any:
    """1 at the centre, elsewhere 0."""
    output = np.zeros(shape, dtype)
    output[tuple(n // 2 for n in shape)] = 1
    return output


def randn(shape: Any, scale: float = 1, dtype: Any = np.float64, device: Any = cpu_device) -> Any:
    """Normal random numbers of numpy.random; the parts of complex ones have half of the variance each."""
    dtype = np.dtype(dtype)
    if dtype.kind != "c":
        return np.random.normal(size=tuple(shape), scale=scale).astype(dtype)
    parts = np.random.normal(size=(*shape, 2), scale=scale / 2**0.5)
    return parts.view("complex128")[..., 0].astype(dtype)


def _window(shape: Any, dtype: Any, line: Any) -> Any:
    output = np.ones(shape, dtype)
    for k, n in enumerate(shape):
        output *= line(np.arange(n), n).reshape([-1] + [1] * (len(shape) - k - 1)).astype(dtype)
    return output


def triang(shape: Any, dtype: Any = np.float64, device: Any = cpu_device) -> Any:
    """A window that falls linearly from the middle."""
    return _window(shape, dtype, lambda i, n: 1 - np.abs(i + 0.5 - n / 2) / ((n + 1) // 2))


def hanning(shape: Any, dtype: Any = np.float64, device: Any = cpu_device) -> Any:
    """A Hann window that is 0 at the first element."""
    return _window(shape, dtype, lambda i, n: 0.5 + 0.5 * np.cos(2 * np.pi * (i - n // 2) / max(n - n % 2, 1)))


def monte_carlo_sure(f: Any, y: Any, sigma: float, eps: float = 1e-10) -> Any:
    """Stein's estimate of the mean squared error of f(y), for noise of the standard deviation sigma."""
    b = randn(y.shape, dtype=y.dtype)
    y_hat = f(y)
    divergence = np.real(np.vdot(b, f(y + eps * b) - y_hat)) / eps
    return np.mean(np.abs(y - y_hat) ** 2) - sigma**2 + 2 * sigma**2 * divergence / y.size


def axpy(y: Any, a: Any, x: Any) -> None:
    """y += a x."""
    y += a * x


def xpay(y: Any, a: Any, x: Any) -> None:
    """y = x + a y."""
    y *= a
    y += x


def shepp_logan(shape: Any, dtype: Any = np.complex128) -> Any:
    """The modified phantom of Shepp and Logan, of two axes. In SigPy two ellipses and two dots are other ones."""
    if len(shape) != 2:
        raise _refuse(f"shepp_logan of {len(shape)} axes", "palimpsest.ellipse_image, of two")
    y, x = ((np.arange(n) - n // 2) / n * 2 for n in shape)
    output = np.zeros(shape, dtype)
    for e in _modified_shepp_logan():
        z = (x + 1j * y[:, None] - complex(e.center_x, e.center_y)) * np.exp(-1j * np.radians(e.angle_degrees))
        output[(z.real / e.semi_axis_x) ** 2 + (z.imag / e.semi_axis_y) ** 2 <= 1] += e.value
    return output


# -- thresholds ---------------------------------------------------------------------------------


def soft_thresh(lamda: Any, input: Any) -> Any:
    """Moves each element towards 0 by lamda."""
    input = np.asarray(input)
    size = np.abs(input)
    return input * (np.maximum(size - lamda, 0) / np.where(size > 0, size, 1))


def hard_thresh(lamda: Any, input: Any) -> Any:
    """Elements of a size up to lamda become 0."""
    input = np.asarray(input)
    return input * (np.abs(input) > lamda)


def l1_proj(eps: float, input: Any) -> Any:
    """The nearest array whose 1-norm is at most eps."""
    size = np.sort(np.abs(np.ravel(input)))[::-1]
    if size.sum() <= eps:
        return input
    excess = (np.cumsum(size) - eps) / np.arange(1, len(size) + 1)
    return soft_thresh(excess[np.flatnonzero(size > excess)[-1]], input)


def l2_proj(eps: Any, input: Any, axes: Any = None) -> Any:
    """The nearest array whose 2-norm over axes is at most eps."""
    input = np.asarray(input)
    norm = np.sqrt(np.sum(np.abs(input) ** 2, axis=tuple(_base._axes(axes, input.ndim)), keepdims=True))
    return input * np.minimum(1, eps / np.where(norm > 0, norm, 1)) if np.any(norm > eps) else input


def linf_proj(eps: Any, input: Any, bias: Any = None) -> Any:
    """The nearest array with elements at most eps away from bias."""
    input = np.asarray(input)
    offset = input if bias is None else input - bias
    return input - soft_thresh(eps, offset)


def psd_proj(input: Any) -> Any:
    """The nearest Hermitian matrix without negative eigenvalues."""
    input = np.asarray(input)
    values, vectors = np.linalg.eigh((input + input.conj().T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.conj().T


globals().update(_missing("sigpy", {
    "toeplitz_psf": "linop.NUFFT(.., toeplitz=True).N, or palimpsest.toeplitz_kernel",
    "leja": "numpy.roots and a sort",
    "Communicator": "palimpsest.Team",
    "to_pytorch": "torch.from_numpy", "from_pytorch": "torch.Tensor.numpy",
    "to_pytorch_function": "A.linop(), which torch differentiates"}))
