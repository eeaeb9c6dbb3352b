// SPDX-License-Identifier: Apache-2.0
// Splitting: the checks that all operators share, the default rule, and helpers of the rules.
#include <algorithm>
#include <cctype>

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/core/window_name.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest {
namespace {

// Axes of a weight that no name of the shape reaches: they lie under the ellipsis.
bool has_hidden_axes(const NamedLinop& A) {
  if (&A.type() != &linop_types::diagonal()) return false;
  for (const DiagonalFactor& factor : diagonal_factors(A)) {
    std::size_t named = 0;
    for (const ND& d : A.ishape()) named += find_axis(A.ishape(), d, factor.axes) ? 1 : 0;
    if (named < factor.axes.size()) return true;
  }
  return false;
}

// Could the operator act along a dimension that none of its names says?
bool may_hide_dims(const NamedLinop& A) {
  if (!A.linops().empty()) {
    return std::any_of(A.linops().begin(), A.linops().end(), may_hide_dims);
  }
  const auto has_any = [](const Dims& dims) {
    return std::any_of(dims.begin(), dims.end(), [](const ND& d) { return d.is_any(); });
  };
  return has_any(A.ishape()) || has_any(A.oshape()) || has_hidden_axes(A) ||
         A.ishape().has_ellipsis() != A.oshape().has_ellipsis();
}

std::string slice_text(const Slice& range) {
  const auto number = [](const std::optional<index_t>& n) { return n ? std::to_string(*n) : ""; };
  return number(range.start) + ":" + number(range.stop);
}

// Both ends of a slice of d; none for the full range.
std::optional<Slice> checked_slice(const NamedLinop& A, const ND& d, const Slice& range) {
  const auto fail = [&](const std::string& what) {
    throw ValueError(who(A) + "split: dim '" + d.str() + "': " + what);
  };
  if (d.is_ellipsis() || (d.is_any() && !d.is_ordinal()))
    fail("expected one dimension by its name");
  if (range.step != 1) fail("step: got " + std::to_string(range.step) + ", expected 1");
  const auto size = A.size(d);
  if (!range.stop && !size) {
    throw ShapeError(who(A) + "split: size of dim '" + d.str() +
                     "' is unknown: a slice without end needs it. Try with_sizes");
  }
  const index_t start = range.start.value_or(0), stop = range.stop ? *range.stop : *size;
  if (start < 0 || (size && stop > *size)) {
    fail("slice " + slice_text(range) +
         " is out of range: expected a part of 0:" + (size ? std::to_string(*size) : "size"));
  }
  if (start >= stop) fail("slice " + slice_text(range) + " is empty: expected start < stop");
  if (size && start == 0 && stop == *size) return std::nullopt;
  return slice(start, stop);
}

Tile checked_tile(const NamedLinop& A, const Tile& tile) {
  const Dims dims = A.dims();
  Tile result;
  for (const auto& [d, range] : tile) {
    const auto checked = checked_slice(A, d, range);
    if (!checked) continue;
    if (absorbed_dims(A).contains(d)) {
      refuse_split(A, d,
                   "it was simplified and sums over it in one step. Try to split first, and N() of "
                   "the parts");
    } else if (dims.contains(d)) {
      result.emplace(d, *checked);
    } else if (may_hide_dims(A)) {
      refuse_split(A, d,
                   "wildcards in its shape may stand for it. Try names for all axes, which resolve "
                   "them");
    }
  }
  return result;
}

// Dimensions that the shape `batch_shape` lists are separable, all others are refused.
NamedLinop default_split(const NamedLinop& A, const Tile& tile) {
  const Dims batch = A.shape().contains("batch_shape") ? A.shape().dims("batch_shape") : Dims();
  for (const auto& [d, range] : tile) {
    if (!batch.contains(d)) {
      refuse_split(A, d,
                   "its type has no rule for it. Try to list it in the shape batch_shape if the "
                   "operator acts slice by slice along it");
    }
  }
  return split_unchanged(A, tile);
}

}  // namespace

namespace {

// Summands that sum over a dimension of one name, but of different sizes, have no tile in common.
void check_one_size(const NamedLinop& A, const ND& d) {
  std::optional<index_t> size;
  for (const NamedLinop& child : A.linops()) {
    const auto n = child.size(d);
    if (n && size && *n != *size) {
      refuse_split(A, d,
                   "its operators sum over different sizes of it: got " + std::to_string(*n) +
                       " and " + std::to_string(*size) + ". Try rename");
    }
    if (n) size = n;
  }
}

// The tile with its sizes recorded along the cut dimensions, if it does not know them: a weight of
// one element may be stretched, and a user's rule may leave the sizes of the whole.
NamedLinop with_sizes_of_tile(const NamedLinop& given, const Tile& tile) {
  const DimMap recorded = given.linops().empty() ? given.recorded_sizes() : DimMap();
  const bool is_cut = cut_sizes(recorded, tile) == recorded;
  const NamedLinop made = is_cut ? given : split_unchanged(given, tile);
  DimMap sizes;
  for (const auto& [d, range] : tile) {
    const bool is_there = made.ishape().contains(d) || made.oshape().contains(d);
    if (is_there) sizes.emplace(d, *range.stop - *range.start);
  }
  return completed(made, sizes);
}

// A tile with the dimensions that the whole has absorbed: it is not cut along them.
NamedLinop with_what_is_absorbed(const NamedLinop& made, const NamedLinop& whole) {
  const Dims absorbed = absorbed_dims(whole);
  const NamedLinop marked = with_absorbed(made, absorbed);
  DimMap sizes;
  for (const ND& d : absorbed) {
    if (const auto n = whole.size(d)) sizes.emplace(d, *n);
  }
  return completed(marked, sizes);
}

}  // namespace

NamedLinop NamedLinop::split(const Tile& tile) const {
  data();
  const Tile checked = checked_tile(*this, tile);
  if (checked.empty()) return *this;
  const auto made = [&] {
    if (functions().split) return functions().split(*this, checked);
    if (functions().adj_split) return functions().adj_split(H(), checked).H();
    return default_split(*this, checked);
  }();
  // The same for every size.
  const bool has_no_sizes =
      &type() == &linop_types::identity() || &type() == &linop_types::scalar();
  if (has_no_sizes && made.is(*this)) return made;
  return with_sizes_of_tile(with_what_is_absorbed(made, *this), checked);
}

std::optional<TileRange> range_of(const Tile& tile, const ND& d) {
  const auto found = tile.find(d);
  if (found == tile.end()) return std::nullopt;
  return TileRange{*found->second.start, *found->second.stop};
}

Tile tile_within(const Tile& tile, const Dims& dims) {
  Tile result;
  for (const auto& [d, range] : tile) {
    if (dims.contains(d)) result.emplace(d, range);
  }
  return result;
}

void refuse_split(const NamedLinop& A, const ND& d, const std::string& reason) {
  throw SplitError(who(A) + "cannot split dim '" + d.str() + "' of " + A.shape().str() + ": " +
                   reason);
}

DimMap cut_sizes(const DimMap& sizes, const Tile& tile) {
  DimMap result = sizes;
  for (auto& [d, n] : result) {
    if (const auto range = range_of(tile, d)) n = range->size();
  }
  return result;
}

LinopData tile_data(const NamedLinop& A, const Tile& tile) {
  LinopData data = copy_data(A);
  data.shape = with_sizes_in(data.shape, cut_sizes(A.recorded_sizes(), tile));
  data.self_adjoint = false;
  return data;
}

NamedLinop split_unchanged(const NamedLinop& A, const Tile& tile) {
  return A.recorded_sizes().empty() ? A : from_data(tile_data(A, tile));
}

NamedLinop split_besides(const NamedLinop& A, const Tile& tile, std::span<const index_t> in_axes,
                         std::span<const index_t> out_axes, const std::string& reason) {
  for (const auto& [d, range] : tile) {
    if (find_axis(A.ishape(), d, in_axes) || find_axis(A.oshape(), d, out_axes)) {
      refuse_split(A, d, reason);
    }
  }
  return split_unchanged(A, tile);
}

void put_param(LinopData& data, std::string_view name, Parameter value) {
  for (auto& [key, p] : data.params) {
    if (key == name) p = std::move(value);
  }
}

void put_attr(LinopData& data, std::string_view name, Attribute value) {
  for (auto& [key, old] : data.attrs) {
    if (key == name) old = std::move(value);
  }
}

ND window_name(const ND& d, const std::vector<ND>& taken) {
  std::string text = "Window_";
  for (const char c : d.str()) {
    if (c != '(' && c != ')')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return ND(text).fresh(taken);
}

void refuse_unknown_zero(const NamedLinop& A, const NamedLinop& block, const DimMap& sizes,
                         const ND& along) {
  for (const ND& d : unite(block.ishape(), block.oshape())) {
    const bool is_on_both_sides = block.ishape().contains(d) && block.oshape().contains(d);
    const bool has_size = d.is_concrete() || d.is_ordinal();
    if (!has_size || is_on_both_sides || sizes.contains(d)) continue;
    refuse_split(A, along, "a block of zeros would have no known size along " + d.str());
  }
}

NamedLinop zero_like(const NamedLinop& A) {
  DimMap sizes;
  for (const ND& d : unite(A.ishape(), A.oshape())) {
    const auto n = d.is_concrete() || d.is_ordinal() ? A.size(d) : std::nullopt;
    if (n) sizes.emplace(d, *n);
  }
  return Zero(A.ishape(), A.oshape(), {.sizes = std::move(sizes)});
}

NamedLinop with_recorded(const NamedLinop& made, const NamedLinop& A, const Tile& tile) {
  DimMap sizes;
  const Dims absorbed = absorbed_dims(A);  // with sizes of the whole, not of its children
  for (const auto& [d, n] : cut_sizes(A.recorded_sizes(), tile)) {
    if (made.dims().contains(d) && !absorbed.contains(d)) sizes.emplace(d, n);
  }
  return sizes.empty() ? made : made.with_sizes(sizes);
}

std::vector<NamedLinop> split_summands(const NamedLinop& A, const Tile& tile) {
  const Dims visible = unite(A.ishape(), A.oshape());
  for (const auto& [d, range] : tile) {
    if (!visible.contains(d)) check_one_size(A, d);
  }
  std::vector<NamedLinop> result;
  for (std::size_t i = 0; i < A.linop_count(); ++i) {
    const PathScope path(A, i);
    const Dims dims = A[i].dims();
    NamedLinop child = A[i].split(tile_within(tile, unite(dims, visible)));
    const bool elsewhere = std::any_of(tile.begin(), tile.end(), [&](const auto& cut) {
      return !visible.contains(cut.first) && !dims.contains(cut.first) && *cut.second.start != 0;
    });
    result.push_back(elsewhere ? zero_like(child) : std::move(child));
  }
  return result;
}

}  // namespace palimpsest
