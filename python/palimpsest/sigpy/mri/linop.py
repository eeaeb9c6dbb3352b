# SPDX-License-Identifier: Apache-2.0
"""The operators of sigpy.mri."""

from __future__ import annotations

from typing import Any

import numpy as np

from palimpsest.sigpy import linop as _linop
from palimpsest.sigpy._missing import missing as _missing, refuse as _refuse


def Sense(mps: Any, coord: Any = None, weights: Any = None, tseg: Any = None, ishape: Any = None,
          coil_batch_size: Any = None, comm: Any = None, transp_nufft: bool = False) -> _linop.Linop:
    """Image to k-space of coils: maps, then the Fourier transform, then the roots of weights.

    coil_batch_size changes no number, and here no memory: a budget decides what is cut.
    """
    if comm is not None:
        raise _refuse("Sense(comm=..)", "palimpsest.distribute")
    if tseg is not None or transp_nufft:
        raise _refuse("Sense(tseg=.., transp_nufft=True)", "an operator of one's own, palimpsest.linop")
    ishape = mps.shape[1:] if ishape is None else ishape
    S = _linop.Multiply(ishape, mps)
    F = _linop.FFT(S.oshape, axes=range(-len(ishape), 0)) if coord is None else _linop.NUFFT(S.oshape, coord)
    A: _linop.Linop = F * S
    if weights is not None:
        A = _linop.Multiply(F.oshape, np.asarray(weights) ** 0.5) * A
    A.repr_str = "Sense"
    return A


globals().update(_missing("mri.linop", {
    "ConvSense": "palimpsest.Convolution", "ConvImage": "palimpsest.Convolution"}))
