// SPDX-License-Identifier: Apache-2.0
// The law of splitting: the tiles over a partition, put together, are the whole.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/testing/testing_inputs.hpp"

namespace palimpsest {
namespace {

using Boundaries = std::vector<index_t>;    // 0 = b0 < b1 < .. = size
using Cuts = std::map<ND, Boundaries>;      // one list per dimension
constexpr index_t kMostSingleElements = 6;  // of a partition into single elements
constexpr int kCombinations = 2;            // of several dimensions at once

// The part of an array with these dimensions that a tile takes.
Tensor cut_to(Tensor x, const Dims& dims, const Tile& tile) {
  for (const auto& [d, range] : tile) {
    if (!dims.contains(d)) continue;
    index_t axis = axis_of(dims, d);
    if (axis < 0) axis += static_cast<index_t>(x.rank());
    x = x.narrow(axis, *range.start, *range.stop - *range.start);
  }
  return x;
}

class SplitCheck {
 public:
  SplitCheck(const NamedLinop& A, const TestOptions& options)
      : x_(test_input(A, options, 0)),
        A_(with_sizes_of(A, x_)),
        y_(A_(x_)),
        options_(options),
        random_(options.seed) {
    DimSizes sizes = palimpsest::bind(A_.ishape(), x_.shape());
    sizes = palimpsest::bind(A_.oshape(), y_.shape(), sizes);
    for (const ND& d : A_.dims()) {
      const bool is_named = d.is_concrete() || d.is_ordinal();
      const auto n = !is_named ? std::nullopt : sizes.size(d) ? sizes.size(d) : A_.size(d);
      if (n && *n > 0) sizes_.emplace(d, *n);
    }
  }

  SplitTest run() {
    Dims splits;
    for (const auto& [d, n] : sizes_) {
      bool is_accepted = true;
      for (const Boundaries& partition : partitions(n)) {
        if (partition.size() > 2) is_accepted = check({{d, partition}}) && is_accepted;
      }
      check_whole(d, n);
      if (n > 1) (is_accepted ? splits : result_.refused).push_back(d);
    }
    for (int k = 0; k < kCombinations && splits.size() > 1; ++k) check_several(splits);
    result_.ok =
        result_.failure.empty() &&
        result_.error <= test_tolerance(x_.dtype(), x_.numel() + y_.numel()) + normal_allowance(A_);
    if (!result_.ok && result_.failure.empty()) {
      result_.failure =
          "the parts make up another result: error " + fmt::format("{}", result_.error);
    }
    return std::move(result_);
  }

 private:
  index_t pick(index_t first, index_t last) {
    return first + static_cast<index_t>(random_() % static_cast<std::uint64_t>(last - first + 1));
  }

  Boundaries cut_once(index_t n) {
    return n < 2 ? Boundaries{0, n} : Boundaries{0, pick(1, n - 1), n};
  }

  // An element and the rest, single elements, and a cut anywhere.
  std::vector<Boundaries> partitions(index_t n) {
    std::vector<Boundaries> result{{0, 1, n}, cut_once(n)};
    if (n <= kMostSingleElements) {
      result.emplace_back();
      for (index_t i = 0; i <= n; ++i) result.back().push_back(i);
    }
    for (Boundaries& b : result) b.erase(std::unique(b.begin(), b.end()), b.end());
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  void fail(const std::string& what) {
    if (result_.failure.empty()) result_.failure = what;
  }

  void check_whole(const ND& d, index_t n) {
    if (A_.size(d) && !A_.split({{d, slice(0, n)}}).is(A_)) {
      fail("the full range of dim " + d.str() + " is another operator");
    }
  }

  // Dimensions that can be cut one by one can be cut together.
  void check_several(const Dims& splits) {
    Cuts partition;
    for (const ND& d : splits) {
      if (partition.size() < 2 || random_() % 2 == 0) partition.emplace(d, cut_once(sizes_.at(d)));
    }
    if (check(partition)) return;
    for (const auto& [d, b] : partition) {
      for (std::size_t k = 0; k + 1 < b.size(); ++k) {
        if (!splits_at(d, slice(b[k], b[k + 1]))) return;
      }
    }
    fail("several dimensions together are refused, each alone is not");
  }

  bool splits_at(const ND& d, const Slice& range) const {
    try {
      A_.split({{d, range}});
      return true;
    } catch (const SplitError&) {
      return false;
    }
  }

  // Puts the tiles of a grid together; false where they are refused.
  bool check(const Cuts& partition) {
    Tensor sum = Tensor::zeros(y_.shape(), DType::complex128);
    index_t refused = 0, accepted = 0;
    std::vector<std::size_t> index(partition.size(), 0);
    for (bool more = true; more;) {
      Tile tile;
      std::size_t k = 0;
      for (const auto& [d, b] : partition) {
        tile.emplace(d, slice(b[index[k]], b[index[k] + 1]));
        ++k;
      }
      ++(add_tile(tile, sum, accepted == 0) ? accepted : refused);
      more = false;
      k = 0;
      for (const auto& [d, b] : partition) {
        if (++index[k] + 1 < b.size()) {
          more = true;
          break;
        }
        index[k++] = 0;
      }
    }
    // A Concat with children that can only be taken whole refuses some tiles and accepts others.
    if (refused == 0) result_.error = std::max(result_.error, relative_difference(sum, y_));
    return refused == 0;
  }

  bool add_tile(const Tile& tile, Tensor& sum, bool checks_adjoint) {
    NamedLinop part;
    try {
      part = A_.split(tile);
    } catch (const SplitError& error) {
      if (std::string_view(error.what()).find("cannot split") == std::string_view::npos) {
        fail("a SplitError does not say \"cannot split\": " + std::string(error.what()));
      }
      return false;
    }
    const Tensor input = cut_to(x_, A_.ishape(), tile).contiguous();
    const Tensor value = part(input);
    Tensor place = cut_to(sum, A_.oshape(), tile);
    if (value.shape() != place.shape()) {
      fail("a tile gives the shape " + to_string(value.shape()) + ", expected " +
           to_string(place.shape()));
      return true;
    }
    auto total = wide(place);
    const auto added = wide(value);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += added[i];
    place.copy_from(Tensor::from(total, place.shape()));
    if (checks_adjoint) {
      TestOptions own = options_;
      own.extents = input.shape();
      own.dtype = input.dtype();
      if (!dot_test(part, own).ok) fail("the adjoint of a tile is not its adjoint");
    }
    return true;
  }

  Tensor x_;
  NamedLinop A_;
  Tensor y_;
  TestOptions options_;
  std::map<ND, index_t> sizes_;
  std::mt19937_64 random_;
  SplitTest result_;
};

}  // namespace

SplitTest check_split(const NamedLinop& A, const TestOptions& options) {
  return SplitCheck(A, options).run();
}

}  // namespace palimpsest
