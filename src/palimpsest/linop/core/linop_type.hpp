// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/linop/core/attribute.hpp"
#include "palimpsest/linop/core/fwd.hpp"
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/named/named_shape.hpp"

namespace PALIMPSEST_API palimpsest {

/// Builds the graph of an application: receives a Variable of known shape, dtype and device and
/// returns that of the result. Pure; reads the types of parameters, never their values.
using GraphFn = Variable (*)(const NamedLinop& A, const Variable& x);

/// Part of each dimension that a tile takes; dimensions that are not listed are whole.
using Tile = std::map<ND, Slice>;
/// The operator on a tile. The tile's slices have both ends, and its dimensions are the operator's.
/// Errors   SplitError "cannot split": not possible exactly
using SplitFn = NamedLinop (*)(const NamedLinop& A, const Tile& tile);

/// Functions of an operator type. They are plain functions, bound to no instance.
struct LinopFunctions {
  GraphFn fn = nullptr;
  GraphFn adj_fn = nullptr;     ///< null: the graph of fn, transposed
  GraphFn normal_fn = nullptr;  ///< null: adj_fn after fn
  /// Null: that of the adjoint, flipped; null too: dimensions of the other-shape `batch_shape` are
  /// cut, all others refused.
  SplitFn split = nullptr, adj_split = nullptr;
  /// The size of a dimension that the type knows; null or none: unknown.
  std::optional<index_t> (*size)(const NamedLinop& A, const ND& d) = nullptr;
};

/// Arguments for assembling a container.
struct Assembly {
  /// The shape that the user asked for; null for the shape of the children.
  const NamedShape* wanted = nullptr;
  /// Shapes besides ishape and oshape that the container has.
  NamedShape::Others others = {};
  std::vector<std::pair<std::string, Attribute>> attrs = {};
};

enum class VectorSide;

/// Functions on the parts of vectors that several processes hold on a side of an operator.
struct VectorParts {
  /// The sum over the processes of a number that each has computed from its part.
  Variable (*total)(const NamedLinop& A, VectorSide side, const Variable& number);
  /// The dimensions that processes hold in parts.
  Dims (*cut_dims)(const NamedLinop& A, VectorSide side);
  /// True if `here` is true on one of the processes. All of them call it.
  bool (*on_any)(const NamedLinop& A, bool here);
};

/// A kind of operator. Must outlive every operator of it: make it a constant at namespace scope.
struct LinopType {
  std::string name;  ///< key in the registry, unique
  int version = 1;
  LinopFunctions functions;
  GraphFn adj_normal_fn = nullptr;  ///< A A^H; null: composed
  /// The adjoint; null: a copy with the shape flipped and fn and adj_fn exchanged.
  NamedLinop (*adjoint)(const NamedLinop& A) = nullptr;
  /// A^H inner A, inner null for none. An undefined result asks for the generic rule.
  NamedLinop (*normal)(const NamedLinop& A, const NamedLinop* inner) = nullptr;
  /// Throws when parameters or attributes make no sense; runs whenever an operator is made.
  void (*check)(const NamedLinop& A) = nullptr;
  bool real_linear = false;  ///< linear over the reals only
  /// Text that print adds behind the dimensions; null: none.
  std::string (*remark)(const NamedLinop& A) = nullptr;
  /// The inverse, if there is one.
  NamedLinop (*inverse)(const NamedLinop& A) = nullptr;
  /// ishape and oshape are one: setting either sets both.
  bool one_shape = false;
  /// Containers: checks the children, completes their names in place and gives ishape and oshape of
  /// the whole.
  NamedShape (*assemble)(std::vector<NamedLinop>& children, const Assembly& how) = nullptr;
  /// For operators between vectors that several processes hold in parts. Null: vectors are whole.
  const VectorParts* parts = nullptr;
  /// Parameters that follow from the others (sort orders): made anew after each check.
  std::vector<std::pair<std::string, Parameter>> (*derive)(const NamedLinop& A) = nullptr;
};

/// Makes a type known by its name. The type is kept by reference.
/// Errors   ValueError "already registered"
bool register_linop(const LinopType& type);
/// The type of a name, built in or registered; null if there is none.
const LinopType* find_linop(std::string_view name);
/// The names of all types, sorted.
std::vector<std::string> linop_names();

#define PALIMPSEST_CONCAT_(a, b) a##b
#define PALIMPSEST_CONCAT(a, b) PALIMPSEST_CONCAT_(a, b)
/// At namespace scope: registers a type when the program starts.
#define PALIMPSEST_REGISTER_LINOP(type)                 \
  [[maybe_unused]] static const bool PALIMPSEST_CONCAT( \
      palimpsest_linop_is_registered_, __COUNTER__) = ::palimpsest::register_linop(type)

}  // namespace palimpsest
