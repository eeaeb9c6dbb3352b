// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/inputs.hpp"

namespace palimpsest {

Keyword kw(std::string name, Value value) {
  return {std::move(name), Variable(), std::move(value)};
}
Keyword kw(const Variable& variable, Value value) {
  if (!variable.defined()) throw ValueError("[kw] undefined: expected a variable that was made");
  return {std::string(), variable, std::move(value)};
}

Tensor Results::tensor() const {
  if (is_single_) return one_;
  throw TypeError("[Results] got a list of " + std::to_string(count_) +
                  " results, expected the one of a function whose output is in no list. Try "
                  "results[0]");
}

}  // namespace palimpsest
