// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/concat.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/along.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/threadable.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest {
namespace {

// Children side by side: inputs cut along one dimension, outputs joined along another, or summed.
Variable side_by_side(const NamedLinop& A, const std::vector<NamedLinop>& children,
                      const Along& along, const Dims& from, const Dims& to, const Variable& x) {
  const WorkersScope workers(A);
  std::vector<Variable> results;
  index_t start = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const PathScope path(A, i);
    Variable input = x;
    if (along.in) {
      const index_t stop = start + *children[i].size(*along.in);
      input = part(x, axis_of(from, *along.in), start, stop);
      start = stop;
    }
    results.push_back(children[i](input));
  }
  return along.out ? ops::join(axis_of(to, *along.out), results) : summed_up(results);
}

Variable concat_fn(const NamedLinop& A, const Variable& x) {
  return side_by_side(A, A.linops(), along_of(A), A.ishape(), A.oshape(), x);
}

Variable concat_adj_fn(const NamedLinop& A, const Variable& y) {
  return side_by_side(A, adjoints_of(A), along_of(A).exchanged(), A.oshape(), A.ishape(), y);
}

NamedLinop concat_adjoint(const NamedLinop& A) {
  return with_records_of(
      A, make_container(A.type(), adjoints_of(A), exchanged_roles(A), along_only(A)));
}

// A Concat of other children, which run as those of A do.
NamedLinop concat_like(const NamedLinop& A, std::vector<NamedLinop> children, const Along& along) {
  const Workers workers = workers_of(A);
  return Concat(std::move(children), {.in = along.in,
                                      .out = along.out,
                                      .threaded = workers.threaded,
                                      .num_workers = workers.num_workers});
}

NamedLinop concat_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Along along = along_of(A);
  if (inner || !along.out) return {};
  // The parts of the output dimension that the children sum over have sizes of their own.
  const NamedLinop made = along.in ? concat_like(A, normals_of(A, *along.in), {along.in, along.in})
                                   : Add(normals_of(A, *along.out), workers_of(A));
  return along.in == along.out ? made : with_absorbed(made, *along.out);
}

std::optional<index_t> concat_size(const NamedLinop& A, const ND& d) {
  if (!along_of(A).has(d)) return size_of_summands(A.linops(), d);
  index_t sum = 0;
  for (const NamedLinop& child : A.linops()) sum += child.size(d).value_or(0);
  return sum;
}

// Children first .. last - 1 and the part of each that a range along d meets.
struct Met {
  std::size_t first = 0;
  std::vector<TileRange> parts;
  std::size_t last() const { return first + parts.size(); }
};

Met met_by(const NamedLinop& A, const ND& d, const Tile& tile) {
  std::vector<index_t> boundaries{0};
  for (const NamedLinop& child : A.linops()) {
    boundaries.push_back(boundaries.back() + *child.size(d));
  }
  const TileRange range = range_of(tile, d).value_or(TileRange{0, boundaries.back()});
  Met met;
  for (const auto& [i, part] : partition_slices(boundaries, slice(range.start, range.stop))) {
    if (met.parts.empty()) met.first = i;
    met.parts.push_back({*part.start, *part.stop});
  }
  return met;
}

// The elements along d of the parts in [from, to), which may lie outside of them.
index_t size_between(const Met& met, std::size_t from, std::size_t to) {
  index_t n = 0;
  for (std::size_t i = std::max(from, met.first); i < std::min(to, met.last()); ++i) {
    n += met.parts[i - met.first].size();
  }
  return n;
}

// The blocks that both ranges meet, each cut along both.
NamedLinop block_diagonal_split(const NamedLinop& A, const std::vector<NamedLinop>& children,
                                const Along& along, const Tile& tile) {
  const Met columns = met_by(A, *along.in, tile), rows = met_by(A, *along.out, tile);
  const std::size_t first = std::max(columns.first, rows.first),
                    last = std::min(columns.last(), rows.last()), n = A.linop_count();
  if (first >= last) {
    NamedLinop zero = zero_like(children[columns.first]);
    DimMap sizes = zero.recorded_sizes();
    sizes[*along.in] = size_between(columns, 0, n);
    sizes[*along.out] = size_between(rows, 0, n);
    refuse_unknown_zero(A, zero, sizes, *along.in);
    return Zero(zero.ishape(), zero.oshape(), {.sizes = std::move(sizes)});
  }
  std::vector<NamedLinop> blocks;
  for (std::size_t i = first; i < last; ++i) {
    const TileRange in = columns.parts[i - columns.first], out = rows.parts[i - rows.first];
    Tile own{{*along.in, slice(in.start, in.stop)}};
    own.emplace(*along.out, slice(out.start, out.stop));
    blocks.push_back(children[i].split(own));
  }
  const NamedLinop core = blocks.size() == 1 ? blocks[0] : concat_like(A, std::move(blocks), along);
  if (along.in == along.out) return core;
  return with_zero_edges(
      core, {*along.in, *along.out, size_between(columns, 0, first), size_between(columns, last, n),
             size_between(rows, 0, first), size_between(rows, last, n)});
}

