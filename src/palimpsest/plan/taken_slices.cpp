// SPDX-License-Identifier: Apache-2.0
// A comparison with all slices that reach over the same bytes, ended after 1,000, is half as long.
// It copies 499 of 1,500 columns that are set, and so raises the announced peak; 4,000 take 2.9
// times the instructions.
#include "palimpsest/plan/taken_slices.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace palimpsest {
namespace {

// Larger than every byte: the remainders are the bytes.
constexpr index_t kNoDivisor = std::numeric_limits<index_t>::max();

struct Span {
  index_t first, length;
};

// The remainders of a slice's bytes: from `first` on, perhaps around.
Span remainders(const Layout& slice, index_t divisor) {
  const auto item = static_cast<index_t>(item_size(slice.dtype));
  index_t first = slice.byte_offset, length = item;
  for (std::size_t k = 0; k < slice.extents.size(); ++k) {
    const index_t step = slice.strides[k] * item;
    if (slice.extents[k] == 1 || step % divisor == 0) continue;
    const index_t reach = step * (slice.extents[k] - 1);
    if (reach < 0) first += reach;
    length += std::abs(reach);
  }
  return length < divisor ? Span{first % divisor, length} : Span{0, divisor};
}

// The shortest stride modulo which the slice leaves remainders out.
index_t divisor_for(const Layout& slice) {
  const auto item = static_cast<index_t>(item_size(slice.dtype));
  index_t shortest = kNoDivisor;
  for (std::size_t k = 0; k < slice.extents.size(); ++k) {
    const index_t step = std::abs(slice.strides[k]) * item;
    if (slice.extents[k] == 1 || step == 0 || step >= shortest) continue;
    if (remainders(slice, step).length < step) shortest = step;
  }
  return shortest;
}

bool is_empty(const Layout& slice) {
  return std::find(slice.extents.begin(), slice.extents.end(), 0) != slice.extents.end();
}

}  // namespace

struct TakenSlices::Query {
  const TensorType& whole;
  Region region;
  index_t first, end;
  int n_tests_left = 1000;
};

// True if the query meets a slice with its first remainder in [low, high).
bool TakenSlices::meets(const Group& group, Query& query, index_t low, index_t high) {
  const index_t first = query.first - group.most_bytes;
  for (auto it = group.slices.lower_bound({low, first}); it != group.slices.end();) {
    const auto [remainder, byte] = it->first;
    if (remainder >= high) return false;
    if (--query.n_tests_left < 0) return true;
    if (byte < first) {
      it = group.slices.lower_bound({remainder, first});
    } else if (byte >= query.end) {
      it = group.slices.lower_bound({remainder + 1, first});
    } else {
      const Group::Slice& slice = it->second;
      if (slice.end > query.first && slice.region.meets(query.region, query.whole)) return true;
      ++it;
    }
  }
  return false;
}

bool TakenSlices::is_apart(const Layout& slice, const TensorType& whole) const {
  if (is_empty(slice)) return true;
  const Span bytes = remainders(slice, kNoDivisor);
  Query query{whole, Region::of(slice), bytes.first, bytes.first + bytes.length};
  for (const auto& [divisor, group] : groups_) {
    if (--query.n_tests_left < 0) return false;
    const Span mine = remainders(slice, divisor);
    const index_t low = mine.first - group.most_remainders + 1, high = mine.first + mine.length;
    if (high - low >= divisor) {
      if (meets(group, query, 0, divisor)) return false;
      continue;
    }
    if (meets(group, query, std::max<index_t>(low, 0), std::min(high, divisor))) return false;
    // The remainders that wrap around the divisor.
    if (low < 0 && meets(group, query, low + divisor, divisor)) return false;
    if (high > divisor && meets(group, query, 0, high - divisor)) return false;
  }
  return true;
}

void TakenSlices::add(const Layout& slice) {
  if (is_empty(slice)) return;
  const index_t divisor = divisor_for(slice);
  const Span bytes = remainders(slice, kNoDivisor), mine = remainders(slice, divisor);
  Group& group = groups_[divisor];
  group.most_remainders = std::max(group.most_remainders, mine.length);
  group.most_bytes = std::max(group.most_bytes, bytes.length);
  group.slices.emplace(std::pair(mine.first, bytes.first),
                       Group::Slice{bytes.first + bytes.length, Region::of(slice)});
}

}  // namespace palimpsest
