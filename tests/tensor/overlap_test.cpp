// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <complex>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "palimpsest/tensor/tensor.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

// The byte offsets in the storage covered by the elements, and whether one is covered twice.
std::set<index_t> bytes_of(const Tensor& t, bool* twice = nullptr) {
  std::set<index_t> bytes;
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  std::vector<index_t> starts{t.offset()};
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    std::vector<index_t> next;
    for (const index_t start : starts) {
      for (index_t i = 0; i < t.shape()[axis]; ++i) next.push_back(start + i * t.strides()[axis]);
    }
    starts = next;
  }
  for (const index_t start : starts) {
    for (index_t b = 0; b < item; ++b) {
      const bool is_new = bytes.insert(start * item + b).second;
      if (!is_new && twice != nullptr) *twice = true;
    }
  }
  return bytes;
}

Tensor random_view(const Storage& storage, std::mt19937& random) {
  constexpr std::array kDTypes{DType::int8, DType::int16, DType::float32, DType::complex64};
  for (;;) {
    const DType dtype = kDTypes[random() % kDTypes.size()];
    Extents shape;
    Strides strides;
    for (auto rank = random() % 4; rank > 0; --rank) {
      shape.push_back(static_cast<index_t>(random() % 5));
      strides.push_back(static_cast<index_t>(random() % 19) - 9);
    }
    const auto offset = static_cast<index_t>(random() % 40);
    try {
      return Tensor(storage, dtype, shape, strides, offset);
    } catch (const AliasError&) {
    }
  }
}

TEST(TensorOverlap, AgreesWithEnumeration) {
  const Storage storage = Storage::allocate(160);
  std::mt19937 random(17);
  int n_yes = 0, n_no_in_range = 0;
  for (int round = 0; round < 4000; ++round) {
    const Tensor a = random_view(storage, random), b = random_view(storage, random);
    const std::set<index_t> of_a = bytes_of(a), of_b = bytes_of(b);
    const bool expected =
        std::any_of(of_a.begin(), of_a.end(), [&](index_t byte) { return of_b.count(byte) > 0; });
    bool exact = false;
    ASSERT_EQ(overlaps(a, b, &exact), expected) << a << b;
    ASSERT_TRUE(exact);
    if (expected) {
      ASSERT_TRUE(may_share_memory(a, b));
    }
    n_yes += expected ? 1 : 0;
    n_no_in_range += !expected && may_share_memory(a, b) ? 1 : 0;
  }
  EXPECT_GT(n_yes, 200);
  EXPECT_GT(n_no_in_range, 100);
}

// Typical views of users, whose axes often continue one another.
Tensor random_part(const Tensor& base, std::mt19937& random) {
  Tensor view = base;
  if (random() % 4 == 0) view = view.bitcast(random() % 2 == 0 ? DType::int8 : DType::int32);
  if (random() % 4 == 0) view = view.permute({1, 2, 0});
  for (index_t axis = 0; axis < 3; ++axis) {
    std::vector<Index> index(static_cast<std::size_t>(axis), Index(all));
    const index_t n = view.shape(axis);
    const auto step = static_cast<index_t>(1 + random() % 3);
    const auto start = static_cast<index_t>(random() % static_cast<unsigned>(n));
    if (random() % 2 == 0) continue;
    index.emplace_back(random() % 4 == 0 ? slice(start, {}, -step) : slice(start, {}, step));
    view = view.index_with(index);
  }
  if (random() % 3 == 0) view = view.select(0, 0);
  return view;
}

