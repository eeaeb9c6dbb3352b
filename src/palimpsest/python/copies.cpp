// SPDX-License-Identifier: Apache-2.0
// Copies and pickles of objects without data. An object that cannot change is its own copy. An
// object that a pickle cannot hold raises an error with an alternative.
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

// Makes the objects of a type copies of themselves.
void copied_as_itself(nb::handle type) {
  const auto itself = [](nb::handle self) { return nb::borrow(self); };
  const auto deep = [](nb::handle self, nb::handle) { return nb::borrow(self); };
  nb::setattr(type, "__copy__", nb::cpp_function(itself, nb::is_method(), nb::scope(type)));
  nb::setattr(type, "__deepcopy__", nb::cpp_function(deep, nb::is_method(), nb::scope(type)));
}

// A class that inherits from one which is copied as itself goes by __reduce__.
void copied_by_reduce(nb::handle type) {
  const auto deep = [](nb::handle self, nb::handle memo) {
    const nb::object parts = self.attr("__reduce__")();
    const nb::object arguments =
        nb::module_::import_("copy").attr("deepcopy")(nb::object(parts[1]), memo);
    return nb::object(nb::object(parts[0])(*nb::tuple(arguments)));
  };
  nb::setattr(type, "__deepcopy__", nb::cpp_function(deep, nb::is_method(), nb::scope(type)));
}

void refuses_pickles(nb::handle type, const char* instead) {
  const auto refuse = [instead](nb::handle self) -> nb::object {
    throw TypeError("[pickle] got a " + class_name(self) +
                    ", expected an object that stays the same outside of this process. Try " +
                    instead + ".");
  };
  nb::setattr(type, "__reduce__", nb::cpp_function(refuse, nb::is_method(), nb::scope(type)));
}

struct Refusal {
  const char *name, *instead;
  bool is_constant;
};
constexpr Refusal kRefusals[] = {
    {"Variable", "function(): pickles of functions hold graphs", true},
    {"In", "function(): pickles of functions hold graphs", true},
    {"Out", "function(): pickles of functions hold graphs", true},
    {"Mode", "to make the mode where it is used, or its name", true},
    {"Plan", "to_json()", true},
    {"SolvePlan", "a dict of its numbers", true},
    {"TeamPlan", "a dict of its numbers", true},
    {"RankPlan", "a dict of its numbers", true},
    {"Team", "to make the team in each process", true},
    {"DTensor", "gather(), or a file of each rank", false},
    {"SolveInfo", "to keep its numbers", false},
    {"MemoryScope", "to keep its numbers", false},
    {"CopyStats", "to keep its numbers", false},
};

}  // namespace

void bind_copies(nb::module_& m) {
  for (const auto& [name, instead, is_constant] : kRefusals) {
    const nb::object type = m.attr(name);
    refuses_pickles(type, instead);
    if (is_constant) copied_as_itself(type);
  }
  copied_as_itself(m.attr("BatchSpec"));
  copied_by_reduce(m.attr("SharedVariable"));
  copied_by_reduce(m.attr("Parameter"));
}

}  // namespace palimpsest::python
