// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string_view>
#include <vector>

#include "palimpsest/kernels/reduce/reduce_driver.hpp"
#include "palimpsest/lower/kernel_writer.hpp"

namespace palimpsest::lower {

/// A view of a layout, without memory, for the order of a reduction.
inline ConstView view_of(const Layout& layout) {
  return {nullptr, layout.dtype, layout.extents, layout.strides};
}

/// A reduction: the term of an element, and the function that combines two terms.
struct Sum {
  enum class Term : std::uint8_t { element, norm2, product, conj_product, product_of_conj };
  Term term = Term::element;
  int a = 0, b = 0;  ///< operands of the term
  ScalarOp combine = ScalarOp::add;
  DType load = DType::float32;        ///< of the operands
  DType accumulate = DType::float32;  ///< of terms and sums
};

/// Reductions over the same elements. The operands of terms are `operands`, converted to `load`; or
/// the outputs of a program of them, the first of which are stored in `arrays` as well.
struct SumTask {
  ReductionOrder order;  ///< with steps of results, and of operands or of the dense array of
                         ///< `extents` that a program would compute, in elements
  std::vector<Sum> sums;
  std::vector<Piece> results;
  std::vector<Piece> operands;
  DType load = DType::float32;
  const ElementwiseProgram* program = nullptr;
  bool converts = false;  ///< outputs of the program are converted to `load`
  Extents extents = {};   ///< of the program
  std::vector<Piece> arrays = {};

  /// Operands that are addressed by steps of the order.
  std::size_t n_walked() const { return program == nullptr ? operands.size() : 1; }
};

/// Adds the launches. False if the step cannot be launched.
bool add_sums(DeviceStep& step, std::string_view what, const SumTask& task);

}  // namespace palimpsest::lower
