// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/named/dimension.hpp"

namespace PALIMPSEST_API palimpsest {

/// New names of dimensions; all apply at once.
using Renaming = std::map<NamedDimension, NamedDimension>;

/// A sequence of dimensions: the names of an array's axes, possibly with wildcards.
///
/// Converts from text, which is parsed (`"NxNy"` has two dimensions), and from a brace list with
/// one dimension per element. Adjacent ellipses are always merged into one.
class Dims {
 public:
  using value_type = NamedDimension;
  using const_iterator = const NamedDimension*;
  using iterator = const_iterator;

  Dims() = default;
  /// The dimensions that `text` spells. A new name starts at every upper-case letter and after
  /// every separator (blank, comma), parenthesis or ellipsis.
  /// Errors   ValueError with the text and the position
  template <Text T>
  Dims(const T& text) : Dims(parse(std::string_view(text))) {}
  Dims(const NamedDimension& d) { push_back(d); }
  Dims(std::initializer_list<NamedDimension> dims) { append(dims.begin(), dims.end()); }
  Dims(std::span<const NamedDimension> dims) { append(dims.data(), dims.data() + dims.size()); }
  Dims(const std::vector<NamedDimension>& dims) : Dims(std::span(dims)) {}

  std::size_t size() const { return tokens_.size(); }
  bool empty() const { return tokens_.empty(); }
  const NamedDimension& operator[](std::size_t i) const { return tokens_[i]; }
  const NamedDimension& front() const { return tokens_.front(); }
  const NamedDimension& back() const { return tokens_.back(); }
  const NamedDimension* data() const { return tokens_.data(); }
  const_iterator begin() const { return tokens_.begin(); }
  const_iterator end() const { return tokens_.end(); }

  bool contains(const NamedDimension& d) const { return index_of(d).has_value(); }
  /// The position of the first d.
  std::optional<std::size_t> index_of(const NamedDimension& d) const;
  std::size_t count(const NamedDimension& d) const;
  bool has_ellipsis() const { return contains(NamedDimension::ellipsis()); }
  bool has_wildcard() const;

  /// Appends one dimension; an ellipsis after an ellipsis adds nothing.
  void push_back(const NamedDimension& d);
  void clear() { tokens_.clear(); }
  /// The tokens in [first, last).
  Dims slice(std::size_t first, std::size_t last) const;
  /// All tokens except those equal to d.
  Dims without(const NamedDimension& d) const;
  /// Every token replaced by its new name, all at once; tokens without a new name stay.
  Dims renamed(const Renaming& names) const;
  /// Every d replaced by the tokens of `replacement`, possibly none.
  Dims replaced(const NamedDimension& d, const Dims& replacement) const;

  /// `(A, B)`.
  std::string str() const;

  /// Concatenation.
  Dims& operator+=(const Dims& other);
  friend Dims operator+(Dims a, const Dims& b) { return a += b; }
  /// The same tokens; see isequal() for the meaning of wildcards.
  friend bool operator==(const Dims& a, const Dims& b) { return a.tokens_ == b.tokens_; }

 private:
  static Dims parse(std::string_view text);
  void append(const NamedDimension* first, const NamedDimension* last);

  SmallVector<NamedDimension, 8> tokens_;
};

/// The dimensions that `text` spells: `Dim("NxNy")` is Nx Ny.
/// Errors   ValueError with the text and the position
Dims Dim(std::string_view text);

/// The first n of Nx Ny Nz, or of Kx Ky Kz. ValueError unless n is 1, 2 or 3.
Dims spatial_dims(int n, bool kspace = false);
/// base1 .. baseN. ValueError if n is negative or the base is not a name.
Dims numbered(std::string_view base, int n);

/// Dimensions before, at and after one dimension.
struct Partition {
  Dims before, at, after;
};
/// The parts before, at and after the first d; without a d all is before it.
Partition partition(const Dims& dims, const NamedDimension& d);

/// The tokens of a, then those of b that are not in a, each once.
Dims unite(const Dims& a, const Dims& b);

/// `(A, B) -> (C)`.
std::string arrow(const Dims& from, const Dims& to);

std::ostream& operator<<(std::ostream& stream, const Dims& dims);

}  // namespace palimpsest
