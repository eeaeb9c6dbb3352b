// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Methods to fill a missing side of k-space.
enum class PartialFourier : std::uint8_t {
  none,      ///< zeros
  homodyne,  ///< twice the far side, and the real part once a smooth phase is taken out
  pocs,      ///< the missing side from a smooth phase, the measured one kept, by turns
};
const char* name_of(PartialFourier method);

/// The lines of an axis that were measured: `acquired` of `extent`, from one end.
struct PartialLines {
  index_t axis = 0, extent = 0, acquired = 0;
  /// From the last line down, not from line 0 up.
  bool from_end = false;

  bool operator==(const PartialLines&) const = default;

  /// Lines that were measured on both sides of the middle, line floor(extent / 2).
  index_t beyond_middle() const { return acquired - 1 - (extent - (from_end ? 1 : 0)) / 2; }
};

/// The axis with a missing side: the farthest measured line on one side is at most 7/8 as far from
/// the middle as that on the other.
///
/// Shapes   measured: bool (y, x) or (z, y, x)
/// Errors   ValueError "both": two such axes; "middle": no line is measured beyond it
std::optional<PartialLines> partial_lines(const Tensor& measured);

struct HomodyneOptions {
  /// Axes of k-space, including `axis`; empty: all.
  std::vector<index_t> axes = {};
  bool from_end = false;
  /// Around the middle the weights rise from 0 to 2; else they step: 0, 1, 2.
  bool ramp = true;
};
/// An image from k-space of which one side was measured, for images of smooth phase.
///
/// Math     d = distance of a line from the middle towards the measured side, w = lines beyond the
///          middle: weight 1 + d / w for |d| <= w, 2 for d > w (1 for line 0 of an even number,
///          which is its own mirror image), else 0; the real part of the image times exp(-i phase
///          of the image of the lines |d| <= w)
/// Shapes   kspace (.., y, x) -> the same, complex64 with imaginary parts of 0
/// Units    fraction: round(fraction N) lines were measured, in (0.5, 1]
/// Errors   ValueError "fraction", "axis"; DTypeError: not complex64
/// Source   Noll, Nishimura and Macovski 1991, doi:10.1109/42.79473
Tensor homodyne(const Tensor& kspace, index_t axis, double fraction,
                const HomodyneOptions& options = {});

struct PocsOptions {
  int iterations = 10;
};
/// An image from such k-space by projection onto convex sets: |x| with the phase of the lines
/// around the middle, and measured samples as they are, by turns.
///
/// Shapes   kspace, mask (y, x) or (z, y, x); image the same, complex64
/// Errors   ValueError "iterations": below 1; those of partial_lines(), and "one side": none is
///          missing; ShapeError
/// Source   Haacke, Lindskogj and Lin 1991, doi:10.1016/0022-2364(91)90253-P
Tensor pocs(const Tensor& kspace, const Tensor& mask, const PocsOptions& options = {});

}  // namespace palimpsest
