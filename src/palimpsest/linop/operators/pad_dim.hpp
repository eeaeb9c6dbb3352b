// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct PadDimOptions {
  /// Name of the dimension in the output; default the fresh name of d.
  std::optional<ND> out = {};
};
/// Zeros after the end of one dimension.
///
/// Math     y[n] = x[n] for n < from, 0 for from <= n < to; N is Identity; the adjoint is the
///          Truncate in the other direction
/// Errors   ValueError "length": to < from, or negative; ShapeError: no such dimension
/// Cost     one write of the output
NamedLinop PadDim(ND d, index_t from, index_t to, Dims dims, PadDimOptions options = {});
/// The first `to` entries of one dimension.
///
/// Math     y[n] = x[n], n < to; N zeroes x[to:]
/// Errors   ValueError "length": to > from, or negative; ShapeError: no such dimension
/// Cost     none: a view
NamedLinop Truncate(ND d, index_t from, index_t to, Dims dims, PadDimOptions options = {});

}  // namespace palimpsest