TEST(TensorOverlap, OfViewsOfOneArrayAgreesWithEnumeration) {
  const Tensor base = Tensor::zeros({4, 6, 8}, DType::int16);
  std::mt19937 random(19);
  int n_yes = 0, n_no_in_range = 0;
  for (int round = 0; round < 2000; ++round) {
    const Tensor a = random_part(base, random), b = random_part(base, random);
    const std::set<index_t> of_a = bytes_of(a), of_b = bytes_of(b);
    const bool expected =
        std::any_of(of_a.begin(), of_a.end(), [&](index_t byte) { return of_b.count(byte) > 0; });
    bool exact = false;
    ASSERT_EQ(overlaps(a, b, &exact), expected) << a << b;
    ASSERT_TRUE(exact);
    n_yes += expected ? 1 : 0;
    n_no_in_range += !expected && may_share_memory(a, b) ? 1 : 0;
  }
  EXPECT_GT(n_yes, 200);
  EXPECT_GT(n_no_in_range, 100);
}

// 4,000 random tensors from `make`; some overlap, some do not.
template <class Make>
void expect_overlap_as_enumerated(Make&& make) {
  int n_yes = 0, n_no = 0;
  for (int round = 0; round < 4000; ++round) {
    const Tensor t = make();
    bool expected = false;
    bytes_of(t, &expected);
    ++(expected ? n_yes : n_no);
    ASSERT_EQ(has_internal_overlap(t), expected) << to_string(t.shape()) << to_string(t.strides());
  }
  EXPECT_GT(n_yes, 200);
  EXPECT_GT(n_no, 200);
}

TEST(TensorOverlap, InternalOverlapAgreesWithEnumeration) {
  const Storage storage = Storage::allocate(160);
  std::mt19937 random(18);
  expect_overlap_as_enumerated([&] { return random_view(storage, random); });
}

// Few elements, with steps of similar size along many axes: some index differences nearly cancel.
TEST(TensorOverlap, InternalOverlapAlongManyAxesAgreesWithEnumeration) {
  const Storage storage = Storage::allocate(1000);
  std::mt19937 random(20);
  expect_overlap_as_enumerated([&] {
    Extents shape;
    Strides strides;
    for (auto rank = 3 + random() % 3; rank > 0; --rank) {
      shape.push_back(static_cast<index_t>(2 + random() % 2));
      strides.push_back(static_cast<index_t>(20 + random() % 60));
    }
    return Tensor(storage, DType::int8, shape, strides, 0);
  });
}

TEST(TensorOverlap, DisjointViewsThatInterleaveDoNotOverlap) {
  const Tensor t = Tensor::zeros({8, 8});
  const auto even = slice({}, {}, 2), odd = slice(1, {}, 2);
  EXPECT_FALSE(overlaps(t(all, even), t(all, odd)));
  EXPECT_TRUE(may_share_memory(t(all, even), t(all, odd)));
  EXPECT_FALSE(overlaps(t(all, slice(0, 4)), t(all, slice(4, 8))));
  EXPECT_TRUE(overlaps(t(2, all), t(all, 3)));
  const Tensor c = Tensor::zeros({4}, DType::complex64);
  EXPECT_FALSE(overlaps(c.view_as_real()(all, 0), c.view_as_real()(all, 1)));
  EXPECT_TRUE(overlaps(c.view_as_real()(all, 0), c));
}

TEST(TensorOverlap, NothingOverlapsTheEmptyTensor) {
  const Tensor t = Tensor::zeros({4});
  EXPECT_FALSE(overlaps(t(slice(2, 2)), t));
  EXPECT_FALSE(may_share_memory(t(slice(2, 2)), t));
  EXPECT_TRUE(overlaps(t, t));
}

TEST(TensorOverlap, LazyClonesDoNotAlias) {
  const Tensor t = Tensor::zeros({4});
  const Tensor clone = t.lazy_clone();
  EXPECT_EQ(clone.raw_data(), t.raw_data());
  EXPECT_FALSE(may_share_memory(t, clone));
  EXPECT_FALSE(overlaps(t, clone));
  EXPECT_FALSE(overlaps(t, Tensor::zeros({4})));
}

TEST(TensorOverlap, ForeignMemoryIsFoundByItsAddress) {
  std::array<float, 8> memory{};
  const auto import = [&](std::size_t first, index_t step) {
    return Tensor::from_blob(memory.data() + first, DType::float32, {3}, {step}, {}, true);
  };
  EXPECT_TRUE(overlaps(import(0, 1), import(2, 1)));
  EXPECT_FALSE(overlaps(import(0, 1), import(3, 1)));
  EXPECT_FALSE(overlaps(import(0, 2), import(1, 2)));
  EXPECT_TRUE(may_share_memory(import(0, 2), import(1, 2)));
}

