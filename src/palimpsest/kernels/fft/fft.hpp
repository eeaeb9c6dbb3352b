// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "palimpsest/base/shape.hpp"

namespace palimpsest {

/// Weights of a spectrum, which have the axes of the array.
struct FftWeights {
  bool is_complex = false;  // else real; of the array's precision
  Strides strides;          // in elements, any sign; 0 along axes where they repeat
  /// Extents of the spectrum. Along transformed axes they may be larger than those of the array:
  /// then zeros lie behind it, and elements of the result behind it are dropped. Empty: equal.
  Extents extents = {};
  friend bool operator==(const FftWeights&, const FftWeights&) = default;
};

/// Factors m of an array before its transform, and conjugated after the transform back; results are
/// then summed along axis 0, in order. Their axes and extents are those of the array.
struct FftFactors {
  Strides strides;  // in elements, any sign
  friend bool operator==(const FftFactors&, const FftFactors&) = default;
};

/// A discrete Fourier transform of arrays of known shape and layout.
struct FftSpec {
  DType dtype = DType::complex64;  // complex64 or complex128
  Extents extents;
  Strides in_strides, out_strides;  // in elements, any sign; in place: equal
  Axes axes;                        // transformed axes, from the front, none twice; may be empty
  bool forward = true;              // exp(-2 pi i ...)
  bool centered = false;            // index 0 of both domains lies at element floor(N/2)
  double scale = 1;
  bool in_place = false;                   // in and out are the same memory
  std::optional<FftWeights> weights = {};  // multiplies by them, and transforms back
  /// With weights, at least two transformed axes, and axis 0 not among them; `out` has no axis 0,
  /// and its stride is not used.
  std::optional<FftFactors> factors = {};
  friend bool operator==(const FftSpec&, const FftSpec&) = default;
};

/// A transform ready to run: a cheap handle to a shared, immutable plan.
///
/// Aliases  copies share the plan; const, and execute, are safe from several threads
class FftPlan {
 public:
  class Impl;
  explicit FftPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  const FftSpec& spec() const;
  /// Bytes of tables and scratch that the plan holds. Scratch exists for panels of lines of more
  /// than 256 KiB, for each thread that runs the plan.
  std::size_t external_bytes(int threads = 1) const;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The plan for a spec, from a process-wide cache of the last ones used.
///
/// Errors   DTypeError, ShapeError (axes, ranks, different strides in place)
FftPlan fft_plan(const FftSpec& spec);

/// Workspace of `execute` in bytes: for arrays that are shorter than their spectra, and with
/// factors. Where lines along axis 0 are transformed side by side, up to one array for each of
/// `threads` threads. It does not depend on strides.
///
/// Without weights it is room for a slice of two or more transformed axes for each thread, if the
/// result is too large for the last cache and a slice fits that of a core: see array_transform.cpp.
std::size_t fft_workspace_bytes(const FftSpec& spec, int threads = 1);

/// Operands of `execute` besides an array: weights and factors of its dtype, or real weights, as
/// the spec says, and a workspace of fft_workspace_bytes for any number of threads.
struct FftOperands {
  const void* weights = nullptr;
  const void* factors = nullptr;
  std::span<std::byte> workspace = {};
};

/// y[k] = scale * sum_j x[j] exp(-+2 pi i sum_d (k_d - c_d) (j_d - c_d) / N_d), d over the axes,
/// c_d = floor(N_d / 2) if centered, else 0. With weights w: y = scale F'(w F(x)), where F is that
/// sum without the scale and F' the one of the other sign.
///
/// With factors m too: y = scale * sum_c conj(m_c) F'(w_c F(m_c x_c)), c along axis 0; products are
/// rounded before they are added, in the order of c.
///
/// Lines of zeros are not transformed, nor lines of which nothing is kept.
///
/// Aliases  `in` and operands but the workspace are not written; they, `out` and the workspace are
///          disjoint. In place: `in` and `out` are equal
/// Cost     O(N log N); one pass over memory per axis, including centering and scale. With weights
///          two, but one along the axis with the largest stride: its lines go there and back while
///          they are in cache. Where zeros make it smaller, the spectrum along the first axis is
///          kept instead, and its slices go there and back. An image in a spectrum of twice its
///          extents takes 3/4 of the transforms in 2-D, 7/12 in 3-D. 256 KiB of stack per thread.
///          Lines run on oneTBB threads. Bits of a line depend on its elements, its length and the
///          precision alone: not on threads, strides, neighbours, instruction set or process
/// Source   Gentleman & Sande 1966, doi:10.1145/1464291.1464352
void execute(const FftPlan& plan, const void* in, void* out, const FftOperands& operands = {});

/// Forgets all cached plans; handles stay valid.
void clear_fft_cache();

}  // namespace palimpsest
