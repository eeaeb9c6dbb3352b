// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/distributed_fft.hpp"
#include "palimpsest/distributed/distributed_leaves.hpp"
#include "palimpsest/distributed/distributed_moves.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {
namespace {

using namespace distributed_detail;

// Along which axes of the team vectors are spread, and along which directions sum.
struct Roles {
  CutAxes input, output;       // each rank holds its part of the vector
  AxisNames forward, adjoint;  // results are summed
};

Roles roles_of(const NamedLinop& A) {
  return {cuts_of(A, "input"), cuts_of(A, "output"), names_of(A, "forward"),
          names_of(A, "adjoint")};
}

// Along which ranks have vectors with these cuts alike.
AxisNames axes_besides(const Team& team, const CutAxes& cuts) {
  AxisNames names;
  for (const TeamAxis& axis : team.axes()) {
    const bool is_cut = std::any_of(cuts.begin(), cuts.end(),
                                    [&](const CutAxis& cut) { return cut.team_axis == axis.name; });
    if (!is_cut) names.push_back(axis.name);
  }
  return names;
}

const LinopType& distributed_type();

NamedLinop make_distributed(const NamedLinop& local, index_t team, const Roles& roles,
                            const Attribute& cut_dims) {
  return make_container(distributed_type(), {local},
                        {{"team", team},
                         {"tiles_inside", true},
                         {"cut_dims", cut_dims},
                         {"input", spread_of(team_of_id(team), roles.input)},
                         {"output", spread_of(team_of_id(team), roles.output)},
                         {"forward", attribute_of(roles.forward)},
                         {"adjoint", attribute_of(roles.adjoint)}});
}

index_t team_id(const NamedLinop& A) { return A.attr("team").as_integer(); }

Variable distributed_fn(const NamedLinop& A, const Variable& x) {
  const Roles roles = roles_of(A);
  const Team team = team_in(A);
  const PathScope path(A, 0);
  const Variable known = alike(x, team, axes_besides(team, roles.input));
  const Variable part = A[0](replicate(known, team, roles.adjoint));
  return all_reduce(part, team, roles.forward);
}

NamedLinop distributed_adjoint(const NamedLinop& A) {
  const Roles r = roles_of(A);
  return make_distributed(A[0].H(), team_id(A), {r.output, r.input, r.adjoint, r.forward},
                          A.attr("cut_dims"));
}

// A^H A of parts whose results are not summed over ranks: the normal operator of each part, summed
// over the ranks that the adjoint sums over.
NamedLinop distributed_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Roles r = roles_of(A);
  if (!r.forward.empty() || (inner && is_in_parts(*inner))) return {};
  const NamedLinop normal = inner ? A[0].normal(*inner) : A[0].N();
  return make_distributed(normal, team_id(A), {r.input, r.input, r.adjoint, r.adjoint},
                          A.attr("cut_dims"));
}

// All ranks cut the same range of a dimension that they have whole.
NamedLinop distributed_split(const NamedLinop& A, const Tile& tile) {
  for (const CutDim& cut : cut_dims_of(A)) {
    const auto found = tile.find(ND(cut.d));
    if (found != tile.end()) refuse_tiles(A, {*found});
  }
  return make_container(A.type(), {A[0].split(tile)}, A.attrs());
}

std::optional<index_t> distributed_size(const NamedLinop& A, const ND& d) { return A[0].size(d); }

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
  return PALIMPSEST_LINOP_TYPE(.name = "Distributed",
                               .functions = {.fn = distributed_fn,
                                             .split = distributed_split,
                                             .adj_split = distributed_split,
                                             .size = distributed_size},
                               .adjoint = distributed_adjoint, .normal = distributed_normal,
                               .remark = distributed_remark, .assemble = assemble_part,
                               .parts = &kVectorParts);
}

// Text of the arguments that must be equal on all ranks.
std::string agreed_text(const NamedLinop& A, const Team& team, const Placement& placement,
                        const DistributeOptions& options) {
  std::string sizes;
  for (const ND& d : A.dims()) {
    const auto n = A.size(d);
    sizes += " " + d.str() + "=" + (n ? std::to_string(*n) : "?");
  }
  std::string axes;
  for (const TeamAxis& axis : team.axes()) axes += " " + axis.name + std::to_string(axis.size);
  return fmt::format("{}\nsizes{}\nplacement {}\nteam{}{}", A.str(), sizes, placement.str(), axes,
                     options.sums == TeamSums::canonical ? "\ncanonical sums" : "");
}

// All ranks give all of A.
void check_parameters(const NamedLinop& A, const Team& team, const AxisNames& all) {
  for (const auto& [name, p] : A.params()) {
    if (!p.present()) continue;
    const Tensor value = p.value().contiguous();
    check_alike(team, all, content_hash(value.raw_data(), static_cast<std::size_t>(value.nbytes())),
                fmt::format("the parameter {} of {}", name, A.name()));
  }
  for (const NamedLinop& child : A.linops()) check_parameters(child, team, all);
}

