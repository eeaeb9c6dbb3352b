// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

struct SingularVectors {
  Variable u, s, vh;
};
/// Singular vectors and values of the matrices of the last two axes.
///
/// Math     a = u diag(s) vh, s descending; computed in double precision
/// Shapes   a (.., rows, columns); u (.., rows, k), s (.., k) real, vh (.., k, columns), k the
///          smaller side
/// Aliases  u and vh, and a real s, are views of one array
/// Errors   DTypeError: neither floating nor complex; ShapeError: fewer than two axes. A matrix
///          with an element that is not finite gives NaN
/// Cost     O(rows columns k) per matrix
SingularVectors svd(const Variable& a);

}  // namespace ops
}  // namespace palimpsest
