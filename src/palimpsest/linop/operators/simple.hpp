// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

using VariableFunction = std::function<Variable(const Variable&)>;

struct SimpleLinopOptions {
  VariableFunction fn = {};
  /// Default: the graph of fn, transposed.
  VariableFunction adj_fn = {};
  /// Default: adj_fn after fn.
  VariableFunction normal_fn = {};
  Dims ishape = "...";
  /// Default: ishape.
  std::optional<Dims> oshape = {};
  std::string name = "SimpleLinop";
};
/// An operator of functions that build graphs. For one with parameters, or one that is saved, make
/// a LinopType.
///
/// Math     H exchanges fn and adj_fn and drops normal_fn
/// Errors   ValueError "fn": none is given; NotLinearError when one is transposed that is not
///          linear
NamedLinop SimpleLinop(SimpleLinopOptions options);

}  // namespace palimpsest
