// SPDX-License-Identifier: Apache-2.0
// Small instances of all operators for the contract tests.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "palimpsest/palimpsest.hpp"
#include "support/refusal.hpp"

namespace palimpsest::testing {

/// An operator to be tested, for a complex dtype, and the form of its random inputs.
struct LinopSample {
  std::string name;
  std::function<NamedLinop(DType)> make;
  TestOptions options = {};
  /// A(x) by a plain loop; null: values are tested in tests/linop/.
  std::function<Tensor(const Tensor& x)> expected = {};
};
/// All samples: odd and even sizes, batch dimensions and ellipses, alone and in containers. From
/// linop_samples.cpp and all `std::vector<LinopSample> <name>_samples()` of this folder.
std::vector<LinopSample> linop_samples();
/// The extents of an input, also for an operator without recorded sizes.
Extents input_extents(const NamedLinop& A, const TestOptions& options);
/// All `std::vector<testing::Refusal> <name>_refusals()` of this folder.
std::vector<Refusal> linop_refusals();
std::ostream& operator<<(std::ostream& stream, const LinopSample& sample);

}  // namespace palimpsest::testing
