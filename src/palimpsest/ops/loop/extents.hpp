// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::ops {

/// A number computed from the extents of the inputs of an op, known as soon as these are.
class ExtentProgram {
 public:
  enum class Code : std::uint8_t {
    number,
    extent,
    add,
    sub,
    mul,
    floor_div,
    mod,
    minimum,
    maximum,
    neg
  };

  ExtentProgram() = default;
  /// The program for a number.
  explicit ExtentProgram(index_t value) { number(value); }
  /// The extent of an input of the op along an axis.
  static ExtentProgram of_input(std::size_t input, std::size_t axis);

  // Postfix: operands before the operation.
  void number(index_t value);
  void extent(std::size_t input, std::size_t axis);
  void apply(Code code);

  /// The value; empty if a needed extent is unknown.
  std::optional<index_t> evaluate(std::span<const Extents> inputs) const;
  bool is_number() const { return tokens_.size() == 1 && tokens_[0].code == Code::number; }
  /// Different whenever the programs are.
  std::string str() const;

 private:
  struct Token {
    Code code;
    index_t value = 0;  // of a number; the input of an extent
    std::size_t axis = 0;
  };
  std::vector<Token> tokens_;
};

using ExtentPrograms = std::vector<ExtentProgram>;

ExtentPrograms numbers(std::span<const index_t> extents);
/// The text of all programs: `(3, x1[0]*2)`.
std::string text_of(const ExtentPrograms& programs);
/// Extents by the programs; kUnknown where one is unknown, or is the number -1. ShapeError for
/// negative ones.
Extents evaluate(const ExtentPrograms& programs, std::span<const Extents> inputs,
                 std::string_view who);
/// The same from the types of variables.
Extents evaluate(const ExtentPrograms& programs, std::span<const Variable> inputs,
                 std::string_view who);

/// ShapeError for a program that is a negative number, -1 included.
void check_known_numbers(const ExtentPrograms& programs, std::string_view who);

/// Extents as a caller gave them: programs over `arrays`, which become the inputs of an op.
struct SymbolicShape {
  ExtentPrograms extents;
  std::vector<Variable> arrays;
};
/// `arrays` are the inputs that the op has anyway; those that are needed besides are added.
/// An extent that depends on more than extents is that of a RunTimeExtent.
/// Errors   DTypeError: no integer
SymbolicShape symbolic_shape(const ShapeArgument& shape, std::vector<Variable> arrays,
                             std::string_view who);

}  // namespace palimpsest::ops
