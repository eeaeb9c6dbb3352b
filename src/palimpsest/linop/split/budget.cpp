// SPDX-License-Identifier: Apache-2.0
// Greedy search: it begins with one tile. Each step tries every dimension that can be cut with its
// tiles halved, and takes the one that lowers the peak most per added work. If no single halving
// lowers the peak, it takes the one that raises the peak least: two halvings together may lower it.
#include "palimpsest/linop/split/budget.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/streaming.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/total.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/linop/transforms/convolution_graph.hpp"
#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest {
namespace {

// More would take longer to compile than they save.
constexpr index_t kMostTiles = 1024;

// Lowers the peak, per added work; by how much it raises it, where it does.
double merit(const BudgetCost& from, const BudgetCost& to) {
  const auto drop = static_cast<double>(from.peak_bytes - to.peak_bytes);
  if (drop <= 0) return drop;
  return drop / std::max(to.work - from.work, 1e-3 * std::max(from.work, 1.0));
}

void note_tensor(const Tensor& t, std::set<std::uint64_t>& seen, index_t& bytes) {
  if (!t.defined() || !seen.insert(t.storage().data_id()).second) return;
  if (t.numel() > 0 && is_file_mapped(t.raw_data(), 1)) return;
  bytes += static_cast<index_t>(t.storage().nbytes());
}

void note_attribute(const Attribute& a, std::set<std::uint64_t>& seen, index_t& bytes);

void note_operator(const NamedLinop& A, std::set<std::uint64_t>& seen, index_t& bytes) {
  for (const auto& [name, p] : A.params()) {
    if (p.present())
      note_tensor(p.variable().get_value({.borrow = true, .return_internal_type = true}), seen,
                  bytes);
  }
  for (const auto& [name, a] : A.attrs()) note_attribute(a, seen, bytes);
  if (&A.type() == &linop_types::convolution()) {
    for (const auto& spectrum : kept_spectra(A.param("kernel").var())) {
      note_tensor(spectrum->value(), seen, bytes);
    }
  }
  for (const NamedLinop& child : A.linops()) note_operator(child, seen, bytes);
}

void note_attribute(const Attribute& a, std::set<std::uint64_t>& seen, index_t& bytes) {
  if (a.is_tensor()) note_tensor(a.as_tensor(), seen, bytes);
  if (!a.is_list()) return;
  for (const Attribute& entry : a.as_list()) note_attribute(entry, seen, bytes);
}

[[noreturn]] void refuse_budget(const std::string& who, index_t bytes, const TileChoice& best,
                                Device device) {
  std::string text = who + "nothing fits into the budget: got " + std::to_string(bytes) +
                     " bytes, the smallest budget " +
                     (device.is_host() ? "" : "on " + device.str() + " ") + "found is " +
                     std::to_string(best.cost.peak_bytes) + " bytes";
  text += best.sizes.empty() ? ", uncut: no dimension lowers it"
                             : ", in tiles of {" + sizes_text(best.sizes) + "}";
  throw BudgetError(text + ". Try a budget of " + std::to_string(best.cost.peak_bytes));
}

}  // namespace

std::string sizes_text(const DimMap& sizes) {
  std::string text;
  for (const auto& [d, n] : sizes) {
    text += (text.empty() ? "" : ", ") + d.str() + ": " + std::to_string(n);
  }
  return text;
}

double work_of(const Plan& plan) {
  double bytes = 0;
  const auto add = [&](const std::vector<int>& slots) {
    for (const int slot : slots) {
      const Layout& layout = plan.slots[static_cast<std::size_t>(slot)].layout;
      bytes += static_cast<double>(byte_count(layout.extents, layout.dtype));
    }
  };
  for (const PlannedStep& step : plan.steps) {
    add(step.inputs);
    add(step.outputs);
  }
  return bytes;
}

index_t constant_bytes(const Plan& plan) {
  index_t bytes = 0;
  for (const Variable& v : plan.constants) {
    bytes += static_cast<index_t>(v.node()->value.storage().nbytes());
  }
  return bytes;
}

index_t operator_bytes(const NamedLinop& A) { return operator_bytes(std::vector{A}); }

index_t operator_bytes(const std::vector<NamedLinop>& operators) {
  std::set<std::uint64_t> seen;
  index_t bytes = 0;
  for (const NamedLinop& A : operators) note_operator(A, seen, bytes);
  return bytes;
}

