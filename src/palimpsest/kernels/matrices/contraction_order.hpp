// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/kernels/matrices/contract.hpp"
#include "palimpsest/kernels/reduce/reduce_driver.hpp"

namespace palimpsest {

/// The strided pass of a contraction, for kernels of accelerators that add in the same order.
struct ContractionOrder {
  ReductionOrder order;    ///< operands 1 and 2 are a and b, or b and a
  bool exchanged = false;  ///< b comes first
  bool conj_first = false, conj_both = false;
};
/// For views of layouts alone, without extents of 0. The rest as for run_contraction.
ContractionOrder contraction_order(const Contraction& contraction, const ConstView& a,
                                   const ConstView& b, const MutableView& out);

}  // namespace palimpsest
