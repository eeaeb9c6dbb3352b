// SPDX-License-Identifier: Apache-2.0
// Teams of ranks, placements, and arrays in parts on the ranks.
#include "palimpsest/distributed/dtensor.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/python/distributed/placement_object.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

// The items of a dict, in its order.
nb::object items_of(nb::handle object) { return object.attr("items")(); }

nb::dict axes_object(const Team& team) {
  nb::dict axes;
  for (const TeamAxis& axis : team.axes()) axes[axis.name.c_str()] = axis.size;
  return axes;
}

nb::dict entries_object(const Placement& placement) {
  nb::dict entries;
  for (const auto& [d, axis] : placement.entries()) entries[d.str().c_str()] = axis;
  return entries;
}

// The team of a communicator of mpi4py. A caller with a communicator has imported mpi4py.
Team team_of_communicator(nb::handle comm, std::optional<TeamAxes> axes, double timeout_s) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object mpi = modules.attr("get")("mpi4py.MPI");
  if (mpi.is_none() || !nb::isinstance(comm, mpi.attr("Comm"))) {
    throw TypeError("[Team.of] comm: got " + class_name(comm) +
                    ", expected a communicator of mpi4py. Try Team.world().");
  }
  const auto address = nb::cast<std::uintptr_t>(mpi.attr("_addressof")(comm));
  const int size = nb::cast<int>(comm.attr("Get_size")());
  const TeamAxes shape = axes.value_or(TeamAxes{{"rank", size}});
  return released(
      [&] { return Team::of(reinterpret_cast<const void*>(address), shape, timeout_s); });
}

void bind_team(nb::module_& m) {
  nb::class_<Team>(m, "Team", "Ranks that one mpirun started, with a shape.")
      .def(
          "__init__",
          [](Team* self, std::optional<TeamAxes> axes, double timeout_s) {
            new (self) Team(released([&] { return axes ? Team(*axes, timeout_s) : Team(); }));
          },
          "axes"_a.none() = nb::none(), nb::kw_only(), "timeout_s"_a = 60.0)
      .def_static(
          "world",
          [](double timeout_s) { return released([&] { return Team::world(timeout_s); }); },
          nb::kw_only(), "timeout_s"_a = 60.0)
      .def_static("of", team_of_communicator, "comm"_a, "axes"_a.none() = nb::none(), nb::kw_only(),
                  "timeout_s"_a = 60.0)
      .def_static(
          "pretend", [](TeamAxes axes, int rank) { return Team::pretend(axes, rank); }, "axes"_a,
          "rank"_a = 0)
      .def_prop_ro("rank", &Team::rank)
      .def_prop_ro("size", [](const Team& t) { return t.size(); })
      .def_prop_ro("axes", [](const Team& t) { return Shown<"dict[str, int]">(axes_object(t)); })
      .def_prop_ro("is_pretended", &Team::is_pretended)
      .def_prop_ro("timeout_s", &Team::timeout_s)
      .def(
          "coordinate", [](const Team& t, const std::string& axis) { return t.coordinate(axis); },
          "axis"_a)
      .def("seen_from", &Team::seen_from, "rank"_a)
      .def(
          "reshaped", [](const Team& t, TeamAxes axes) { return t.reshaped(axes); }, "axes"_a)
      .def(
          "__eq__",
          [](const Team& a, nb::handle b) {
            return nb::isinstance<Team>(b) && a == nb::cast<const Team&>(b);
          },
          nb::arg("other").none())
      .def("__hash__", [](const Team& t) { return reinterpret_cast<std::uintptr_t>(&t.node()); })
      .def("__repr__", &Team::str);
  m.def(
      "part_range",
      [](index_t extent, int part, int parts) {
        if (extent < 0 || parts < 1 || part < 0 || part >= parts) {
          throw ValueError("[part_range] got part " + std::to_string(part) + " of " +
                           std::to_string(parts) + " of " + std::to_string(extent) +
                           " indices, expected a part below the number of parts.");
        }
        const PartRange range = part_range(extent, part, parts);
        return Shown<"range">(
            nb::borrow(reinterpret_cast<PyObject*>(&PyRange_Type))(range.start, range.stop));
      },
      "extent"_a, "part"_a, "parts"_a, "The indices of a part of a dimension that is cut evenly.");
}

void bind_placement(nb::module_& m) {
  nb::class_<PlacementObject>(m, "Placement", "Which dimension each axis of a team cuts.")
      .def(
          "__init__",
          [](PlacementObject* self, Placement entries) {
            new (self) PlacementObject{std::move(entries)};
          },
          "entries"_a = nb::dict())
      .def_prop_ro(
          "entries",
          [](const PlacementObject& p) { return Shown<"dict[str, str]">(entries_object(p.value)); })
      .def(
          "axis_of", [](const PlacementObject& p, ND d) { return p.value.axis_of(d); }, "d"_a)
      .def(
          "check", [](const PlacementObject& p, const Team& team) { p.value.check(team); },
          "team"_a)
      .def(
          "__eq__",
          [](const PlacementObject& p, nb::handle other) {
            const bool is_one = nb::isinstance<PlacementObject>(other) || PyDict_Check(other.ptr());
            return is_one && p.value == from_python<Placement>(other);
          },
          nb::arg("other").none())
      .def("__hash__", [](const PlacementObject& p) { return nb::hash(nb::cast(p.value.str())); })
      .def("__repr__", [](const PlacementObject& p) { return p.value.str(); })
      .def("__reduce__", [](const PlacementObject& p) {
        return nb::make_tuple(nb::type<PlacementObject>(), nb::make_tuple(entries_object(p.value)));
      });
}

