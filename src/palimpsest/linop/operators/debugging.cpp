// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/debugging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

Variable sleep_fn(const NamedLinop& A, const Variable& x) {
  return ops::sleep(x, A.attr("seconds").as_real());
}

void check_sleep(const NamedLinop& A) {
  const double seconds = A.attr("seconds").as_real();
  if (std::isfinite(seconds) && seconds >= 0) return;
  throw ValueError(who(A) + "seconds: got " + fmt::format("{}", seconds) +
                   ", expected a finite number that is not negative");
}

Variable breakpoint_fn(const NamedLinop& A, const Variable& x) {
  return ops::breakpoint(x, A.attr("hook").as_string(), PassDirection::forward);
}
Variable breakpoint_adj_fn(const NamedLinop& A, const Variable& y) {
  return ops::breakpoint(y, A.attr("hook").as_string(), PassDirection::adjoint);
}

void check_breakpoint(const NamedLinop& A) {
  const std::string& hook = A.attr("hook").as_string();
  const std::vector<std::string> known = breakpoint_hooks();
  if (std::find(known.begin(), known.end(), hook) != known.end()) return;
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "'" : ", '") + name + "'";
  throw ValueError(who(A) + "hook: got '" + hook + "', expected " +
                   (names.empty() ? "one that has been set" : "one of " + names) +
                   ". Try set_breakpoint_hook");
}

}  // namespace

// Their normal operators are composed: the way there and the way back both count.
const LinopType& linop_types::sleep() {
  return PALIMPSEST_LINOP_TYPE(.name = "Sleep",
                               .functions = {.fn = sleep_fn,
                                             .adj_fn = unchanged,
                                             .split = split_unchanged},
                               .check = check_sleep, .one_shape = true);
}

const LinopType& linop_types::breakpoint() {
  return PALIMPSEST_LINOP_TYPE(.name = "Breakpoint",
                               .functions = {.fn = breakpoint_fn,
                                             .adj_fn = breakpoint_adj_fn,
                                             .split = split_unchanged},
                               .check = check_breakpoint, .one_shape = true);
}

NamedLinop Sleep(double seconds, Dims dims) {
  return make_linop(linop_types::sleep(), NamedShape(std::move(dims)), {}, {{"seconds", seconds}});
}

NamedLinop Breakpoint(Dims dims, std::string hook) {
  return make_linop(linop_types::breakpoint(), NamedShape(std::move(dims)), {},
                    {{"hook", std::move(hook)}});
}

}  // namespace palimpsest
