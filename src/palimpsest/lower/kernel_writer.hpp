// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/lower/lower.hpp"
#include "palimpsest/lower/numbers.hpp"

namespace palimpsest::lower {

/// An array that a kernel reads or writes. The layout's offset counts from the argument's address.
/// `is_number`: one element that the host passes by value.
struct Piece {
  LaunchArgument where;
  Layout layout;
  bool is_number = false;

  /// The distance of neighbours along an axis in bytes; 0 along an axis of one element.
  index_t step(std::size_t axis) const;
};

/// The inputs of an application. One that the host has becomes a number, or a constant that is
/// placed on the device.
std::vector<Piece> input_pieces(const LowerRequest& request, DeviceStep& step);
/// The same for the first n inputs.
std::vector<Piece> input_pieces(const LowerRequest& request, DeviceStep& step, std::size_t n);
std::vector<Piece> output_pieces(const LowerRequest& request);
/// A dense array in the scratch of the step, which grows by it.
Piece scratch_piece(DeviceStep& step, DType dtype, Extents extents);
/// Numbers that follow from the parameters of the op, as an array of int64.
Piece table_piece(DeviceStep& step, std::vector<index_t> numbers);
/// A number that is part of the plan.
Piece literal(DType dtype, double value);
/// A part of a piece: the layout as it is seen within the piece's argument.
Piece part_of(const Piece& piece, Layout layout);
/// The piece with leading axes of one element, so that it broadcasts to `rank` axes.
Piece with_rank(const Piece& piece, std::size_t rank);

/// Items of a group.
inline constexpr int kItems = 128;

/// The text of one kernel with the arguments of its launch. Loops and indices are of 32 bits,
/// offsets of 64.
class KernelWriter {
 public:
  /// `family` begins the kernel's name, which ends with a hash of its text: equal kernels have
  /// equal names. `what`: a comment.
  KernelWriter(std::string_view family, std::string_view what, int items = kItems);

  /// Declares the parameters of a piece; its name.
  std::string piece(const Piece& piece);
  /// Declares a parameter; its name.
  std::string integer(std::int64_t value);
  std::string real(double value);
  /// A text for the offset `index * step`, as a sum to be added: literal where it says much about
  /// the layout (none, neighbours), else a parameter.
  std::string offset(std::string_view index, index_t step, index_t item);
  /// Writes the positions, i32, along axes of an index over them in row-major order. Their names,
  /// outermost first.
  std::vector<std::string> positions(std::string_view index, std::span<const index_t> extents,
                                     std::string_view stem);
  /// A text for the element of a declared piece behind `offsets`, converted to `dtype`.
  std::string load(const std::string& name, const Piece& piece, const std::string& offsets,
                   DType dtype);
  /// Writes a line that stores a value of `dtype`, converted to the piece's.
  void store(const std::string& name, const Piece& piece, const std::string& offsets,
             std::string_view value, DType dtype);
  /// Writes the instructions of a program; `input` writes what it needs for the i-th input, and
  /// returns its value. The values of the outputs.
  std::vector<std::string> program(const ElementwiseProgram& program,
                                   const std::function<std::string(std::size_t)>& input);

  void line(std::string_view text);
  /// Writes a line that opens a block.
  void open(std::string_view text);
  void close();
  Numbers& numbers() { return numbers_; }

  /// Adds the launch to a step. False if it has too many arguments: the step cannot be launched.
  bool add_to(DeviceStep& step, std::array<index_t, 3> groups);

 private:
  std::string family_, what_, parameters_, body_;
  std::vector<LaunchArgument> arguments_;
  std::size_t n_parameters_ = 0;
  Numbers numbers_;
  int items_;
  int depth_ = 1;
  int n_pieces_ = 0, n_integers_ = 0, n_numbers_ = 0;
};

/// True if there is a text for each instruction.
bool has_texts(const ElementwiseProgram& program);

/// An axis of a loop nest over pieces, with their steps in bytes.
struct NestAxis {
  index_t extent = 1;
  std::vector<index_t> steps;
};
/// The axes of pieces of these extents, the innermost first: those of one element are left out,
/// neighbours that can be walked as one are merged. Sorted by the steps of the first piece.
std::vector<NestAxis> nest_of(std::span<const index_t> extents, std::span<const Piece> pieces);
/// The same in the order of the extents.
std::vector<NestAxis> merged_axes(std::span<const index_t> extents, std::span<const Piece> pieces);

/// The loops of a kernel over all elements of pieces. Axes 0 to 2 are spread over items and groups.
class Nest {
 public:
  /// Declares the pieces and opens the loops. The first piece is stored to: its steps order the
  /// axes. The kernel may ask for positions along the axes `positions`, and for the number of the
  /// element, counted row-major, as along the axis kNumber.
  static constexpr auto kNumber = static_cast<std::size_t>(-1);
  Nest(KernelWriter& writer, std::span<const index_t> extents, std::vector<Piece> pieces,
       std::span<const std::size_t> positions = {});
  /// A text for the element of piece p, `further` bytes behind where the loops are.
  std::string load(std::size_t p, DType dtype, const std::string& further = {});
  void store(std::size_t p, std::string_view value, DType dtype, const std::string& further = {});
  /// A text for the position of the loops along positions[q], an i32.
  std::string position(std::size_t q) const { return "(i32)" + wide_position(q); }
  /// The same as an i64.
  std::string wide_position(std::size_t q) const;
  /// Closes the loops and adds the launch. False if the step cannot be launched.
  bool add_to(DeviceStep& step);

 private:
  void open(const NestAxis& axis, std::size_t a);

  KernelWriter& writer_;
  std::vector<Piece> pieces_;
  std::vector<std::string> names_, offsets_;  // offsets also of the positions, behind the pieces
  std::array<index_t, 3> groups_{1, 1, 1};
  std::size_t depth_ = 0;
  bool fits_ = true;
};

/// Adds a launch that computes a program for every element. Sources have the extents, or 1, or are
/// numbers. False if the step cannot be launched.
bool add_map(DeviceStep& step, std::string_view what, const ElementwiseProgram& program,
             std::span<const Piece> sources, std::span<const Piece> targets);
/// The same for a copy, with conversion.
bool add_copy(DeviceStep& step, std::string_view what, const Piece& source, const Piece& target);

}  // namespace palimpsest::lower
