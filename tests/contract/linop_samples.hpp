// SPDX-License-Identifier: Apache-2.0
// Small instances of all operators, for the laws that each of them obeys.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "palimpsest/palimpsest.hpp"

namespace palimpsest::testing {

/// An operator to be tested: made for a complex dtype, and what its random inputs look like.
struct LinopSample {
  std::string name;
  std::function<NamedLinop(DType)> make;
  TestOptions options = {};
};
/// With odd and even sizes, batch dimensions and ellipses, alone and in containers.
std::vector<LinopSample> linop_samples();
std::ostream& operator<<(std::ostream& stream, const LinopSample& sample);

}  // namespace palimpsest::testing
