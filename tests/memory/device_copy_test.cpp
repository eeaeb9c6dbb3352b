// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/device_copy.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

const Device kThere{DeviceType::opencl, 0};

// A layout of 3 x 4 x 5 elements in an array of 2 * 60 elements.
struct Layout345 {
  const char* name;
  Strides strides;
  index_t offset;
};
const Layout345 kLayouts[] = {{"dense", {20, 5, 1}, 7},
                              {"column-major", {1, 3, 12}, 0},
                              {"reversed", {-20, -5, -1}, 59},
                              {"every second", {40, 10, 2}, 1},
                              {"rows apart", {40, 10, 1}, 3}};
const Extents kExtents{3, 4, 5};
constexpr index_t kElements = 120;

template <class T>
std::vector<T> numbers() {
  std::vector<T> values(kElements);
  std::iota(values.begin(), values.end(), T{1});
  return values;
}

Storage stored(const std::vector<float>& values, Device device) {
  Storage storage = Storage::allocate(values.size() * sizeof(float), device);
  copy_bytes_on({}, values.data(), device, storage.mutable_data(), storage.nbytes());
  return storage;
}

std::vector<float> values_of(const Storage& storage) {
  std::vector<float> values(storage.nbytes() / sizeof(float));
  copy_bytes_on(storage.device(), storage.data(), {}, values.data(), storage.nbytes());
  return values;
}

TEST(DeviceCopy, ElementsArriveInEveryLayoutAndNothingBesideThemIsWritten) {
  const std::vector<float> source = numbers<float>();
  const std::vector<float> before(kElements, -1);
  for (const Layout345& from : kLayouts) {
    for (const Layout345& to : kLayouts) {
      std::vector<float> expected = before;
      strided_copy({source.data() + from.offset, DType::float32, kExtents, from.strides},
                   {expected.data() + to.offset, DType::float32, kExtents, to.strides});
      for (const bool x_there : {false, true}) {
        for (const bool y_there : {false, true}) {
          SCOPED_TRACE(std::string(from.name) + " to " + to.name);
          const Device x_device = x_there ? kThere : Device{},
                       y_device = y_there ? kThere : Device{};
          const Storage x = stored(source, x_device);
          Storage y = stored(before, y_device);
          copy_elements_on(
              x_device, {x.data() + from.offset * 4, DType::float32, kExtents, from.strides},
              y_device, {y.mutable_data() + to.offset * 4, DType::float32, kExtents, to.strides});
          EXPECT_EQ(values_of(y), expected);
          EXPECT_EQ(values_of(x), source);
        }
      }
    }
  }
}

TEST(DeviceCopy, ConvertsAsTheHostDoes) {
  const std::vector<float> source = numbers<float>();
  const Storage x = stored(source, kThere);
  std::vector<std::int16_t> whole(kElements);
  const Extents extents{kElements};
  const Strides dense{1};
  copy_elements_on(kThere, {x.data(), DType::float32, extents, dense}, {},
                   {whole.data(), DType::int16, extents, dense});
  EXPECT_EQ(whole, numbers<std::int16_t>());
}

TEST(DeviceCopy, FillsElementsAlone) {
  Storage y = stored(std::vector<float>(kElements, -1), kThere);
  const float value = 5;
  fill_elements_on(&value, kThere,
                   {y.mutable_data() + 4, DType::float32, kExtents, kLayouts[3].strides});
  std::vector<float> expected(kElements, -1);
  strided_fill(&value, {expected.data() + 1, DType::float32, kExtents, kLayouts[3].strides});
  EXPECT_EQ(values_of(y), expected);
}

TEST(DeviceCopy, PiecesOfLargeCopiesMeet) {
  const index_t n = (index_t{40} << 20) / 4;
  std::vector<float> source(static_cast<std::size_t>(2 * n));
  std::iota(source.begin(), source.end(), 0.0F);
  const Storage x = stored(source, kThere);
  EXPECT_EQ(values_of(x), source);
  std::vector<float> odd(static_cast<std::size_t>(n));
  const Extents extents{n};
  const Strides two{2}, dense{1};
  copy_elements_on({}, {source.data() + 1, DType::float32, extents, two}, {},
                   {odd.data(), DType::float32, extents, dense});
  Storage y = Storage::allocate(static_cast<std::size_t>(4 * n), kThere);
  copy_elements_on({}, {source.data() + 1, DType::float32, extents, two}, kThere,
                   {y.mutable_data(), DType::float32, extents, dense});
  EXPECT_EQ(values_of(y), odd);
}

TEST(DeviceStorage, ALazyCloneIsCopiedWhenOneOfThemIsWritten) {
  Storage a = stored(numbers<float>(), kThere);
  const Storage b = a.lazy_clone();
  EXPECT_TRUE(a.shares_data(b));
  const MemoryScope scope(kThere);
  fill_bytes_on(kThere, a.mutable_data(), std::byte{}, 4 * kElements);
  EXPECT_EQ(scope.peak_bytes(), 4u * kElements);
  EXPECT_FALSE(a.shares_data(b));
  EXPECT_EQ(values_of(a), std::vector<float>(kElements, 0));
  EXPECT_EQ(values_of(b), numbers<float>());
}

TEST(DeviceStorage, CountsAndLimitsAreThoseOfTheDevice) {
  const MemoryScope here, there(kThere);
  {
    const Storage a = Storage::allocate(1000, kThere, "a");
    EXPECT_EQ(there.live_bytes(), 1000);
    EXPECT_EQ(here.live_bytes(), 0);
    const MemoryLimit limit(kThere, Allocator::of(kThere).stats().live_bytes + 10);
    expect_error<OutOfMemory>([] { Storage::allocate(1000, kThere); },
                              "[Allocator opencl:0] the limit of");
    expect_error<OutOfMemory>([] { Storage::allocate(1000, kThere); }, "free on the device: ");
  }
  EXPECT_EQ(there.live_bytes(), 0);
  expect_error<OutOfMemory>([] { Storage::allocate(std::size_t{1} << 45, kThere); },
                            "largest allocation of opencl:0 is ");
  const FailingAllocator failing(0);
  expect_error<OutOfMemory>([] { Storage::allocate(8, kThere); }, "injected failure");
}

TEST(DeviceStorage, FreedMemoryIsUsedAgain) {
  const std::byte* first = nullptr;
  {
    const Storage a = Storage::allocate(1 << 20, kThere);
    first = a.data();
  }
  const Storage b = Storage::allocate(1 << 20, kThere);
  EXPECT_EQ(b.data(), first);
}

}  // namespace
}  // namespace palimpsest
