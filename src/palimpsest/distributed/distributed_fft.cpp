// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distributed_fft.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/distributed/exchange_parts.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/core/total.hpp"

namespace palimpsest::distributed_detail {
namespace {

bool is_fft(const NamedLinop& A) { return &A.type() == &linop_types::fft(); }

// Positions of the transformed axes, counted from the front.
Axes transformed(const NamedLinop& A) {
  return from_front(A.attr("axes").as_integers(), A.ishape().size());
}

std::optional<std::size_t> position(const Dims& dims, const ND& d) {
  const auto found = std::find(dims.begin(), dims.end(), d);
  return found == dims.end() ? std::nullopt
                             : std::optional(static_cast<std::size_t>(found - dims.begin()));
}

bool has(const Axes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<index_t>(axis)) != axes.end();
}

// One cut of a transformed axis, and the axis that is cut meanwhile.
struct Exchange {
  std::string team_axis;
  CutAxis cut, meanwhile;
};

Attribute attribute_of(const std::vector<Exchange>& exchanges) {
  Attribute::List list;
  for (const Exchange& e : exchanges) {
    list.emplace_back(Attribute::List{e.team_axis, e.cut.axis, e.cut.extent, e.meanwhile.axis,
                                      e.meanwhile.extent});
  }
  return list;
}

std::vector<Exchange> exchanges_of(const NamedLinop& A) {
  std::vector<Exchange> exchanges;
  for (const Attribute& entry : A.attr("exchanges").as_list()) {
    const auto& e = entry.as_list();
    exchanges.push_back({e[0].as_string(),
                         {e[1].as_integer(), e[2].as_integer()},
                         {e[3].as_integer(), e[4].as_integer()}});
  }
  return exchanges;
}

NamedLinop with_other_sizes(const NamedLinop& A, const DimMap& sizes) {
  LinopData data = copy_data(A);
  data.shape = with_sizes_in(data.shape, sizes);
  return from_data(std::move(data));
}

// The transform over some of its axes: only axes matter where a graph is built.
NamedLinop over(const NamedLinop& fft, Axes axes) {
  for (index_t& axis : axes) axis -= static_cast<index_t>(fft.ishape().size());  // from the end
  NamedLinop part = fft.copy();
  part.set_attr("axes", Attribute(axes));
  return part;
}

template <class Apply>
Variable run_parts(const NamedLinop& A, const Variable& x, Apply apply) {
  const Team team = team_of_id(A.attr("team").as_integer());
  const std::vector<Exchange> exchanges = exchanges_of(A);
  Axes here;
  for (const index_t axis : transformed(A[0])) {
    const bool is_cut = std::any_of(exchanges.begin(), exchanges.end(),
                                    [&](const Exchange& e) { return e.cut.axis == axis; });
    if (!is_cut) here.push_back(axis);
  }
  const PathScope path(A, 0);
  Variable y = here.empty() ? x : apply(over(A[0], here), x);
  for (const Exchange& e : exchanges) {
    y = exchange_parts(y, team, e.team_axis, e.cut, e.meanwhile);
    y = apply(over(A[0], {e.cut.axis}), y);
    y = exchange_parts(y, team, e.team_axis, e.meanwhile, e.cut);
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
  for (const Exchange& e : exchanges_of(A)) {
    const auto axis = static_cast<std::size_t>(e.cut.axis);
    sizes[A.ishape()[axis]] = sizes[A.oshape()[axis]] = e.cut.extent;
  }
  return with_other_sizes(with_other_sizes(A[0], sizes).N(), {});
}

Variable sum_of_parts(const NamedLinop& A, VectorSide, const Variable& number) {
  AxisNames axes;
  for (const Attribute& name : A.attr("spread").as_list()) axes.push_back(name.as_string());
  return all_reduce(number, team_of_id(A.attr("team").as_integer()), axes);
}

NamedShape assemble(std::vector<NamedLinop>& children, const Assembly& how) {
  if (how.wanted) {
    children[0] = children[0].copy();
    children[0].set_shape(*how.wanted);
  }
  return NamedShape(children[0].ishape(), children[0].oshape());
}

NamedLinop split(const NamedLinop& A, const Tile& tile) {
  for (const auto& [d, range] : tile) {
    refuse_split(A, d, "its parts on other ranks would have to be cut as well");
  }
  return A;
}

NamedLinop adjoint(const NamedLinop& A) {
  return with_records_of(A, make_container(A.type(), {A[0].H()}, A.attrs()));
}

const LinopType& type() {
  return immortal([] {
    return LinopType{
        .name = "DistributedFft",
        .functions = {.fn = fn, .adj_fn = adj_fn, .split = split, .adj_split = split},
        .adjoint = adjoint,
        .normal = normal,
        .assemble = assemble,
        .total = sum_of_parts,
    };
  });
}

index_t known_size(const NamedLinop& A, std::size_t axis) {
  const ND& in = A.ishape()[axis];
  const ND& out = A.oshape()[axis];
  if (const auto n = A.size(in)) return *n;
  if (const auto n = A.size(out)) return *n;
  throw ShapeError(fmt::format("[distribute] {}: the size of {} is unknown. Try with_sizes()",
                               A.name(), in.str()));
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
    if (has(axes, axis) && placement.axis_of(A.ishape()[axis])) return true;
  }
  return false;
}

NamedLinop distributed_fft(const NamedLinop& A, const Team& team, const Placement& placement) {
  const Axes axes = transformed(A);
  std::vector<Exchange> exchanges;
  Attribute::List spread;
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
    spread.emplace_back(*team_axis);
    if (!has(axes, axis)) continue;
    const std::size_t other = axis_to_cut(A, axis, placement);
    exchanges.push_back({*team_axis,
                         {static_cast<index_t>(axis), n},
                         {static_cast<index_t>(other), known_size(A, other)}});
  }
  return make_container(type(), {with_other_sizes(A, {})},
                        {{"team", team.node().id},
                         {"exchanges", attribute_of(exchanges)},
                         {"spread", std::move(spread)}})
      .with_sizes(sizes);
}

namespace {

Placement renamed(const Placement& placement, const Dims& from, const Dims& to) {
  Placement::Entries entries;
  for (const auto& [d, axis] : placement.entries()) {
    const auto at = position(from, d);
    entries.emplace_back(at && !position(to, d) ? to[*at] : d, axis);
  }
  return Placement(std::move(entries));
}

}  // namespace

Placement placement_behind(const NamedLinop& A, const Placement& placement) {
  return is_fft(A) ? renamed(placement, A.ishape(), A.oshape()) : placement;
}

Placement placement_before(const NamedLinop& A, const Placement& placement) {
  return is_fft(A) ? renamed(placement, A.oshape(), A.ishape()) : placement;
}

}  // namespace palimpsest::distributed_detail
