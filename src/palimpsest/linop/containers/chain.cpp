// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/chain.hpp"

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/container.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

// The operator with the sizes that it needs besides those of its input, where only its neighbours
// know them.
NamedLinop completed_part(const NamedLinop& A, const DimMap& sizes) {
  DimMap others = sizes;
  std::erase_if(others, [&, dims = A.dims()](const auto& entry) {
    return !dims.contains(entry.first) || A.ishape().contains(entry.first);
  });
  return completed(A, others);
}

void note_sizes(const NamedLinop& A, const Dims& dims, const Extents& extents, DimMap& sizes) {
  const DimSizes bound = bind_of(A, dims, extents);
  for (const ND& d : dims) {
    if (d.is_concrete()) sizes[d] = *bound.size(d);
  }
}

Variable chain_fn(const NamedLinop& A, const Variable& x) {
  if (const auto tiled = tiled_for_cache(A, x.type())) {
    const ConfigScope scope(without_cache_tiles());
    return (*tiled)(x);
  }
  std::optional<ConfigScope> scope;
  if (has_no_tiles_within(A)) scope.emplace(without_cache_tiles());
  return run_in_order(A, A.linops(), x, 0, 1);
}

Variable chain_adj_fn(const NamedLinop& A, const Variable& y) {
  std::vector<NamedLinop> adjoints;
  for (auto child = A.linops().rbegin(); child != A.linops().rend(); ++child) {
    adjoints.push_back(child->H());
  }
  return run_in_order(A, adjoints, y, static_cast<std::ptrdiff_t>(adjoints.size()) - 1, -1);
}

NamedLinop chain_adjoint(const NamedLinop& A) {
  std::vector<NamedLinop> adjoints;
  for (auto child = A.linops().rbegin(); child != A.linops().rend(); ++child) {
    adjoints.push_back(child->H());
  }
  return with_records_of(A, make_container(A.type(), std::move(adjoints)));
}

// True if A^H C A is just a longer chain, for every chain C.
bool leaves_chains(const LinopType& type) {
  return !type.normal || &type == &linop_types::diagonal() || &type == &linop_types::fft() ||
         &type == &linop_types::dense() || &type == &linop_types::sampling();
}

// From the last child to the first, because F^H F = I and |w|^2 come from there. Children that no
// rule folds are put around the rest once, at the end.
NamedLinop chain_normal(const NamedLinop& A, const NamedLinop* inner) {
  NamedLinop folded = inner ? *inner : NamedLinop();
  std::vector<NamedLinop> before, after;  // from the inside to the outside
  const auto close = [&] {
    if (after.empty()) return;
    std::vector<NamedLinop> parts(before.rbegin(), before.rend());
    for (NamedLinop& part : flatten(folded)) parts.push_back(std::move(part));
    parts.insert(parts.end(), after.begin(), after.end());
    folded = Chain(std::move(parts));
    before.clear();
    after.clear();
  };
  const std::vector<NamedLinop> children = flatten(A);
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    const bool is_wrapped =
        folded.defined() && (!after.empty() || &folded.type() == &linop_types::chain());
    if (!is_wrapped || !leaves_chains(child->type())) {
      close();
      folded = folded.defined() ? child->normal(folded) : child->N();
      continue;
    }
    NamedLinop adjoint = child->H();
    const Dims& output = after.empty() ? folded.oshape() : after.back().oshape();
    if (!isequal(output, adjoint.ishape())) adjoint.set_ishape(output);
    before.push_back(*child);
    after.push_back(std::move(adjoint));
  }
  close();
  return folded;
}

void resolve_sizes(std::vector<NamedLinop>& children) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i + 1 < children.size(); ++i) {
      changed = infer_shapes(children[i], children[i + 1]) || changed;
    }
  }
}

void check_neighbours(const std::vector<NamedLinop>& children) {
  for (std::size_t i = 0; i + 1 < children.size(); ++i) {
    const NamedLinop &before = children[i], &after = children[i + 1];
    if (isequal(before.oshape(), after.ishape())) continue;
    throw ShapeError("[Chain[" + std::to_string(i + 1) + "]/" + after.name() +
                     "] Mismatched shape: got " + before.oshape().str() + " from " + before.name() +
                     ", expected " + after.ishape().str() + ". Try rename");
  }
}

// Sizes of what two neighbours call by different names, or do not name.
void check_boundary_sizes(const std::vector<NamedLinop>& children) {
  for (std::size_t i = 0; i + 1 < children.size(); ++i) {
    const NamedLinop &before = children[i], &after = children[i + 1];
    for (const auto& [out, in] : places(before.oshape(), after.ishape())) {
      const auto expected = size_of_one(before, out), got = size_of_one(after, in);
      if (got && expected && *got != *expected) {
        refuse_sizes("Chain", i + 1, after, in, *got, *expected);
      }
    }
  }
}

