// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distributed_moves.hpp"

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/distributed/distributed_fft.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest::distributed_detail {
namespace {

// -- halos ---------------------------------------------------------------------------------------

// Elements that a stencil reads before and after an element, along one axis.
struct Reach {
  index_t before = 0, after = 0;
};
struct StencilCut {
  CutAxis cut;
  Reach reach;
};

std::vector<StencilCut> stencil_cuts(const NamedLinop& A, std::size_t rank) {
  const CutAxes cuts = cuts_of(A, "cuts", rank);
  const auto &before = A.attr("before").as_list(), &after = A.attr("after").as_list();
  std::vector<StencilCut> result;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    result.push_back({cuts[i], {before[i].as_integer(), after[i].as_integer()}});
  }
  return result;
}

HaloEdge edge_of(const NamedLinop& A) {
  const std::string& edge = A.attr("edge").as_string();
  return edge == "periodic"  ? HaloEdge::periodic
         : edge == "nearest" ? HaloEdge::nearest
                             : HaloEdge::zero;
}

index_t own_extent(const Team& team, const CutAxis& cut) {
  return part_at(team, cut, team.rank()).size();
}

// The stencil of the part with its halo. Results at the halo are cut off: they would need more
// elements.
Variable stencil_fn(const NamedLinop& A, const Variable& x) {
  const Team team = team_in(A);
  const HaloEdge edge = edge_of(A);
  const std::vector<StencilCut> cuts = stencil_cuts(A, x.rank());
  Variable v = x;
  for (const StencilCut& s : cuts) {
    v = halo(v, team, s.cut, s.reach.before, s.reach.after, edge);
  }
  const PathScope path(A, 0);
  const Variable y = forward_graph(A[0], v);
  std::vector<Index> index(y.rank(), Index(all));
  for (const StencilCut& s : cuts) {
    const index_t n = own_extent(team, s.cut), start = n == 0 ? 0 : s.reach.before;
    index[at(s.cut.axis)] = slice(start, start + n);
  }
  return ops::index(y, std::move(index));
}

Variable stencil_adj_fn(const NamedLinop& A, const Variable& y) {
  const Team team = team_in(A);
  const std::vector<StencilCut> cuts = stencil_cuts(A, y.rank());
  ops::PadWidths widths(y.rank(), {0, 0});
  for (const StencilCut& s : cuts) {
    if (own_extent(team, s.cut) > 0) widths[at(s.cut.axis)] = {s.reach.before, s.reach.after};
  }
  const PathScope path(A, 0);
  Variable v = adjoint_graph(A[0], ops::pad(y, std::move(widths)));
  for (auto s = cuts.rbegin(); s != cuts.rend(); ++s) {
    v = halo_adjoint(v, team, s->cut, s->reach.before, s->reach.after, edge_of(A));
  }
  return v;
}

const LinopType& stencil_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "DistributedStencil",
                               .functions = {.fn = stencil_fn,
                                             .adj_fn = stencil_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .assemble = assemble_part, .parts = &kVectorParts);
}

bool names_axis(const Axes& axes, index_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// The axes of a stencil, from the front, and its reach along each; no axes for another operator.
struct StencilReach {
  Axes axes;
  std::vector<Reach> reach;
  std::string edge;
};

StencilReach reach_of(const NamedLinop& A) {
  if (&A.type() == &linop_types::finite_difference()) {
    const std::string& boundary = A.attr("boundary").as_string();
    const bool is_backward = A.attr("direction").as_string() == "backward";
    return {from_front(Axes{A.attr("axis").as_integer()}, A.ishape().size()),
            {is_backward ? Reach{1, 0} : Reach{0, 1}},
            boundary == "neumann" ? "nearest" : boundary};
  }
  if (&A.type() != &linop_types::convolution()) return {};
  const Extents& kernel = A.param("kernel").type().shape;
  StencilReach result;
  result.axes = from_front(last_axes(kernel.size()), A.ishape().size());
  for (const index_t k : kernel) {
    const index_t centre = k / 2;
    // The reach of the adjoint, whose transpose the halo serves: it reads in the other direction.
    result.reach.push_back({k - 1 - centre, centre});
  }
  result.edge = A.attr("boundary").as_string() == "circular" ? "periodic" : "zero";
  return result;
}

Attributes attributes_of_parts(const Team& team, const NamedLinop& A, const Placement& placement) {
  return {{"team", team.node().id},
          {"input", spread_of(team, cuts_in(A.ishape(), placement, A))},
          {"output", spread_of(team, cuts_in(A.oshape(), placement_behind(A, placement), A))}};
}

// The parts with their sizes. The child keeps its own: it computes with the halo, or while another
// axis is cut.
NamedLinop of_parts(const LinopType& type, const NamedLinop& child, Attributes attributes,
                    const NamedLinop& A, const Team& team, const Placement& placement) {
  return with_other_sizes(make_container(type, {child}, std::move(attributes)),
                          sizes_of_part(A, team, placement, placement_behind(A, placement)));
}

}  // namespace

