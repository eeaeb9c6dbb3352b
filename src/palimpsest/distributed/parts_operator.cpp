// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/parts_operator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"

namespace palimpsest::distributed_detail {

Attribute attribute_of(const AxisNames& names) {
  Attribute::List list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

AxisNames names_of(const NamedLinop& A, std::string_view attribute) {
  AxisNames names;
  for (const Attribute& name : A.attr(attribute).as_list()) names.push_back(name.as_string());
  return names;
}

Attribute attribute_of(const CutAxes& cuts) {
  Attribute::List list;
  for (const CutAxis& cut : cuts) {
    list.emplace_back(Attribute::List{cut.axis, cut.extent, cut.team_axis});
  }
  return list;
}

CutAxes cuts_of(const NamedLinop& A, std::string_view attribute) {
  CutAxes cuts;
  for (const Attribute& entry : A.attr(attribute).as_list()) {
    const auto& e = entry.as_list();
    cuts.push_back({e[0].as_integer(), e[1].as_integer(), e[2].as_string()});
  }
  return cuts;
}

Team team_in(const NamedLinop& A) { return team_of_id(A.attr("team").as_integer()); }

NamedShape assemble_part(std::vector<NamedLinop>& children, const Assembly& how) {
  if (how.wanted) {
    children[0] = children[0].copy();
    children[0].set_shape(*how.wanted);
  }
  return NamedShape(children[0].ishape(), children[0].oshape());
}

NamedLinop refuse_tiles(const NamedLinop& A, const Tile& tile) {
  for (const auto& [d, range] : tile) {
    refuse_split(A, d,
                 "its parts on other ranks would have to be cut as well. Try a byte budget, which "
                 "cuts the part of each rank");
  }
  return A;
}

Variable total_of_parts(const NamedLinop& A, VectorSide side, const Variable& number) {
  const bool is_input = (side == VectorSide::input) != A.is_flipped();
  return all_reduce(number, team_in(A), names_of(A, is_input ? "input" : "output"));
}

namespace {

// What A would give for x, of which only the dtype is asked. The second child is a tile of A.
DType dtype_given(const NamedLinop& A, const Variable& x, bool is_adjoint) {
  const NamedLinop& tile = A[1];
  const Dims& dims = is_adjoint ? tile.oshape() : tile.ishape();
  std::vector<std::optional<index_t>> extents;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const auto n = dims.size() == x.rank() && dims[k].is_concrete() ? tile.size(dims[k])
                                                                    : std::optional<index_t>();
    extents.emplace_back(n.value_or(std::max<index_t>(x.type().shape[k], 1)));
  }
  const Variable sample = tensor(x.dtype(), extents, "x");
  return (is_adjoint ? adjoint_graph(tile, sample) : forward_graph(tile, sample)).dtype();
}

Variable empty_fn(const NamedLinop& A, const Variable& x) {
  return ops::astype(forward_graph(A[0], x), dtype_given(A, x, false));
}
Variable empty_adj_fn(const NamedLinop& A, const Variable& y) {
  return ops::astype(adjoint_graph(A[0], y), dtype_given(A, y, true));
}

std::optional<index_t> empty_size(const NamedLinop& A, const ND& d) { return A[0].size(d); }

const LinopType& empty_type() {
  return immortal([] {
    return LinopType{
        .name = "EmptyPart",
        .functions = {.fn = empty_fn, .adj_fn = empty_adj_fn, .size = empty_size},
        .assemble = assemble_part,
    };
  });
}

}  // namespace

NamedLinop part_of_tile(const NamedLinop& A, const Tile& tile) {
  const bool is_empty = std::any_of(tile.begin(), tile.end(), [](const auto& cut) {
    return *cut.second.start >= *cut.second.stop;
  });
  if (!is_empty) return tile.empty() ? A : A.split(tile);
  const NamedLinop zero = zero_like(A);
  DimMap sizes = zero.recorded_sizes();
  Tile first;
  for (const auto& [d, range] : tile) {
    sizes[d] = std::max<index_t>(*range.stop - *range.start, 0);
    if (A.size(d).value_or(0) > 0) first.emplace(d, slice(0, 1));
  }
  const NamedLinop none = Zero(zero.ishape(), zero.oshape(), {.sizes = std::move(sizes)});
  return make_container(empty_type(), {none, first.empty() ? A : A.split(first)}, {});
}

bool communicates(const NamedLinop& A) {
  return A.type().total || std::any_of(A.linops().begin(), A.linops().end(), communicates);
}

NamedLinop with_other_sizes(const NamedLinop& A, const DimMap& sizes) {
  LinopData data = copy_data(A);
  data.shape = with_sizes_in(data.shape, sizes);
  return from_data(std::move(data));
}

index_t known_size(const NamedLinop& A, std::size_t axis) {
  const ND &in = A.ishape()[axis], &out = A.oshape()[axis];
  if (const auto n = A.size(in)) return *n;
  if (const auto n = A.size(out)) return *n;
  throw ShapeError(
      fmt::format("[distribute] {}: the size of {} is unknown. Try with_sizes({{{{\"{}\", ..}}}})",
                  A.name(), in.str(), in.str()));
}

DimMap sizes_of_part(const NamedLinop& A, const Team& team, const Placement& placement) {
  DimMap sizes;
  for (const ND& d : unite(A.ishape(), A.oshape())) {
    const auto n = d.is_concrete() || d.is_ordinal() ? A.size(d) : std::nullopt;
    if (!n) continue;
    const auto axis = placement.axis_of(d);
    sizes[d] = axis ? part_range(*n, team.coordinate(*axis), team.size(*axis)).size() : *n;
  }
  return sizes;
}

AxisNames axes_cutting(const Dims& dims, const Placement& placement) {
  AxisNames axes;
  for (const auto& [d, axis] : placement.entries()) {
    if (dims.contains(d)) axes.push_back(axis);
  }
  return axes;
}

}  // namespace palimpsest::distributed_detail