NamedShape assemble_chain(std::vector<NamedLinop>& children, const Assembly& how) {
  expect_children("Chain", children);
  if (how.wanted) {
    NamedLinop &first = children.front(), &last = children.back();
    if (first.ishape() != how.wanted->ishape()) first.set_ishape(how.wanted->ishape());
    if (last.oshape() != how.wanted->oshape()) last.set_oshape(how.wanted->oshape());
  }
  check_neighbours(children);
  resolve_sizes(children);
  check_neighbours(children);
  check_sizes("Chain", children);
  check_boundary_sizes(children);
  return NamedShape(children.front().ishape(), children.back().oshape());
}

// The size of an unnamed dimension of the input, from the first child that knows it. Of the output:
// children and their shapes are read backwards.
std::optional<index_t> size_along(const std::vector<NamedLinop>& children, ND d, bool backwards) {
  for (std::size_t i = 0; i < children.size(); ++i) {
    const NamedLinop& child = children[backwards ? children.size() - 1 - i : i];
    const Dims &near = backwards ? child.oshape() : child.ishape(),
               &far = backwards ? child.ishape() : child.oshape();
    if (!near.contains(d)) return std::nullopt;
    if (const auto n = size_of_one(child, d)) return n;
    if (i + 1 == children.size() || (d.is_any() && !d.is_ordinal())) return std::nullopt;
    const NamedLinop& next = children[backwards ? children.size() - 2 - i : i + 1];
    const auto pairs = places(far, backwards ? next.oshape() : next.ishape());
    const auto found =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == d; });
    if (found == pairs.end()) return std::nullopt;
    d = found->second;
  }
  return std::nullopt;
}

// The unnamed dimensions of operators in between are others.
std::optional<index_t> chain_size(const NamedLinop& A, const ND& d) {
  if (!d.is_ordinal()) return common_size(A.linops(), d);
  const auto in = size_along(A.linops(), d, false), out = size_along(A.linops(), d, true);
  if (in && out && *in != *out) return std::nullopt;
  return in ? in : out;
}

// True if the names between two neighbours, refined from both sides, have d. Boundary 0 is the
// input.
bool boundary_has(const NamedLinop& A, std::size_t boundary, const ND& d) {
  const bool before = boundary > 0 && A[boundary - 1].oshape().contains(d);
  return before || (boundary < A.linop_count() && A[boundary].ishape().contains(d));
}

// The children that act on d: [first, last).
struct Run {
  std::size_t first, last;
};

// Operators have unnamed dimensions of their own. Of two neighbours it is one only where it stands
// at the same place.
void check_same_place(const NamedLinop& A, const ND& d) {
  for (std::size_t b = 1; b < A.linop_count(); ++b) {
    bool is_same = false, is_other = false;
    for (const auto& [out, in] : places(A[b - 1].oshape(), A[b].ishape())) {
      if (out == d || in == d) (out == in ? is_same : is_other) = true;
    }
    if (!boundary_has(A, b, d) || (is_same && !is_other)) continue;
    refuse_split(A, d, "several of its operators have a dimension without a name. Try rename");
  }
}

Run run_of(const NamedLinop& A, const ND& d) {
  if (!d.is_concrete()) check_same_place(A, d);
  const std::size_t n = A.linop_count();
  std::size_t begin = 0;
  while (begin <= n && !boundary_has(A, begin, d)) ++begin;
  std::size_t end = begin;
  while (end <= n && boundary_has(A, end, d)) ++end;
  for (std::size_t b = end; b <= n; ++b) {
    if (boundary_has(A, b, d)) {
      refuse_split(A, d, "it ends within the chain and begins again: parts meet in cross terms");
    }
  }
  const bool is_seen = begin <= n;
  Run run{is_seen ? std::max<std::size_t>(begin, 1) - 1 : n, is_seen ? std::min(end, n) : n};
  for (std::size_t i = 0; i < n; ++i) {
    if ((is_seen && i >= run.first && i < run.last) || !A[i].dims().contains(d)) continue;
    if (is_seen || run.first < n) {
      refuse_split(A, d, "several of its operators sum over it: parts meet in cross terms");
    }
    run = {i, i + 1};
  }
  return run;
}

