// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/run/container.hpp"

namespace palimpsest {

struct ConvolutionSpec {
  Boundary boundary = Boundary::zeros;
  ConvolutionMethod method = ConvolutionMethod::automatic;
  /// ValueError "grid_sizes" when the kernel is larger than the grid.
  bool must_fit = false;
  /// The kernel is a shared variable: its transform is kept for the next time, one per grid.
  bool keeps_spectrum = false;
};
/// The convolution of the last axes of x with h, and its adjoint.
Variable convolved(const Variable& x, const Variable& h, const ConvolutionSpec& spec,
                   std::string_view who);
Variable convolved_adjoint(const Variable& y, const Variable& h, const ConvolutionSpec& spec,
                           std::string_view who);

/// Operations per element of the grid: of a direct convolution with a kernel of these extents, and
/// of two transforms.
double direct_cost(const Extents& kernel, DType x, DType h);
double fft_cost(double grid_elements);

/// The transform of h, `spectrum`, as a variable that is computed on first use and when h was
/// written: the same one for each h and key while some graph has it.
Variable kept_spectrum(const Variable& h, const Extents& key, const Variable& spectrum);
/// Containers of the kept spectra of the kernel h that a live graph still uses.
std::vector<std::shared_ptr<Container>> kept_spectra(const Variable& h);

}  // namespace palimpsest