// The end of an attempt on one rank: the arguments, and an error if there was one.
struct Attempt {
  std::string arguments, kind, problem;

  std::string str() const { return arguments + '\0' + kind + '\0' + problem; }
  static Attempt parse(const std::string& text) {
    const std::size_t first = text.find('\0'), second = text.find('\0', first + 1);
    return {text.substr(0, first), text.substr(first + 1, second - first - 1),
            text.substr(second + 1)};
  }
};

std::string kind_of(const std::exception& error) {
  if (dynamic_cast<const SplitError*>(&error)) return "split";
  if (dynamic_cast<const ShapeError*>(&error)) return "shape";
  return dynamic_cast<const ValueError*>(&error) ? "value" : "";
}

[[noreturn]] void throw_as(const std::string& kind, const std::string& text) {
  if (kind == "split") throw SplitError(text);
  if (kind == "shape") throw ShapeError(text);
  if (kind == "value") throw ValueError(text);
  throw CommunicationError(text);
}

// Throws on all ranks if one has other arguments or an error. A rank with an error throws its own.
void agree(const Team& team, const Attempt& mine, const std::exception_ptr& error) {
  if (team.is_pretended() || team.size() == 1) {
    if (error) std::rethrow_exception(error);
    return;
  }
  std::vector<Attempt> all;
  for (const std::string& text : gather_texts(team, mine.str())) {
    all.push_back(Attempt::parse(text));
  }
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].arguments == all[0].arguments) continue;
    throw ShapeError(
        fmt::format("[distribute] ranks 0 and {} differ: rank 0 has\n{}\nrank {} has\n{}", r,
                    all[0].arguments, r, all[r].arguments));
  }
  if (error) std::rethrow_exception(error);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].problem.empty()) continue;
    throw_as(all[r].kind, fmt::format("[distribute] rank {} refuses: {}", r, all[r].problem));
  }
}

bool has(const Dims& dims, const ND& d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

}  // namespace

