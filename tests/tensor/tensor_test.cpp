// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/tensor.hpp"

#include <array>
#include <functional>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Tensor, KnowsItsLayout) {
  const Tensor t = Tensor::zeros({2, 3}, DType::float32, Device{DeviceType::cpu, 1});
  EXPECT_TRUE(t.defined());
  EXPECT_EQ(t.dtype(), DType::float32);
  EXPECT_EQ(t.shape(), (Extents{2, 3}));
  EXPECT_EQ(t.shape(-1), 3);
  EXPECT_EQ(t.strides(), (Strides{3, 1}));
  EXPECT_EQ(t.offset(), 0);
  EXPECT_EQ(t.rank(), 2u);
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.nbytes(), 24);
  EXPECT_EQ(t.storage().nbytes(), 24u);
  EXPECT_EQ(t.device(), (Device{DeviceType::cpu, 1}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.is_shared());
  expect_error<ShapeError>([&] { t.shape(2); }, "[Tensor.shape] axis out of range: got 2");
}

TEST(Tensor, AnEmptyHandleHasNothingToShow) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  expect_error<ValueError>([&] { none.shape(); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none.dtype(); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none.numel(); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none.data<double>(); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none.lazy_clone(); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none(0); }, "[Tensor] undefined");
  expect_error<ValueError>([&] { none.device(); }, "undefined");
  expect_error<ValueError>([&] { Tensor({}, DType::int8, {1}, {1}); }, "[Tensor] undefined");
  EXPECT_FALSE(shares_storage(none, none));
}

TEST(Tensor, NoMemberOfAnEmptyHandleDoesAnything) {
  Tensor none;
  const Tensor& shown = none;
  const std::function<void()> members[] = {
      [&] { shown.strides(); },
      [&] { shown.offset(); },
      [&] { shown.nbytes(); },
      [&] { shown.rank(); },
      [&] { shown.is_contiguous(); },
      [&] { shown.is_shared(); },
      [&] { shown.raw_data(); },
      [&] { shown.view_of(); },
      [&] { none.raw_mutable_data(); },
      [&] { none.raw_overwrite_data(); },
      [&] { none.mutable_view(); },
      [&] { none.mutable_data<double>(); },
      [&] { none.fill(1.0); },
      [&] { none.set({}, 1.0); },
      [&] { none.copy_from(Tensor::scalar(1.0)); },
      [&] { shown.item<double>(); },
      [&] { shown.at<double>({}); },
      [&] { shown.to_vector<double>(); },
      [&] { shown.select(0, 0); },
      [&] { shown.narrow(0, 0, 0); },
      [&] { shown.permute({}); },
      [&] { shown.transpose(); },
      [&] { shown.expand({}); },
      [&] { shown.squeeze(0); },
      [&] { shown.unsqueeze(0); },
      [&] { shown.flip(Axes{}); },
      [&] { shown.diagonal(); },
      [&] { shown.unfold(0, 0, 1); },
      [&] { shown.view({}); },
      [&] { shown.as_strided({}, {}, 0); },
      [&] { shown.bitcast(DType::int8); },
      [&] { shown.bitcast(DType::float64); },
      [&] { shown.bitcast(DType::complex128); },
      [&] { shown.view_as_real(); },
      [&] { shown.view_as_complex(); },
      [&] { shown.index_with({}); },
      [&] { shown.clone(); },
      [&] { shown.contiguous(); },
      [&] { shown.reshape({}); },
      [&] { shown.to(DType::int8); },
      [&] { shown.to(Device{}); },
  };
  for (const auto& member : members) {
    SCOPED_TRACE(&member - members);
    expect_error<ValueError>(member, "undefined: got an empty handle");
  }
}

TEST(Tensor, CopyingAliases) {
  Tensor a = Tensor::zeros({3});
  Tensor b = a;
  b.set({1}, 5.0);
  EXPECT_EQ(a.at<double>({1}), 5.0);
  EXPECT_TRUE(shares_storage(a, b));
  EXPECT_FALSE(shares_storage(a, a.lazy_clone()));
}

TEST(Tensor, IsAViewOfAStorage) {
  const Storage storage = Storage::allocate(40);
  const Tensor t(storage, DType::int32, {2, 3}, {-4, 1}, 6);
  EXPECT_EQ(t.raw_data(), storage.data() + 24);
  EXPECT_EQ(t.storage().use_count(), 2u);
  const Tensor whole(storage, DType::int32, {10}, {1});
  const Tensor nothing(storage, DType::int32, {0, 5}, {100, 100}, 10);
  EXPECT_EQ(nothing.numel(), 0);
}

TEST(Tensor, ReachingOutsideTheStorageIsRefused) {
  const Storage storage = Storage::allocate(40);
  const auto view = [&](Extents shape, Strides strides, index_t offset) {
    return Tensor(storage, DType::int32, std::move(shape), std::move(strides), offset);
  };
  expect_error<AliasError>([&] { view({11}, {1}, 0); }, "reaches outside its storage");
  expect_error<AliasError>([&] { view({2}, {1}, 9); }, "expected elements 0 .. 10 of int32");
  expect_error<AliasError>([&] { view({2}, {-1}, 0); }, "offset 0");
  expect_error<AliasError>([&] { view({1}, {1}, -1); }, "offset -1");
  expect_error<AliasError>([&] { view({0}, {1}, 11); }, "offset 11");
  expect_error<OverflowError>([&] { view({3}, {index_t{1} << 62}, 0); }, "63 bits");
  expect_error<ShapeError>([&] { view({2, 2}, {1}, 0); }, "one stride per axis");
  expect_error<ShapeError>([&] { view({-1}, {1}, 0); }, "negative extent on axis 0");
  expect_error<ShapeError>([&] { view(Extents(17, 1), Strides(17), 0); },
                           "too many axes: got 17, expected at most 16");
}