TEST(TensorOverlap, OfForeignMemoryOfAnyPlaceAndLength) {
  std::array<float, 8> memory{};
  const auto import = [&](index_t first, index_t n) {
    return Tensor::from_blob(&memory[static_cast<std::size_t>(first)], DType::float32, {n}, {1}, {},
                             true);
  };
  for (index_t a = 0; a < 8; ++a) {
    for (index_t n = 1; n <= 8 - a; ++n) {
      for (index_t b = 0; b < 8; ++b) {
        for (index_t m = 1; m <= 8 - b; ++m) {
          const bool expected = a < b + m && b < a + n;
          ASSERT_EQ(may_share_memory(import(a, n), import(b, m)), expected) << a << n << b << m;
          ASSERT_EQ(overlaps(import(a, n), import(b, m)), expected) << a << n << b << m;
        }
      }
    }
  }
}

// A copy between the two is correct only if overlap is detected.
void expect_copies_like_one_memory(Tensor a, Tensor b) {
  for (const index_t shift : {-1, 1}) {
    for (index_t k = 0; k < a.numel(); ++k) a.set({k}, static_cast<double>(k));
    const index_t n = a.numel() - 1, from = shift < 0 ? 1 : 0, to = shift < 0 ? 0 : 1;
    b(slice(to, to + n)).copy_from(a(slice(from, from + n)));
    for (index_t k = 0; k < n; ++k) {
      ASSERT_EQ(a.at<double>({to + k}), static_cast<double>(from + k)) << "shift " << shift;
    }
  }
}

TEST(TensorOverlap, SharedMemoryThatIsAttachedTwiceIsOneMemory) {
  const Storage s = Storage::shared_memory(8000);
  const Storage u = Storage::attach_shared_memory(s.shared_descriptor());
  const Tensor a(s, DType::float64, {1000}, {1}), b(u, DType::float64, {1000}, {1});
  EXPECT_FALSE(shares_storage(a, b));
  EXPECT_TRUE(may_share_memory(a, b));
  EXPECT_TRUE(overlaps(a, b));
  EXPECT_TRUE(overlaps(a(slice(10, 20)), b(slice(19, 30))));
  EXPECT_FALSE(overlaps(a(slice(10, 20)), b(slice(20, 30))));
  EXPECT_FALSE(overlaps(a(slice(0, {}, 2)), b(slice(1, {}, 2))));
  EXPECT_TRUE(may_share_memory(a(slice(0, {}, 2)), b(slice(1, {}, 2))));
  expect_copies_like_one_memory(a, b);
  expect_copies_like_one_memory(b, a);
  const Storage other = Storage::shared_memory(8000);
  EXPECT_FALSE(may_share_memory(a, Tensor(other, DType::float64, {1000}, {1})));
  EXPECT_FALSE(overlaps(a, a.lazy_clone()));
}

TEST(TensorOverlap, AFileThatIsMappedTwiceIsOneMemory) {
  const std::string path = ::testing::TempDir() + "palimpsest_overlap_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << std::string(80000, 'x');
  const auto mapped = [&path](std::size_t offset) {
    return Tensor(Storage::from_file(path, offset, 8000), DType::int8, {8000}, {1});
  };
  Tensor a = mapped(0);
  const Tensor b = mapped(7999), c = mapped(8000);
  EXPECT_TRUE(overlaps(a, b));
  EXPECT_FALSE(overlaps(a, c));
  EXPECT_TRUE(overlaps(c, b));
  EXPECT_FALSE(overlaps(a, b(slice(1, {}))));
  EXPECT_TRUE(overlaps(b.lazy_clone(), a)) << "a clone shows the file, too";
  a.fill(1);
  EXPECT_FALSE(overlaps(a, b)) << "a copy is in memory";
  std::filesystem::remove(path);
}

