# SPDX-License-Identifier: Apache-2.0
"""The linear operators of SigPy: `oshape`, `ishape`, `H`, `N`, products and sums, and `linop()`, the NamedLinop."""

from palimpsest.sigpy._base import (
    Linop as Linop, Adjoint as Adjoint, Add as Add, Compose as Compose, Hstack as Hstack, Vstack as Vstack,
    Diag as Diag, Conj as Conj,
)
from palimpsest.sigpy._leaves import (
    Identity as Identity, ToDevice as ToDevice, Reshape as Reshape, Transpose as Transpose, FFT as FFT, IFFT as IFFT,
    Multiply as Multiply, MatMul as MatMul, RightMatMul as RightMatMul, Slice as Slice, Embed as Embed,
    Downsample as Downsample, Upsample as Upsample, Flip as Flip, Resize as Resize, Circshift as Circshift,
    Sum as Sum, Tile as Tile, ArrayToBlocks as ArrayToBlocks, BlocksToArray as BlocksToArray,
    FiniteDifference as FiniteDifference, Gradient as Gradient,
)
from palimpsest.sigpy._transforms import (
    Interpolate as Interpolate, Gridding as Gridding, NUFFT as NUFFT, NUFFTAdjoint as NUFFTAdjoint,
    Wavelet as Wavelet, InverseWavelet as InverseWavelet, ConvolveData as ConvolveData,
    ConvolveFilter as ConvolveFilter, ConvolveDataAdjoint as ConvolveDataAdjoint,
    ConvolveFilterAdjoint as ConvolveFilterAdjoint,
)
from palimpsest.sigpy._missing import missing as _missing

globals().update(_missing("linop", {
    "AllReduce": "palimpsest.distribute, which derives what ranks exchange",
    "AllReduceAdjoint": "palimpsest.distribute, which derives what ranks exchange"}))