namespace {

// `whole`: undefined where A is a part.
Roles roles_for(const NamedLinop& A, const Placement& placement, const NamedLinop& whole) {
  Roles roles{cuts_in(A.ishape(), placement, whole), cuts_in(A.oshape(), placement, whole), {}, {}};
  for (const auto& [d, axis] : placement.entries()) {
    if (!has(A.dims(), d)) continue;
    if (!has(A.oshape(), d)) roles.forward.push_back(axis);
    if (!has(A.ishape(), d)) roles.adjoint.push_back(axis);
  }
  return roles;
}

CutDims cut_dims_for(const NamedLinop& A, const Placement& placement) {
  CutDims cuts;
  for (const auto& [d, axis] : placement.entries()) {
    if (has(A.dims(), d)) cuts.push_back({d.str(), axis});
  }
  return cuts;
}

// Distributes an operator whose placed dimensions can all be cut.
NamedLinop distribute_whole(const NamedLinop& A, const Team& team, const Placement& placement) {
  Tile tile;
  for (const auto& [d, axis] : placement.entries()) {
    if (!has(A.dims(), d)) continue;  // all ranks along the axis compute the same
    const auto n = A.size(d);
    if (!n) {
      throw ShapeError(fmt::format(
          "[distribute] {}: the size of {} is unknown. Try with_sizes({{{{\"{}\", ..}}}})",
          A.name(), d.str(), d.str()));
    }
    const PartRange range = part_range(*n, team.coordinate(axis), team.size(axis));
    tile.emplace(d, slice(range.start, range.stop));
  }
  return make_distributed(part_of_tile(A, tile), team.node().id, roles_for(A, placement, A),
                          attribute_of(cut_dims_for(A, placement)));
}

// Positions of the placed axes along which A cannot be cut.
Axes refused_axes(const NamedLinop& A, const Placement& placement) {
  Axes refused;
  for (std::size_t axis = 0; axis < A.ishape().size(); ++axis) {
    const ND& d = A.ishape()[axis];
    const auto team_axis = placement.axis_of(d);
    const auto n = team_axis ? A.size(d) : std::nullopt;
    if (!n) continue;
    if (*n < 2) {
      // It need not be cut, but the result may be placed by another name.
      const Placement one(Placement::Entries{{d, *team_axis}});
      if (placement_behind(A, one) != one) refused.push_back(static_cast<index_t>(axis));
      continue;
    }
    try {
      A.split({{d, slice(0, *n / 2)}});
    } catch (const SplitError&) {
      refused.push_back(static_cast<index_t>(axis));
    }
  }
  return refused;
}

// True for operators side by side that each have the placed dimensions in both of their shapes.
bool is_side_by_side(const NamedLinop& A, const Placement& placement) {
  if (&A.type() != &linop_types::stack() && &A.type() != &linop_types::add()) return false;
  return std::all_of(
      placement.entries().begin(), placement.entries().end(), [&](const auto& entry) {
        return std::all_of(A.linops().begin(), A.linops().end(), [&](const NamedLinop& child) {
          const ND& d = entry.first;
          return (has(child.ishape(), d) && has(child.oshape(), d)) || !has(A.dims(), d);
        });
      });
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

NamedLinop distribute_parts(const NamedLinop& A, const Team& team, const Placement& in_front);

// An operator that knows its sizes.
NamedLinop distribute_one(const NamedLinop& A, const Team& team, const Placement& placement) {
  if (transforms_placed(A, placement)) return distributed_fft(A, team, placement);
  const Axes refused = refused_axes(A, placement);
  if (refused.empty()) return distribute_whole(A, team, placement);
  if (is_side_by_side(A, placement)) {
    LinopData data = copy_data(A);
    for (NamedLinop& child : data.children) {
      child = distribute_parts(sized(child, A), team, placement);
    }
    data.shape = with_sizes_in(data.shape, sizes_of_part(A, team, placement, placement));
    return from_data(std::move(data));
  }
  if (A.ishape().size() != A.oshape().size()) return distribute_whole(A, team, placement);
  const NamedLinop stencil = distributed_stencil(A, team, placement, refused);
  return stencil.defined() ? stencil : distributed_elsewhere(A, team, placement, refused);
}

// Distributes one part after the other. A part that renames a placed dimension hands its cut on to
// the new name.
NamedLinop distribute_parts(const NamedLinop& A, const Team& team, const Placement& in_front) {
  Placement placement = in_front;
  std::vector<NamedLinop> parts;
  for (const NamedLinop& part : flatten(A)) {
    const NamedLinop known = sized(part, A);
    parts.push_back(distribute_one(known, team, placement));
    placement = placement_behind(known, placement);
  }
  return parts.size() == 1 ? parts[0] : Chain(std::move(parts));
}

// True if some part cannot be cut where the placement cuts it.
bool needs_exchange(const NamedLinop& A, Placement placement) {
  for (const NamedLinop& part : flatten(A)) {
    const NamedLinop known = sized(part, A);
    if (transforms_placed(known, placement) || !refused_axes(known, placement).empty()) {
      return true;
    }
    placement = placement_behind(known, placement);
  }
  return false;
}

// Without axes of one rank, along which nothing is cut.
Placement cutting(const Placement& placement, const Team& team) {
  Placement::Entries entries = placement.entries();
  std::erase_if(entries, [&](const auto& entry) { return team.size(entry.second) == 1; });
  return Placement(std::move(entries));
}

}  // namespace

namespace {

// This rank's part. It does not communicate.
NamedLinop part_of(const NamedLinop& A, const Team& team, const Placement& placement,
                   const DistributeOptions& options) {
  placement.check(team);
  if (options.sums == TeamSums::canonical) {
    const auto& entries = placement.entries();
    if (entries.size() == 1 && has(A.dims(), entries[0].first)) {
      const auto& [d, axis] = entries[0];
      const bool sums = !has(A.ishape(), d) || !has(A.oshape(), d);
      if (sums) return distributed_leaves(A, team, d, axis);
    } else {
      throw ValueError(fmt::format(
          "[distribute] canonical sums: got the placement {}, expected one dimension of {}",
          placement.str(), A.name()));
    }
  }
  // A dimension may be named as the last operator has it.
  Placement in_front = cutting(placement, team);
  const std::vector<NamedLinop> parts = flatten(A);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    in_front = placement_before(*part, in_front);
  }
  return needs_exchange(A, in_front) ? distribute_parts(A, team, in_front)
                                     : distribute_whole(A, team, in_front);
}

}  // namespace

NamedLinop distribute(const NamedLinop& A, const Team& team, const Placement& placement,
                      const DistributeOptions& options) {
  Attempt mine;
  NamedLinop made;
  std::exception_ptr error;
  try {
    mine.arguments = agreed_text(A, team, placement, options);
    made = part_of(A, team, placement, options);
  } catch (const std::exception& e) {
    mine.kind = kind_of(e);
    mine.problem = e.what();
    error = std::current_exception();
  }
  agree(team, mine, error);
  if (config().mode == "DebugMode" && team.size() > 1 && !team.is_pretended()) {
    check_parameters(A, team, axes_besides(team, {}));
  }
  return made;
}

NamedLinop join_parts(const NamedLinop& part, const Team& team, const Placement& placement) {
  placement.check(team);
  return make_distributed(part, team.node().id, roles_for(part, placement, {}),
                          attribute_of(cut_dims_for(part, placement)));
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
