// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/simple.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/user_functions.hpp"

namespace palimpsest {
namespace {

const UserFunctions& user(const NamedLinop& A) { return *A.node()->data.user; }

Variable simple_fn(const NamedLinop& A, const Variable& x) { return user(A).fn(x); }
Variable simple_adj_fn(const NamedLinop& A, const Variable& y) { return user(A).adj_fn(y); }
Variable simple_normal_fn(const NamedLinop& A, const Variable& x) { return user(A).normal_fn(x); }

}  // namespace

const LinopType& linop_types::simple() {
  return immortal([] { return LinopType{.name = "SimpleLinop", .functions = {.fn = simple_fn}}; });
}

NamedLinop SimpleLinop(SimpleLinopOptions options) {
  if (!options.fn) throw ValueError("[" + options.name + "] fn: got none, expected a function");
  LinopData data;
  data.type = &linop_types::simple();
  data.functions.fn = simple_fn;
  if (options.adj_fn) data.functions.adj_fn = simple_adj_fn;
  if (options.normal_fn) data.functions.normal_fn = simple_normal_fn;
  data.name = std::move(options.name);
  Dims output = options.oshape.value_or(options.ishape);
  data.shape = NamedShape(std::move(options.ishape), std::move(output));
  data.user = std::make_shared<const UserFunctions>(UserFunctions{
      std::move(options.fn), std::move(options.adj_fn), std::move(options.normal_fn)});
  return from_arguments(std::move(data));
}

}  // namespace palimpsest
