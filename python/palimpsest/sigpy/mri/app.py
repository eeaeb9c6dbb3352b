# SPDX-License-Identifier: Apache-2.0
"""The apps of sigpy.mri. Each is a LinearLeastSquares; palimpsest.reconstruct is the planned form of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from palimpsest import _core
from palimpsest.sigpy import _functions as _f, app as _app, linop as _linop, prox as _prox
from palimpsest.sigpy._missing import missing as _missing
from palimpsest.sigpy.mri.linop import Sense as _Sense


class _Recon(_app.LinearLeastSquares):
    """SENSE with a regularizer. Without weights and coord, points that are 0 in all coils count as not measured."""

    def __init__(self, y: Any, mps: Any, lamda: float, weights: Any = None, coord: Any = None,
                 device: Any = _f.cpu_device, coil_batch_size: Any = None, comm: Any = None, show_pbar: bool = True,
                 transp_nufft: bool = False, *, tseg: Any = None, **options: Any) -> None:
        if weights is None and coord is None:
            weights = (_f.rss(y) > 0).astype(y.real.dtype)
        A = _Sense(mps, coord, weights, tseg, None, coil_batch_size, comm, transp_nufft)
        root = 1 if weights is None else np.asarray(weights) ** 0.5
        super().__init__(A, _f.to_device(y * root, device), show_pbar=show_pbar, **self._terms(A, lamda), **options)

    def _terms(self, A: _linop.Linop, lamda: float) -> dict[str, Any]:
        return {"lamda": lamda}


class SenseRecon(_Recon):
    """With lamda / 2 |x|^2."""

    def __init__(self, y: Any, mps: Any, lamda: float = 0, weights: Any = None, tseg: Any = None, coord: Any = None,
                 device: Any = _f.cpu_device, coil_batch_size: Any = None, comm: Any = None, show_pbar: bool = True,
                 transp_nufft: bool = False, **options: Any) -> None:
        super().__init__(y, mps, lamda, weights, coord, device, coil_batch_size, comm, show_pbar, transp_nufft,
                         tseg=tseg, **options)


class L1WaveletRecon(_Recon):
    """With lamda times the 1-norm of wavelet coefficients."""

    def __init__(self, y: Any, mps: Any, lamda: float, weights: Any = None, coord: Any = None, wave_name: str = "db4",
                 device: Any = _f.cpu_device, coil_batch_size: Any = None, comm: Any = None, show_pbar: bool = True,
                 transp_nufft: bool = False, **options: Any) -> None:
        self.wave_name = wave_name
        super().__init__(y, mps, lamda, weights, coord, device, coil_batch_size, comm, show_pbar, transp_nufft,
                         **options)

    def _terms(self, A: _linop.Linop, lamda: float) -> dict[str, Any]:
        W = _linop.Wavelet(A.ishape, wave_name=self.wave_name)
        return {"proxg": _prox.UnitaryTransform(_prox.L1Reg(W.oshape, lamda), W),
                "g": lambda x: lamda * np.abs(W(x)).sum()}


class TotalVariationRecon(_Recon):
    """With lamda times the 1-norm of differences."""

    def _terms(self, A: _linop.Linop, lamda: float) -> dict[str, Any]:
        G = _linop.FiniteDifference(A.ishape)
        return {"proxg": _prox.L1Reg(G.oshape, lamda), "G": G, "g": lambda x: lamda * np.abs(x).sum()}


class EspiritCalib(_app.App):
    """Maps of coils; see palimpsest.espirit, whose threshold is thresh^2."""

    def __init__(self, ksp: Any, calib_width: int = 24, thresh: float = 0.02, kernel_width: int = 6, crop: float = 0.95,
                 max_iter: int = 100, device: Any = _f.cpu_device, output_eigenvalue: bool = False,
                 show_pbar: bool = True) -> None:
        super().__init__(None, show_pbar)
        self.ksp, self.output_eigenvalue = ksp, output_eigenvalue
        self.options: dict[str, Any] = {"calibration": calib_width, "kernel": kernel_width, "threshold": thresh**2,
                                        "crop": crop, "rotate_phase": False}

    def plan(self) -> _core.EspiritPlan:
        """The memory, before it runs."""
        return _core.plan_espirit(self.ksp.astype("complex64", copy=False), **self.options)

    def run(self) -> Any:
        found = _core.espirit(self.ksp.astype("complex64", copy=False), **self.options)
        maps = np.asarray(found.maps)[0].astype(self.ksp.dtype)
        size = np.abs(maps[0])
        maps *= np.where(size > 0, maps[0].conj(), 1) / np.where(size > 0, size, 1)  # the first coil is real
        return (maps, np.asarray(found.eigenvalues)[0]) if self.output_eigenvalue else maps


globals().update(_missing("mri.app", {"JsenseRecon": "palimpsest.espirit, or mri.app.EspiritCalib"}))
