// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <span>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// An array treated as many matrices. Some axes are cut into blocks, periodically from element
/// `shift` on; the last block may be shorter. The elements of a block are the rows of a matrix, and
/// the elements along other axes its columns. The remaining axes are a batch.
struct BlockMatrices {
  static constexpr index_t kColumns = -1, kBatch = 0;
  /// For each axis the extent of a block, kColumns or kBatch.
  std::span<const index_t> axes;
};

/// Scratch for one thread.
std::size_t block_matrices_scratch(const BlockMatrices& m, const ConstView& x);

/// Each matrix U S V^H becomes U max(S - threshold, 0) V^H. Singular values below sqrt(eps) of the
/// largest count as 0; a matrix with an element that is not finite becomes NaN.
///
/// Shapes   x and out the same; threshold real, with the extents of x along the batch and 1 (or
///          stride 0) elsewhere; shift int64, one for each axis that is cut
/// Aliases  out may be x
/// Cost     one pass and min(rows, columns)^2 operations per element; eigenvectors of the Gram
///          matrix of the smaller side, in double precision
void soften_singular_values(const BlockMatrices& m, const ConstView& x, const ConstView& threshold,
                            const ConstView& shift, const MutableView& out,
                            std::span<std::byte> scratch);

/// The sum of all singular values of the matrices of each element of the batch, unshifted. out is
/// real and has x's extents, but 1 along axes outside the batch.
void nuclear_norms(const BlockMatrices& m, const ConstView& x, const MutableView& out,
                   std::span<std::byte> scratch);

}  // namespace palimpsest
