// SPDX-License-Identifier: Apache-2.0
// Random sets of views of random families of storages, copied in every way, compared with the rules
// of docs/storage.md in their simplest form: sets of bytes.
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/memory_map.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

struct View {
  std::size_t storage;
  ByteLayout layout;
};

// The bytes of all elements, in row-major order, as offsets in the storage.
std::vector<std::int64_t> bytes_of(const ByteLayout& view) {
  std::vector<std::int64_t> starts{view.offset};
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t start : starts) {
      for (index_t i = 0; i < view.shape[axis]; ++i) next.push_back(start + i * view.strides[axis]);
    }
    starts = next;
  }
  std::vector<std::int64_t> bytes;
  for (const std::int64_t start : starts) {
    for (int b = 0; b < view.item_size; ++b) bytes.push_back(start + b);
  }
  return bytes;
}

class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (std::uint64_t n = 1 + any(2); n > 0; --n) {
      Storage base = Storage::allocate(400 + any(600));
      for (std::size_t k = 0; k < base.nbytes(); ++k) {
        base.mutable_data()[k] = static_cast<std::byte>(1 + any(255));
      }
      storages_.push_back(base);
      for (std::uint64_t clones = any(3); clones > 0; --clones) {
        const std::size_t first = any(base.nbytes() / 2);
        storages_.push_back(base.lazy_clone(first, base.nbytes() - first - any(100)));
      }
    }
    while (views_.size() < 1 + any(6)) add_view();
  }

  void check(int way) {
    const bool compact = any(2) == 1;
    MemoryMap map(compact);
    for (const View& view : views_) map.add(storages_[view.storage], view.layout);
    const Device other{DeviceType::cpu, 1};
    const std::int64_t live = Allocator::of(Device{}).stats().live_bytes;
    if (way == 0) map.copy();
    if (way == 1) map.lazy_copy();
    if (way == 2) map.to(other);
    if (way == 3) map.move_to(other, [] {});
    std::vector<std::pair<Storage, ByteLayout>> mapped;
    for (const View& view : views_) mapped.push_back(map.map(storages_[view.storage], view.layout));
    check_contents(mapped, way >= 2 ? other : Device{});
    check_sharing(mapped, compact);
    check_groups(map);
    if (way == 1) {
      EXPECT_EQ(static_cast<std::int64_t>(Allocator::of(Device{}).stats().live_bytes), live);
      return;
    }
    if (!compact) check_bytes(map, mapped);
    check_gaps(mapped);
  }

 private:
  std::uint64_t any(std::uint64_t n) { return random_() % n; }

  void add_view() {
    const std::size_t s = any(storages_.size());
    ByteLayout view;
    view.item_size = 1 << any(4);
    view.offset = static_cast<std::int64_t>(any(storages_[s].nbytes()));
    for (std::uint64_t rank = any(4); rank > 0; --rank) {
      view.shape.push_back(static_cast<index_t>(any(10) == 0 ? 0 : 1 + any(6)));
      view.strides.push_back((static_cast<index_t>(any(21)) - 6) * (any(2) == 0 ? 1 : 8));
    }
    const Extent extent = memory_extent(view);
    if (extent.lo < 0 || extent.hi > static_cast<std::int64_t>(storages_[s].nbytes())) return;
    views_.push_back({s, view});
    if (any(8) == 0) views_.push_back(views_.back());
  }

  void check_contents(const std::vector<std::pair<Storage, ByteLayout>>& mapped, Device device) {
    for (std::size_t v = 0; v < views_.size(); ++v) {
      const auto& [copy, layout] = mapped[v];
      EXPECT_EQ(layout.shape, views_[v].layout.shape);
      EXPECT_EQ(layout.item_size, views_[v].layout.item_size);
      EXPECT_EQ(copy.device(), device);
      const auto from = bytes_of(views_[v].layout), to = bytes_of(layout);
      ASSERT_EQ(from.size(), to.size());
      for (std::size_t k = 0; k < from.size(); ++k) {
        ASSERT_LT(to[k], static_cast<std::int64_t>(copy.nbytes()));
        ASSERT_EQ(copy.data()[to[k]], storages_[views_[v].storage].data()[from[k]]);
      }
    }
  }

  // Two copies share exactly the bytes that their sources shared.
  void check_sharing(const std::vector<std::pair<Storage, ByteLayout>>& mapped, bool compact) {
    for (std::size_t a = 0; a < views_.size(); ++a) {
      for (std::size_t b = a; b < views_.size(); ++b) {
        const Storage &x = storages_[views_[a].storage], &y = storages_[views_[b].storage];
        const bool same = views_[a].storage == views_[b].storage;
        EXPECT_EQ(mapped[a].first.is(mapped[b].first), same);
        const auto from_a = bytes_of(views_[a].layout), from_b = bytes_of(views_[b].layout);
        if (!from_a.empty() && !from_b.empty()) {
          EXPECT_EQ(mapped[a].first.shares_data(mapped[b].first), x.shares_data(y));
        }
        // Elements of a dense copy may separate if they overlapped in the source.
        if (!same || (compact && views_[a].layout == views_[b].layout)) continue;
        const auto to_a = bytes_of(mapped[a].second), to_b = bytes_of(mapped[b].second);
        for (std::size_t i = 0; i < from_a.size(); ++i) {
          for (std::size_t j = 0; j < from_b.size(); ++j) {
            ASSERT_EQ(to_a[i] == to_b[j], from_a[i] == from_b[j]);
          }
        }
      }
    }
  }

  void check_groups(const MemoryMap& map) const {
    std::map<std::uint64_t, int> n_views;
    std::map<std::uint64_t, Extent> spans;
    for (const View& view : views_) {
      const std::uint64_t id = storages_[view.storage].id();
      ++n_views[id];
      const Extent extent = memory_extent(view.layout);
      if (extent.lo == extent.hi) continue;
      const auto [at, is_first] = spans.try_emplace(id, extent);
      if (!is_first) {
        at->second = {std::min(at->second.lo, extent.lo), std::max(at->second.hi, extent.hi)};
      }
    }
    std::map<std::uint64_t, std::set<std::int64_t>> used;
    for (const View& view : views_) {
      const Extent extent = memory_extent(view.layout);
      std::set<std::int64_t>& bytes = used[storages_[view.storage].id()];
      for (std::int64_t k = extent.lo; k < extent.hi; ++k) bytes.insert(k);
    }
    std::int64_t buffers = 0;
    ASSERT_EQ(map.groups().size(), n_views.size());
    for (const MemoryMap::Group& group : map.groups()) {
      EXPECT_EQ(group.views, n_views[group.storage]);
      EXPECT_EQ(group.span, spans[group.storage].hi - spans[group.storage].lo);
      EXPECT_EQ(group.used, static_cast<std::int64_t>(used[group.storage].size()));
      buffers += group.buffer;
    }
    EXPECT_EQ(buffers, map.bytes());
  }

  // The used bytes of each family, as offsets in its block.
  std::map<std::uint64_t, std::set<std::int64_t>> used_bytes() const {
    std::map<std::uint64_t, const std::byte*> origins;
    std::map<std::uint64_t, std::set<std::int64_t>> used;
    for (const View& view : views_) {
      const Storage& storage = storages_[view.storage];
      const std::byte* const origin =
          origins.try_emplace(storage.data_id(), storage.data()).first->second;
      const Extent extent = memory_extent(view.layout);
      for (std::int64_t k = extent.lo; k < extent.hi; ++k) {
        used[storage.data_id()].insert(storage.data() - origin + k);
      }
    }
    return used;
  }

  // A family that uses half of its span keeps all distances. Otherwise each run of used bytes moves
  // to lower offsets and keeps its offset modulo 64.
  void check_bytes(const MemoryMap& map,
                   const std::vector<std::pair<Storage, ByteLayout>>& mapped) {
    std::int64_t least = 0, most = 0;
    for (const auto& [block, bytes] : used_bytes()) {
      if (bytes.empty()) continue;
      const auto count = static_cast<std::int64_t>(bytes.size());
      const std::int64_t span = *bytes.rbegin() - *bytes.begin() + 1;
      std::int64_t runs = 1;
      for (auto at = std::next(bytes.begin()); at != bytes.end(); ++at) {
        runs += *at != *std::prev(at) + 1 ? 1 : 0;
      }
      const bool keeps_distances = 2 * count >= span;
      least += keeps_distances ? span : count;
      most += keeps_distances ? span + 127 : count + 127 + 63 * (runs - 1);
      if (!keeps_distances) continue;
      for (std::size_t a = 0; a < views_.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          if (views_[a].storage != views_[b].storage) continue;
          if (storages_[views_[a].storage].data_id() != block) continue;
          if (bytes_of(views_[a].layout).empty() || bytes_of(views_[b].layout).empty()) continue;
          EXPECT_EQ(mapped[a].second.offset - mapped[b].second.offset,
                    views_[a].layout.offset - views_[b].layout.offset);
        }
      }
    }
    EXPECT_GE(map.bytes(), least);
    EXPECT_LE(map.bytes(), most);
  }

  // Bytes outside all views are zero.
  void check_gaps(const std::vector<std::pair<Storage, ByteLayout>>& mapped) {
    std::map<const std::byte*, bool> shown;
    for (const auto& [copy, layout] : mapped) {
      for (std::size_t k = 0; k < copy.nbytes(); ++k) shown.try_emplace(copy.data() + k, false);
      const Extent extent = memory_extent(layout);
      for (std::int64_t k = extent.lo; k < extent.hi; ++k) shown[copy.data() + k] = true;
    }
    for (const auto& [at, is_shown] : shown) {
      ASSERT_TRUE(is_shown || *at == std::byte{0});
    }
  }

  std::mt19937 random_;
  std::vector<Storage> storages_;
  std::vector<View> views_;
};

TEST(MemoryMapRandom, CopiesHaveTheBytesAndTheSharingOfTheirSources) {
  const int rounds = testing::longer_unless_sanitized(3000);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    Program(static_cast<unsigned>(round)).check(round % 4);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace palimpsest