TEST(Tensor, MisalignedMemoryIsRefused) {
  alignas(8) std::array<std::byte, 32> memory{};
  const Storage odd = Storage::from_foreign(memory.data() + 1, 24, Device{}, true);
  expect_error<ValueError>([&] { Tensor(odd, DType::float64, {2}, {1}); }, "not a multiple of 8");
  EXPECT_NO_THROW(Tensor(odd, DType::int8, {2}, {1}));
}

TEST(Tensor, WithoutElementsIsMisalignedNowhere) {
  alignas(8) std::array<std::byte, 16> memory{};
  const Storage storage = Storage::from_foreign(memory.data() + 1, 8, Device{}, false);
  EXPECT_EQ(Tensor(storage, DType::float64, {0}, {1}).numel(), 0);
  EXPECT_EQ(Tensor::from_blob(memory.data() + 1, DType::float64, {0}, {1}, {}, false).numel(), 0);
  expect_error<ValueError>([&] { Tensor(storage, DType::float64, {1}, {1}); }, "misaligned");
}

TEST(Tensor, DataChecksTheElementType) {
  Tensor t = Tensor::zeros({2}, DType::float32);
  EXPECT_NO_THROW(t.data<float>());
  expect_error<DTypeError>([&] { t.data<double>(); },
                           "[Tensor.data] element type: got float32, expected float64");
  expect_error<DTypeError>([&] { t.mutable_data<std::int32_t>(); }, "expected int32");
}

TEST(Tensor, DataChecksTheDevice) {
  std::array<float, 2> memory{};
  Tensor t = Tensor::from_blob(memory.data(), DType::float32, {2}, {1}, {}, false,
                               Device{DeviceType::cuda, 99});
  expect_error<DeviceError>([&] { t.data<float>(); },
                            "[Tensor.data] the host cannot reach cuda:99. Try to(Device{}).");
  // No such device is here, so that nothing can copy its memory.
  expect_error<DeviceError>([&] { t.fill(1.0F); }, "; devices: cpu:0");
  expect_error<DeviceError>([&] { t.clone(); }, "; devices: cpu:0");
  expect_error<DeviceError>([&] { t.to(Device{}); }, "; devices: cpu:0");
}

TEST(Tensor, WritingThroughASharedViewCopiesFirst) {
  Tensor base = Tensor::arange(6, DType::float64).view({2, 3});
  const Tensor clone = base.lazy_clone();
  Tensor row = base(1, all);
  row.fill(9.0);
  EXPECT_EQ(base.to_vector<double>(), (std::vector<double>{0, 1, 2, 9, 9, 9}));
  EXPECT_EQ(clone.to_vector<double>(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(shares_storage(row, base));
  EXPECT_EQ(row.raw_data(), base.data<double>() + 3);
}

TEST(Tensor, WritingElementsThatOverlapIsRefused) {
  Tensor t = Tensor::zeros({1, 3}).expand({2, 3});
  expect_error<AliasError>([&] { t.mutable_data<double>(); },
                           "[Tensor.mutable_data] elements overlap one another");
  expect_error<AliasError>([&] { t.raw_overwrite_data(); }, "[Tensor.overwrite_data]");
  expect_error<AliasError>([&] { t.fill(1.0); }, "[Tensor.fill]");
  expect_error<AliasError>([&] { t.set({0, 0}, 1.0); }, "[Tensor.set]");
  expect_error<AliasError>([&] { t.copy_from(Tensor::zeros({3})); }, "[Tensor.copy_from]");
  expect_error<AliasError>([&] { Tensor::arange(5).unfold(0, 3, 1).mutable_view(); }, "strides");
  expect_error<AliasError>([&] { Tensor::arange(5).unfold(0, 3, 1).mutable_view(); },
                           "[Tensor.mutable_view]");
  EXPECT_NO_THROW(Tensor::arange(6).unfold(0, 3, 3).mutable_view());
}

TEST(Tensor, OverwritingCopiesOnlyWhenOtherBytesSurvive) {
  Tensor t = Tensor::zeros({2, 3});
  const Tensor clone = t.lazy_clone();
  {
    const CopyStats stats;
    Tensor row = t(0, all);
    row.raw_overwrite_data();
    EXPECT_EQ(stats.counts().copies, 1u);
  }
  const Tensor other = t.lazy_clone();
  const CopyStats stats;
  t.transpose().fill(2.0);
  EXPECT_EQ(stats.counts().copies, 0u);
  EXPECT_EQ(stats.counts().overwrites, 1u);
  EXPECT_EQ(other.at<double>({0, 0}), 0.0);
}

TEST(Tensor, ViewsForKernelsShowTheElements) {
  Tensor t = Tensor::arange(6, DType::int32).view({2, 3}).transpose();
  const ConstView view = t.view_of();
  EXPECT_EQ(view.data, t.raw_data());
  EXPECT_EQ(view.dtype, DType::int32);
  EXPECT_EQ(view.extents[0], 3);
  EXPECT_EQ(view.strides[0], 1);
  EXPECT_EQ(view.strides[1], 3);
  const Tensor clone = t.lazy_clone();
  EXPECT_NE(t.mutable_view().data, clone.raw_data());
}

}  // namespace
}  // namespace palimpsest
