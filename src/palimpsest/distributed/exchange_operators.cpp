// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/exchange_operators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/parts_operator.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/window_name.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest {
namespace {

using namespace distributed_detail;

// The attributes of an exchange.
Attributes attributes_of(const Team& team, const CutAxes& input, const CutAxes& output) {
  return {{"team", team.node().id},
          {"input", spread_of(team, input)},
          {"output", spread_of(team, output)}};
}

// -- sums ----------------------------------------------------------------------------------------

Variable sum_fn(const NamedLinop& A, const Variable& x) {
  return all_reduce(x, team_in(A), team_axes(cuts_of(A, "input")));
}
Variable sum_adj_fn(const NamedLinop& A, const Variable& y) {
  return replicate(y, team_in(A), team_axes(cuts_of(A, "input")));
}

const LinopType& sum_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "AllReduce",
                               .functions = {.fn = sum_fn,
                                             .adj_fn = sum_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .parts = &kVectorParts);
}

// -- parts ---------------------------------------------------------------------------------------

Variable redistribute_fn(const NamedLinop& A, const Variable& x) {
  return redistribute(x, team_in(A), cuts_of(A, "from"), cuts_of(A, "to"));
}
Variable redistribute_adj_fn(const NamedLinop& A, const Variable& y) {
  return redistribute(y, team_in(A), cuts_of(A, "to"), cuts_of(A, "from"));
}
NamedLinop redistribute_normal(const NamedLinop& A, const NamedLinop* inner) {
  return inner ? NamedLinop() : Identity(A.ishape());
}

const LinopType& redistribute_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "Redistribute",
                               .functions = {.fn = redistribute_fn,
                                             .adj_fn = redistribute_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .normal = redistribute_normal, .parts = &kVectorParts);
}

CutAxes cuts_of_exchange(const Dims& dims, const Extents& shape, const Team& team,
                         const Placement& placement) {
  placement.check(team);
  CutAxes cuts;
  for (const auto& [d, axis] : placement.entries()) {
    const auto found = std::find(dims.begin(), dims.end(), d);
    if (found == dims.end()) {
      throw NameError(fmt::format("[Redistribute] {}: got {}, expected some of {}", placement.str(),
                                  d.str(), dims.str()));
    }
    const index_t position = found - dims.begin();
    cuts.push_back({position, shape[static_cast<std::size_t>(position)], axis});
  }
  return cuts;
}

// -- halos ---------------------------------------------------------------------------------------

HaloEdge edge_of_exchange(const NamedLinop& A) {
  const std::string& edge = A.attr("boundary").as_string();
  return edge == "periodic"  ? HaloEdge::periodic
         : edge == "nearest" ? HaloEdge::nearest
                             : HaloEdge::zero;
}

Variable halo_fn(const NamedLinop& A, const Variable& x) {
  return halo(x, team_in(A), cuts_of(A, "cut")[0], A.attr("before").as_integer(),
              A.attr("after").as_integer(), edge_of_exchange(A));
}
Variable halo_adj_fn(const NamedLinop& A, const Variable& y) {
  return halo_adjoint(y, team_in(A), cuts_of(A, "cut")[0], A.attr("before").as_integer(),
                      A.attr("after").as_integer(), edge_of_exchange(A));
}

const LinopType& halo_type() {
  return PALIMPSEST_LINOP_TYPE(.name = "Halo",
                               .functions = {.fn = halo_fn,
                                             .adj_fn = halo_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles},
                               .parts = &kVectorParts);
}

}  // namespace

NamedLinop AllReduce(Dims dims, const Team& team, std::vector<std::string> axes) {
  CutAxes own;
  for (const std::string& axis : axes) {
    team.size(axis);
    own.push_back({-1, -1, axis});
  }
  return make_linop(sum_type(), NamedShape(std::move(dims)), {}, attributes_of(team, own, {}));
}

NamedLinop Broadcast(Dims dims, const Team& team, std::vector<std::string> axes) {
  return palimpsest::AllReduce(std::move(dims), team, std::move(axes)).H();
}

NamedLinop Redistribute(Dims dims, Extents shape, const Team& team, Placement from, Placement to,
                        std::optional<Dims> out) {
  if (dims.size() != shape.size()) {
    throw ShapeError(
        fmt::format("[Redistribute] shape: got {} extents, expected {}, one for each "
                    "dimension of {}",
                    shape.size(), dims.size(), dims.str()));
  }
  const CutAxes before = cuts_of_exchange(dims, shape, team, from),
                after = cuts_of_exchange(dims, shape, team, to);
  Attributes attributes = attributes_of(team, before, after);
  attributes.emplace_back("from", attribute_of(before));
  attributes.emplace_back("to", attribute_of(after));
  if (!out) {
    // A name cannot have two sizes.
    out.emplace();
    for (const ND& d : dims) {
      const bool is_cut = from.axis_of(d) || to.axis_of(d);
      out->push_back(is_cut ? window_name(d, {dims.begin(), dims.end()}) : d);
    }
  }
  return make_linop(redistribute_type(), NamedShape(std::move(dims), std::move(*out)), {},
                    std::move(attributes));
}

NamedLinop Scatter(Dims dims, Extents shape, const Team& team, Placement placement,
                   std::optional<Dims> out) {
  return Redistribute(std::move(dims), std::move(shape), team, {}, std::move(placement),
                      std::move(out));
}

NamedLinop Gather(Dims dims, Extents shape, const Team& team, Placement placement,
                  std::optional<Dims> out) {
  return Redistribute(std::move(dims), std::move(shape), team, std::move(placement), {},
                      std::move(out));
}

NamedLinop Halo(Dims dims, ND d, index_t extent, const Team& team, std::string axis,
                HaloOptions options) {
  if (options.before < 0 || options.after < 0 || extent < 0) {
    throw ValueError(fmt::format(
        "[Halo] before, after, extent: got {}, {} and {}, expected numbers of at least 0",
        options.before, options.after, extent));
  }
  const auto found = std::find(dims.begin(), dims.end(), d);
  if (found == dims.end()) {
    throw NameError(fmt::format("[Halo] d: got {}, expected one of {}", d.str(), dims.str()));
  }
  team.size(axis);
  const index_t position = found - dims.begin();
  Dims out;
  const ND with_halo = options.out.value_or(window_name(d, {dims.begin(), dims.end()}));
  for (const ND& name : dims) out.push_back(name == d ? with_halo : name);
  const CutAxes cut{{position, extent, axis}};
  Attributes attributes = attributes_of(team, cut, cut);
  attributes.emplace_back("cut", attribute_of(cut));
  attributes.emplace_back("before", options.before);
  attributes.emplace_back("after", options.after);
  attributes.emplace_back("boundary", options.boundary == HaloBoundary::periodic  ? "periodic"
                                      : options.boundary == HaloBoundary::nearest ? "nearest"
                                                                                  : "zero");
  return make_linop(halo_type(), NamedShape(std::move(dims), std::move(out)), {},
                    std::move(attributes));
}

}  // namespace palimpsest
