// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"

namespace PALIMPSEST_API palimpsest {

/// lambda times the sum of the singular values of a matrix. Its rows are the elements of some
/// dimensions, its columns those of others; there is one matrix for each element of the remaining
/// dimensions.
///
/// Math     prox: U max(S - t lambda, 0) V^H
/// Errors   ValueError "lambda"; ShapeError "rows": none, or shared with the columns
/// Cost     one pass and the square of the smaller side per element, in double precision
/// Source   Cai, Candes and Shen 2010, doi:10.1137/080738970
Prox Nuclear(const Weight& lambda, const Dims& rows, const Dims& columns,
             std::optional<Dims> dims = {});

/// Factor of lambda: one, or that of BART's tools, sqrt(M) + sqrt(N) + sqrt(ln(B min(M, N))) for B
/// blocks that are matrices of M rows and N columns.
enum class LowRankScale : std::uint8_t { none, bart };

struct LocallyLowRankOptions {
  /// Start of the blocks: element 0, or a new random element per dimension in each call.
  Shift shift = Shift::none;
  /// The mean over all shifts; costs as many times as a block has elements.
  bool overlap = false;
  LowRankScale scale = LowRankScale::none;
  std::optional<Dims> dims = {};
};
/// Extents of a block; one larger than the image is the image.
using BlockExtents = std::vector<std::pair<ND, index_t>>;
/// The sum of the nuclear norms of blocks: the elements of a block are the rows of its matrix,
/// those of the dimensions `across` the columns; the remaining dimensions are a batch.
///
/// Math     prox: the singular values of each block less t lambda, or 0. Blocks tile the image
///          periodically, the last along a dimension maybe shorter. The value is that of the
///          unshifted blocks. With `overlap` the prox is a mean of those of shifted functions
/// State    a key of random numbers with Shift::random
/// Errors   ValueError "lambda"; "block": not positive, or none; "shift": random with overlap
/// Source   Trzasko and Manduca 2011, Asilomar, p. 662; Zhang, Pauly and Levesque 2015,
///          doi:10.1002/mrm.25161
Prox LocallyLowRank(const Weight& lambda, const BlockExtents& block, const Dims& across,
                    const LocallyLowRankOptions& options = {});

}  // namespace palimpsest
