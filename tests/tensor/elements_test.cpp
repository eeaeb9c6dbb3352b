// SPDX-License-Identifier: Apache-2.0
#include <complex>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(TensorElements, ItemIsTheOnlyElement) {
  EXPECT_EQ(Tensor::full({1, 1}, 2.5).item<double>(), 2.5);
  EXPECT_EQ(Tensor::full({1, 1}, 2.5).item<int>(), 2);
  EXPECT_EQ(Tensor::scalar(std::int64_t{-1}).item<std::uint8_t>(), 255);
  EXPECT_EQ(Tensor::scalar(2.0).item<std::complex<float>>(), std::complex<float>(2));
  EXPECT_EQ(Tensor::scalar(std::complex<double>(0, 1)).item<bool>(), true);
  expect_error<ShapeError>([] { Tensor::zeros({2}).item<double>(); },
                           "[Tensor.item] got shape (2,), expected one element");
  expect_error<ShapeError>([] { Tensor::zeros({0}).item<double>(); }, "expected one element");
  expect_error<DTypeError>([] { Tensor::zeros({}, DType::complex64).item<float>(); },
                           "[Tensor.item] imaginary parts would be lost");
}

TEST(TensorElements, AtAndSetNameOneElement) {
  Tensor t = Tensor::zeros({2, 3}, DType::float32);
  t.set({1, -1}, 4.0);
  t.transpose().set({0, 1}, 3);
  EXPECT_EQ(t.at<float>({-1, 2}), 4.0F);
  EXPECT_EQ(t.to_vector<int>(), (std::vector<int>{0, 0, 0, 3, 0, 4}));
  expect_error<ShapeError>([&] { t.at<float>({0}); },
                           "[Tensor.at] one index per axis is needed: got (0,) for shape (2, 3)");
  expect_error<ShapeError>(
      [&] {
        t.at<float>({0, 3});
      },
      "[Tensor.at] axis 1: index out of range: got 3, expected -3 .. 2");
  expect_error<ShapeError>([&] { t.set({2, 0}, 1.0F); }, "[Tensor.set] axis 0: index out of range");
  expect_error<DTypeError>([&] { t.set({0, 0}, std::complex<float>(1)); }, "imaginary parts");
}

TEST(TensorElements, SetMaterializesWhatIsShared) {
  Tensor t = Tensor::zeros({3});
  const Tensor clone = t.lazy_clone();
  t.set({0}, 1.0);
  EXPECT_EQ(clone.at<double>({0}), 0.0);
  EXPECT_EQ(t.at<double>({0}), 1.0);
}

TEST(TensorElements, FillConvertsItsValueOnce) {
  Tensor t = Tensor::zeros({2, 4}, DType::int16);
  t(all, slice({}, {}, 2)).fill(70000);
  EXPECT_EQ(t.to_vector<int>(), (std::vector<int>{4464, 0, 4464, 0, 4464, 0, 4464, 0}));
  Tensor c = Tensor::zeros({2}, DType::complex128);
  EXPECT_EQ(&c.fill(std::complex<float>(1, -2)), &c);
  EXPECT_EQ(c.at<std::complex<double>>({1}), (std::complex<double>(1, -2)));
  expect_error<DTypeError>([&] { t.fill(std::complex<float>(1)); }, "[Tensor.fill] imaginary");
  Tensor none = Tensor::zeros({0});
  EXPECT_NO_THROW(none.fill(1.0));
}

TEST(TensorElements, AFillWithAValueFromInsideIsRight) {
  Tensor t = Tensor::from<double>({1, 2, 3});
  t.fill(*(t.data<double>() + 2));
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{3, 3, 3}));
}

TEST(TensorElements, ToVectorIsRowMajorWhateverTheStrides) {
  const Tensor t = Tensor::arange(6, DType::float32).view({2, 3});
  EXPECT_EQ(t.transpose().to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.flip(Axes{0, 1}).to_vector<int>(), (std::vector<int>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(t(0, all).expand({2, 3}).to_vector<bool>(),
            (std::vector<bool>{false, true, true, false, true, true}));
  EXPECT_TRUE(Tensor::zeros({0, 2}).to_vector<float>().empty());
  expect_error<DTypeError>([] { Tensor::zeros({2}, DType::complex64).to_vector<double>(); },
                           "[Tensor.to_vector] imaginary");
  expect_error<DTypeError>([] { Tensor::zeros({}, DType::complex64).at<double>({}); },
                           "[Tensor.at] imaginary");
}

TEST(TensorElements, WritingNothingCopiesNothing) {
  Tensor t = Tensor::arange(6);
  const Tensor clone = t.lazy_clone();
  Tensor nothing = t(slice(2, 2));
  nothing.fill(1);
  nothing.copy_from(Tensor::ones({0}));
  EXPECT_TRUE(t.storage().shares_data(clone.storage()));
}

}  // namespace
}  // namespace palimpsest
