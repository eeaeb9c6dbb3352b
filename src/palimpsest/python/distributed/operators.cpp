// SPDX-License-Identifier: Apache-2.0
// Operators that ranks apply together, with the bytes that each holds and sends.
#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/distributed/exchange_operators.hpp"
#include "palimpsest/distributed/gather_operator.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/python/distributed/placement_object.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {
PALIMPSEST_NAMES(TeamSums, "sums", "by_rank", "canonical")
PALIMPSEST_NAMES(Direction, "direction", "forward", "adjoint", "normal")
PALIMPSEST_NAMES(HaloBoundary, "boundary", "zero", "periodic", "nearest")
PALIMPSEST_OPTIONS(HaloOptions)
template <>
std::string annotation<Team>() {
  return "Team";
}
}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(TeamSums)
PALIMPSEST_ARGUMENT(Direction)

namespace palimpsest::python {
namespace {

void bind_parts(nb::module_& m) {
  m.def(
      "distribute",
      [](NamedLinop A, const Team& team, Placement placement, TeamSums sums) {
        return released([&] { return distribute(A, team, placement, {.sums = sums}); });
      },
      "A"_a, "team"_a, "placement"_a, nb::kw_only(), "sums"_a = "by_rank");
  m.def(
      "join_parts",
      [](NamedLinop part, const Team& team, Placement placement) {
        return join_parts(part, team, placement);
      },
      "part"_a, "team"_a, "placement"_a);
  m.def(
      "is_distributed", [](NamedLinop A) { return is_distributed(A); }, "A"_a);
  m.def(
      "team_of", [](NamedLinop A) { return team_of(A); }, "A"_a);
  m.def(
      "local_part", [](NamedLinop A) { return local_part(A); }, "A"_a);
  m.def(
      "gather_operator",
      [](NamedLinop A, int root) {
        const auto whole = released([&] { return gather_operator(A, root); });
        return Shown<"NamedLinop | None">(whole ? to_python(*whole) : nb::none());
      },
      "A"_a, "root"_a = 0);
  m.def(
      "save_distributed",
      [](NamedLinop A, const std::string& path) { released([&] { save_distributed(A, path); }); },
      "A"_a, "path"_a);
}

void bind_exchanges(nb::module_& m) {
  using Axes = std::vector<std::string>;
  m.def(
      "AllReduce",
      [](Dims dims, const Team& team, Axes axes) { return AllReduce(dims, team, axes); }, "dims"_a,
      "team"_a, "axes"_a);
  m.def(
      "Broadcast",
      [](Dims dims, const Team& team, Axes axes) { return Broadcast(dims, team, axes); }, "dims"_a,
      "team"_a, "axes"_a);
  m.def(
      "Redistribute",
      [](Dims dims, Extents shape, const Team& team, Placement from, Placement to,
         std::optional<Dims> out) { return Redistribute(dims, shape, team, from, to, out); },
      "dims"_a, "shape"_a, "team"_a, "from_"_a, "to"_a, "out"_a.none() = nb::none());
  m.def(
      "Scatter",
      [](Dims dims, Extents shape, const Team& team, Placement placement, std::optional<Dims> out) {
        return Scatter(dims, shape, team, placement, out);
      },
      "dims"_a, "shape"_a, "team"_a, "placement"_a, "out"_a.none() = nb::none());
  m.def(
      "Gather",
      [](Dims dims, Extents shape, const Team& team, Placement placement, std::optional<Dims> out) {
        return Gather(dims, shape, team, placement, out);
      },
      "dims"_a, "shape"_a, "team"_a, "placement"_a, "out"_a.none() = nb::none());
  def_with_options(m, "Halo", &Halo, {"dims", "d", "extent", "team", "axis"});
}

void bind_plan_classes(nb::module_& m) {
  nb::class_<Traffic>(m, "Traffic", "Messages that one process sends.")
      .def_ro("bytes", &Traffic::bytes)
      .def_ro("messages", &Traffic::messages)
      .def_ro("synchronisations", &Traffic::synchronisations)
      .def("__repr__", [](const Traffic& t) {
        return "Traffic(bytes=" + std::to_string(t.bytes) +
               ", messages=" + std::to_string(t.messages) +
               ", synchronisations=" + std::to_string(t.synchronisations) + ")";
      });
  nb::class_<RankPlan>(m, "RankPlan", "Bytes that one rank holds and sends.")
      .def_ro("rank", &RankPlan::rank)
      .def_ro("peak_bytes", &RankPlan::peak_bytes)
      .def_ro("input_bytes", &RankPlan::input_bytes)
      .def_ro("parameter_bytes", &RankPlan::parameter_bytes)
      .def_prop_ro("total_bytes", &RankPlan::total_bytes)
      .def_prop_ro("traffic", [](const RankPlan& r) { return r.traffic; });
  nb::class_<TeamPlan>(m, "TeamPlan", "Bytes that each rank of a team holds and sends.")
      .def_prop_ro("ranks", [](const TeamPlan& p) { return p.ranks; })
      .def_prop_ro("largest", [](const TeamPlan& p) { return p.largest(); })
      .def_prop_ro("smallest", [](const TeamPlan& p) { return p.smallest(); })
      .def_prop_ro("traffic", &TeamPlan::traffic)
      .def("__str__", &TeamPlan::str)
      .def("__repr__", &TeamPlan::str);
  nb::class_<SmallestTeam>(m, "SmallestTeam", "The fewest ranks that a budget needs.")
      .def_ro("ranks", &SmallestTeam::ranks)
      .def_prop_ro("placement",
                   [](const SmallestTeam& t) { return Shown<"Placement">(to_python(t.placement)); })
      .def_prop_ro("plan", [](const SmallestTeam& t) { return t.plan; });
}

void bind_plans(nb::module_& m) {
  bind_plan_classes(m);
  m.def(
      "plan_on_team",
      [](NamedLinop A, const Team& team, Placement placement, TensorType x, Direction direction) {
        return released([&] { return plan_on_team(A, team, placement, x, direction); });
      },
      "A"_a, "team"_a, "placement"_a, "x"_a, "direction"_a = "forward");
  m.def(
      "smallest_team",
      [](NamedLinop A, nb::handle bytes, TensorType x, Direction direction, Dims candidates,
         int most_ranks) {
        const index_t limit = bytes_of(bytes);
        const SmallestTeamOptions options{.candidates = candidates, .most_ranks = most_ranks};
        return released([&] { return smallest_team(A, limit, x, direction, options); });
      },
      "A"_a, "bytes"_a, "x"_a, "direction"_a = "forward", nb::kw_only(),
      "candidates"_a = nb::make_tuple(), "most_ranks"_a = 1024);
  m.def(
      "traffic_of", [](const PlanObject& plan) { return traffic_of(*plan.plan); }, "plan"_a);
  m.def(
      "part_of",
      [](TensorType x, Dims dims, const Team& team, Placement placement) {
        return Shown<"TensorType">(nb::cast(TypeObject{part_of(x, dims, team, placement)}));
      },
      "x"_a, "dims"_a, "team"_a, "placement"_a);
}

}  // namespace

void bind_distributed(nb::module_& m) {
  bind_parts(m);
  bind_exchanges(m);
  bind_plans(m);
}

}  // namespace palimpsest::python
