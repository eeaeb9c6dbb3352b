// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/problem.hpp"
#include "palimpsest/solve/frame/state.hpp"

namespace PALIMPSEST_API palimpsest {

/// Access of a solver's graph function to the state, the operators of the problem, the numbers for
/// the host, and the guard.
class Scope : public StateScope {
 public:
  /// Variables that the compiled function gets as arguments where the graph uses them.
  struct Inputs {
    Variable b, scale, iteration, active;
  };
  Scope(const Problem& p, const StateList& state, std::vector<Variable> values, Inputs inputs,
        bool is_linear);

  /// The data, in the units in which the solver works.
  Variable b();
  /// The number of this iteration, counted from 1; int64, no axes.
  const Variable& iteration();

  /// Applies an operator of the problem and counts it. NameError without one of this name.
  Variable apply(std::string_view op, const Variable& v);
  /// Applies the operator's adjoint, counted as "op^H".
  Variable adjoint(std::string_view op, const Variable& v);
  /// argmin_x t g(x) + |x - v|^2 / 2 of a proximal function of the problem; t is a number.
  Variable prox(std::string_view name, const Variable& v, const Variable& t);
  /// prox_{s g*}(u).
  Variable conjugate_prox(std::string_view name, const Variable& u, const Variable& s);
  /// g(x) as a number.
  Variable value(std::string_view name, const Variable& x);
  /// Adds to the count of a name a number that is known only after the run: an integer, no axes.
  void count(std::string_view name, const Variable& times);

  /// A real number of the shape of the batch that the host reads. One that is not finite ends the
  /// element as diverged; "objective" may be infinite.
  void number(std::string_view name, const Variable& v);
  /// Values that are set from here on are taken only where v, a number, is finite, and the
  /// conditions of earlier guards hold; elsewhere the state stays as it is.
  void guard(const Variable& v);
  /// The new value, guarded; simultaneous: s["x"] stays the old one.
  void set(std::string_view name, const Variable& value);

  /// `value` where the guards so far hold, else `otherwise`: for a part of a state that is then set
  /// as it is.
  Variable guarded(const Space& space, const Variable& value, const Variable& otherwise) const;
  /// The new value, even if a guard fails.
  void set_as_is(std::string_view name, const Variable& value) { StateScope::set(name, value); }

  // -- read by the driver -------------------------------------------------------------------------
  const std::vector<std::pair<std::string, Variable>>& numbers() const;
  const std::map<std::string, std::int64_t>& counts() const;
  const std::vector<std::pair<std::string, Variable>>& run_time_counts() const;
  bool uses_b() const;
  bool uses_iteration() const;
  bool is_guarded() const;

 private:
  Variable prox_step(std::string_view name, const Variable& v, const Variable& t,
                     bool is_conjugate);

  struct Graph;
  std::shared_ptr<Graph> graph_;
};

}  // namespace palimpsest
