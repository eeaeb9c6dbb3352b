// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/stack.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/along.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/threadable.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest {
namespace {

Variable stacked_results(const NamedLinop& A, const std::vector<NamedLinop>& children,
                         const Along& along, const Dims& from, const Dims& to, const Variable& x) {
  const WorkersScope workers(A);
  std::vector<Variable> results;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const PathScope path(A, i);
    results.push_back(
        children[i](along.in ? select(x, axis_of(from, *along.in), static_cast<index_t>(i)) : x));
  }
  if (!along.out) return summed_up(results);
  const Axes axis = from_front(Axes{axis_of(to, *along.out)}, results[0].rank() + 1);
  for (Variable& result : results) result = ops::expand_dims(result, axis);
  return ops::join(axis[0], results);
}

Variable stack_fn(const NamedLinop& A, const Variable& x) {
  return stacked_results(A, A.linops(), along_of(A), A.ishape(), A.oshape(), x);
}

Variable stack_adj_fn(const NamedLinop& A, const Variable& y) {
  return stacked_results(A, adjoints_of(A), along_of(A).exchanged(), A.oshape(), A.ishape(), y);
}

NamedLinop stack_adjoint(const NamedLinop& A) {
  return with_records_of(
      A, make_container(A.type(), adjoints_of(A), exchanged_roles(A), along_only(A)));
}

NamedLinop stack_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Along along = along_of(A);
  if (inner || !along.out) return {};
  const Workers workers = workers_of(A);
  if (!along.in) return Add(normals_of(A, *along.out), workers);
  const StackAxis axis(*along.in, A.attr("in_position").as_integer());
  return Stack(
      normals_of(A, *along.in),
      {.in = axis, .out = axis, .threaded = workers.threaded, .num_workers = workers.num_workers});
}

std::optional<index_t> stack_size(const NamedLinop& A, const ND& d) {
  if (along_of(A).has(d)) return static_cast<index_t>(A.linop_count());
  return size_of_summands(A.linops(), d);
}

// The children that a range along d takes.
TileRange taken_range(const NamedLinop& A, const std::optional<ND>& d, const Tile& tile) {
  const TileRange all{0, static_cast<index_t>(A.linop_count())};
  return d ? range_of(tile, *d).value_or(all) : all;
}

NamedLinop stack_of(const NamedLinop& A, const std::vector<NamedLinop>& children, TileRange range) {
  const auto begin = children.begin();
  return make_container(A.type(), {begin + range.start, begin + range.stop}, A.attrs(),
                        along_only(A));
}

NamedLinop stack_split(const NamedLinop& A, const Tile& tile) {
  const Along along = along_of(A);
  Tile across = tile;
  for (const auto& d : {along.in, along.out}) {
    if (d) across.erase(*d);
  }
  const std::vector<NamedLinop> children = split_summands(A, across);
  const TileRange columns = taken_range(A, along.in, tile), rows = taken_range(A, along.out, tile);
  const TileRange both{std::max(columns.start, rows.start), std::min(columns.stop, rows.stop)};
  if (both.start >= both.stop) {
    // The sizes of the children: a Zero needs no others.
    const NamedLinop whole = zero_like(stack_of(A, children, {0, 1}));
    DimMap sizes = whole.recorded_sizes();
    sizes[*along.in] = columns.size();
    sizes[*along.out] = rows.size();
    refuse_unknown_zero(A, whole, sizes, *along.in);
    return Zero(whole.ishape(), whole.oshape(), {.sizes = std::move(sizes)});
  }
  Tile known = across;
  for (const auto& d : {along.in, along.out}) {
    if (d) known.insert_or_assign(*d, slice(both.start, both.stop));
  }
  const NamedLinop core = with_recorded(stack_of(A, children, both), A, known);
  if (!along.in || !along.out || along.in == along.out) return core;
  return with_zero_edges(
      core, {*along.in, *along.out, both.start - columns.start, columns.stop - both.stop,
             both.start - rows.start, rows.stop - both.stop});
}

