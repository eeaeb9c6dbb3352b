// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// An array as many matrices: for each axis the extent of a block, with rows as its elements, or
/// one of these.
inline constexpr index_t kMatrixColumns = -1, kMatrixBatch = 0;

/// Each matrix U S V^H of x becomes U max(S - threshold, 0) V^H.
///
/// Math     blocks tile x periodically from element `shift` on, the last along an axis maybe
///          shorter; singular values below sqrt(eps) of the largest count as 0
/// Shapes   axes one for each axis of x; threshold real, broadcast against x, the same for all
///          elements of a matrix; shift int64, one for each axis with blocks
/// DTypes   floating and complex
/// Aliases  may be computed in place of x
/// Errors   ValueError "axes"; ShapeError, DTypeError
/// Cost     one pass and min(rows, columns)^2 operations per element
/// Source   Cai, Candes and Shen 2010, doi:10.1137/080738970
Variable soften_singular_values(const Variable& x, const Variable& threshold, const Variable& shift,
                                Extents axes);

/// The sum of the singular values of all matrices, for each element of the batch; the other axes
/// have extent 1.
Variable nuclear_norms(const Variable& x, Extents axes);

}  // namespace ops
}  // namespace palimpsest
