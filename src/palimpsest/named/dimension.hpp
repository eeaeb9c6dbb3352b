// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/fwd.hpp"

namespace PALIMPSEST_API palimpsest {

/// Types that spell a name or a shape: literals, strings, string views.
template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

namespace named {
enum class Kind : std::uint8_t { concrete, ellipsis, any };

// Record of a name, found once per process and never freed: dimensions are as cheap as pointers and
// their texts outlive them. The number of distinct names bounds the memory.
struct Entry {
  std::string_view text;
  std::string_view base;
  int index;  // of a name: -1 without one; of an any: its ordinal
  Kind kind;
};
extern const Entry kAnonymousAny;
}  // namespace named

/// Dimension of a named shape: a name such as `Nx`, `coil`, `K12`, or a wildcard.
///
///   `...`  zero or more dimensions
///   `()`   exactly one dimension of any name; every occurrence is independent
///   `(1)`  exactly one dimension of any name; one ordinal is one unknown per collection
///
/// A name has a base and may have an index: `Nx1` is base `Nx`, index 1. There is one value per
/// text: `ND(d.str()) == d`. The size of a pointer, free to copy.
class NamedDimension {
 public:
  /// The anonymous any.
  NamedDimension() = default;
  /// The dimension of a text, which is exactly one token.
  /// Errors   ValueError with the text and the position
  template <Text T>
  NamedDimension(const T& text) : NamedDimension(lookup(std::string_view(text))) {}
  /// The dimension of `base` followed by `index`.
  /// Errors   ValueError as for text; also if the base ends in a digit or the index is negative
  NamedDimension(std::string_view base, int index);

  static NamedDimension ellipsis();
  /// `()` for 0, otherwise `(ordinal)`. ValueError if negative.
  static NamedDimension any(int ordinal = 0);

  std::string str() const { return std::string(entry_->text); }
  /// The text without a copy; valid for ever.
  std::string_view text() const { return entry_->text; }
  /// The name without its index; `...` and `()` for wildcards. Valid for ever.
  std::string_view base() const { return entry_->base; }
  /// The index of a name or the ordinal of an any; none for `Nx`, `...` and `()`.
  std::optional<int> index() const {
    return entry_->index < 0 ? std::nullopt : std::optional<int>(entry_->index);
  }

  bool is_concrete() const { return entry_->kind == named::Kind::concrete; }
  bool is_ellipsis() const { return entry_->kind == named::Kind::ellipsis; }
  /// Anonymous or ordinal.
  bool is_any() const { return entry_->kind == named::Kind::any; }
  bool is_ordinal() const { return is_any() && entry_->index >= 0; }
  bool is_wildcard() const { return !is_concrete(); }

  /// The same base with k added to the index, where no index counts as 0: `A + 1` is `A1`. Adding
  /// 0, or anything to a wildcard, changes nothing.
  /// Errors   ValueError if the index would be negative, OverflowError beyond 31 bits
  NamedDimension operator+(int k) const;
  /// The first of this, this + 1, this + 2, ... that is not in `avoid`. Wildcards are unchanged.
  NamedDimension fresh(std::span<const NamedDimension> avoid) const;

  friend bool operator==(const NamedDimension& a, const NamedDimension& b) {
    return a.entry_ == b.entry_;
  }
  /// By base, then index; no index comes first.
  friend std::strong_ordering operator<=>(const NamedDimension& a, const NamedDimension& b);
  /// Compare as texts: malformed ones equal nothing.
  template <Text T>
  friend bool operator==(const NamedDimension& a, const T& b) {
    return a.text() == canonical(std::string_view(b));
  }

  /// Hash of the text, so that tables keyed by either can be searched with the other.
  std::size_t hash() const { return std::hash<std::string_view>{}(text()); }
  /// `()` for its other spelling `(0)`; any other text unchanged.
  static std::string_view canonical(std::string_view text) { return text == "(0)" ? "()" : text; }

 private:
  explicit NamedDimension(const named::Entry* entry) : entry_(entry) {}
  static const named::Entry* lookup(std::string_view text);

  const named::Entry* entry_ = &named::kAnonymousAny;
};

std::ostream& operator<<(std::ostream& stream, const NamedDimension& d);

}  // namespace palimpsest

template <>
struct std::hash<palimpsest::NamedDimension> {
  using is_transparent = void;
  std::size_t operator()(const palimpsest::NamedDimension& d) const noexcept { return d.hash(); }
  template <palimpsest::Text T>
  std::size_t operator()(const T& text) const noexcept {
    return std::hash<std::string_view>{}(
        palimpsest::NamedDimension::canonical(std::string_view(text)));
  }
};
