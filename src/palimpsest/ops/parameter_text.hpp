// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/loop/extents.hpp"

namespace palimpsest::ops {

/// Reads the text of an op's parameters(), from left to right. FormatError where the text is not
/// the requested kind.
class ParameterText {
 public:
  explicit ParameterText(std::string_view text) : text_(text) {}

  /// Takes these characters, if they are next.
  bool take(std::string_view characters);
  void expect(std::string_view characters);
  index_t integer();
  bool flag() { return integer() != 0; }
  double number();
  /// `(1, 2)`, `(1,)`, `()`.
  Extents integers();
  /// Letters, digits and underscores.
  std::string_view word();
  DType dtype();
  ExtentPrograms programs();
  /// The comma before an entry, if it is not the first, and its `key=`, if it has a key.
  void entry(std::string_view key);
  /// Consumes the next entry if it is `word`, and returns whether it was.
  bool take_entry(std::string_view word);
  /// An entry with one of these words as its value: which. Without a key and with an empty word an
  /// entry leaves no trace.
  std::size_t entry_among(std::string_view key, std::span<const std::string_view> words);
  /// key=value and the comma before it, if it is not the first.
  index_t integer(std::string_view key);
  Extents integers(std::string_view key);
  void end();

  bool is_at_end() const { return text_.empty(); }
  /// Everything that is left.
  std::string_view rest() const { return text_; }

 private:
  [[noreturn]] void fail(std::string_view expected) const;
  ExtentProgram program();

  std::string_view text_;
  bool is_first_ = true;
};

}  // namespace palimpsest::ops
