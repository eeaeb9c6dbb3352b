// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distribute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/distributed/distributed_fft.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/core/total.hpp"
#include "palimpsest/linop/operators/identity.hpp"

namespace palimpsest {
namespace {

using distributed_detail::AxisNames;

// Along which axes of the team vectors are spread, and along which directions sum.
struct Roles {
  AxisNames input, output;     // each rank holds its part of the vector
  AxisNames forward, adjoint;  // results are summed
};

Attribute names_attribute(const AxisNames& names) {
  Attribute::List list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

AxisNames names_of(const NamedLinop& A, std::string_view attribute) {
  AxisNames names;
  for (const Attribute& name : A.attr(attribute).as_list()) names.push_back(name.as_string());
  return names;
}

Roles roles_of(const NamedLinop& A) {
  return {names_of(A, "input"), names_of(A, "output"), names_of(A, "forward"),
          names_of(A, "adjoint")};
}

const LinopType& distributed_type();

NamedLinop make_distributed(const NamedLinop& local, index_t team, const Roles& roles) {
  return make_container(distributed_type(), {local},
                        {{"team", team},
                         {"input", names_attribute(roles.input)},
                         {"output", names_attribute(roles.output)},
                         {"forward", names_attribute(roles.forward)},
                         {"adjoint", names_attribute(roles.adjoint)}});
}

index_t team_id(const NamedLinop& A) { return A.attr("team").as_integer(); }
Team team_in(const NamedLinop& A) { return distributed_detail::team_of_id(team_id(A)); }

Variable distributed_fn(const NamedLinop& A, const Variable& x) {
  const Roles roles = roles_of(A);
  const Team team = team_in(A);
  const PathScope path(A, 0);
  const Variable part = A[0](distributed_detail::replicate(x, team, roles.adjoint));
  return distributed_detail::all_reduce(part, team, roles.forward);
}

NamedLinop distributed_adjoint(const NamedLinop& A) {
  const Roles r = roles_of(A);
  return make_distributed(A[0].H(), team_id(A), {r.output, r.input, r.adjoint, r.forward});
}

// A^H A of parts whose results are not summed over ranks: the normal operator of each part, summed
// where the adjoint is.
NamedLinop distributed_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Roles r = roles_of(A);
  if (inner || !r.forward.empty()) return {};
  return make_distributed(A[0].N(), team_id(A), {r.input, r.input, r.adjoint, r.adjoint});
}

Variable distributed_total(const NamedLinop& A, VectorSide side, const Variable& number) {
  const Roles roles = roles_of(A);
  return distributed_detail::all_reduce(number, team_in(A),
                                        side == VectorSide::input ? roles.input : roles.output);
}

NamedShape assemble_distributed(std::vector<NamedLinop>& children, const Assembly& how) {
  if (how.wanted) {
    children[0] = children[0].copy();
    children[0].set_shape(*how.wanted);
  }
  return NamedShape(children[0].ishape(), children[0].oshape());
}

std::optional<index_t> distributed_size(const NamedLinop& A, const ND& d) { return A[0].size(d); }

NamedLinop distributed_split(const NamedLinop& A, const Tile& tile) {
  for (const auto& [d, range] : tile) {
    refuse_split(A, d, "its parts on other ranks would have to be cut as well");
  }
  return A;
}

std::string distributed_remark(const NamedLinop& A) {
  const Roles r = roles_of(A);
  const auto text = [](const char* what, const AxisNames& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : " ") + name;
    return names.empty() ? all : fmt::format(", {} {}", what, all);
  };
  return team_in(A).str() + text("sums along", r.forward) + text("adjoint sums along", r.adjoint);
}

const LinopType& distributed_type() {
  return immortal([] {
    return LinopType{
        .name = "Distributed",
        .functions = {.fn = distributed_fn,
                      .split = distributed_split,
                      .adj_split = distributed_split,
                      .size = distributed_size},
        .adjoint = distributed_adjoint,
        .normal = distributed_normal,
        .remark = distributed_remark,
        .assemble = assemble_distributed,
        .total = distributed_total,
    };
  });
}

// What all ranks must agree on.
std::string agreed_text(const NamedLinop& A, const Team& team, const Placement& placement) {
  std::string sizes;
  for (const ND& d : A.dims()) {
    const auto n = A.size(d);
    sizes += " " + d.str() + "=" + (n ? std::to_string(*n) : "?");
  }
  std::string axes;
  for (const TeamAxis& axis : team.axes()) axes += " " + axis.name + std::to_string(axis.size);
  return fmt::format("{}\nsizes{}\nplacement {}\nteam{}", A.str(), sizes, placement.str(), axes);
}

void check_agreement(const NamedLinop& A, const Team& team, const Placement& placement) {
  if (team.is_pretended() || team.size() == 1) return;
  const std::vector<std::string> texts =
      distributed_detail::gather_texts(team, agreed_text(A, team, placement));
  for (std::size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] == texts[0]) continue;
    throw ShapeError(
        fmt::format("[distribute] ranks 0 and {} differ: rank 0 has\n{}\nrank {} has\n{}", r,
                    texts[0], r, texts[r]));
  }
}