NamedLinop distributed_stencil(const NamedLinop& A, const Team& team, const Placement& placement,
                               const Axes& refused) {
  if (A.is_flipped()) {
    const NamedLinop made =
        distributed_stencil(A.H(), team, placement_behind(A, placement), refused);
    return made.defined() ? made.H() : made;
  }
  const StencilReach reach = reach_of(A);
  const bool is_known = std::all_of(refused.begin(), refused.end(),
                                    [&](index_t axis) { return names_axis(reach.axes, axis); });
  if (!is_known) return {};
  CutAxes cuts;
  Attribute::List before, after;
  for (std::size_t i = 0; i < reach.axes.size(); ++i) {
    const index_t axis = reach.axes[i];
    const auto team_axis = placement.axis_of(A.ishape()[at(axis)]);
    if (!team_axis) continue;
    cuts.push_back({axis, known_size(A, at(axis)), *team_axis});
    before.emplace_back(reach.reach[i].before);
    after.emplace_back(reach.reach[i].after);
  }
  Attributes attributes = attributes_of_parts(team, A, placement);
  attributes.emplace_back("cuts", attribute_of(cuts));
  attributes.emplace_back("before", std::move(before));
  attributes.emplace_back("after", std::move(after));
  attributes.emplace_back("edge", reach.edge);
  attributes.emplace_back("extents", extents_of_whole(A));
  return of_parts(stencil_type(), with_other_sizes(A, {}), std::move(attributes), A, team,
                  placement);
}

// -- elsewhere -----------------------------------------------------------------------------------

namespace {

template <class Apply>
Variable moved(const NamedLinop& A, const Variable& x, const char* from, const char* back,
               Apply apply) {
  const Team team = team_in(A);
  const auto cuts = [&](const char* attribute) { return cuts_of(A, attribute, x.rank()); };
  const CutAxes to = cuts("to");
  const PathScope path(A, 0);
  const Variable y = apply(A[0], redistribute(x, team, cuts(from), to));
  return redistribute(y, team, to, cuts(back));
}

Variable elsewhere_fn(const NamedLinop& A, const Variable& x) {
  return moved(A, x, "from", "back",
               [](const NamedLinop& B, const Variable& v) { return forward_graph(B, v); });
}
Variable elsewhere_adj_fn(const NamedLinop& A, const Variable& y) {
  return moved(A, y, "back", "from",
               [](const NamedLinop& B, const Variable& v) { return adjoint_graph(B, v); });
}

NamedLinop elsewhere_normal(const NamedLinop& A, const NamedLinop* inner) {
  // The property of the whole, not of this rank's part: all ranks do the same.
  return !inner && A.attr("is_unitary").as_bool() ? Identity(A.ishape()) : NamedLinop();
}

const LinopType& elsewhere_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "DistributedElsewhere",
                               .functions = {.fn = elsewhere_fn,
                                             .adj_fn = elsewhere_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .normal = elsewhere_normal, .assemble = assemble_part,
                               .parts = &kVectorParts);
}

// The largest axis along which A can be cut, of both shapes and in no placement.
std::optional<std::size_t> axis_elsewhere(const NamedLinop& A, const Placement& placement,
                                          const Axes& taken) {
  std::optional<std::size_t> best;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const ND& d = A.ishape()[axis];
    const bool is_free = d.is_concrete() && A.oshape()[axis] == d && !placement.axis_of(d) &&
                         !names_axis(taken, static_cast<index_t>(axis));
    const auto n = is_free ? A.size(d) : std::nullopt;
    if (!n || *n < 2 || (best && *n <= *A.size(A.ishape()[*best]))) continue;
    try {
      A.split({{d, slice(0, *n / 2)}});
      best = axis;
    } catch (const SplitError&) {
      // This axis cannot be cut; another one may.
    }
  }
  return best;
}

}  // namespace

NamedLinop distributed_elsewhere(const NamedLinop& A, const Team& team, const Placement& placement,
                                 const Axes& refused) {
  CutAxes from, to, back;
  Axes taken;
  Tile tile;
  CutDims cut_dims;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const ND &d = A.ishape()[axis], &result = A.oshape()[axis];
    const auto team_axis = placement.axis_of(d);
    if (result != d && placement.axis_of(result)) {
      refuse_split(A, result, "it acts along it as a whole, and its input has another dimension");
    }
    if (!team_axis) continue;
    const index_t n = known_size(A, axis);
    if (!names_axis(refused, static_cast<index_t>(axis))) {
      const PartRange own = part_range(n, team.coordinate(*team_axis), team.size(*team_axis));
      tile.emplace(d, slice(own.start, own.stop));
      cut_dims.push_back({d.str(), *team_axis, own.size()});
      continue;
    }
    from.push_back({static_cast<index_t>(axis), n, *team_axis});
    // A result that has another dimension in its place is whole on all ranks.
    if (result == d) back.push_back(from.back());
    const auto other = axis_elsewhere(A, placement, taken);
    if (!other && &A.type() != &linop_types::wavelet()) {
      refuse_split(A, d,
                   "it acts along it as a whole, and there is no other dimension along which it "
                   "can be cut meanwhile");
    }
    if (!other) continue;
    taken.push_back(static_cast<index_t>(*other));
    to.push_back({taken.back(), known_size(A, *other), *team_axis});
    const PartRange own = part_at(team, to.back(), team.rank());
    tile.emplace(A.ishape()[*other], slice(own.start, own.stop));
    cut_dims.push_back({A.ishape()[*other].str(), *team_axis, own.size()});
  }
  Attributes attributes = attributes_of_parts(team, A, placement);
  attributes.emplace_back("from", attribute_of(from));
  attributes.emplace_back("to", attribute_of(to));
  attributes.emplace_back("back", attribute_of(back));
  attributes.emplace_back("cut_dims", attribute_of(cut_dims));
  attributes.emplace_back("extents", extents_of_whole(A));
  const auto is_identity = [](const NamedLinop& N) {
    return &N.type() == &linop_types::identity();
  };
  attributes.emplace_back("is_unitary", is_identity(A.N()) && is_identity(A.H().N()));
  return of_parts(elsewhere_type(), part_of_tile(A, tile), std::move(attributes), A, team,
                  placement);
}

}  // namespace palimpsest::distributed_detail
