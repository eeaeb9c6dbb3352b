// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/tensor_map.hpp"

#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct Views {
  Tensor base = Tensor::random_normal({6, 10}, DType::complex64, {});
  std::vector<Tensor> all{base,
                          base(slice(1, 4), slice({}, {}, 3)),
                          base.transpose(),
                          base.view_as_real(),
                          base.bitcast(DType::uint8),
                          base(2, slice({}, {}, -1)),
                          base(0, 0).expand({4, 5}),
                          base(slice(0, 0)),
                          base(0, 0)};
};

void expect_equal_topology(const std::vector<Tensor>& old, const std::vector<Tensor>& now) {
  for (std::size_t a = 0; a < old.size(); ++a) {
    EXPECT_TRUE(equal(old[a], now[a].to(Device{}))) << a;
    EXPECT_EQ(old[a].dtype(), now[a].dtype());
    EXPECT_EQ(old[a].shape(), now[a].shape());
    EXPECT_EQ(old[a].strides(), now[a].strides());
    EXPECT_FALSE(shares_storage(old[a], now[a]));
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_EQ(same_storage(old[a], old[b]), same_storage(now[a], now[b]));
      EXPECT_EQ(overlaps(old[a], old[b]), overlaps(now[a], now[b])) << a << " " << b;
    }
  }
}

TEST(TensorMap, KeepsDtypesStridesAndOverlapsInEveryKindOfCopy) {
  const Device other{DeviceType::cpu, 1};
  for (int kind = 0; kind < 3; ++kind) {
    const Views views;
    MemoryMap copies;
    for (const Tensor& t : views.all) add(copies, t);
    kind == 0 ? copies.copy() : kind == 1 ? copies.lazy_copy() : copies.to(other);
    std::vector<Tensor> now;
    for (const Tensor& t : views.all) now.push_back(map(copies, t));
    if (kind == 2) {
      for (const Tensor& t : now) EXPECT_EQ(t.device(), other);
    }
    expect_equal_topology(views.all, now);
    now[5].fill(7.0F);
    EXPECT_EQ(now[0].at<std::complex<float>>({2, 3}), std::complex<float>(7.0F));
    EXPECT_NE(views.base.at<std::complex<float>>({2, 3}), std::complex<float>(7.0F));
  }
}

TEST(TensorMap, ATileTakesOnlyWhatItUses) {
  const Tensor large = Tensor::zeros({1000});
  const Tensor tile = large(slice(10, 20));
  MemoryMap copies;
  add(copies, tile);
  const MemoryScope scope;
  copies.copy();
  EXPECT_LE(scope.live_bytes(), 80 + 63);
  EXPECT_TRUE(equal(map(copies, tile), tile));
}

TEST(TensorMap, SeveralObjectsOfOneMapKeepSharing) {
  const Tensor shared = Tensor::arange(100), alone = Tensor::arange(50);
  MemoryMap copies;
  add(copies, shared(slice(0, 60)));
  add(copies, alone);
  add(copies, shared(slice(40, 100)));
  copies.copy();
  Tensor first = map(copies, shared(slice(0, 60)));
  const Tensor second = map(copies, shared(slice(40, 100)));
  EXPECT_TRUE(same_storage(first, second));
  EXPECT_FALSE(same_storage(first, map(copies, alone)));
  first.set({50}, -1);
  EXPECT_EQ(second.at<std::int64_t>({10}), -1);
}

TEST(TensorMap, CompactKeepsValues) {
  const Tensor t = Tensor::random_normal({64, 64}, DType::float32, {});
  const Tensor sparse = t(slice({}, {}, -16), slice(3, {}, 8)).transpose();
  MemoryMap copies(true);
  add(copies, sparse);
  copies.copy();
  EXPECT_LE(copies.bytes(), 4 * 8 * 4 + 63);
  const Tensor copy = map(copies, sparse);
  EXPECT_TRUE(equal(copy, sparse));
  EXPECT_TRUE(copy.is_contiguous());
}

TEST(TensorMap, AnUndefinedTensorIsAnError) {
  MemoryMap copies;
  expect_error<ValueError>([&] { add(copies, Tensor()); }, "undefined");
}

}  // namespace
}  // namespace palimpsest
