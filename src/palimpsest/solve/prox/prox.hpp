// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/solve/frame/state.hpp"

namespace PALIMPSEST_API palimpsest {

class Prox;

/// A kind of proximal function: a table of plain functions that build graphs. Must outlive every
/// Prox of it: make it a constant at namespace scope.
///
/// To add one: a type with its functions and a factory that calls make_prox, both in one .cpp.
struct ProxType {
  std::string_view name;  ///< starts messages
  int version = 1;        ///< of its attributes in files
  /// Least number of functions and of operators that it is made of.
  std::size_t parts = 0, linops = 0;
  /// State between two calls, such as dual fields and random keys; null: none.
  void (*declare)(const Prox& g, const Space& v, StateList& state) = nullptr;
  /// argmin_x t g(x) + |x - v|^2 / 2. t is real and positive, and broadcasts against v.
  Variable (*prox)(const Prox& g, const Variable& v, const Variable& t, StateScope& s) = nullptr;
  /// prox_{s g*}(u); null: by Moreau's identity.
  Variable (*conjugate)(const Prox& g, const Variable& u, const Variable& s,
                        StateScope& state) = nullptr;
  /// g(x), summed over all axes but those of the batch; infinite outside of a constraint.
  Variable (*value)(const Prox& g, const Variable& x, const Axes& batch) = nullptr;
  /// Null: not smooth.
  Variable (*gradient)(const Prox& g, const Variable& x) = nullptr;
  /// Lipschitz constant of the gradient.
  double (*lipschitz)(const Prox& g) = nullptr;
  /// Throws when parameters or attributes make no sense; runs whenever one is made.
  void (*check)(const Prox& g) = nullptr;
  /// True if g(x) = sum over i of g_i(x_i), x_i the slices of the operand along d. A cut along d
  /// then cuts the parameters with an extent along d, the parts and the operators. Null: never.
  bool (*is_separable)(const Prox& g, const ND& d) = nullptr;
  /// The prox is one elementwise pass, which takes no memory: never cut for a budget.
  bool is_elementwise = false;
  /// The state that `declare` adds is that of the parts: none where no part has one.
  bool is_state_of_parts = false;
};

/// Makes a type known by its name. ValueError "already registered".
bool register_prox(const ProxType& type);
/// Null without a type of the name.
const ProxType* find_prox(std::string_view name);
std::vector<std::string> prox_names();

/// At namespace scope: registers a type when the program starts.
#define PALIMPSEST_REGISTER_PROX(type)                  \
  [[maybe_unused]] static const bool PALIMPSEST_CONCAT( \
      palimpsest_prox_is_registered_, __COUNTER__) = ::palimpsest::register_prox(type)

/// Factor of a function: a number, or a Parameter, whose value may change between solves.
class Weight {
 public:
  template <std::convertible_to<double> T>
  Weight(T value) : number_(static_cast<double>(value)) {}
  Weight(Parameter value) : parameter_(std::move(value)) {}
  Weight(const Tensor& value) : parameter_(value) {}
  const std::optional<double>& number() const { return number_; }
  const Parameter& parameter() const { return parameter_; }

 private:
  std::optional<double> number_;
  Parameter parameter_;
};

struct ProxNode;

/// A convex function that is known by its proximal operator: a cheap handle to an immutable node.
///
/// Dimensions: those given to its factory, else the dimensions of the operand. Without either,
/// `over` stands for the leading axes.
///
/// Threads  const members may be called concurrently
class Prox {
 public:
  Prox() = default;
  explicit Prox(std::shared_ptr<const ProxNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const ProxType& type() const;
  const std::string& name() const;
  /// Unset: those of the operand.
  const std::optional<Dims>& dims() const;
  /// The same function for an operand with these dimensions, unless it has dimensions of its own.
  Prox bound_to(const Dims& dims) const;
  Prox renamed(const Renaming& names) const;
  /// True if g(x) = sum over i of g_i(x_i), x_i the slices along this dimension.
  bool is_separable(const ND& d) const;
  /// The function of a part of the operand, on views of the parameters.
  /// Errors   SplitError: a dimension along which it is not separable; ValueError: a slice without
  ///          both ends
  Prox split(const Tile& where) const;
  /// A function that shares nothing with this one that can be written, as an operator's deepcopy().
  Prox deepcopy(Copy when = Copy::lazy) const;
  bool has_param(std::string_view name) const;
  const Parameter& param(std::string_view name) const;
  const Parameters& params() const;
  bool has_attr(std::string_view name) const;
  const Attribute& attr(std::string_view name) const;
  const Attributes& attrs() const;
  const std::vector<Prox>& parts() const;
  const std::vector<NamedLinop>& linops() const;
  /// `L1(lambda 0.1)`.
  std::string str() const;

  // -- in a graph --------------------------------------------------------------------------------
  /// The state that prox() reads and sets.
  StateList state(const Space& v) const;
  bool has_state() const;
  /// Aliases  may be computed in place of v
  Variable prox(const Variable& v, const Variable& t, StateScope& s) const;
  Variable conjugate_prox(const Variable& u, const Variable& s, StateScope& state) const;
  /// The prox of a function without state. StateError if it has one.
  Variable prox(const Variable& v, const Variable& t) const;
  Variable conjugate_prox(const Variable& u, const Variable& s) const;
  /// Real, without axes, or with those of the batch in their order.
  Variable value(const Variable& x, const Axes& batch = {}) const;
  /// ValueError "smooth": it has none.
  Variable gradient(const Variable& x) const;
  bool is_smooth() const;
  /// Lipschitz constant of the gradient. ValueError "smooth".
  double lipschitz() const;

  // -- of tensors: compiled once per type --------------------------------------------------------
  /// argmin_x t g(x) + |x - v|^2 / 2, from a state at its start.
  /// Errors   ValueError "t": not positive
  Tensor prox(const Tensor& v, double t) const;
  Tensor conjugate_prox(const Tensor& u, double s) const;
  double value(const Tensor& x) const;
  Tensor gradient(const Tensor& x) const;

  const ProxNode& node() const { return *node_; }

 private:
  std::shared_ptr<const ProxNode> node_;
};

/// A function of a user, as graphs.
struct ProxFunctions {
  std::function<Variable(const Variable& v, const Variable& t)> prox;
  std::function<Variable(const Variable& x)> value = {};
};

/// Parts of a Prox.
struct ProxParts {
  std::string name = {};  ///< in messages; empty: the type's
  std::optional<Dims> dims = {};
  Parameters params = {};
  Attributes attrs = {};
  std::vector<Prox> parts = {};
  std::vector<NamedLinop> linops = {};
  std::shared_ptr<const ProxFunctions> functions = {};
};
/// Errors   those of the type's check
Prox make_prox(const ProxType& type, ProxParts parts = {});

}  // namespace palimpsest
