// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "palimpsest/linop/convolution.hpp"

namespace palimpsest {

struct ConvolutionSpec {
  Boundary boundary = Boundary::zeros;
  ConvolutionMethod method = ConvolutionMethod::automatic;
  /// ValueError "grid_sizes" when the kernel is larger than the grid.
  bool must_fit = false;
};
/// The convolution of the last axes of x with h, and its adjoint.
Variable convolved(const Variable& x, const Variable& h, const ConvolutionSpec& spec,
                   std::string_view who);
Variable convolved_adjoint(const Variable& y, const Variable& h, const ConvolutionSpec& spec,
                           std::string_view who);

}  // namespace palimpsest