NamedLinop chain_split(const NamedLinop& A, const Tile& tile) {
  std::vector<Tile> tiles(A.linop_count());
  for (const auto& [d, range] : tile) {
    const Run run = run_of(A, d);
    for (std::size_t i = run.first; i < run.last; ++i) tiles[i].emplace(d, range);
  }
  std::vector<NamedLinop> children;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const PathScope path(A, i);
    children.push_back(A[i].split(tiles[i]));
  }
  return with_recorded(Chain(std::move(children)), A, tile);
}

}  // namespace

Variable run_in_order(const NamedLinop& container, std::span<const NamedLinop> linops,
                      const Variable& x, std::ptrdiff_t first, std::ptrdiff_t step) {
  DimMap sizes = container.recorded_sizes();
  Variable value = x;
  std::ptrdiff_t position = first;
  for (const NamedLinop& linop : linops) {
    const PathScope path(container, static_cast<std::size_t>(position));
    position += step;
    const NamedLinop child = completed_part(linop, sizes);
    const Variable result = child(value);
    note_sizes(child, child.ishape(), value.type().shape, sizes);
    note_sizes(child, child.oshape(), result.type().shape, sizes);
    value = result;
  }
  return value;
}

bool infer_shapes(NamedLinop& before, NamedLinop& after) {
  if (!config().shape_inference) return false;
  const Dims output = resolve_wildcards(before.oshape(), after.ishape());
  const Dims input = resolve_wildcards(after.ishape(), before.oshape());
  const bool changes_output = output != before.oshape(), changes_input = input != after.ishape();
  if (changes_output) before.set_oshape(output);
  if (changes_input) after.set_ishape(input);
  return changes_output || changes_input;
}

std::optional<index_t> common_size(const std::vector<NamedLinop>& children, const ND& d) {
  if (!d.is_concrete()) return std::nullopt;
  std::optional<index_t> common;
  for (const NamedLinop& child : children) {
    const auto n = child.size(d);
    if (n && common && *n != *common) return std::nullopt;
    if (n) common = n;
  }
  return common;
}

void check_sizes(std::string_view who, const std::vector<NamedLinop>& children,
                 const Dims& except) {
  DimMap sizes;
  for (std::size_t i = 0; i < children.size(); ++i) {
    for (const ND& d : unite(children[i].ishape(), children[i].oshape())) {
      if (except.contains(d)) continue;
      const auto n = d.is_concrete() ? children[i].size(d) : std::nullopt;
      if (!n) continue;
      const auto [known, is_new] = sizes.emplace(d, *n);
      if (!is_new && known->second != *n) {
        refuse_sizes(who, i, children[i], d, *n, known->second);
      }
    }
  }
}

void refuse_sizes(std::string_view who, std::size_t i, const NamedLinop& child, const ND& d,
                  index_t got, index_t expected) {
  throw ShapeError("[" + std::string(who) + "[" + std::to_string(i) + "]/" + child.name() +
                   "] Conflicting sizes of dim '" + d.str() + "': got " + std::to_string(got) +
                   ", expected " + std::to_string(expected));
}

std::vector<std::pair<ND, ND>> places(const Dims& a, const Dims& b) {
  std::vector<std::pair<ND, ND>> pairs;
  const std::size_t n = std::min(a.size(), b.size());
  const auto add = [&](const ND& of_a, const ND& of_b) {
    if (of_a.is_ellipsis() || of_b.is_ellipsis()) return false;
    pairs.emplace_back(of_a, of_b);
    return true;
  };
  std::size_t i = 0;
  while (i < n && add(a[i], b[i])) ++i;
  if (i == a.size() && i == b.size()) return pairs;
  for (std::size_t k = 1; k <= n && add(a[a.size() - k], b[b.size() - k]);) ++k;
  return pairs;
}

std::optional<index_t> size_of_one(const NamedLinop& A, const ND& d) {
  if (d.is_ellipsis()) return std::nullopt;
  const bool is_one =
      d.is_concrete() || d.is_ordinal() || A.ishape().count(d) + A.oshape().count(d) == 1;
  return is_one ? A.size(d) : std::nullopt;
}

void expect_children(std::string_view who, const std::vector<NamedLinop>& children) {
  if (!children.empty()) return;
  throw ValueError("[" + std::string(who) + "] got no operator, expected at least one");
}

const LinopType& linop_types::chain() {
  return PALIMPSEST_LINOP_TYPE(.name = "Chain",
                               .functions = {.fn = chain_fn,
                                             .adj_fn = chain_adj_fn,
                                             .split = chain_split,
                                             .size = chain_size},
                               .adjoint = chain_adjoint, .normal = chain_normal,
                               .assemble = assemble_chain);
}

NamedLinop Chain(std::vector<NamedLinop> linops) {
  return make_container(linop_types::chain(), std::move(linops));
}

}  // namespace palimpsest
