// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/solve/frame/space.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace PALIMPSEST_API palimpsest {

/// Problem of a solver: operators, proximal functions and numbers by name, and the type of the
/// data. A value.
///
/// The operator "A" maps the unknown x to the data b: the axes of x are its ishape, those of b its
/// oshape. The proximal function "h" is one of x, "f" one of A x, and "g0", "g1", .. are those of
/// K0 x, K1 x, .. for the operators "K0", "K1", ..
class Problem {
 public:
  using Ops = std::vector<std::pair<std::string, NamedLinop>>;

  Problem() = default;
  /// A problem with data of a dense type.
  explicit Problem(TensorType b) : b_type_(std::move(b)) {}

  Problem& set(std::string_view name, NamedLinop A);
  Problem& set(std::string_view name, Prox g);
  Problem& set(std::string_view name, Attribute value);
  const TensorType& b_type() const { return b_type_; }

  bool has_op(std::string_view name) const;
  /// NameError without an operator of this name.
  const NamedLinop& op(std::string_view name) const;
  const Ops& ops() const { return ops_; }
  bool has_prox(std::string_view name) const;
  const Prox& prox(std::string_view name) const;
  const std::vector<std::pair<std::string, Prox>>& proxes() const { return proxes_; }
  bool has_attr(std::string_view name) const;
  const Attribute& attr(std::string_view name) const;
  const Attributes& attrs() const { return attrs_; }
  /// The attribute, or `otherwise` if it is absent.
  double real(std::string_view name, double otherwise) const;
  index_t integer(std::string_view name, index_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const;

  // -- set by the driver ------------------------------------------------------------------------
  /// Resolves the spaces of x and b. The dtype is complex where an operator makes it so.
  /// Errors   those of applying the operators; ShapeError "batch"; SplitError: an operator or a
  ///          proximal function is not separable along a dimension of the batch
  void resolve(const Dims& batch, bool has_x0, std::string_view solver);
  const Space& x() const { return x_; }
  const Space& b() const { return b_; }
  const Dims& batch() const { return batch_; }
  bool has_x0() const { return has_x0_; }
  /// The space that the operator maps x to.
  Space range_of(std::string_view op) const;
  /// The space of the argument of a proximal function.
  Space argument_of(std::string_view prox) const;
  /// The space of numbers.
  Space numbers() const;
  /// Replaces an operator, if it is there.
  void replace(std::string_view name, NamedLinop A);
  /// Tiles into which proximal steps are cut, along the dimensions where they can be.
  void set_tiles(DimMap sizes) { tiles_ = std::move(sizes); }
  const DimMap& tiles() const { return tiles_; }

 private:
  TensorType b_type_;
  Ops ops_;
  std::vector<std::pair<std::string, Prox>> proxes_;
  Attributes attrs_;
  Space x_, b_;
  Dims batch_;
  DimMap tiles_;
  bool has_x0_ = false;
};

/// The type of data on dimensions of A, with its sizes; dtype unset: the widest precision of its
/// floating parameters.
/// Errors   ShapeError "is unknown": a size
TensorType data_type(const NamedLinop& A, const Dims& dims, std::optional<DType> dtype,
                     const char* who);

}  // namespace palimpsest
