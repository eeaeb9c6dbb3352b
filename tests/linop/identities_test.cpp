// SPDX-License-Identifier: Apache-2.0
// What operators cost after they were combined: read off the compiled graphs and plans.
#include "linop/linop_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/linop/pad_dim.hpp"
#include "palimpsest/linop/permute.hpp"
#include "palimpsest/linop/shape_spec.hpp"

namespace palimpsest {
namespace {

using testing::adjoint;
using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::random;

// The ops that an application runs.
std::vector<std::string> ops_of(const NamedLinop& A, const Extents& extents) {
  const Variable x = make_input({DType::complex128, extents, {}}, "x");
  const Function f = function({x}, {Out(A(x))});
  std::vector<std::string> names;
  for (const Apply& node : f.graph().toposort()) names.push_back(node.op().str());
  return names;
}

std::size_t steps_of(const NamedLinop& A, const Extents& extents) {
  return A.plan({DType::complex128, extents, {}}).steps.size();
}

std::vector<std::string> transforms_of(const NamedLinop& A, const Extents& extents) {
  std::vector<std::string> found;
  for (const std::string& op : ops_of(A, extents)) {
    if (op.starts_with("Fft")) found.push_back(op);
  }
  return found;
}

TEST(Identities, ATransformAndItsAdjointAreGone) {
  const NamedLinop F = Fft(2, {.centered = true});
  EXPECT_EQ(steps_of(F.H() * F, {6, 8}), 0U);
  EXPECT_EQ(steps_of(F.N(), {6, 8}), 0U);
  EXPECT_TRUE(transforms_of(Fft(1, {.norm = FftNorm::backward}).N(), {8}).empty());
}

TEST(Identities, ADiagonalBetweenNeedsTransformsOverItsOwnAxesOnly) {
  const NamedLinop F = Fft(2, {.batch = "C", .centered = true});
  const Tensor w = random({5}, DType::float64);
  for (const char* over : {"Kx", "Ky"}) {
    const index_t n = over == std::string("Kx") ? 5 : 6;
    const NamedLinop D =
        Diagonal(n == 5 ? w : random({6}), "C Kx Ky", {.weight_shape = Dims(over)});
    const NamedLinop A = F.normal(D);
    const std::vector<std::string> transforms = transforms_of(A, {2, 5, 6});
    ASSERT_EQ(transforms.size(), 2U);
    for (const std::string& t : transforms) {
      EXPECT_NE(t.find(n == 5 ? "axes=(1,)" : "axes=(2,)"), std::string::npos) << t;
    }
    const TestOptions options{.sizes = {{"C", 2}, {"Nx", 5}, {"Ny", 6}}};
    const TestOptions transformed{.sizes = {{"C", 2}, {"Kx", 5}, {"Ky", 6}}};
    expect_close(dense(A, options),
                 adjoint(dense(F, options)) * (dense(D, transformed) * dense(F, options)), 1e-12);
    EXPECT_EQ(A.shape().str(), "(C, Nx, Ny) -> (C, Nx, Ny)");
  }
  // Over batch dimensions alone none is needed.
  const NamedLinop B = F.normal(Diagonal(random({2}), "C Kx Ky", {.weight_shape = Dims("C")}));
  EXPECT_TRUE(transforms_of(B, {2, 5, 6}).empty());
  // Over all of them both are.
  const NamedLinop full = F.normal(Diagonal(random({5, 6}), "C Kx Ky"));
  for (const std::string& t : transforms_of(full, {2, 5, 6})) {
    EXPECT_NE(t.find("axes=(1, 2)"), std::string::npos) << t;
  }
}

TEST(Identities, TheOtherNormsKeepTheirFactor) {
  for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward, FftNorm::forward}) {
    const NamedLinop F = Fft(2, {.batch = Dims(), .norm = norm}).with_sizes({{"Nx", 3}, {"Ny", 4}});
    const NamedLinop D = Diagonal(random({3}), "Kx Ky", {.weight_shape = Dims("Kx")});
    const TestOptions transformed{.sizes = {{"Ky", 4}}};
    const TestOptions sizes{.sizes = {{"Nx", 3}, {"Ny", 4}}};
    expect_close(dense(F.normal(D), sizes), adjoint(dense(F)) * (dense(D, transformed) * dense(F)),
                 1e-12);
    const NamedLinop G = F.H();
    const NamedLinop E = Diagonal(random({4}), "Nx Ny");
    expect_close(dense(G.normal(E), {.sizes = {{"Kx", 3}, {"Ky", 4}}}),
                 dense(F) * (dense(E, {.sizes = {{"Nx", 3}}}) * adjoint(dense(F))), 1e-11);
  }
}

TEST(Identities, LineSamplingOfTwoDimensionsNeedsOneDimensionalTransforms) {
  Tensor mask = Tensor::zeros({6}, DType::bool_);
  for (index_t i : {0, 2, 3}) mask.set<bool>({i}, true);
  const NamedLinop A = Chain(
      Dense(random({2, 6, 5}), "C Nx Ny,Nx Ny->C Nx Ny"), Fft(2, {.batch = "C", .centered = true}),
      Permute("C Kx Ky", "C Ky Kx"), SamplingFromMask(mask, {.batch = "C Ky"}));
  const NamedLinop N = A.N();
  const std::vector<std::string> transforms = transforms_of(N, {6, 5});
  ASSERT_EQ(transforms.size(), 2U);
  for (const std::string& t : transforms) {
    EXPECT_NE(t.find("axes=(1,)"), std::string::npos) << t;
  }
  expect_close(dense(N), adjoint(dense(A)) * dense(A), 1e-11);
}

TEST(Identities, ElementwiseOperatorsAreOnePass) {
  const NamedLinop D = Diagonal(random({6, 8}), "A B"), E = Diagonal(random({8}), "A B");
  EXPECT_EQ(steps_of(D * E, {6, 8}), 1U);
  EXPECT_EQ(steps_of(Complex(0, 2) * D * E * Complex(1, 1), {6, 8}), 1U);
  EXPECT_EQ(steps_of((Complex(0, 2) * D).H(), {6, 8}), 1U);
  EXPECT_EQ(steps_of(D.N(), {6, 8}), 1U);
  EXPECT_EQ(steps_of(D + 2 * E, {6, 8}), 1U);
}

TEST(Identities, NamesAndOrdersCostNothing) {
  EXPECT_EQ(steps_of(ShapeSpec("A B", "C D") * Permute("B A", "A B"), {6, 8}), 0U);
  EXPECT_EQ(steps_of(Truncate("A", 6, 4, "A B"), {6, 8}), 0U);
  EXPECT_EQ(steps_of(Pad({4}, {8}).N(), {4}), 0U);
}

}  // namespace
}  // namespace palimpsest
