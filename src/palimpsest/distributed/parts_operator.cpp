// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/parts_operator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"

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

Attribute spread_of(const Team& team, const CutAxes& cuts) {
  Attribute::List list;
  for (const CutAxis& cut : cuts) {
    const int part = team.coordinate(cut.team_axis), parts = team.size(cut.team_axis);
    const index_t start = part_range(std::max<index_t>(cut.extent, 0), part, parts).start;
    list.emplace_back(
        Attribute::List{cut.axis, cut.extent, cut.team_axis, index_t{part}, index_t{parts}, start});
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

CutAxes cuts_of(const NamedLinop& A, std::string_view attribute, std::size_t rank) {
  CutAxes cuts = cuts_of(A, attribute);
  const Dims& dims = A.ishape();
  const auto found =
      std::find_if(dims.begin(), dims.end(), [](const ND& d) { return d.is_ellipsis(); });
  for (CutAxis& cut : cuts) {
    if (cut.axis <= found - dims.begin()) continue;
    cut.axis += static_cast<index_t>(rank) - static_cast<index_t>(dims.size());
  }
  return cuts;
}

Attribute attribute_of(const CutDims& cuts) {
  Attribute::List list;
  for (const CutDim& cut : cuts) {
    list.emplace_back(Attribute::List{cut.d, cut.team_axis, cut.extent});
  }
  return list;
}

CutDims cut_dims_of(const NamedLinop& A) {
  CutDims cuts;
  for (const Attribute& entry : A.attr("cut_dims").as_list()) {
    const auto& e = entry.as_list();
    cuts.push_back({e[0].as_string(), e[1].as_string(), e[2].as_integer()});
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

namespace {

CutAxes cuts_on(const NamedLinop& A, VectorSide side) {
  const bool is_input = (side == VectorSide::input) != A.is_flipped();
  return cuts_of(A, is_input ? "input" : "output");
}

Variable total_of_parts(const NamedLinop& A, VectorSide side, const Variable& number) {
  return all_reduce(number, team_in(A), team_axes(cuts_on(A, side)));
}

Dims dims_of_parts(const NamedLinop& A, VectorSide side) {
  const Team team = team_in(A);
  const Dims& dims = side == VectorSide::input ? A.ishape() : A.oshape();
  Dims cut;
  for (const CutAxis& c : cuts_on(A, side)) {
    if (c.axis >= 0 && team.size(c.team_axis) > 1) {
      cut.push_back(dims[static_cast<std::size_t>(c.axis)]);
    }
  }
  return cut;
}

bool on_any_rank(const NamedLinop& A, bool here) {
  const Team team = team_in(A);
  const auto mine = static_cast<std::byte>(here);
  std::vector<std::byte> said(static_cast<std::size_t>(team.size()), mine);
  std::vector<Parcel> parcels;
  std::vector<Place> places;
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    parcels.push_back({r, std::span(&mine, 1)});
    places.push_back({r, std::span(&said[static_cast<std::size_t>(r)], 1)});
  }
  exchange(team, parcels, places);
  return std::find(said.begin(), said.end(), std::byte{1}) != said.end();
}

}  // namespace

const VectorParts kVectorParts{
    .total = total_of_parts, .cut_dims = dims_of_parts, .on_any = on_any_rank};

namespace {

// The type of the result of a tile of A, the second child, for a vector like x.
TensorType type_given(const NamedLinop& A, const Variable& x, bool is_adjoint) {
  const NamedLinop& tile = A[1];
  const Dims& dims = is_adjoint ? tile.oshape() : tile.ishape();
  std::vector<std::optional<index_t>> extents;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const auto n = dims.size() == x.rank() && dims[k].is_concrete() ? tile.size(dims[k])
                                                                    : std::optional<index_t>();
    extents.emplace_back(n.value_or(std::max<index_t>(x.type().shape[k], 1)));
  }
  const Variable sample = tensor(x.dtype(), extents, "x");
  return (is_adjoint ? adjoint_graph(tile, sample) : forward_graph(tile, sample)).type();
}

// A zero operator of the shape of A. Sizes that A does not know are those of `given`.
NamedLinop zero_of(const NamedLinop& A, const Dims& result, const TensorType& given) {
  DimMap missing;
  for (std::size_t k = 0; k < result.size() && result.size() == given.shape.size(); ++k) {
    const ND& d = result[k];
    if ((d.is_concrete() || d.is_ordinal()) && !A[0].size(d)) missing.emplace(d, given.shape[k]);
  }
  return missing.empty() ? A[0] : A[0].with_sizes(missing);
}

Variable empty_fn(const NamedLinop& A, const Variable& x) {
  const TensorType given = type_given(A, x, false);
  return ops::astype(forward_graph(zero_of(A, A[0].oshape(), given), x), given.dtype);
}
Variable empty_adj_fn(const NamedLinop& A, const Variable& y) {
  const TensorType given = type_given(A, y, true);
  return ops::astype(adjoint_graph(zero_of(A, A[0].ishape(), given), y), given.dtype);
}

NamedLinop empty_split(const NamedLinop& A, const Tile& tile);
NamedLinop empty_normal(const NamedLinop& A, const NamedLinop* inner);

std::optional<index_t> empty_size(const NamedLinop& A, const ND& d) { return A[0].size(d); }

const LinopType& empty_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "EmptyPart",
                               .functions = {.fn = empty_fn,
                                             .adj_fn = empty_adj_fn,
                                             .split = empty_split,
                                             .size = empty_size},
                               .normal = empty_normal, .assemble = assemble_part);
}

NamedLinop empty_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (inner || A.is_flipped()) return {};
  return make_container(empty_type(), {zero_like(A[0].N()), A[1].N()}, {});
}

