// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/inputs.hpp"

#include <ostream>

namespace palimpsest {

Keyword kw(std::string name, Value value) {
  return {std::move(name), Variable(), std::move(value)};
}
Keyword kw(const Variable& variable, Value value) {
  if (!variable.defined()) throw ValueError("[kw] undefined: expected a variable that was made");
  return {std::string(), variable, std::move(value)};
}

void Results::throw_several() const {
  const std::string who = who_ ? *who_ : std::string("function");
  if (count_ == 0) throw TypeError("[" + who + "] gives no result, expected one");
  throw TypeError("[" + who + "] gives " + std::to_string(count_) + " results, expected one. Try " +
                  who + "(...)[0]");
}

Value::Value(const Results& result) : Value(result.tensor()) {}
Value::Value(Results&& result) : Value(std::move(result).tensor()) {}

std::ostream& operator<<(std::ostream& stream, const Results& results) {
  for (std::size_t i = 0; i < results.size(); ++i) stream << (i == 0 ? "" : "\n") << results[i];
  return stream;
}

}  // namespace palimpsest
