// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::random;
using testing::values;

Tensor indices(const std::vector<index_t>& values_of_it) { return Tensor::from(values_of_it); }

TEST(Sampling, ReadsPoints) {
  const NamedLinop A = Sampling({indices({1, 3, 2})}, {4});
  const Tensor x = Tensor::from<double>({10, 11, 12, 13});
  EXPECT_EQ(A(x).to_vector<double>(), (std::vector<double>{11, 13, 12}));
  EXPECT_EQ(A.H()(Tensor::from<double>({5, 4, -1})).to_vector<double>(),
            (std::vector<double>{0, 5, -1, 4}));
  EXPECT_EQ(A.shape().str(), "(..., ()) -> (..., K)");
  EXPECT_EQ(A.size("K"), 3);
}

TEST(Sampling, DuplicatesAccumulate) {
  const NamedLinop A = Sampling({indices({1, 1, 0})}, {3});
  EXPECT_EQ(A.H()(Tensor::from<double>({5, 4, -1})).to_vector<double>(),
            (std::vector<double>{-1, 9, 0}));
}

TEST(Sampling, IndexArraysBroadcast) {
  const NamedLinop A = Sampling({Tensor::from<index_t>({4, 0, 2}, Extents{3, 1}), indices({5, 1})},
                                {5, 6}, {.input = Dims("NyNx")});
  EXPECT_EQ(A.shape().str(), "(..., Ny, Nx) -> (..., K1, K2)");
  const Tensor x = random({2, 5, 6});
  const Tensor y = A(x);
  EXPECT_EQ(y.shape(), (Extents{2, 3, 2}));
  EXPECT_EQ(values(y)[7], values(x)[30 + 4 * 6 + 1]);
  EXPECT_EQ(A.size("Ny"), 5);
  EXPECT_EQ(A.size("K2"), 2);
}

TEST(Sampling, OtherIntegersAndStackedIndices) {
  const NamedLinop A = Sampling({indices({1, 3}).to(DType::int32)}, {4});
  EXPECT_EQ(A.param("index0").dtype(), DType::int64);
  const NamedLinop B =
      SamplingFromStacked(Tensor::from<index_t>({0, 5, 4, 1}, Extents{2, 2}), {5, 6});
  const Tensor x = random({5, 6});
  EXPECT_EQ(values(B(x))[0], values(x)[5]);
  EXPECT_EQ(values(B(x))[1], values(x)[25]);
}

TEST(Sampling, FromAMaskInRowMajorOrder) {
  Tensor mask = Tensor::zeros({2, 3}, DType::bool_);
  mask.set<bool>({0, 2}, true);
  mask.set<bool>({1, 0}, true);
  const NamedLinop A = SamplingFromMask(mask, {.output = Dims("S")});
  EXPECT_EQ(A.shape().str(), "(..., (), ()) -> (..., S)");
  EXPECT_EQ(A(Tensor::from<double>({0, 1, 2, 3, 4, 5}, Extents{2, 3})).to_vector<double>(),
            (std::vector<double>{2, 3}));
  EXPECT_TRUE(SamplingFromMask(Tensor::zeros({3}, DType::bool_))(Tensor::ones({3})).numel() == 0);
}

TEST(Sampling, ItsNormalIsTheDiagonalOfMultiplicities) {
  const NamedLinop A = Sampling({indices({1, 1, 0, 1})}, {3}, {.input = Dims("N")});
  const NamedLinop N = A.N();
  EXPECT_EQ(N.name(), "Diagonal");
  EXPECT_TRUE(N.param("weight").is_derived());
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const Tensor y = N(Tensor::ones({3}, dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to(DType::complex128).to_vector<std::complex<double>>(),
              (std::vector<std::complex<double>>{1, 3, 0}));
  }
  Parameter index = A.param("index0");
  index.set_value(indices({2, 2, 2, 2}));
  EXPECT_EQ(N(Tensor::ones({3})).to_vector<double>(), (std::vector<double>{0, 0, 4}));
}

TEST(Sampling, WeightsOverThePointsFoldIntoTheNormal) {
  const NamedLinop A = Sampling({indices({1, 1, 0, 1})}, {3}, {.input = Dims("N"), .batch = "C"});
  const Tensor w = Tensor::from<double>({1, 2, 3, 4});
  for (const NamedLinop& D :
       {Diagonal(w, "K"), Diagonal(w, "C K"), Diagonal(w), Diagonal(random({4}), "C K").H()}) {
    NamedLinop inner = D;
    if (inner.ishape() == Dims("K")) continue;  // lacks the batch dimension
    const NamedLinop N = A.normal(inner);
    EXPECT_EQ(N.name(), "Diagonal") << D;
    const TestOptions options{.sizes = {{"C", 2}}, .dtype = DType::complex128};
    const auto full = Chain(A, inner, A.H());
    expect_close(dense(N, options), dense(full, options));
  }
  // A weight per batch entry stays a chain.
  const NamedLinop per_entry = Diagonal(random({2, 4}), "C K");
  EXPECT_EQ(A.normal(per_entry).name(), "Chain");
  EXPECT_EQ(A.H().N().name(), "Normal");
}

TEST(Sampling, IndicesAreCheckedAtConstruction) {
  expect_error<ValueError>(
      [] {
        Sampling({indices({0, 4})}, {4});
      },
      "[Sampling] index0: index out of range: got 4 at element 1");
  expect_error<ValueError>([] { Sampling({indices({0, -1})}, {4}); }, "range");
  expect_error<ValueError>([] { Sampling({indices({0})}, {4, 4}); }, "input_size");
  expect_error<ValueError>([] { Sampling({}, {}); }, "input_size");
  expect_error<ShapeError>(
      [] {
        Sampling({indices({0, 1}), indices({0, 1, 2})}, {4, 4});
      },
      "Sampling");
  expect_error<DTypeError>([] { Sampling({Tensor::ones({2})}, {4}); }, "expected integers");
  expect_error<ValueError>([] { Sampling({indices({0})}, {4}, {.output = Dims("A B")}); },
                           "output");
  expect_error<ValueError>([] { Sampling({indices({0})}, {4}, {.input = Dims("A B")}); }, "input");
  expect_error<ValueError>([] { SamplingFromStacked(indices({1, 2}), {5}); }, "input_size");
  expect_error<DTypeError>([] { SamplingFromMask(Tensor::ones({3})); }, "mask");
  NamedLinop A = Sampling({indices({1})}, {4});
  expect_error<ValueError>([&] { A.set_param("index0", indices({7})); }, "range");
}

TEST(Sampling, IndicesWrittenLaterAreCheckedBeforeTheyAreUsed) {
  const NamedLinop A = Sampling({indices({1, 2})}, {4});
  Parameter index = A.param("index0");
  index.set_value(indices({1, 9}));
  EXPECT_THROW(A(Tensor::ones({4})), ValueError);
  index.set_value(indices({3, 0}));
  EXPECT_EQ(A(Tensor::arange(4, DType::float64)).to_vector<double>(), (std::vector<double>{3, 0}));
}

}  // namespace
}  // namespace palimpsest
