// SPDX-License-Identifier: Apache-2.0
// An operator that is not in the library: weighted differences of neighbours on a ring. Its
// adjoint, its normal operator and their plans come for free.
#include <iostream>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

namespace {

// y[i] = w[i] (x[i] - x[i - 1])
Variable weighted_differences(const NamedLinop& A, const Variable& x) {
  return A.param("w").var() * (x - ops::roll(x, 1, -1));
}

const LinopType kDifferences{.name = "example.Differences",
                             .functions = {.fn = weighted_differences}};
PALIMPSEST_REGISTER_LINOP(kDifferences);

NamedLinop Differences(const Parameter& w, const ND& dim) {
  return make_linop(kDifferences, NamedShape(Dims{dim}), {{"w", w}});
}

}  // namespace

int main() {
  const NamedLinop D = Differences(Tensor::from<double>({1, 1, 2, 2}), "x");
  const TestOptions sizes{.sizes = {{"x", 4}}, .dtype = DType::float64};
  std::cout << D << "\n" << to_dense(D, sizes) << "\n" << to_dense(D.H(), sizes) << "\n";
  const DotTest test = dot_test(D, sizes);
  std::cout << "dot test: " << (test.ok ? "passed" : "failed") << "\n";
  return test.ok && check_normal(D, sizes).ok ? 0 : 1;
}
