// SPDX-License-Identifier: Apache-2.0
// Small instances of all operators, for the laws that each of them obeys.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "palimpsest/palimpsest.hpp"
#include "support/refusal.hpp"

namespace palimpsest::testing {

/// An operator to be tested: made for a complex dtype, and what its random inputs look like.
struct LinopSample {
  std::string name;
  std::function<NamedLinop(DType)> make;
  TestOptions options = {};
  /// A(x) by a plain loop; null: tests/linop/ looks at values.
  std::function<Tensor(const Tensor& x)> expected = {};
};
/// With odd and even sizes, batch dimensions and ellipses, alone and in containers: those of
/// linop_samples.cpp and of all `std::vector<LinopSample> <name>_samples()` of this folder.
std::vector<LinopSample> linop_samples();
/// The extents of an input, also for an operator that knows no sizes.
Extents input_extents(const NamedLinop& A, const TestOptions& options);
/// All `std::vector<testing::Refusal> <name>_refusals()` of this folder.
std::vector<Refusal> linop_refusals();
std::ostream& operator<<(std::ostream& stream, const LinopSample& sample);

}  // namespace palimpsest::testing