std::optional<Tensor> whole_of(nb::handle whole) {
  if (whole.is_none()) return std::nullopt;
  return from_python<Tensor>(whole);
}

// A rank that has no array gives its type; one that has it need not.
TensorType type_of(const std::optional<Tensor>& whole, std::optional<TensorType> type) {
  if (type) return *type;
  if (whole) return {whole->dtype(), whole->shape(), whole->device()};
  throw TypeError(
      "[DTensor.scatter] got neither an array nor a type. Try type=(dtype, shape) on ranks that do "
      "not have the array.");
}

void bind_arrays(nb::module_& m) {
  nb::class_<DTensor>(m, "DTensor", "An array in parts on the ranks of a team.")
      .def_static(
          "from_local",
          [](Tensor local, Dims dims, Extents global_shape, const Team& team, Placement placement) {
            return released(
                [&] { return DTensor::from_local(local, dims, global_shape, team, placement); });
          },
          "local"_a, "dims"_a, "global_shape"_a, "team"_a, "placement"_a)
      .def_static(
          "part_of",
          [](Tensor whole, Dims dims, const Team& team, Placement placement) {
            return DTensor::part_of(whole, dims, team, placement);
          },
          "whole"_a, "dims"_a, "team"_a, "placement"_a)
      .def_static(
          "scatter",
          [](nb::handle whole, Dims dims, const Team& team, Placement placement, int root,
             std::optional<TensorType> type) {
            const auto given = whole_of(whole);
            const TensorType known = type_of(given, std::move(type));
            return released(
                [&] { return DTensor::scatter(given, known, dims, team, placement, root); });
          },
          "whole"_a.none(), "dims"_a, "team"_a, "placement"_a, "root"_a = 0, nb::kw_only(),
          "type"_a.none() = nb::none())
      .def_prop_ro("local", [](const DTensor& d) { return d.local(); })
      .def_prop_ro("dims", [](const DTensor& d) { return d.dims(); })
      .def_prop_ro("global_shape", [](const DTensor& d) { return d.global_shape(); })
      .def_prop_ro("team", [](const DTensor& d) { return d.team(); })
      .def_prop_ro("placement",
                   [](const DTensor& d) { return Shown<"Placement">(to_python(d.placement())); })
      .def(
          "ranges_of",
          [](const DTensor& d, int rank) {
            nb::list ranges;
            for (const PartRange& r : d.ranges_of(rank)) {
              ranges.append(
                  nb::borrow(reinterpret_cast<PyObject*>(&PyRange_Type))(r.start, r.stop));
            }
            return Shown<"tuple[range, ...]">(nb::tuple(ranges));
          },
          "rank"_a)
      .def(
          "gather",
          [](const DTensor& d, int root) {
            const auto whole = released([&] { return d.gather(root); });
            return Shown<"Tensor | None">(whole ? to_python(*whole) : nb::none());
          },
          "root"_a = 0)
      .def("gather_to_all",
           [](const DTensor& d) { return released([&] { return d.gather_to_all(); }); })
      .def(
          "redistribute",
          [](const DTensor& d, Placement placement) {
            return released([&] { return d.redistribute(placement); });
          },
          "placement"_a)
      .def("__repr__", [](const DTensor& d) {
        return "DTensor(" + d.dims().str() + ", " + str_of(to_python(d.global_shape())) + ", " +
               d.placement().str() + " of " + d.team().str() + ")";
      });
}

}  // namespace

TeamAxes From<TeamAxes>::from(nb::handle object) {
  if (!nb::hasattr(object, "items")) {
    throw TypeError("[Team] axes: got " + class_name(object) +
                    ", expected a dict of names and numbers of ranks. Try {'rank': 4}.");
  }
  TeamAxes axes;
  for (nb::handle item : items_of(object)) {
    const index_t n = integer_of(item[1], "a number of ranks along an axis");
    axes.push_back({text_of(item[0], "the name of an axis"),
                    static_cast<int>(std::clamp<index_t>(n, 0, 1 << 30))});
  }
  return axes;
}

Placement From<Placement>::from(nb::handle object) {
  if (nb::isinstance<PlacementObject>(object)) return nb::cast<PlacementObject&>(object).value;
  if (!nb::hasattr(object, "items")) {
    throw TypeError("[Placement] got " + class_name(object) +
                    ", expected a dict of dimensions and axes of a team. Try {'C': 'rank'}.");
  }
  Placement::Entries entries;
  for (nb::handle item : items_of(object)) {
    entries.emplace_back(from_python<ND>(item[0]), text_of(item[1], "the name of an axis"));
  }
  return Placement(std::move(entries));
}

nb::object to_python(const Placement& placement) { return nb::cast(PlacementObject{placement}); }

void bind_teams(nb::module_& m) {
  bind_team(m);
  bind_placement(m);
  bind_arrays(m);
}

}  // namespace palimpsest::python
