// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// Scale s of a transform of n points: backward 1, ortho 1/sqrt(n), forward 1/n. The inverse
/// transform of the same norm has the scale 1/(n s).
enum class FftNorm { backward, ortho, forward };

struct FftOptions {
  FftNorm norm = FftNorm::backward;
  /// Index 0 is in the middle, at floor(N/2), on both sides.
  bool centered = false;
};

namespace ops {

/// Discrete Fourier transform over any axes.
///
/// Math     y[k] = s sum_j x[j] exp(-2 pi i sum_d (k_d - c_d)(j_d - c_d) / N_d)
/// Shapes   unchanged
/// DTypes   complex64, complex128; real input is converted to complex
/// Aliases  in-place variant overwrites its input
/// Cost     O(N log N), one library call; centering costs no pass
Variable fft(const Variable& x, const Axes& axes, FftOptions options = {});
/// The inverse of fft with the same options: exp(+...), scale 1/(n s).
Variable ifft(const Variable& x, const Axes& axes, FftOptions options = {});
/// The adjoint of fft with the same options: exp(+...), the same scale s.
Variable fft_adjoint(const Variable& x, const Axes& axes, FftOptions options = {});

/// The transform of a real array: the last axis has n/2 + 1 elements, the others follow from them.
///
/// Cost     half that of fft if n is known, even and at most 8,192
/// Errors   DTypeError: complex input
Variable rfft(const Variable& x, const Axes& axes = {-1}, FftOptions options = {});
/// The real array of n elements along the last of the axes that has this rfft. Imaginary parts are
/// ignored where the rfft of a real array has none.
Variable irfft(const Variable& y, index_t n, const Axes& axes = {-1}, FftOptions options = {});

/// Rotated so that the first element comes to floor(n/2) along the axes (all, unless given), and
/// back from there.
Variable fftshift(const Variable& x, const std::optional<Axes>& axes = {});
Variable ifftshift(const Variable& x, const std::optional<Axes>& axes = {});

}  // namespace ops
}  // namespace palimpsest
