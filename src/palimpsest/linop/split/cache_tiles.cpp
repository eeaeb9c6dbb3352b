// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/cache_tiles.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/budget_search.hpp"

namespace palimpsest {
namespace {

constexpr std::string_view kTag = "cache_tiles";

// Largest number of tiles. Each costs its compilation once, and the calls of its steps.
constexpr index_t kMostTilesInCache = 64;
// Time of a tile, in ns. Its compilation takes 0.1 to 0.3 ms: some tens of calls pay it back.
constexpr double kTileTime = 1e4;

// ns per byte that is handed on, written and read: from the cache of a core, from the last cache,
// from memory.
constexpr double kCoreTime = 0.02, kLastTime = 0.06, kMemoryTime = 0.16;

// ns per byte of the arena: memory that is touched first takes 0.1 to 1.3, once for some tens of
// calls.
constexpr double kHeldTime = 0.002;

double transfer_time(index_t bytes) {
  if (bytes <= core_cache_bytes()) return kCoreTime;
  // Maps and weights go through it, too, and other cores use it.
  return bytes <= streaming_bytes() / 4 ? kLastTime : kMemoryTime;
}

bool is_on() {
  const Config& now = config();
  const auto& without = now.rewrites_excluding;
  const bool has_limit = now.budget && *now.budget < kNoLimit;
  return !has_limit && now.mode == "FastRun" &&
         std::find(without.begin(), without.end(), kTag) == without.end();
}

// Known operators only: other types do not say whether separate tiles cost more work. Transforms
// are steps of their own, so values next to them lie in memory.
bool is_pointwise(const NamedLinop& A) {
  const LinopType* const type = &A.type();
  return type == &linop_types::dense() || type == &linop_types::diagonal() ||
         type == &linop_types::scalar() || type == &linop_types::identity();
}
bool is_transform(const NamedLinop& A) {
  return &A.type() == &linop_types::fft() || &A.type() == &linop_types::sampling();
}

// Value between two operators of the chain.
struct Intermediate {
  Dims dims;
  index_t bytes = 0;
  bool is_in_memory = false;
};

// The operators first .. last - 1 of the chain, those that act on one dimension.
struct Run {
  ND dim;
  std::size_t first = 0, last = 0;
  index_t extent = 0;
  bool is_summed = false;
  bool is_one_step = false;  // up to kLeafRows elements along the dimension, of which it holds one
  std::vector<Intermediate> values;  // between neighbours
};

// Without the time of the other steps, which is the same for all tiles.
double predicted_time(const Run& run, index_t size) {
  const index_t tiles = (run.extent + size - 1) / size;
  double time = tiles > 1 ? kTileTime * static_cast<double>(tiles) : 0;
  for (const Intermediate& v : run.values) {
    if (!v.is_in_memory) continue;
    const bool holds_one = run.is_one_step && size <= kLeafRows;
    const index_t held = v.bytes / run.extent * (holds_one ? 1 : size);
    time +=
        static_cast<double>(v.bytes) * transfer_time(held) + static_cast<double>(held) * kHeldTime;
  }
  return time;
}

std::optional<index_t> bytes_of(const NamedLinop& chain, const Dims& dims, DType dtype) {
  auto bytes = static_cast<index_t>(item_size(dtype));
  for (const ND& d : dims) {
    const auto n = d.is_concrete() ? chain.size(d) : std::nullopt;
    if (!n || __builtin_mul_overflow(bytes, *n, &bytes)) return std::nullopt;
  }
  return bytes;
}

// A sum over d, and over nothing else: its order is known.
bool sums_only(const NamedLinop& A, const ND& d) {
  return std::all_of(A.ishape().begin(), A.ishape().end(),
                     [&](const ND& other) { return other == d || A.oshape().contains(other); });
}

// Maps of d, a transform of two axes or more, weights, and the adjoints: the op SenseNormal.
bool is_sense_normal(const std::vector<NamedLinop>& parts, const Run& run) {
  const auto is_dense = [](const NamedLinop& A) { return &A.type() == &linop_types::dense(); };
  const auto is_fft = [](const NamedLinop& A) {
    return &A.type() == &linop_types::fft() && A.attr("axes").as_integers().size() > 1;
  };
  if (!run.is_summed || run.last - run.first < 5) return false;
  const NamedLinop &maps = parts[run.first], &sum = parts[run.last - 1];
  const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(run.first);
  const auto end = parts.begin() + static_cast<std::ptrdiff_t>(run.last);
  return is_dense(maps) && is_dense(sum) && is_fft(*(begin + 1)) && is_fft(*(end - 2)) &&
         std::all_of(begin + 2, end - 2, is_pointwise) &&
         maps.oshape() == Dims(run.dim) + maps.ishape() &&
         sum.ishape() == Dims(run.dim) + sum.oshape();
}

// The run of operators that act on d, if tiles of it may be of use.
std::optional<Run> run_along(const NamedLinop& chain, const std::vector<NamedLinop>& parts,
                             const ND& d, DType dtype) {
  Run run;
  run.dim = d;
  run.extent = chain.size(d).value_or(0);
  const auto acts = [&](const NamedLinop& A) { return A.dims().contains(d); };
  const auto begin = std::find_if(parts.begin(), parts.end(), acts);
  const auto end = std::find_if_not(begin, parts.end(), acts);
  if (run.extent < 2 || std::find_if(end, parts.end(), acts) != parts.end()) return std::nullopt;
  run.first = static_cast<std::size_t>(begin - parts.begin());
  run.last = static_cast<std::size_t>(end - parts.begin());
  for (std::size_t i = run.first; i < run.last; ++i) {
    const NamedLinop& A = parts[i];
    if (!is_pointwise(A) && !is_transform(A)) return std::nullopt;
    if (i + 1 == run.last) break;
    const Dims& dims = A.oshape();
    const auto bytes = bytes_of(chain, dims, dtype);
    // Along the last axis tiles would be columns.
    if (!bytes || !dims.contains(d) || dims.back() == d) return std::nullopt;
    run.values.push_back({dims, *bytes, is_transform(A) || is_transform(parts[i + 1])});
  }
  if (run.values.empty()) return std::nullopt;
  run.is_summed = !parts[run.last - 1].oshape().contains(d);
  if (run.is_summed && !sums_only(parts[run.last - 1], d)) return std::nullopt;
  run.is_one_step = is_sense_normal(parts, run);
  return run;
}

// Sizes of tiles, the largest first. Of sums those that keep the order of their terms: leaves of
// kLeafRows, doubled, or single terms.
std::vector<index_t> tile_sizes(const Run& run) {
  std::vector<index_t> sizes;
  for (index_t size = 1; size < run.extent; size *= 2) {
    if (!run.is_summed || size == 1 || size >= kLeafRows) sizes.push_back(size);
  }
  std::reverse(sizes.begin(), sizes.end());
  std::erase_if(sizes, [&](index_t n) { return (run.extent + n - 1) / n > kMostTilesInCache; });
  return sizes;
}

// The levels of cuts, from the outside to the inside: leaves of sums are added in pairs, the sums
// of two in pairs again.
std::vector<BatchSpec> levels_of(const Run& run, index_t size) {
  std::vector<BatchSpec> levels{{.sizes = {{run.dim, size}}}};
  if (!run.is_summed) return levels;
  for (index_t n = std::max<index_t>(2 * size, kLeafRows); n < run.extent; n *= 2) {
    if (n != size) levels.push_back({.sizes = {{run.dim, n}}});
  }
  std::reverse(levels.begin(), levels.end());
  return levels;
}

// The operators of the run as one that knows all sizes.
NamedLinop joined_run(const NamedLinop& chain, const std::vector<NamedLinop>& parts,
                      const Run& run) {
  const auto at = [&](std::size_t i) { return parts.begin() + static_cast<std::ptrdiff_t>(i); };
  NamedLinop joined = Chain(std::vector<NamedLinop>(at(run.first), at(run.last)));
  DimMap sizes;
  for (const ND& d : joined.dims()) {
    if (const auto n = d.is_concrete() ? chain.size(d) : std::nullopt) sizes.emplace(d, *n);
  }
  return completed(joined, sizes);
}

struct TiledRun {
  Run run;
  NamedLinop joined;
  index_t size = 0;
  double gain = 0;
};

std::optional<TiledRun> best_choice(const NamedLinop& chain, const std::vector<NamedLinop>& parts,
                                    DType dtype) {
  std::optional<TiledRun> best;
  for (const ND& d : chain.dims()) {
    if (!d.is_concrete()) continue;
    const auto run = run_along(chain, parts, d, dtype);
    if (!run) continue;
    TiledRun choice{*run, {}, 0, 0};
    const double uncut = predicted_time(*run, run->extent);
    for (const index_t size : tile_sizes(*run)) {
      const double gain = uncut - predicted_time(*run, size);
      if (gain > choice.gain) std::tie(choice.size, choice.gain) = std::pair(size, gain);
    }
    if (choice.size == 0 || (best && choice.gain <= best->gain)) continue;
    choice.joined = joined_run(chain, parts, *run);
    if (tile_axes(choice.joined, Dims(d)).empty()) continue;
    best = std::move(choice);
  }
  return best;
}

// True if two neighbours may be in one run. Sizes of a big operator take long to find out.
bool may_have_run(const std::vector<NamedLinop>& parts) {
  const auto is_known = [](const NamedLinop& A) { return is_pointwise(A) || is_transform(A); };
  const auto is_pair = [&](const NamedLinop& a, const NamedLinop& b) {
    return is_known(a) && is_known(b);
  };
  return std::adjacent_find(parts.begin(), parts.end(), is_pair) != parts.end();
}

}  // namespace

std::optional<NamedLinop> tiled_for_cache(const NamedLinop& chain, const TensorType& x) {
  if (!is_on() || chain.linop_count() < 2 || !may_have_run(flatten(chain))) return std::nullopt;
  const NamedLinop sized = sized_for(chain, x);
  std::vector<NamedLinop> parts = flatten(sized);
  const auto choice = best_choice(sized, parts, complex_of(x.dtype));
  if (!choice) return std::nullopt;
  const Run& run = choice->run;
  const auto at = [&](std::size_t i) { return parts.begin() + static_cast<std::ptrdiff_t>(i); };
  *at(run.first) = create_batched_linop(choice->joined, levels_of(run, choice->size));
  parts.erase(at(run.first + 1), at(run.last));
  return parts.size() == 1 ? parts[0] : Chain(std::move(parts));
}

bool has_no_tiles_within(const NamedLinop& chain) {
  const auto is_chain = [](const NamedLinop& A) { return &A.type() == &linop_types::chain(); };
  const std::vector<NamedLinop>& children = chain.linops();
  if (!is_on() || std::none_of(children.begin(), children.end(), is_chain)) return false;
  const std::vector<NamedLinop> parts = flatten(chain);
  return std::all_of(parts.begin(), parts.end(), is_pointwise);
}

ConfigOverrides config_of_budget(index_t bytes) {
  ConfigOverrides made = bytes < kNoLimit ? without_cache_tiles() : ConfigOverrides();
  made.budget = kNoLimit;
  made.parallel_grain = kNoLimit;
  return made;
}

ConfigOverrides without_cache_tiles() {
  ConfigOverrides made;
  made.rewrites_excluding = config().rewrites_excluding;
  made.rewrites_excluding->emplace_back(kTag);
  return made;
}

}  // namespace palimpsest
