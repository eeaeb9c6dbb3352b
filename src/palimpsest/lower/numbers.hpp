// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "palimpsest/kernels/elementwise/scalar_op.hpp"

// Arithmetic of all dtypes in the language of kernels. Complex numbers have no operators there, and
// functions no overloads: each function has the name of its operation and dtype, as `mul_c32`.
namespace palimpsest::lower {

/// The type of an element: `f32`, `c64`; of bools `u8`.
std::string_view type_of(DType dtype);
/// `c32`, of bools `b8`: the end of names of functions.
std::string_view suffix_of(DType dtype);

/// A text for 0.
std::string zero_of(DType dtype);

/// The functions that a kernel calls, each written once, in front of those that call it.
///
/// Math  the bits of the host's functions: sums, products, quotients and roots are rounded one by
///       one. Exponentials, logarithms, angles and their kin are the device's own, and differ from
///       the host's by rounding. Bools are bytes: operands other than 0 are true, results 0 or 1
class Numbers {
 public:
  /// True if there is a text for the operation on operands of this dtype, which is the one that
  /// scalar_op_types() gives (of `where` the dtype of the choices).
  static bool has(ScalarOp op, DType working);
  /// The name of the function, which text() will have.
  std::string function(ScalarOp op, DType working);
  /// The same for conj(a) b, of reals the product.
  std::string conj_product(DType dtype);
  /// The same for a function that is no operation: random_word, multiply_high.
  std::string helper(std::string_view name);
  /// The same for the conversion; `value` itself where the dtypes are equal.
  std::string converted(std::string_view value, DType from, DType to);
  /// The functions so far.
  const std::string& text() const { return text_; }

 private:
  void write(const std::string& name);
  void write_conversion(DType from, DType to);

  std::set<std::string, std::less<>> written_;
  std::string text_;
};

}  // namespace palimpsest::lower