bool has(const Dims& dims, const ND& d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Of a part without indices: the zero map between arrays of these sizes.
NamedLinop empty_part(const NamedLinop& A, const Tile& tile) {
  NamedLinop zero = zero_like(A);
  DimMap sizes = zero.recorded_sizes();
  for (const auto& [d, range] : tile) sizes[d] = *range.stop - *range.start;
  return Zero(zero.ishape(), zero.oshape(), {.sizes = std::move(sizes)});
}

}  // namespace

namespace {

// An operator of which every placed dimension can be cut.
NamedLinop distribute_whole(const NamedLinop& A, const Team& team, const Placement& placement) {
  Tile tile;
  Roles roles;
  bool is_empty = false;
  for (const auto& [d, axis] : placement.entries()) {
    if (!has(A.dims(), d)) continue;  // all ranks along the axis compute the same
    const auto n = A.size(d);
    if (!n) {
      throw ShapeError(fmt::format(
          "[distribute] {}: the size of {} is unknown. Try with_sizes({{{{\"{}\", ..}}}})",
          A.name(), d.str(), d.str()));
    }
    const PartRange range = part_range(*n, team.coordinate(axis), team.size(axis));
    is_empty = is_empty || range.size() == 0;
    tile.emplace(d, slice(range.start, range.stop));
    const bool is_in = has(A.ishape(), d), is_out = has(A.oshape(), d);
    if (is_in) roles.input.push_back(axis);
    if (is_out) roles.output.push_back(axis);
    if (!is_out) roles.forward.push_back(axis);
    if (!is_in) roles.adjoint.push_back(axis);
  }
  const NamedLinop local = is_empty ? empty_part(A, tile) : tile.empty() ? A : A.split(tile);
  return make_distributed(local, team.node().id, roles);
}

bool needs_exchange(const NamedLinop& A, Placement placement) {
  for (const NamedLinop& part : flatten(A)) {
    if (distributed_detail::transforms_placed(part, placement)) return true;
    placement = distributed_detail::placement_behind(part, placement);
  }
  return false;
}

// The sizes that the whole chain knows.
NamedLinop sized(const NamedLinop& part, const NamedLinop& chain) {
  DimMap sizes;
  for (const ND& d : part.dims()) {
    const auto n = d.is_concrete() ? chain.size(d) : std::nullopt;
    if (n) sizes.emplace(d, *n);
  }
  return sizes.empty() ? part : part.with_sizes(sizes);
}

// Part after part; transforms hand their cut on to the names that they give.
NamedLinop distribute_parts(const NamedLinop& A, const Team& team, Placement placement) {
  std::vector<NamedLinop> parts;
  for (const NamedLinop& part : flatten(A)) {
    const NamedLinop known = sized(part, A);
    parts.push_back(distributed_detail::transforms_placed(known, placement)
                        ? distributed_detail::distributed_fft(known, team, placement)
                        : distribute_whole(known, team, placement));
    placement = distributed_detail::placement_behind(known, placement);
  }
  return parts.size() == 1 ? parts[0] : Chain(std::move(parts));
}

}  // namespace

NamedLinop distribute(const NamedLinop& A, const Team& team, const Placement& placement) {
  placement.check(team);
  check_agreement(A, team, placement);
  // A dimension may be named as the last operator has it.
  Placement in_front = placement;
  const std::vector<NamedLinop> parts = flatten(A);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    in_front = distributed_detail::placement_before(*part, in_front);
  }
  return needs_exchange(A, in_front) ? distribute_parts(A, team, in_front)
                                     : distribute_whole(A, team, placement);
}

bool is_distributed(const NamedLinop& A) { return &A.type() == &distributed_type(); }

namespace {
const NamedLinop& expect_distributed(const NamedLinop& A, const char* who) {
  if (is_distributed(A)) return A;
  throw ValueError(
      fmt::format("[{}] A: got {}, expected an operator made by distribute()", who, A.name()));
}
}  // namespace

Team team_of(const NamedLinop& A) { return team_in(expect_distributed(A, "team_of")); }
NamedLinop local_part(const NamedLinop& A) { return expect_distributed(A, "local_part")[0]; }

}  // namespace palimpsest