NamedLinop concat_split(const NamedLinop& A, const Tile& tile) {
  const Along along = along_of(A);
  Tile across = tile;
  for (const auto& d : {along.in, along.out}) {
    if (d) across.erase(*d);
  }
  const std::vector<NamedLinop> children = split_summands(A, across);
  if (along.in && along.out) {
    return with_recorded(block_diagonal_split(A, children, along, tile), A, tile);
  }
  const ND d = along.in ? *along.in : *along.out;
  const Met met = met_by(A, d, tile);
  std::vector<NamedLinop> parts;
  for (std::size_t i = met.first; i < met.last(); ++i) {
    const TileRange part = met.parts[i - met.first];
    parts.push_back(children[i].split({{d, slice(part.start, part.stop)}}));
  }
  const bool is_single = parts.size() == 1;
  const NamedLinop made = is_single ? parts[0] : concat_like(A, std::move(parts), along);
  return with_recorded(made, A, tile);
}

void check_along(const std::vector<NamedLinop>& children, const std::optional<ND>& d,
                 const Dims& side, const Dims& other, bool in_other) {
  if (!d) return;
  if (!side.contains(*d) || other.contains(*d) != in_other) {
    throw ShapeError("[Concat] dim '" + d->str() + "': got shapes " + side.str() + " and " +
                     other.str() + ", expected it " +
                     (in_other ? "in both" : "in the first only. Try both .in and .out"));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (children[i].size(*d)) continue;
    throw ShapeError("[Concat[" + std::to_string(i) + "]/" + children[i].name() +
                     "] undefined size of dim '" + d->str() + "'. Try with_sizes");
  }
}

NamedShape assemble_concat(std::vector<NamedLinop>& children, const Assembly& how) {
  expect_children("Concat", children);
  const Along along = along_of(how.others, how.attrs);
  if (!along.in && !along.out) {
    throw ValueError("[Concat] got neither .in nor .out. At least one is needed");
  }
  for (NamedLinop& child : children) {
    child = child.copy();
    if (!how.wanted) continue;
    if (child.ishape() != how.wanted->ishape()) child.set_ishape(how.wanted->ishape());
    if (child.oshape() != how.wanted->oshape()) child.set_oshape(how.wanted->oshape());
  }
  unify_shapes("Concat", children);
  const Dims &in = children[0].ishape(), &out = children[0].oshape();
  check_along(children, along.in, in, out, along.in == along.out);
  check_along(children, along.out, out, in, along.in == along.out);
  Dims varying;
  for (const auto& d : {along.in, along.out}) {
    if (d) varying.push_back(*d);
  }
  check_summand_sizes("Concat", children, varying);
  return NamedShape(in, out);
}

}  // namespace

const LinopType& linop_types::concat() {
  return PALIMPSEST_LINOP_TYPE(.name = "Concat",
                               .functions = {.fn = concat_fn,
                                             .adj_fn = concat_adj_fn,
                                             .split = concat_split,
                                             .size = concat_size},
                               .adjoint = concat_adjoint, .normal = concat_normal,
                               .check = check_workers, .assemble = assemble_concat);
}

NamedLinop Concat(std::vector<NamedLinop> linops, ConcatDims along) {
  const Along roles{along.in, along.out};
  const Workers workers{along.threaded, along.num_workers};
  return make_container(linop_types::concat(), std::move(linops),
                        with_workers(workers, along_roles(roles)), along_shape(roles));
}

NamedLinop BlockDiagonal(std::vector<NamedLinop> linops, ND in, ND out) {
  return Concat(std::move(linops), {.in = in, .out = out});
}

std::vector<std::pair<std::size_t, Slice>> partition_slices(std::span<const index_t> boundaries,
                                                            const Slice& range) {
  const std::string prefix = "[partition_slices] ";
  if (boundaries.empty() || boundaries[0] != 0) {
    throw ValueError(prefix + "the first boundary: got " +
                     (boundaries.empty() ? "none" : std::to_string(boundaries[0])) +
                     ", expected 0");
  }
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    throw ValueError(prefix + "boundaries: got " + to_string(boundaries) +
                     ", expected a non-decreasing list");
  }
  if (range.step != 1) {
    throw ValueError(prefix + "step: got " + std::to_string(range.step) + ", expected 1");
  }
  const index_t start = range.start.value_or(0), stop = range.stop.value_or(boundaries.back());
  if (start < 0 || stop < start || stop > boundaries.back()) {
    throw ValueError(prefix + "slice " + std::to_string(start) + ":" + std::to_string(stop) +
                     " is out of range: expected a part of 0:" + std::to_string(boundaries.back()));
  }
  std::vector<std::pair<std::size_t, Slice>> parts;
  for (std::size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const index_t first = std::max(start, boundaries[i]), last = std::min(stop, boundaries[i + 1]);
    if (first < last) parts.emplace_back(i, slice(first - boundaries[i], last - boundaries[i]));
  }
  return parts;
}

}  // namespace palimpsest