namespace {

bool can_cut(const NamedLinop& A, const ND& d) {
  if (d.is_wildcard() && !d.is_ordinal()) return false;  // it names no single dimension
  const index_t n = A.dims().contains(d) ? A.size(d).value_or(0) : 0;
  if (n < 2) return false;
  try {
    A.split({{d, slice(0, n / 2)}});
    return true;
  } catch (const SplitError&) {
    return false;
  }
}

// True for the part of one process. Parts are cut inside, each by itself: the exchange between
// processes does not depend on the cuts.
bool is_tiled_part(const NamedLinop& A) { return A.type().parts && A.has_attr("tiles_inside"); }

bool can_cut_inside(const NamedLinop& A, const ND& d) {
  if (is_tiled_part(A)) return can_cut(A[0], d);
  return std::any_of(A.linops().begin(), A.linops().end(),
                     [&](const NamedLinop& child) { return can_cut_inside(child, d); });
}

NamedLinop cut_inside(const NamedLinop& A, const TileSizes& sizes) {
  LinopData data = copy_data(A);
  for (NamedLinop& child : data.children) {
    if (!is_tiled_part(A)) {
      child = cut_inside(child, sizes);
      continue;
    }
    TileSizes of_child;
    for (const auto& [d, n] : sizes) {
      if (can_cut(child, d)) of_child.emplace_back(d, n);
    }
    if (!of_child.empty()) child = create_batched_linop(child, BatchSpec{of_child});
  }
  return data.children.empty() ? A : from_data(std::move(data));
}

// Cuts each summand by itself along dimensions that only the summands sum over. The common data of
// one summand's tiles, such as its input, are then dropped before the next summand begins.
NamedLinop cut_each(const NamedLinop& A, const TileSizes& sizes) {
  TileSizes own;
  bool is_inside = &A.type() == &linop_types::add();
  for (const auto& [d, n] : sizes) {
    if (!A.dims().contains(d)) continue;
    own.emplace_back(d, n);
    is_inside = is_inside && !A.ishape().contains(d) && !A.oshape().contains(d);
  }
  if (own.empty()) return A;
  if (!is_inside) return create_batched_linop(A, BatchSpec{own});
  LinopData data = copy_data(A);
  for (NamedLinop& child : data.children) child = cut_each(child, own);
  return from_data(std::move(data));
}

}  // namespace

TileAxes tile_axes(const NamedLinop& A, const Dims& candidates) {
  TileAxes axes;
  const bool is_cut_inside = is_in_parts(A);
  for (const ND& d : candidates) {
    const auto n = d.is_ellipsis() ? std::nullopt : A.size(d);
    if (!n || *n < 2) continue;
    if (is_cut_inside ? can_cut_inside(A, d) : can_cut(A, d)) axes.emplace_back(d, *n);
  }
  return axes;
}

std::optional<NamedLinop> cut_into_tiles(const NamedLinop& A, const TileAxes& order,
                                         const DimMap& sizes) {
  TileSizes list;
  for (const auto& [d, n] : order) {
    const auto found = sizes.find(d);
    if (found != sizes.end()) list.emplace_back(d, found->second);
  }
  if (list.empty()) return A;
  try {
    return is_in_parts(A) ? cut_inside(A, list) : cut_each(A, list);
  } catch (const SplitError&) {
    return std::nullopt;
  }
}

namespace {

// The choice after one more halving; empty if every size is 1.
std::optional<TileChoice> halved(const TileAxes& axes, const TileChoice& current,
                                 const TileCost& cost) {
  std::optional<TileChoice> next;
  for (const auto& [d, extent] : axes) {
    DimMap sizes = current.sizes;
    index_t& size = sizes.emplace(d, extent).first->second;
    if (size == 1) continue;
    size = (size + 1) / 2;
    index_t tiles = 1;
    for (const auto& [axis, n] : axes) {
      const auto found = sizes.find(axis);
      if (found != sizes.end()) tiles *= (n + found->second - 1) / found->second;
    }
    if (tiles > kMostTiles) continue;
    const std::optional<BudgetCost> there = cost(sizes);
    if (!there) continue;
    if (!next || merit(current.cost, *there) > merit(current.cost, next->cost)) {
      next = TileChoice{sizes, tiles, *there};
    }
  }
  return next;
}

struct SearchResult {
  TileChoice last, best;
  bool fits = false;
};

SearchResult searched(const TileAxes& axes, std::optional<index_t> bytes, const TileCost& cost) {
  SearchResult result;
  result.last.cost = *cost({});
  result.best = result.last;
  const auto fits = [&] { return bytes && result.last.cost.peak_bytes <= *bytes; };
  while (!fits()) {
    auto next = halved(axes, result.last, cost);
    if (!next) return result;
    result.last = std::move(*next);
    if (result.last.cost.peak_bytes < result.best.cost.peak_bytes) result.best = result.last;
  }
  result.fits = true;
  return result;
}

// The cost of an operator as that of its tiles.
TileCost cost_of_tiles(const NamedLinop& A, const TileAxes& axes,
                       const std::function<BudgetCost(const NamedLinop&)>& cost) {
  return [&A, &axes, &cost](const DimMap& sizes) -> std::optional<BudgetCost> {
    const auto op = cut_into_tiles(A, axes, sizes);
    if (!op) return std::nullopt;
    return cost(*op);
  };
}

}  // namespace

