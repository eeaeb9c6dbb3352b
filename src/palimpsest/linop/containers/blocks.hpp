// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct BlocksOptions {
  /// Bool, of the extents of a block: only its true entries are kept, in row-major order, along one
  /// axis. The parameter `mask`; one that is written later has as many true entries.
  std::optional<Parameter> mask = {};
  Dims batch = "...";
  /// Names of the axes of the array (default Nx..), of the blocks (Bx..), and within a block (Px..;
  /// masked: P).
  std::optional<Dims> array = {}, blocks = {}, inner = {};
};
/// Blocks of the last axes of an array, which may overlap.
///
/// Math     y[b, m, p] = x[b, m stride + p]; the adjoint adds up; N is the Diagonal of the numbers
///          of blocks that an element is in
/// Shapes   (batch, array) -> (batch, blocks, inner); floor((im - block) / stride) + 1 blocks
/// Errors   ValueError "block": none fits; lists of different lengths; "mask"
/// Cost     one pass; the adjoint's results depend on no number of threads
NamedLinop ArrayToBlocks(Extents im_size, Extents block_size, Extents stride = {1},
                         BlocksOptions options = {});
/// The adjoint of ArrayToBlocks.
NamedLinop BlocksToArray(Extents im_size, Extents block_size, Extents stride = {1},
                         BlocksOptions options = {});

}  // namespace palimpsest
