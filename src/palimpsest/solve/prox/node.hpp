// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace palimpsest {

struct ProxNode {
  ProxNode(const ProxType* t, ProxParts parts) : type(t), data(std::move(parts)) {}

  const ProxType* type;
  ProxParts data;

  enum class Call : std::uint8_t { prox, conjugate, value, gradient };
  struct Compiled {
    Call call;
    TensorType operand;
    bool has_far_squares;
    Function function;
  };
  mutable Mutex mutex;
  mutable std::vector<Compiled> compiled = {};  // guarded by mutex
};

/// True if the operator is separable along a dimension that both its shapes have, or that an
/// ellipsis of both stands for.
bool can_split(const NamedLinop& A, const ND& d);
/// True if the function is known not to be separable along d. A function of a user counts as not
/// separable.
bool is_refused_along(const Prox& g, const ND& d);
/// Dims with their ellipsis spelled out for an operand.
Dims spelled_out(const Dims& dims, const Dims& operand);
/// ShapeError "over": the operand lacks one of the names.
void expect_names(std::string_view who, const Dims& over, const Dims& operand);
/// A Wavelet along the same names, of an operand of other dimensions.
NamedLinop wavelet_on(const NamedLinop& W, const Dims& dims);
/// True if dims with an ellipsis do not become those of an operand with names only.
bool lies_elsewhere(const Dims& dims, const Dims& operand);
/// prox_{t g}(v), or prox_{t g*}(v), of an operand in this space: one part after the other, in
/// tiles of these sizes along the dimensions along which the function is separable.
Variable prox_in_tiles(const Prox& g, const Space& space, const DimMap& sizes, bool is_conjugate,
                       const Variable& v, const Variable& t, StateScope& s);
/// The first values of a state as graphs.
std::vector<Variable> first_values(const StateList& state);
/// `[name] `: the start of every message.
std::string who(const Prox& g);
/// Lambda, or another weight, in a real precision.
Variable weight_of(const Prox& g, std::string_view name, DType dtype);
void put_weight(ProxParts& parts, std::string_view name, const Weight& weight);
/// ValueError: negative or not finite.
void check_weight(const Prox& g, std::string_view name);
/// The axes, from the front, of the dimensions that the attribute `over` names; all of them where
/// it is absent.
Axes axes_over(const Prox& g, std::size_t rank);
/// A parameter of a shape that broadcasts to that of v; ShapeError naming it.
Variable param_for(const Prox& g, std::string_view name, const Variable& v);
/// The same in the dtype of v; DTypeError naming it: it is complex, and v is real.
Variable param_like(const Prox& g, std::string_view name, const Variable& v);
/// The axes that are in `axes` or in none.
Axes other_axes(const Axes& axes, std::size_t rank);
/// The norm of the vectors along axes, which keep extent 1. Squares may leave the range of the
/// dtype, except in calls with tensors.
Variable norm_along(const Variable& x, const Axes& axes);
/// v max(1 - threshold / size, 0), where size is |v| or a norm of v.
Variable shrunk(const Variable& v, const Variable& size, const Variable& threshold);
/// v with each element's size less threshold, or 0.
Variable soft_threshold(const Variable& v, const Variable& threshold);
/// Rules of ProxType::is_separable: along every dimension; where the attribute `over` lacks it;
/// where all parts are, and all operators can be cut.
bool is_separable_everywhere(const Prox& g, const ND& d);
bool is_separable_besides_over(const Prox& g, const ND& d);
bool is_separable_as_parts(const Prox& g, const ND& d);
/// 0 where the condition holds, else infinity, for each element of the batch.
Variable indicator(const Variable& is_outside, DType dtype, const Axes& batch);

}  // namespace palimpsest
