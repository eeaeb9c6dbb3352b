// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace PALIMPSEST_API palimpsest {

struct ProxCheckOptions {
  /// Extents of the operand.
  Extents shape = {4, 6};
  DType dtype = DType::complex128;
  double t = 0.7;
  std::uint64_t seed = 1;
  /// Of functions whose prox is found by iterating: how far it may be from the minimum.
  double tolerance = 1e-9;
};
/// The laws that a proximal operator breaks on random operands, a line each; none: it holds them.
///
/// Laws   its result minimizes t g(x) + |x - v|^2 / 2; Moreau's identity; distances do not grow;
///        the dtype stays; the operand stays; one thread and four give the same bits, so do a deep
///        copy, what save() wrote, and the operand's memory for the result; planned is measured;
///        split() gives parts along each dimension of dims() along which it is separable
std::vector<std::string> check_prox(const Prox& g, const ProxCheckOptions& options = {});

}  // namespace palimpsest