TEST(TensorOverlap, ImportsOfOneBufferAreOneMemory) {
  std::array<double, 100> memory{};
  const auto imported = [&](index_t first, bool writable, Device device = {}) {
    return Tensor::from_blob(&memory[static_cast<std::size_t>(first)], DType::float64, {50}, {1},
                             {}, writable, device);
  };
  const Tensor a = imported(0, true), b = imported(49, true), c = imported(50, true);
  EXPECT_TRUE(overlaps(a, b));
  EXPECT_FALSE(overlaps(a, c));
  EXPECT_TRUE(overlaps(a, imported(49, false)));
  EXPECT_TRUE(overlaps(a, imported(49, true, Device{DeviceType::cpu, 1})));
  expect_copies_like_one_memory(imported(20, true), imported(20, true));
}

// Equal address numbers on different devices are different memory.
TEST(TensorOverlap, AddressesOfDifferentDevicesAreNotCompared) {
  std::array<double, 4> memory{};
  const auto imported = [&](Device device) {
    return Tensor::from_blob(memory.data(), DType::float64, {4}, {1}, {}, true, device);
  };
  const Tensor host = imported({}), first = imported(Device{DeviceType::cuda, 0}),
               again = imported(Device{DeviceType::cuda, 0}),
               second = imported(Device{DeviceType::cuda, 1});
  EXPECT_FALSE(overlaps(host, first));
  EXPECT_FALSE(overlaps(first, host));
  EXPECT_FALSE(overlaps(first, second));
  EXPECT_TRUE(overlaps(first, again));
}

TEST(TensorOverlap, SaysWhenItGaveUp) {
  // Sixteen axes of two elements with large unstructured steps, from both ends: a subset-sum
  // problem. No byte of the storage is touched.
  std::mt19937_64 random(3);
  constexpr index_t kBase = index_t{1} << 40;
  const auto step = [&random] { return kBase + static_cast<index_t>(random() % kBase); };
  Strides up, down;
  index_t top = 0;
  for (int axis = 0; axis < 16; ++axis) {
    up.push_back(step());
    down.push_back(-step());
    top -= down.back();
  }
  std::byte nothing{};
  const Storage storage = Storage::from_foreign(&nothing, std::size_t{1} << 46, Device{}, false);
  const Tensor a(storage, DType::int8, Extents(16, 2), up, 0);
  const Tensor b(storage, DType::int8, Extents(16, 2), down, top + 1);
  bool exact = true;
  EXPECT_TRUE(overlaps(a, b, &exact));
  EXPECT_FALSE(exact);
  EXPECT_TRUE(overlaps(a, b));
}

TEST(TensorOverlap, OrdinaryViewsDoNotOverlapInside) {
  const Tensor t = Tensor::zeros({3, 4, 5});
  EXPECT_FALSE(has_internal_overlap(t));
  EXPECT_FALSE(has_internal_overlap(t.permute({2, 0, 1}).flip(Axes{1})));
  EXPECT_FALSE(has_internal_overlap(t(all, slice({}, {}, -2), newaxis)));
  EXPECT_FALSE(has_internal_overlap(t.diagonal()));
  EXPECT_TRUE(has_internal_overlap(t.expand({2, 3, 4, 5})));
  EXPECT_FALSE(has_internal_overlap(t.expand({1, 3, 4, 5})));
  EXPECT_TRUE(has_internal_overlap(t.unfold(2, 3, 2)));
  EXPECT_FALSE(has_internal_overlap(t.unfold(2, 2, 2)));
  EXPECT_FALSE(
      has_internal_overlap(Tensor::zeros({13}).as_strided({4, 3}, {2, 3}, 0).narrow(0, 0, 1)));
  EXPECT_TRUE(has_internal_overlap(Tensor::zeros({13}).as_strided({4, 3}, {2, 3}, 0)));
}

}  // namespace
}  // namespace palimpsest