Dims inserted(const Dims& dims, const std::optional<ND>& d, index_t position) {
  if (!d) return dims;
  const auto n = static_cast<index_t>(dims.size());
  if (position > n || position < -n - 1) {
    throw ValueError("[Stack] position of dim '" + d->str() + "' is out of range: got " +
                     std::to_string(position) + " for " + dims.str());
  }
  const auto k = static_cast<std::size_t>(position < 0 ? n + 1 + position : position);
  return dims.slice(0, k) + Dims(*d) + dims.slice(k, dims.size());
}

index_t position_in(const Attributes& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return value.as_integer();
  }
  return 0;
}

NamedShape assemble_stack(std::vector<NamedLinop>& children, const Assembly& how) {
  expect_children("Stack", children);
  const Along along = along_of(how.others, how.attrs);
  for (NamedLinop& child : children) {
    child = child.copy();
    if (!how.wanted) continue;
    const Dims in = along.in ? how.wanted->ishape().without(*along.in) : how.wanted->ishape();
    const Dims out = along.out ? how.wanted->oshape().without(*along.out) : how.wanted->oshape();
    if (child.ishape() != in) child.set_ishape(in);
    if (child.oshape() != out) child.set_oshape(out);
  }
  unify_shapes("Stack", children);
  for (const auto& d : {along.in, along.out}) {
    for (const Dims& dims : {children[0].ishape(), children[0].oshape()}) {
      if (!d || !dims.contains(*d)) continue;
      throw ShapeError("[Stack] the shape " + dims.str() + " already contains dim '" + d->str() +
                       "'. Try Concat");
    }
  }
  check_summand_sizes("Stack", children);
  return NamedShape(
      inserted(children[0].ishape(), along.in, position_in(how.attrs, "in_position")),
      inserted(children[0].oshape(), along.out, position_in(how.attrs, "out_position")));
}

// The position such that spelling out an ellipsis changes nothing: behind one from the end.
index_t lasting_position(const StackAxis& axis, const Dims& dims) {
  if (!axis.dim) return 0;
  const auto n = static_cast<index_t>(dims.size());
  const index_t k = axis.position < 0 ? n + 1 + axis.position : axis.position;
  if (k < 0 || k > n) {
    throw ValueError("[Stack] position of dim '" + axis.dim->str() + "': got " +
                     std::to_string(axis.position) + " in " + dims.str() + ", expected at most " +
                     std::to_string(n));
  }
  const auto run = dims.index_of(ND::ellipsis());
  return run && k > static_cast<index_t>(*run) ? k - n - 1 : k;
}

}  // namespace

const LinopType& linop_types::stack() {
  return PALIMPSEST_LINOP_TYPE(.name = "Stack",
                               .functions = {.fn = stack_fn,
                                             .adj_fn = stack_adj_fn,
                                             .split = stack_split,
                                             .size = stack_size},
                               .adjoint = stack_adjoint, .normal = stack_normal,
                               .check = check_workers, .assemble = assemble_stack);
}

NamedLinop Stack(std::vector<NamedLinop> linops, StackDims along) {
  if (!along.in.dim && !along.out.dim) {
    throw ValueError("[Stack] got neither .in nor .out. At least one is needed");
  }
  expect_children("Stack", linops);
  if (!linops[0].defined()) throw ValueError("[Stack] got an undefined operator");
  const Along roles{along.in.dim, along.out.dim};
  Attributes attrs = along_roles(roles);
  attrs.emplace_back("in_position", lasting_position(along.in, linops[0].ishape()));
  attrs.emplace_back("out_position", lasting_position(along.out, linops[0].oshape()));
  const Workers workers{along.threaded, along.num_workers};
  return make_container(linop_types::stack(), std::move(linops),
                        with_workers(workers, std::move(attrs)), along_shape(roles));
}

}  // namespace palimpsest
