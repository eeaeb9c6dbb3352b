// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/collection.hpp"

namespace PALIMPSEST_API palimpsest {

/// Names of the output dimensions of a normal operator.
enum class Output {
  same,   ///< as the input
  fresh,  ///< new names, so that rows and columns can be cut separately
};

/// The shape of an operator: the names of its input and output dimensions and any number of other
/// shapes, such as those of its parameters, which follow renamings. A value.
///
/// Within an operator one name is one dimension of one size, wherever it occurs. An ellipsis in
/// both ishape and oshape is one run of dimensions; the operator acts slice by slice over it.
class NamedShape {
 public:
  /// Shapes besides ishape and oshape, in order.
  using Others = std::vector<std::pair<std::string, ShapeValue>>;

  /// `(...) -> (...)`.
  NamedShape() : NamedShape(Dims(NamedDimension::ellipsis())) {}
  /// `dims -> dims`.
  NamedShape(const Dims& dims) : NamedShape(dims, dims) {}
  template <Text T>
  NamedShape(const T& text) : NamedShape(Dims(text)) {}
  /// Errors   ValueError "already in" for a name given twice
  NamedShape(Dims ishape, Dims oshape, const Others& others = {});

  const Dims& ishape() const { return shapes_.dims("ishape"); }
  const Dims& oshape() const { return shapes_.dims("oshape"); }
  /// Any shape by name; see NamedDimCollection for the errors.
  const Dims& dims(std::string_view shape) const { return shapes_.dims(shape); }
  const NamedDimension& dim(std::string_view shape) const { return shapes_.dim(shape); }
  const DimMap& map(std::string_view shape) const { return shapes_.map(shape); }
  bool contains(std::string_view shape) const { return shapes_.contains(shape); }
  std::vector<std::string> names() const { return shapes_.names(); }
  /// The shapes besides ishape and oshape.
  Others others() const;
  /// All shapes, ishape and oshape included.
  const NamedDimCollection& shapes() const { return shapes_; }

  /// Change one side; see NamedDimCollection::set. If both ishape and oshape have `...`, the
  /// dimensions that replace it are set in the other shape too.
  /// Errors   as NamedDimCollection::set; also ShapeError "collides" where the other shape has a
  ///          name already that its ellipsis would become, and "inconsistent mapping" where one
  ///          shape has several ellipses that would become different
  void set_ishape(const Dims& dims) { set_side("ishape", "oshape", dims); }
  void set_oshape(const Dims& dims) { set_side("oshape", "ishape", dims); }
  /// Replaces everything, other shapes included.
  void set_shape(NamedShape shape) { *this = std::move(shape); }
  /// Any shape by name; `ishape` and `oshape` as their own setters.
  void set(std::string_view shape, ShapeValue value);
  void add(std::string_view shape, ShapeValue value) { shapes_.add(shape, std::move(value)); }
  /// See NamedDimCollection::rename.
  void rename(const Renaming& names, OnCollision on_collision = OnCollision::refuse) {
    shapes_.rename(names, on_collision);
  }

  /// The adjoint: ishape and oshape exchanged, others kept.
  NamedShape H() const;
  /// The normal operator: `ishape -> ishape`, others kept. With fresh output a dimension that
  /// occurs in oshape, and a wildcard, keeps its name in the output; any other d becomes the first
  /// of d + 1, d + 2, ... that neither shape nor the output has.
  NamedShape N(Output output = Output::same) const;

  /// Concatenates ishapes and oshapes and unites the others.
  /// Errors   ShapeError "already in" where one other shape has two values
  friend NamedShape operator+(const NamedShape& a, const NamedShape& b);
  /// isequal of the ishapes and of the oshapes; others do not count. Not transitive.
  friend bool operator==(const NamedShape& a, const NamedShape& b);
  /// True for the same tokens in all shapes, others included; the shapes may come in any order.
  friend bool identical(const NamedShape& a, const NamedShape& b);

  /// `(A, B) -> (C)`.
  std::string str() const { return arrow(ishape(), oshape()); }

 private:
  void set_side(std::string_view side, std::string_view other, const Dims& dims);

  NamedDimCollection shapes_;
};

NamedShape operator+(const NamedShape& a, const NamedShape& b);
bool operator==(const NamedShape& a, const NamedShape& b);
bool identical(const NamedShape& a, const NamedShape& b);
std::ostream& operator<<(std::ostream& stream, const NamedShape& shape);

}  // namespace palimpsest
