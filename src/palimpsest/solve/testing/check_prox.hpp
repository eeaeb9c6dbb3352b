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
  /// For functions with an iterative prox: the allowed distance from the minimum.
  double tolerance = 1e-9;
};
/// The laws that a proximal operator breaks on random operands, one per line; empty if it holds
/// them.
///
/// Laws   its result minimizes t g(x) + |x - v|^2 / 2; Moreau's identity; distances do not grow;
///        the dtype stays; the operand stays; one thread and four give the same bits, and so do a
///        deep copy, a function saved and loaded, and the operand's memory for the result; planned
///        bytes are the measured ones; split() gives parts along each dimension of dims() along
///        which it is separable
std::vector<std::string> check_prox(const Prox& g, const ProxCheckOptions& options = {});

}  // namespace palimpsest
