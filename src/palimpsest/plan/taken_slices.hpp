// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <map>
#include <utility>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/region.hpp"

namespace palimpsest {

/// Slices of one array, for a quick test whether a further one keeps apart from all of them.
///
/// Two slices have no byte in common if their bytes have no remainder in common, for any divisor.
/// A column of n rows reaches over the whole array, but modulo the stride of its rows it is as wide
/// as one item: so slices are found by the remainders modulo one of their strides, and by their
/// first byte.
///
/// Cost  O(log n) for n rows, columns, or blocks of an array
class TakenSlices {
 public:
  /// True if no slice so far has a byte in common with this one. False after a test against very
  /// many. `whole` is the type of the array.
  bool is_apart(const Layout& slice, const TensorType& whole) const;
  void add(const Layout& slice);

 private:
  // The slices with remainders of one divisor, by the first remainder and the first byte.
  struct Group {
    struct Slice {
      index_t end;  // behind the last byte
      Region region;
    };
    std::multimap<std::pair<index_t, index_t>, Slice> slices;
    index_t most_remainders = 0, most_bytes = 0;
  };
  struct Query;
  static bool meets(const Group& group, Query& query, index_t low, index_t high);

  std::map<index_t, Group> groups_;  // by divisor
};

}  // namespace palimpsest
