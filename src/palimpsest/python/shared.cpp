// SPDX-License-Identifier: Apache-2.0
// Shared variables: state between calls.
#include "palimpsest/run/shared.hpp"

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {

SharedObject::SharedObject(SharedVariable variable, Kind of)
    : VariableObject{variable.var()}, shared(std::move(variable)), kind(of) {}

nb::object value_in_kind(Container& container, Kind kind, bool borrow, bool internal) {
  Tensor value = released(
      [&] { return container.get_value({.borrow = borrow, .return_internal_type = internal}); });
  if (borrow && (internal || kind == Kind::tensor)) return borrowed_from(container, value);
  if (internal) return to_python(value);
  return borrow ? export_in_place(std::move(value), kind) : export_array(std::move(value), kind);
}

void change_in_place(const std::function<void(const std::function<void(Tensor&)>&)>& modify,
                     Container& container, nb::handle change) {
  released([&] {
    modify([&](Tensor& value) {
      const Locked locked;
      change(borrowed_from(container, value));
    });
  });
}

namespace {

using Self = SharedObject&;

SharedShape fixed_extents(nb::handle shape) {
  if (shape.ptr() == Py_Ellipsis) return {};
  if (shape.is_none()) return std::nullopt;
  Extents extents;
  for (nb::handle item : shape) {
    extents.push_back(item.is_none() ? kUnknown : integer_of(item, "an extent or None"));
  }
  return extents;
}

SharedObject make_shared_variable(nb::handle value, const std::optional<std::string>& name,
                                  bool strict, std::optional<bool> allow_downcast, bool borrow,
                                  nb::handle shape, std::optional<Device> device) {
  const Value first = value_of(value, !borrow && !strict);
  const Kind kind = is_array(value) ? kind_of(value) : Kind::numpy;
  SharedOptions options{.name = name.value_or(""),
                        .borrow = borrow,
                        .strict = strict,
                        .allow_downcast = allow_downcast,
                        .shape = fixed_extents(shape),
                        .device = device};
  return {released([&] { return shared(first, options); }), kind};
}

// The container, without an update by functions of another process.
nb::object reduced(Self self) {
  const Container& container = self.shared.container();
  if (container.default_update().defined()) {
    throw NotSupported("[pickle] got the shared variable '" + container.name() +
                       "' with a default update, expected one without. Try default_update = None.");
  }
  return nb::make_tuple(
      nb::module_::import_("palimpsest._pickles").attr("shared_of_container"),
      nb::make_tuple(object_of(self.shared.container_ptr()), static_cast<int>(self.kind)));
}

SharedObject shared_on(nb::handle object, int kind) {
  const std::shared_ptr<Container> container = container_in(object);
  return {SharedVariable(container->type(), container), static_cast<Kind>(kind)};
}

}  // namespace

void bind_shared(nb::module_& m) {
  nb::class_<SharedObject, VariableObject>(m, "SharedVariable",
                                           "A Variable whose value lives between calls.")
      .def(
          "get_value",
          [](Self self, bool borrow, bool return_internal_type) {
            return value_in_kind(self.shared.container(), self.kind, borrow, return_internal_type);
          },
          "borrow"_a = false, "return_internal_type"_a = false,
          "The value, as the kind of the first one; with borrow its own memory.")
      .def(
          "set_value",
          [](Self self, nb::handle value, bool borrow) {
            const bool may_copy = !borrow && !self.shared.container().strict();
            const Value given = value_of(value, may_copy);
            released([&] { self.shared.set_value(given, {.borrow = borrow}); });
          },
          "value"_a.none(), "borrow"_a = false)
      .def(
          "modify",
          [](Self self, nb::handle change) {
            change_in_place([&](const auto& f) { self.shared.modify(f); }, self.shared.container(),
                            change);
          },
          "change"_a, "Calls change(tensor) on the value, in place.")
      .def(
          "exchange",
          [](Self self, nb::handle value) {
            Value given = value_of(value, !self.shared.container().strict());
            Tensor old = released([&] { return self.shared.exchange(std::move(given)); });
            return export_array(std::move(old), self.kind);
          },
          "value"_a.none(), "Stores a value and returns the old one; neither is copied.")
      .def(
          "zero",
          [](Self self, bool borrow) { released([&] { self.shared.zero({.borrow = borrow}); }); },
          "borrow"_a = false)
      .def(
          "touch", [](Self self) { self.shared.container().touch(); },
          "Announces a write through borrowed memory.")
      .def_prop_ro("version", [](Self self) { return self.shared.version(); })
      .def_prop_rw(
          "default_update",
          [](Self self) -> nb::object {
            return to_python(self.shared.container().default_update());
          },
          [](Self self, nb::handle expression) {
            self.shared.set_default_update(
                expression.is_none() ? Variable() : from_python<Variable>(expression));
          },
          nb::for_setter(nb::arg("expression").none()))
      .def("__copy__", [](Self self) { return SharedObject(self); })
      .def("__reduce__", reduced);
  m.def("_shared_on", shared_on, "container"_a, "kind"_a);
  m.def("shared", make_shared_variable, "value"_a.none(), "name"_a.none() = nb::none(),
        "strict"_a = false, "allow_downcast"_a.none() = nb::none(), nb::kw_only(),
        "borrow"_a = false, "shape"_a.none() = nb::ellipsis(), "device"_a.none() = nb::none(),
        "A shared variable of the dtype and the extents of a value.\n\n"
        "Parameters\n----------\nvalue : array or number\n    Copied lazily, or used itself with "
        "borrow=True.\nshape : sequence of int or None, or None\n    Extents that stay, by default "
        "those of the value; an entry None is an open extent. None: all extents are open.");
}

}  // namespace palimpsest::python
