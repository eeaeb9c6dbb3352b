// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/radon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "palimpsest/testing.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Tensor half_turn(index_t n, DType dtype) {
  std::vector<double> angles;
  for (index_t a = 0; a < n; ++a) {
    angles.push_back(std::numbers::pi * static_cast<double>(a) / static_cast<double>(n));
  }
  return Tensor::from(angles, Extents{n}).to(dtype);
}

// A disk of height 2.5, and twice this disk.
TEST(FilteredBackProjection, GivesSlicesInTheirUnits) {
  Tensor disks = Tensor::zeros({2, 41, 41}, DType::float64);
  for (index_t i = 0; i < 41; ++i) {
    for (index_t j = 0; j < 41; ++j) {
      if (std::hypot(double(i) - 20, double(j) - 20) >= 14) continue;
      disks.set<double>({0, i, j}, 2.5);
      disks.set<double>({1, i, j}, 5);
    }
  }
  for (const double spacing : {0.5, 1.0, 2.0}) {
    const NamedLinop A = Radon(half_turn(120, DType::float64), {41, 41},
                               {.spacing = spacing, .batch = "S", .output = "angle ray"});
    const NamedLinop B = filtered_back_projection(A);
    EXPECT_EQ(B.oshape().str(), A.ishape().str());
    const Tensor slices = B(A(disks));
    for (index_t s = 0; s < 2; ++s) {
      const auto middle = slices.narrow(0, s, 1).narrow(1, 15, 11).narrow(2, 15, 11);
      double mean = 0;
      for (const double v : middle.clone().to_vector<double>()) mean += v / 121;
      EXPECT_NEAR(mean, s == 0 ? 2.5 : 5, s == 0 ? 0.1 : 0.2) << spacing;
    }
  }
}

TEST(FilteredBackProjection, IsAnOperator) {
  const NamedLinop A = Radon(half_turn(7, DType::float64), {6, 9});
  const ContractReport report = check_contract(filtered_back_projection(A),
                                               {.sizes = {{"A", 7}, {"R", A.size("R").value()}}});
  EXPECT_TRUE(report.ok()) << report.str();
  // A single angle represents half a turn.
  const NamedLinop one = Radon(half_turn(1, DType::float64), {3, 3}, {.n_detectors = 3});
  const Tensor ray = Tensor::from<double>({0, 1, 0}, Extents{1, 3});
  EXPECT_NEAR(filtered_back_projection(one)(ray).clone().to_vector<double>()[4],
              std::numbers::pi / 4, 1e-12);
}

TEST(FilteredBackProjection, TakesRadonOperatorsOnly) {
  const NamedLinop A = Radon(half_turn(3, DType::float32), {4, 4});
  expect_error<ValueError>([&] { filtered_back_projection(A.H()); }, "expected a Radon operator");
  expect_error<ValueError>([&] { filtered_back_projection(A.N()); }, "expected a Radon operator");
}

}  // namespace
}  // namespace palimpsest