TileChoice search_tiles(const TileAxes& axes, index_t bytes, const TileCost& cost,
                        const std::string& who, Device device) {
  SearchResult result = searched(axes, bytes, cost);
  if (!result.fits) refuse_budget(who, bytes, result.best, device);
  return std::move(result.last);
}

TileChoice smallest_tiles(const TileAxes& axes, const TileCost& cost) {
  return searched(axes, std::nullopt, cost).best;
}

namespace {

// Cost of one application. Keeps the plan and the data of the last operator.
struct ApplicationCost {
  const TensorType& x;
  bool streamed_input;
  BudgetSplit& seen;

  BudgetCost operator()(const NamedLinop& B) const {
    const Function f = compiled_function(B, x);
    seen.plan = f.plan(std::span<const TensorType>(&x, 1));
    seen.streamed_bytes = streamed_bytes(f, seen.plan, streamed_input);
    const bool is_here = x.device.is_host();  // else the plan counts the constants that it places
    seen.operator_bytes =
        operator_bytes(B) + (is_here ? constant_bytes(seen.plan) : 0) + seen.streamed_bytes;
    index_t peak = is_here ? seen.plan.peak_bytes
                           : seen.plan.peak_bytes_on(
                                 x.device);  // what is derived is computed before the application
    for (const auto& data : f.shared_variables()) peak = std::max(peak, renewal_bytes(*data));
    return {peak + seen.operator_bytes, work_of(seen.plan)};
  }
};

Dims candidates_of(const NamedLinop& A, const BudgetOptions& options) {
  for (const ND& d : options.candidates) {
    if (A.dims().contains(d)) continue;
    throw ValueError(who(A) + "split_to_budget: candidates: dim '" + d.str() +
                     "': expected some of " + A.dims().str());
  }
  return options.candidates.empty() ? A.dims() : options.candidates;
}

}  // namespace

BudgetSplit split_to_budget(const NamedLinop& A, const TensorType& x, index_t bytes,
                            const BudgetOptions& options) {
  const std::string prefix = who(A) + "split_to_budget: ";
  if (bytes < 0) throw ValueError(prefix + "got " + std::to_string(bytes) + " bytes");
  const Dims candidates = candidates_of(A, options);
  const ConfigScope scope(config_of_budget(bytes));
  BudgetSplit result;
  const ApplicationCost cost{x, options.streamed_input, result};
  const NamedLinop sized = sized_for(A, x);
  const TileAxes axes = tile_axes(sized, candidates);
  const TileChoice choice =
      search_tiles(axes, bytes, cost_of_tiles(sized, axes, cost), prefix, x.device);
  const NamedLinop op = *cut_into_tiles(sized, axes, choice.sizes);
  result.peak_bytes = cost(op).peak_bytes;
  result.op = choice.sizes.empty() ? A : op;
  result.sizes = choice.sizes;
  result.tiles = choice.tiles;
  return result;
}

index_t smallest_budget(const NamedLinop& A, const TensorType& x, const BudgetOptions& options) {
  const Dims candidates = candidates_of(A, options);
  const ConfigScope scope(config_of_budget(0));
  BudgetSplit seen;
  const ApplicationCost cost{x, options.streamed_input, seen};
  const NamedLinop sized = sized_for(A, x);
  const TileAxes axes = tile_axes(sized, candidates);
  return smallest_tiles(axes, cost_of_tiles(sized, axes, cost)).cost.peak_bytes;
}

}  // namespace palimpsest
