// SPDX-License-Identifier: Apache-2.0
// The functions equal the operators, on Tensors and on Variables.
#include "palimpsest/linop/functional.hpp"

#include "linop/linop_support.hpp"
#include "linop/nufft_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"

namespace palimpsest {
namespace {

namespace F = functional;
using testing::Complex;
using testing::difference;
using testing::expect_error;
using testing::random;
using testing::values;

TEST(Functional, BlocksAreCounted) {
  EXPECT_EQ(nblocks(5, 3, 2), 2);
  EXPECT_EQ(nblocks(10, 8, 4), 1);
  EXPECT_EQ(nblocks(Extents{5, 10}, {3, 8}, {2, 4}), (Extents{2, 1}));
  expect_error<ValueError>([] { nblocks(3, 4, 1); }, "block");
  expect_error<ValueError>([] { nblocks(3, 1, 0); }, "block");
}

TEST(Functional, TransformsAreThoseOfTheOperators) {
  const Tensor x = random({3, 6, 5});
  const Tensor y = F::fft(x, {.axes = Axes{-2, -1}, .centered = true});
  EXPECT_LE(difference(y, Fft(2, {.centered = true})(x)), 1e-15);
  EXPECT_LE(difference(F::ifft(y, {.axes = Axes{-2, -1}, .centered = true}), x), 1e-14);
  EXPECT_LE(difference(F::ifft(F::fft(x)), x), 1e-14);
  EXPECT_LE(difference(F::fft(x, {.axes = Axes{0}, .norm = FftNorm::backward}),
                       Scalar(std::sqrt(3.0))(F::fft(x, {.axes = Axes{0}}))),
            1e-15);
  EXPECT_LE(
      difference(F::ifft(F::fft(x, {.norm = FftNorm::forward}), {.norm = FftNorm::forward}), x),
      1e-14);
}

TEST(Functional, SamplesOffTheGrid) {
  const Tensor k = testing::trajectory({6, 7}, 20), x = random({2, 6, 7});
  const NufftOptions options{.eps = 1e-6};
  const NamedLinop A = Nufft(k, {6, 7}, "K", {.eps = 1e-6});
  const Tensor y = F::nufft(x, k, options);
  EXPECT_LE(difference(y, A(x)), 1e-15);
  EXPECT_LE(difference(F::nufft_adjoint(y, k, {6, 7}, options), A.H()(y)), 1e-15);
  const NamedLinop B = Interpolate(k, {6, 7}, {.width = 3.0});
  EXPECT_LE(difference(F::interpolate(x, k, {.width = 3.0}), B(x)), 1e-15);
  EXPECT_LE(difference(F::interpolate_adjoint(y, k, {6, 7}, {.width = 3.0}), B.H()(y)), 1e-15);
  // Other options give another function.
  EXPECT_GE(difference(F::interpolate(x, k, {.width = 2.0}), B(x)), 1e-3);
}

TEST(Functional, BlocksPointsAndBorders) {
  const Tensor x = random({2, 7});
  const Tensor y = F::array_to_blocks(x, {3}, {2});
  EXPECT_TRUE(equal(y, ArrayToBlocks({7}, {3}, {2})(x)));
  EXPECT_TRUE(equal(F::blocks_to_array(y, {7}, {3}, {2}), ArrayToBlocks({7}, {3}, {2}).H()(y)));
  const Tensor idx = Tensor::from<index_t>({1, 3, 2});
  EXPECT_EQ(values(F::index(x, {idx}))[1], values(x)[3]);
  EXPECT_EQ(F::index_adjoint(Tensor::from<double>({5, 4, -1}), {idx}, {4}).to_vector<double>(),
            (std::vector<double>{0, 5, -1, 4}));
  EXPECT_TRUE(equal(F::center_pad(x, {10}), Pad({7}, {10})(x)));
  EXPECT_TRUE(equal(F::center_crop(x, {4}), Crop({7}, {4})(x)));
  EXPECT_TRUE(equal(F::end_pad(x, {9}), PadDim("A", 7, 9, "B A")(x)));
  EXPECT_EQ(F::convolve(Tensor::from<double>({1, 0, 0, 0}), Tensor::from<double>({1, 2, 3}))
                .to_vector<double>(),
            (std::vector<double>{2, 3, 0, 0}));
  EXPECT_EQ(F::convolve(Tensor::from<double>({1, 0, 0, 0}), Tensor::from<double>({1, 2, 3}),
                        Boundary::circular)
                .to_vector<double>(),
            (std::vector<double>{2, 3, 0, 1}));
  const Complex z = values(F::inner(x, x))[0];
  double norm = 0;
  for (const Complex& v : values(x)) norm += std::norm(v);
  EXPECT_NEAR(z.real(), norm, 1e-12);
  expect_error<ValueError>([&] { F::center_pad(x, {5}); }, "size");
  expect_error<ValueError>([&] { F::center_crop(x, {9}); }, "size");
  expect_error<ValueError>([&] { F::end_pad(x, {1, 2, 3}); }, "size");
  expect_error<ValueError>([&] { F::convolve(x, random({1, 1, 1})); }, "kernel");
}

TEST(Functional, OfVariablesTheyBuildGraphs) {
  const Variable x = make_input({DType::complex128, {8}, {}}, "x");
  const Function f = function({x}, {Out(F::center_crop(F::ifft(F::fft(x)), {4}))});
  const Tensor v = random({8});
  EXPECT_TRUE(equal(f(v)[0], v.narrow(0, 2, 4)));
}

TEST(Functional, Helpers) {
  Tensor mask = Tensor::zeros({2, 3}, DType::bool_);
  mask.set<bool>({0, 2}, true);
  mask.set<bool>({1, 0}, true);
  const auto index = F::mask_to_index(mask);
  ASSERT_EQ(index.size(), 2U);
  EXPECT_EQ(index[0].to_vector<index_t>(), (std::vector<index_t>{0, 1}));
  EXPECT_EQ(index[1].to_vector<index_t>(), (std::vector<index_t>{2, 0}));
  expect_error<DTypeError>([] { F::mask_to_index(Tensor::ones({2})); }, "mask");
  EXPECT_EQ(F::slice_to_range(slice(1, {}, 2), 6), (std::vector<index_t>{1, 3, 5}));
  EXPECT_EQ(F::slice_to_range(slice(-2, {}), 6), (std::vector<index_t>{4, 5}));
  EXPECT_TRUE(F::slice_to_range(slice(4, 2), 6).empty());
  expect_error<ValueError>([] { F::slice_to_range(slice(0, 2, -1), 6); }, "step");
}

}  // namespace
}  // namespace palimpsest
