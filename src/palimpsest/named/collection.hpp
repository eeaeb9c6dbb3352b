// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/dims.hpp"

namespace PALIMPSEST_API palimpsest {

/// Numbers kept per dimension.
using DimMap = std::map<NamedDimension, std::int64_t>;

/// Value under one name of a collection: a sequence, a single dimension, or a map. Text and brace
/// lists of dimensions are sequences.
class ShapeValue {
 public:
  ShapeValue() = default;
  template <Text T>
  ShapeValue(const T& text) : value_(Dims(text)) {}
  ShapeValue(Dims dims) : value_(std::move(dims)) {}
  ShapeValue(std::initializer_list<NamedDimension> dims) : value_(Dims(dims)) {}
  ShapeValue(const NamedDimension& d) : value_(d) {}
  ShapeValue(DimMap map) : value_(std::move(map)) {}
  // So that `{{"A", 1}}`, which may mean A1 as well as a map, does not compile.
  ShapeValue(std::initializer_list<DimMap::value_type> map) : value_(DimMap(map)) {}

  /// The sequence, the single dimension or the map; null for another kind.
  const Dims* dims() const { return std::get_if<Dims>(&value_); }
  const NamedDimension* dim() const { return std::get_if<NamedDimension>(&value_); }
  const DimMap* map() const { return std::get_if<DimMap>(&value_); }

  bool uses(const NamedDimension& d) const;
  /// All dimensions, a map's in the order of its keys.
  Dims tokens() const;
  /// `(A, B)`, `A`, `{A: 1, B: 2}`.
  std::string str() const;

  friend bool operator==(const ShapeValue& a, const ShapeValue& b) = default;

 private:
  std::variant<Dims, NamedDimension, DimMap> value_;
};

/// Behaviour of a renaming when a new name is in use already.
enum class OnCollision {
  refuse,  ///< ShapeError "collides"
  merge,   ///< makes one dimension of the two
};

/// Several named shapes over one pool of dimensions: a dimension that occurs in two shapes is one
/// dimension, and renaming it changes both. Ordinal anys belong to the pool too: `(1)` is one
/// unknown wherever it occurs. A value: copies are independent. A call that throws changes nothing.
class NamedDimCollection {
 public:
  /// Errors   ValueError "already in" for a known shape; ValueError for a single dimension that is
  ///          an ellipsis and for a map with a key `...` or `()`
  void add(std::string_view shape, ShapeValue value);

  /// Sets `shape` to `value`; adds it if it is new. Old and new dimensions are aligned by
  /// structure: a name, or an ordinal any, that meets another name is renamed in every shape; all
  /// else changes in this shape only. A map replaces a map and renames nothing.
  /// Errors   ShapeError "not compatible" in structure; "inconsistent mapping" of one dimension to
  ///          two; "collides" with a name in use. ValueError "non-singleton" for a single dimension
  ///          set to a sequence; ValueError for another kind, and as in add
  void set(std::string_view shape, ShapeValue value);

  /// Renames everywhere, all at once, so that swaps and cycles work. Keys that no shape uses are
  /// ignored. A wildcard that becomes a name joins that name.
  /// Errors   ShapeError "collides" where a new name is in use and stays in use, or is given
  ///          twice; with merge only where two keys of a map would become one. ValueError for a
  ///          key `...` or `()` and for a wildcard as new name
  void rename(const Renaming& map, OnCollision on_collision = OnCollision::refuse);

  bool contains(std::string_view shape) const;
  /// A shape of that kind. ShapeError for an unknown shape and for one of another kind.
  const Dims& dims(std::string_view shape) const;
  const NamedDimension& dim(std::string_view shape) const;
  const DimMap& map(std::string_view shape) const;
  /// A shape of any kind. ShapeError for an unknown shape.
  const ShapeValue& value(std::string_view shape) const;
  /// In order of addition.
  std::vector<std::string> names() const;
  /// All names and ordinal anys in use, in order of first occurrence.
  Dims pool() const;
  /// `name: shape` for all shapes, separated by commas.
  std::string str() const;

 private:
  friend class NamedShape;
  const ShapeValue* find(std::string_view shape) const;
  ShapeValue* find(std::string_view shape);
  void apply(const Renaming& renaming, OnCollision on_collision, const std::string& who);
  std::string users(const NamedDimension& d) const;

  std::vector<std::pair<std::string, ShapeValue>> shapes_;
};

}  // namespace palimpsest
