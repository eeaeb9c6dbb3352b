# SPDX-License-Identifier: Apache-2.0
"""The functions of sigpy.mri."""

from __future__ import annotations

from typing import Any

import numpy as np

from palimpsest import _core
from palimpsest.sigpy import _functions as _f, linop as _linop
from palimpsest.sigpy._missing import missing as _missing, refuse as _refuse


def birdcage_maps(shape: Any, r: float = 1.5, nzz: int = 8, dtype: Any = np.complex128) -> Any:
    """Maps of coils on rings of a radius r of half the field of view; nzz coils per ring where there are three axes."""
    coils, *axes = shape
    if len(axes) not in (2, 3):
        raise ValueError(f"[birdcage_maps] shape: got {len(shape)} axes, expected 3 or 4.")
    place = [np.arange(n) / (n / 2) - 1 for n in axes]
    per_ring = coils if len(axes) == 2 else nzz
    maps = np.zeros(shape, np.complex128)
    for c in range(coils):
        ring, angle = c // per_ring, 2 * np.pi * c / per_ring
        away = place[-1] + 1j * place[-2][:, None] - r * np.exp(1j * angle)
        height = 0 if len(axes) == 2 else place[0][:, None, None] - (ring - 0.5 * (-(-coils // nzz) - 1))
        maps[c] = away / np.abs(away) / np.sqrt(np.abs(away) ** 2 + height**2)
        maps[c] *= 1j * np.exp(-1j * (angle + (2 * np.pi * ring / nzz if len(axes) == 3 else 0)))
    return (maps / _f.rss(maps)).astype(dtype)


def radial(coord_shape: Any, img_shape: Any, golden: bool = True, dtype: Any = float) -> Any:
    """Spokes from the middle outwards, (spokes, samples, 2 or 3), in cycles per field of view."""
    spokes, samples, n = coord_shape
    if n not in (2, 3) or n != len(img_shape) or (n == 3 and not golden):
        raise ValueError(f"[radial] got {tuple(coord_shape)} for images of {len(img_shape)} axes, expected as many "
                         "coordinates, 2 or 3; 3 by golden means.")
    i, radius = np.arange(spokes)[:, None], np.arange(samples) * 0.5 / samples
    if n == 2:
        angle = i * (np.pi * (3 - 5**0.5) if golden else 2 * np.pi / spokes)
        direction = [np.sin(angle), np.cos(angle)]
    else:  # the golden means of two dimensions
        up, angle = 2 * (i * 0.465571231876768 % 1) - 1, 2 * np.pi * (i * 0.682327803828019 % 1)
        flat = np.sqrt(1 - up**2)
        direction = [up, flat * np.sin(angle), flat * np.cos(angle)]
    return (np.stack([radius * d for d in direction], axis=-1) * img_shape).astype(dtype)


def poisson(img_shape: Any, accel: float, calib: Any = (0, 0), dtype: Any = np.complex128, crop_corner: bool = True,
            return_density: bool = False, seed: int = 0, max_attempts: int = 30, tol: float = 0.1) -> Any:
    """A Poisson-disc pattern of this acceleration. Other points than SigPy's; see palimpsest.sampling_pattern."""
    if accel <= 1:
        raise ValueError(f"[poisson] accel: got {accel}, expected a number above 1.")
    if return_density:
        raise _refuse("poisson(return_density=True)", "palimpsest.sampling_pattern(spread=..)")
    ny, nx = img_shape
    pattern = _core.sampling_pattern(ny, nx, kind="poisson", acceleration=accel, center=min(calib), seed=seed or 0,
                                     ellipse=crop_corner)
    return np.asarray(pattern).astype(dtype)


def pipe_menon_dcf(coord: Any, img_shape: Any = None, device: Any = _f.cpu_device, max_iter: int = 30, n: int = 128,
                   beta: float = 8, width: float = 4, show_pbar: bool = True) -> Any:
    """Density compensation w by w <- w / |G^H G w|, G being gridding. Compare palimpsest.density_compensation."""
    G = _linop.Gridding(_f.estimate_shape(coord) if img_shape is None else img_shape, coord, kernel="kaiser_bessel",
                        width=width, param=beta)
    w = np.ones(coord.shape[:-1], coord.dtype)
    for _ in range(max_iter):
        w = w / np.abs(G.N(w))
    return w


def _spread(images: Any, weights: Any, coord: Any, on_grid: bool, oversamp: float = 1.25) -> Any:
    """sum_j s_i s_j |X(k_i - k_j)|^2, summed over images X, s the roots of the weights.

    j are the samples, i too, or the points of the grid. |X|^2 at any difference is the transform of the autocorrelation
    of the image, on twice the grid.
    """
    spectrum = sum(np.abs(_f.fft(image, [2 * n for n in image.shape])) ** 2 for image in images)
    shape = spectrum.shape
    grid: _linop.Linop = _linop.Slice(shape, (slice(None, None, 2),) * len(shape)) * _linop.FFT(shape)
    E = grid if coord is None else _linop.NUFFT(shape, 2 * np.asarray(coord), oversamp)
    root = np.broadcast_to(np.asarray(1 if weights is None else weights) ** 0.5, E.oshape)
    sums = (grid if on_grid else E)(_f.ifft(spectrum) * E.H(root)) * np.prod(shape) ** 1.5
    return sums * (root if weights is not None else 1) / np.prod([n // 2 for n in shape])


def kspace_precond(mps: Any, weights: Any = None, coord: Any = None, lamda: float = 0, device: Any = _f.cpu_device,
                   oversamp: float = 1.25) -> Any:
    """The diagonal P, of the shape of k-space, for which P A A^H is nearest to the identity; A is Sense."""
    sums = [_spread([one * other.conj() for other in mps], weights, coord, False, oversamp) / np.linalg.norm(one) ** 2
            for one in mps]
    inverse = (np.abs(np.stack(sums)) + lamda) / (1 + lamda)
    return (1 / np.where(inverse == 0, 1, inverse)).astype(mps.dtype)


def circulant_precond(mps: Any, weights: Any = None, coord: Any = None, lamda: float = 0,
                      device: Any = _f.cpu_device) -> Any:
    """The inverse of the diagonal of F A^H A F^H, of the shape of the image; A is Sense, F the Fourier transform."""
    inverse = _spread(mps.conj(), weights, coord, True) / np.prod(mps.shape[1:]) + lamda
    return (1 / np.where(inverse == 0, 1, inverse)).astype(mps.dtype)


def get_cov(noise: Any) -> Any:
    """The products of the noise of coils, summed over the samples, without their mean."""
    x = noise.reshape(len(noise), -1)
    x = x - x.mean(axis=1, keepdims=True)
    return x @ x.conj().T


def whiten(ksp: Any, cov: Any) -> Any:
    """K-space with noise of unit variance that is not correlated between coils."""
    return np.linalg.solve(np.linalg.cholesky(cov), ksp.reshape(len(ksp), -1)).reshape(ksp.shape)


globals().update(_missing("mri", {
    "spiral": "palimpsest.spiral_trajectory, by gradients and slew rate of the scanner",
    "tseg_off_res_b_ct": "an operator of one's own, palimpsest.linop",
    "apply_tseg": "an operator of one's own, palimpsest.linop"}))
