// SPDX-License-Identifier: Apache-2.0
// Operators that rename, cut, pad and reorder.
#include "linop/linop_support.hpp"
#include "palimpsest/linop/operators/complex_parts.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/rearrange.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/operators/roll.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::difference;
using testing::expect_close;
using testing::expect_error;
using testing::random;
using testing::values;
using C = std::complex<double>;

Tensor counting(Extents shape) {
  std::vector<double> numbers(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  return Tensor::from(numbers, std::move(shape));
}

TEST(ShapeSpec, RenamesAndChangesNoValue) {
  const NamedLinop A = ShapeSpec("N ...", "M ...");
  const Tensor x = random({3, 2});
  EXPECT_TRUE(equal(A(x), x));
  EXPECT_EQ(A.H().shape().str(), "(M, ...) -> (N, ...)");
  EXPECT_EQ(A.N().name(), "Identity");
  const NamedLinop inner = Dense(random({3, 3}), "PM,M->P", {.output = Dims("M")});
  const NamedLinop folded = ShapeSpec("N", "M").normal(inner);
  EXPECT_EQ(folded.shape().str(), "(N) -> (N)");
  EXPECT_EQ(folded.name(), "Dense");
  expect_close(dense(folded), dense(inner));
  expect_error<ShapeError>([] { ShapeSpec("A B", "A"); }, "not compatible");
}

TEST(PadDim, AppendsZerosAndTruncateDropsThem) {
  const NamedLinop pad = PadDim("A", 2, 5, "A B");
  EXPECT_EQ(pad.shape().str(), "(A, B) -> (A1, B)");
  EXPECT_EQ(pad.size("A"), 2);
  EXPECT_EQ(pad.size("A1"), 5);
  EXPECT_EQ(pad(counting({2, 1})).to_vector<double>(), (std::vector<double>{0, 1, 0, 0, 0}));
  EXPECT_EQ(pad.N().name(), "Identity");
  const NamedLinop cut = Truncate("A", 5, 2, "A B", {.out = "S"});
  EXPECT_EQ(cut.shape().str(), "(A, B) -> (S, B)");
  EXPECT_EQ(cut(counting({5, 1})).to_vector<double>(), (std::vector<double>{0, 1}));
  EXPECT_EQ(cut.N()(counting({5, 1})).to_vector<double>(), (std::vector<double>{0, 1, 0, 0, 0}));
  EXPECT_EQ(cut.H().N().name(), "Identity");
  expect_error<ValueError>([] { PadDim("A", 5, 2, "A"); }, "length");
  expect_error<ValueError>([] { Truncate("A", 2, 5, "A"); }, "length");
  expect_error<ValueError>([] { PadDim("A", -1, 2, "A"); }, "length");
  expect_error<ShapeError>([] { PadDim("C", 1, 2, "A B"); }, "PadDim");
  expect_error<ShapeError>([&] { pad(counting({3, 1})); }, "expected");
}

TEST(Restrict, CutsAndEmbedPutsZerosAround) {
  const NamedLinop A = Restrict("A B", {{"A", slice(1, 3)}}, {.sizes = {{"A", 5}}});
  EXPECT_EQ(A.shape().str(), "(A, B) -> (A1, B)");
  EXPECT_EQ(A.size("A1"), 2);
  EXPECT_EQ(A(counting({5, 1})).to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(A.N()(counting({5, 1})).to_vector<double>(), (std::vector<double>{0, 1, 2, 0, 0}));
  const NamedLinop E = Embed("A", {{"A", slice(1, 3)}}, {.sizes = {{"A", 4}}});
  EXPECT_EQ(E.name(), "Embed");
  EXPECT_EQ(E(counting({2})).to_vector<double>(), (std::vector<double>{0, 0, 1, 0}));
  EXPECT_EQ(E.N().name(), "Identity");
  const NamedLinop open = Restrict("A", {{"A", slice(1, 3)}});
  EXPECT_EQ(open(counting({4})).to_vector<double>(), (std::vector<double>{1, 2}));
  expect_error<ShapeError>([&] { open.H()(counting({2})); }, "is unknown");
  expect_error<ShapeError>([&] { open(counting({2})); }, "of dim 'A' is out of range");
  expect_error<ShapeError>([] { Restrict("A", {{"A", slice(1, {})}}); }, "is unknown");
  expect_error<ValueError>([] { Restrict("A", {{"A", slice(2, 2)}}); }, "empty");
  expect_error<ValueError>([] { Restrict("A", {{"A", slice(-1, 2)}}); }, "out of range");
  expect_error<ValueError>([] { Restrict("A", {{"A", slice(0, 4, 2)}}); }, "step");
  expect_error<ValueError>(
      [] {
        Restrict("A", {{"A", slice(0, 4)}}, {.sizes = {{"A", 3}}});
      },
      "out of range");
  expect_error<ValueError>(
      [] {
        Restrict("A", {{"A", slice(0, 4)}}, {.out = Dims("B C")});
      },
      "out");
}

TEST(Permute, ReordersByName) {
  const NamedLinop A = Permute("A ... B", "B A ...");
  const Tensor x = random({2, 3, 4, 5});
  EXPECT_TRUE(equal(A(x), x.permute({3, 0, 1, 2})));
  EXPECT_TRUE(equal(A.H()(A(x)), x));
  NamedLinop renamed = A.renamed({{"A", "Q"}});
  EXPECT_EQ(renamed.shape().str(), "(Q, ..., B) -> (B, Q, ...)");
  EXPECT_TRUE(equal(renamed(x), A(x)));
  EXPECT_EQ(A.N().name(), "Identity");
  expect_error<ShapeError>([] { Permute("A B", "A C"); }, "permutation");
  expect_error<ShapeError>([] { Permute("A B", "A"); }, "permutation");
}

TEST(Roll, ShiftsPeriodicallyAndBack) {
  const Tensor x = testing::random({2, 3, 5}, DType::float64);
  const NamedLinop A = Roll("C Ny Nx", "Nx Ny", {2, -1});
  const Tensor y = A(x);
  for (index_t i = 0; i < 3; ++i) {
    for (index_t j = 0; j < 5; ++j) {
      EXPECT_EQ(y.at<double>({1, i, j}), x.at<double>({1, (i + 1) % 3, (j + 3) % 5}));
    }
  }
  EXPECT_TRUE(equal(A.H()(y), x));
  EXPECT_TRUE(equal(A.inverse()(y), x));
  EXPECT_EQ(A.N().type().name, "Identity");
  EXPECT_TRUE(equal(Roll("Nx", "Nx", {1000001})(x.select(0, 0).select(0, 0)),
                    Roll("Nx", "Nx", {1})(x.select(0, 0).select(0, 0))));
  testing::expect_error<ValueError>([] { Roll("Nx", "Nx", {1, 2}); }, "shifts");
  testing::expect_error<ShapeError>([] { Roll("Nx", "Ny", {1}); }, "Roll");
}

TEST(Rearrange, GroupsAndUngroups) {
  const NamedLinop A = Rearrange("(A B) C -> C B A", {.sizes = {{"A", 2}}});
  EXPECT_EQ(A.shape().str(), "(Ab, C) -> (C, B, A)");
  EXPECT_EQ(A.size("A"), 2);
  EXPECT_EQ(A.size("B"), std::nullopt);
  const Tensor x = counting({6, 2});
  EXPECT_TRUE(equal(A(x), x.view({2, 3, 2}).permute({2, 1, 0})));
  EXPECT_TRUE(equal(A.H()(A(x)), x));
  const NamedLinop named =
      Rearrange("A B -> (A B)", {.sizes = {{"A", 2}, {"B", 3}}, .out = Dims("Q")});
  EXPECT_EQ(named.shape().str(), "(A, B) -> (Q)");
  EXPECT_EQ(named.size("Q"), 6);
  expect_error<ShapeError>([&] { A(counting({5, 2})); }, "size of dim 'Ab': got 5");
  expect_error<ValueError>([] { Rearrange("(A B) -> A B"); }, "size");
  expect_error<ValueError>([] { Rearrange("A B"); }, "pattern");
  expect_error<ValueError>([] { Rearrange("A B -> A"); }, "different names");
  expect_error<ValueError>([] { Rearrange("A -> A B"); }, "one side only");
  expect_error<ValueError>([] { Rearrange("(A B -> A B"); }, "not closed");
  expect_error<ValueError>([] { Rearrange("A A -> A"); }, "twice");
  expect_error<ValueError>([] { Rearrange("A -> A", {.sizes = {{"B", 2}}}); }, "size of dim");
  expect_error<ValueError>([] { Rearrange("A B -> B A", {.in = Dims("X")}); }, "in: got names");
}

TEST(ComplexParts, AreAdjointForTheRealPart) {
  const Tensor x = random({3});
  EXPECT_EQ(RealPart("A")(x).dtype(), DType::float64);
  const auto v = values(x), re = values(RealPart("A")(x)), im = values(ImagPart("A")(x));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(re[i], v[i].real());
    EXPECT_EQ(im[i], v[i].imag());
  }
  const Tensor y = random({3}, DType::float64);
  EXPECT_EQ(values(ImagPart("A").H()(y))[1], C(0, 1) * values(y)[1]);
  const Tensor pairs = AsReal("A")(x);
  EXPECT_EQ(pairs.shape(), (Extents{3, 2}));
  EXPECT_EQ(AsReal("A").shape().str(), "(A) -> (A, R)");
  EXPECT_EQ(AsReal("A").size("R"), 2);
  EXPECT_TRUE(equal(AsComplex("A")(pairs), x));
  EXPECT_EQ(AsReal("A").N().name(), "Identity");
  expect_error<ShapeError>([] { AsReal("A R"); }, "already contains");
}

TEST(ComplexParts, DoNotCommuteWithComplexNumbers) {
  const NamedLinop A = Chain(RealPart("A"), Diagonal(random({3}), "A"));
  const NamedLinop inner = Scalar(C(0.6, 0.8), "A");
  const Tensor x = random({3});
  const Tensor expected = A.H()(inner(A(x)));
  EXPECT_LE(difference(A.normal(inner)(x), expected), 1e-14);
  EXPECT_TRUE(dot_test(A, {.sizes = {{"A", 3}}}).ok);
}

}  // namespace
}  // namespace palimpsest
