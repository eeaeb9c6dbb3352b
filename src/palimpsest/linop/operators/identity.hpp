// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// The identity. Its adjoint and normal operator are itself.
///
/// Math     x / x / x
/// Errors   ValueError "ShapeSpec": two different shapes
/// Cost     none; the result shares data lazily with x
NamedLinop Identity(Dims dims = "...");
NamedLinop Identity(Dims ishape, Dims oshape);

struct ZeroOptions {
  /// Sizes of output dimensions that the input has not.
  DimMap sizes = {};
};
/// The operator with the result 0. Sums drop it.
///
/// Shapes   extents of the output: of dimensions of ishape from x, of others from known sizes
/// Errors   ShapeError "is unknown": a size that is not given
NamedLinop Zero(Dims ishape = "...");
NamedLinop Zero(Dims ishape, Dims oshape, ZeroOptions options = {});

}  // namespace palimpsest
