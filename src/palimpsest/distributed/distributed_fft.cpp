// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distributed_fft.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/distributed/parts_operator.hpp"
#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest::distributed_detail {
namespace {

bool is_fft(const NamedLinop& A) { return &A.type() == &linop_types::fft(); }

// Positions of the transformed axes, counted from the front.
Axes transformed(const NamedLinop& A) {
  return from_front(A.attr("axes").as_integers(), A.ishape().size());
}

std::optional<std::size_t> position_in(const Dims& dims, const ND& d) {
  const auto found = std::find(dims.begin(), dims.end(), d);
  return found == dims.end() ? std::nullopt
                             : std::optional(static_cast<std::size_t>(found - dims.begin()));
}

bool has_axis(const Axes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<index_t>(axis)) != axes.end();
}

// Cuts of transformed axes, and the axes that are cut meanwhile.
struct Exchanges {
  explicit Exchanges(const NamedLinop& A)
      : cuts(cuts_of(A, "cuts")), meanwhile(cuts_of(A, "meanwhile")) {}
  CutAxes cuts, meanwhile;
};

// The transform over some of its axes: only axes matter where a graph is built.
NamedLinop fft_over(const NamedLinop& fft, Axes axes) {
  for (index_t& axis : axes) axis -= static_cast<index_t>(fft.ishape().size());  // from the end
  NamedLinop part = fft.copy();
  part.set_attr("axes", Attribute(axes));
  return part;
}

template <class Apply>
Variable run_parts(const NamedLinop& A, const Variable& x, Apply apply) {
  const Team team = team_in(A);
  const Exchanges exchanges(A);
  Axes here;
  for (const index_t axis : transformed(A[0])) {
    const bool is_cut = std::any_of(exchanges.cuts.begin(), exchanges.cuts.end(),
                                    [&](const CutAxis& cut) { return cut.axis == axis; });
    if (!is_cut) here.push_back(axis);
  }
  const PathScope path(A, 0);
  Variable y = here.empty() ? x : apply(fft_over(A[0], here), x);
  for (std::size_t i = 0; i < exchanges.cuts.size(); ++i) {
    const CutAxes cut{exchanges.cuts[i]}, meanwhile{exchanges.meanwhile[i]};
    y = redistribute(y, team, cut, meanwhile);
    y = apply(fft_over(A[0], {cut[0].axis}), y);
    y = redistribute(y, team, meanwhile, cut);
  }
  return y;
}

Variable fn(const NamedLinop& A, const Variable& x) {
  return run_parts(A, x,
                   [](const NamedLinop& F, const Variable& v) { return forward_graph(F, v); });
}
Variable adj_fn(const NamedLinop& A, const Variable& y) {
  return run_parts(A, y,
                   [](const NamedLinop& F, const Variable& v) { return adjoint_graph(F, v); });
}

NamedLinop normal(const NamedLinop& A, const NamedLinop* inner) {
  if (inner) return {};
  // A number times identity; the number follows from the sizes of the whole.
  DimMap sizes;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    if (const auto n = A.size(A.ishape()[axis])) {
      sizes[A.ishape()[axis]] = sizes[A.oshape()[axis]] = *n;
    }
  }
  for (const CutAxis& cut : cuts_of(A, "cuts")) {
    const auto axis = static_cast<std::size_t>(cut.axis);
    sizes[A.ishape()[axis]] = sizes[A.oshape()[axis]] = cut.extent;
  }
  return with_other_sizes(with_other_sizes(A[0], sizes).N(), {});
}

NamedLinop adjoint(const NamedLinop& A) {
  return with_records_of(A, make_container(A.type(), {A[0].H()}, A.attrs()));
}

const LinopType& fft_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "DistributedFft",
                               .functions = {.fn = fn,
                                             .adj_fn = adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .adjoint = adjoint, .normal = normal, .assemble = assemble_part,
                               .parts = &kVectorParts);
}

// The largest axis that no rank has a part of.
std::size_t axis_to_cut(const NamedLinop& A, std::size_t cut, const Placement& placement) {
  std::optional<std::size_t> best;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const bool is_placed = placement.axis_of(A.ishape()[axis]).has_value();
    if (axis == cut || is_placed) continue;
    if (!best || known_size(A, axis) > known_size(A, *best)) best = axis;
  }
  if (!best) {
    refuse_split(A, A.ishape()[cut], "there is no other axis to cut while it is transformed");
  }
  return *best;
}

}  // namespace

bool transforms_placed(const NamedLinop& A, const Placement& placement) {
  if (!is_fft(A) || A.ishape().size() != A.oshape().size()) return false;
  const Axes axes = transformed(A);
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    if (has_axis(axes, axis) && placement.axis_of(A.ishape()[axis])) return true;
  }
  return false;
}

NamedLinop distributed_fft(const NamedLinop& A, const Team& team, const Placement& placement) {
  const Axes axes = transformed(A);
  CutAxes cuts, meanwhile;
  CutAxes spread;
  DimMap sizes;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const ND &in = A.ishape()[axis], &out = A.oshape()[axis];
    if (!in.is_concrete()) refuse_split(A, in, "its axes have no names. Try .batch");
    const index_t n = known_size(A, axis);
    const auto team_axis = placement.axis_of(in);
    const PartRange part = team_axis
                               ? part_range(n, team.coordinate(*team_axis), team.size(*team_axis))
                               : PartRange{0, n};
    sizes[in] = sizes[out] = part.size();
    if (!team_axis) continue;
    spread.push_back({static_cast<index_t>(axis), n, *team_axis});
    if (!has_axis(axes, axis)) continue;
    const std::size_t other = axis_to_cut(A, axis, placement);
    cuts.push_back({static_cast<index_t>(axis), n, *team_axis});
    meanwhile.push_back({static_cast<index_t>(other), known_size(A, other), *team_axis});
  }
  return make_container(fft_type(), {with_other_sizes(A, {})},
                        {{"team", team.node().id},
                         {"cuts", attribute_of(cuts)},
                         {"meanwhile", attribute_of(meanwhile)},
                         {"extents", extents_of_whole(A)},
                         {"input", spread_of(team, spread)},
                         {"output", spread_of(team, spread)}})
      .with_sizes(sizes);
}

namespace {

// Axis by axis the same array with other names.
bool renames(const NamedLinop& A) {
  return is_fft(A) ||
         (&A.type() == &linop_types::convolution() && A.ishape().size() == A.oshape().size());
}

Placement renamed(const Placement& placement, const Dims& from, const Dims& to) {
  Placement::Entries entries;
  for (const auto& [d, axis] : placement.entries()) {
    const auto at = position_in(from, d);
    entries.emplace_back(at && !position_in(to, d) ? to[*at] : d, axis);
  }
  return Placement(std::move(entries));
}

}  // namespace

Placement placement_behind(const NamedLinop& A, const Placement& placement) {
  return renames(A) ? renamed(placement, A.ishape(), A.oshape()) : placement;
}

Placement placement_before(const NamedLinop& A, const Placement& placement) {
  return renames(A) ? renamed(placement, A.oshape(), A.ishape()) : placement;
}

}  // namespace palimpsest::distributed_detail