// Cuts as other ranks cut their parts.
NamedLinop empty_split(const NamedLinop& A, const Tile& tile) {
  return make_container(empty_type(), {A[0].split(tile), A[1].split(tile)}, {});
}

}  // namespace

bool has_empty_part(const NamedLinop& A) {
  return &A.type() == &empty_type() ||
         std::any_of(A.linops().begin(), A.linops().end(), has_empty_part);
}

NamedLinop without_empty_parts(const NamedLinop& A) {
  if (&A.type() == &empty_type()) return A.is_flipped() ? A[1].H() : A[1];
  if (A.linop_count() == 0) return A;
  LinopData data = copy_data(A);
  for (NamedLinop& child : data.children) child = without_empty_parts(child);
  return from_data(std::move(data));
}

NamedLinop part_of_tile(const NamedLinop& A, const Tile& tile) {
  const bool is_empty = std::any_of(tile.begin(), tile.end(), [](const auto& cut) {
    return *cut.second.start >= *cut.second.stop;
  });
  if (!is_empty) return tile.empty() ? A : A.split(tile);
  const NamedLinop zero = zero_like(A);
  DimMap sizes = zero.recorded_sizes();
  Tile first;
  for (const auto& [d, range] : tile) {
    // A dimension that is summed over is in neither shape.
    if (zero.dims().contains(d)) sizes[d] = std::max<index_t>(*range.stop - *range.start, 0);
    if (A.size(d).value_or(0) > 0) first.emplace(d, slice(0, 1));
  }
  const NamedLinop none = Zero(zero.ishape(), zero.oshape(), {.sizes = std::move(sizes)});
  return make_container(empty_type(), {none, first.empty() ? A : A.split(first)}, {});
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

Attribute extents_of_whole(const NamedLinop& A) {
  Axes extents;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const ND &in = A.ishape()[axis], &out = A.oshape()[axis];
    const auto n = in.is_concrete() ? A.size(in) : std::nullopt;
    extents.push_back(n ? *n : out.is_concrete() ? A.size(out).value_or(-1) : -1);
  }
  return Attribute(extents);
}

DimMap sizes_of_part(const NamedLinop& A, const Team& team, const Placement& placement,
                     const Placement& behind) {
  DimMap sizes;
  for (const ND& d : unite(A.ishape(), A.oshape())) {
    const auto n = d.is_concrete() || d.is_ordinal() ? A.size(d) : std::nullopt;
    if (!n) continue;
    const auto axis = A.ishape().contains(d) ? placement.axis_of(d) : behind.axis_of(d);
    sizes[d] = axis ? part_range(*n, team.coordinate(*axis), team.size(*axis)).size() : *n;
  }
  return sizes;
}

CutAxes cuts_in(const Dims& dims, const Placement& placement, const NamedLinop& A) {
  CutAxes cuts;
  for (const auto& [d, axis] : placement.entries()) {
    const auto found = std::find(dims.begin(), dims.end(), d);
    if (found == dims.end()) continue;
    const auto extent = A.defined() ? A.size(d) : std::nullopt;
    cuts.push_back({found - dims.begin(), extent.value_or(-1), axis});
  }
  return cuts;
}

AxisNames team_axes(const CutAxes& cuts) {
  AxisNames axes;
  for (const CutAxis& cut : cuts) axes.push_back(cut.team_axis);
  return axes;
}

}  // namespace palimpsest::distributed_detail
