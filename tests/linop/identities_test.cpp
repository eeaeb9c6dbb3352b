// SPDX-License-Identifier: Apache-2.0
// The cost of combined operators, read from their compiled graphs and plans.
#include "linop/linop_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"

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
    if (op.starts_with("Fft") || op.starts_with("WeightedFft")) found.push_back(op);
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
    ASSERT_EQ(transforms.size(), 1U) << "both and the weights are one step";
    for (const std::string& t : transforms) {
      EXPECT_NE(t.find(n == 5 ? "axes=(1,)" : "axes=(2,)"), std::string::npos) << t;
    }
    const TestOptions options{.sizes = {{"C", 2}, {"Nx", 5}, {"Ny", 6}}};
    const TestOptions transformed{.sizes = {{"C", 2}, {"Kx", 5}, {"Ky", 6}}};
    expect_close(dense(A, options),
                 adjoint(dense(F, options)) * (dense(D, transformed) * dense(F, options)), 1e-12);
    EXPECT_EQ(A.shape().str(), "(C, Nx, Ny) -> (C, Nx, Ny)");
  }
  // With a weight over batch dimensions alone no axis is transformed.
  const NamedLinop B = F.normal(Diagonal(random({2}), "C Kx Ky", {.weight_shape = Dims("C")}));
  EXPECT_TRUE(transforms_of(B, {2, 5, 6}).empty());
  // With a weight over all dimensions both axes are.
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
  ASSERT_EQ(transforms.size(), 1U) << "both and the weights are one step";
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

// Read from the graph, since one pass may have several factors.
TEST(Identities, DiagonalsBecomeOneStepAndNumbersOneFactor) {
  const NamedLinop D = Diagonal(random({6, 8}), "A B"),
                   E = Diagonal(random({6, 8}, DType::complex128, 8), "A B");
  EXPECT_EQ(ops_of(Chain(D, E, D.H(), E.N()), {6, 8}).size(), 1U);
  const auto multiplications = [&](const NamedLinop& A) {
    const std::vector<std::string> ops = ops_of(A, {6, 8});
    EXPECT_EQ(ops.size(), 1U);
    std::size_t n = 0;
    for (std::size_t at = ops[0].find("mul"); at != std::string::npos;
         at = ops[0].find("mul", at + 1)) {
      ++n;
    }
    return n;
  };
  const NamedLinop one = Chain(Scalar(Complex(0, 2), "A B"), D);
  const NamedLinop three =
      Chain(Scalar(Complex(0, 2), "A B"), Scalar(3, "A B"), Scalar(Complex(1, 1), "A B"), D);
  EXPECT_EQ(multiplications(three), multiplications(one)) << ops_of(three, {6, 8})[0];
  const Tensor x = random({6, 8});
  EXPECT_LE(testing::difference(three(x), D(Scalar(Complex(-6, 6))(x))), 1e-15);
  // A real and a complex number give a complex result nevertheless.
  const NamedLinop i = Scalar(Complex(0, 1), "A");
  EXPECT_EQ(Chain(i, i)(Tensor::ones({2})).dtype(), DType::complex128);
}

TEST(Identities, ConjugationAndNumbersArePartOfTheContraction) {
  // The adjoint of a Dense conjugates its weight without a copy of it.
  const NamedLinop A = Dense(random({5, 7}), "MN,N->M");
  EXPECT_EQ(steps_of(A.H(), {5}), 1U);
  EXPECT_LE(steps_of(Complex(0, 2) * A.H(), {5}), 2U);
  const Plan plan = A.H().plan({DType::complex128, {5}, {}});
  EXPECT_LT(plan.peak_bytes, 5 * 7 * 16) << "no array as large as the weight";
  // The adjoint of a Diagonal multiplies by the conjugate in its single pass.
  EXPECT_EQ(steps_of((Complex(2, 1) * Diagonal(random({6, 8}), "A B")).H(), {6, 8}), 1U);
}

TEST(Identities, CroppingWhatWasPaddedIsGone) {
  EXPECT_EQ(steps_of(Chain(Pad({4}, {8}), Crop({8}, {4}, {.in = Dims("Nx1")})), {4}), 0U);
  EXPECT_EQ(steps_of(Pad({4, 5}, {8, 11}).N(), {4, 5}), 0U);
  EXPECT_EQ(steps_of(PadDim("A", 3, 7, "A").N(), {3}), 0U);
  // A larger crop, or one around another centre, does not cancel.
  const NamedLinop smaller = Chain(Pad({4}, {8}), Crop({8}, {3}, {.in = Dims("Nx1")}));
  const Tensor x = Tensor::from<double>({1, 2, 3, 4});
  EXPECT_EQ(smaller(x).to_vector<double>(), std::vector<double>({2, 3, 4}));
}

TEST(Identities, CenteringCostsNoPass) {
  for (const index_t n : {8, 9}) {
    const Extents extents{n, n + 2};
    for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward}) {
      const NamedLinop plain = Fft(2, {.norm = norm}),
                       centered = Fft(2, {.norm = norm, .centered = true});
      EXPECT_EQ(steps_of(centered, extents), steps_of(plain, extents));
      EXPECT_EQ(steps_of(centered, extents), 1U);
      EXPECT_EQ(steps_of(centered.H(), extents), 1U);
      const NamedLinop D = Diagonal(random({n, n + 2}), "Kx Ky");
      EXPECT_EQ(steps_of(centered.normal(D), extents), steps_of(plain.normal(D), extents));
    }
  }
}

TEST(Identities, NamesAndOrdersCostNothing) {
  EXPECT_EQ(steps_of(ShapeSpec("A B", "C D") * Permute("B A", "A B"), {6, 8}), 0U);
  EXPECT_EQ(steps_of(Truncate("A", 6, 4, "A B"), {6, 8}), 0U);
  EXPECT_EQ(steps_of(Pad({4}, {8}).N(), {4}), 0U);
}

}  // namespace
}  // namespace palimpsest
