// SPDX-License-Identifier: Apache-2.0
// Operators with functions written in Python: they build graphs.
#include <array>
#include <deque>
#include <set>
#include <unordered_set>

#include "palimpsest/linop/core/replace_linop.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/errors.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {

namespace {

enum Role {
  fn,
  adj_fn,
  normal_fn,
  adj_normal_fn,
  split,
  adj_split,
  size,
  check,
  adjoint,
  role_count
};
constexpr std::array<const char*, role_count> kRoles{
    "fn", "adj_fn", "normal_fn", "adj_normal_fn", "split", "adj_split", "size", "check", "adjoint"};
// Names of the roles, for notes.
constexpr std::array<const char*, role_count> kParts{
    "forward", "adjoint", "normal", "normal of the adjoint", "split", "split of the adjoint",
    "size",    "check",   "adjoint"};

// Dimensions without the brackets.
std::string listed(const Dims& dims) {
  const std::string text = dims.str();
  return text.starts_with('(') ? text.substr(1, text.size() - 2) : text;
}

// While it lives, the calling thread is in a function that builds a graph.
class Building {
 public:
  Building() { ++depth; }
  ~Building() { --depth; }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  static constinit thread_local int depth;
};
constinit thread_local int Building::depth = 0;

// A type with functions of Python, which the list `functions` keeps alive.
struct PythonType : LinopType {
  std::string module;
  bool has_name = true;  // the module has it by its name
  std::array<nb::handle, role_count> functions;
  nb::handle python_class;  // derived from NamedLinop; may be none
};

constinit GlobalObject functions;  // a list

// Types live as long as the process: operators refer to them.
constinit Global<std::deque<PythonType>> all_types;
std::deque<PythonType>& types() { return all_types.get(); }
constinit Global<std::unordered_set<const LinopType*>> known_types;

nb::object function_of(const NamedLinop& A, Role role) {
  functions.get();  // throws where they are gone
  return nb::borrow(static_cast<const PythonType&>(A.type()).functions[role]);
}

const PythonType* find_python_type(const NamedLinop& A) {
  const bool is_known = known_types.get().contains(&A.type());
  return is_known ? static_cast<const PythonType*>(&A.type()) : nullptr;
}

// Calls a function of the type with the lock of the interpreter; an exception gets a note.
template <class Result, class... Arguments>
Result call(Role role, const NamedLinop& A, const Arguments&... arguments) {
  try {
    const nb::object result = function_of(A, role)(to_python(A), arguments...);
    if constexpr (!std::is_void_v<Result>) return from_python<Result>(result);
  } catch (nb::python_error& error) {
    add_note(error, nb::cast("while building " + A.type().name + " (" + listed(A.ishape()) +
                             " -> " + listed(A.oshape()) + "), " + kParts[role]));
    throw;
  }
}

template <Role role>
Variable build(const NamedLinop& A, const Variable& x) {
  const Locked locked;
  const Building scope;
  return call<Variable>(role, A, to_python(x));
}

template <Role role>
NamedLinop cut(const NamedLinop& A, const Tile& tile) {
  const Locked locked;
  return call<NamedLinop>(role, A, tile_object(tile));
}

std::optional<index_t> known_size(const NamedLinop& A, const ND& d) {
  const Locked locked;
  const nb::object result = function_of(A, Role::size)(to_python(A), to_python(d));
  if (result.is_none()) return std::nullopt;
  return integer_of(result, "a size");
}

NamedLinop adjoint_of(const NamedLinop& A) {
  const Locked locked;
  return call<NamedLinop>(Role::adjoint, A);
}

void check_arguments(const NamedLinop& A) {
  const Locked locked;
  call<void>(Role::check, A);
}

std::size_t define(const std::string& name, const std::string& module, bool has_name,
                   nb::dict given, int version, bool is_real_linear, nb::handle python_class) {
  PythonType type;
  type.name = name;
  type.version = version;
  type.real_linear = is_real_linear;
  type.module = module;
  type.has_name = has_name;
  for (std::size_t role = 0; role < kRoles.size(); ++role) {
    if (!given.contains(kRoles[role])) continue;
    type.functions[role] = given[kRoles[role]];
    functions.get().attr("append")(type.functions[role]);
  }
  if (!python_class.is_none()) {
    type.python_class = python_class;
    functions.get().attr("append")(python_class);
  }
  const auto is_given = [&](Role role) { return type.functions[role].is_valid(); };
  type.LinopType::functions.fn = build<fn>;
  if (is_given(adj_fn)) type.LinopType::functions.adj_fn = build<adj_fn>;
  if (is_given(normal_fn)) type.LinopType::functions.normal_fn = build<normal_fn>;
  if (is_given(adj_normal_fn)) type.adj_normal_fn = build<adj_normal_fn>;
  if (is_given(split)) type.LinopType::functions.split = cut<split>;
  if (is_given(adj_split)) type.LinopType::functions.adj_split = cut<adj_split>;
  if (is_given(Role::size)) type.LinopType::functions.size = known_size;
  if (is_given(Role::check)) type.check = check_arguments;
  if (is_given(Role::adjoint)) type.adjoint = adjoint_of;
  types().push_back(std::move(type));
  known_types.get().insert(&types().back());
  if (has_name) replace_linop(types().back());
  return types().size() - 1;
}

bool is_parameter(nb::handle value) {
  return nb::isinstance<VariableObject>(value) || is_array(value);
}

NamedLinop make(std::size_t index, Dims ishape, std::optional<Dims> oshape,
                std::optional<std::string> name, DimMap sizes, nb::dict values) {
  Parameters parameters;
  Attributes attributes;
  for (const auto& [key, value] : values) {
    const std::string text = nb::cast<std::string>(key);
    if (is_parameter(value)) {
      parameters.emplace_back(text, from_python<Parameter>(value));
    } else {
      attributes.emplace_back(text, attribute_of(value));
    }
  }
  NamedLinop A = make_linop(types().at(index), NamedShape(ishape, oshape.value_or(ishape)),
                            std::move(parameters), std::move(attributes));
  if (name) A.set_name(*name);
  return sizes.empty() ? A : A.with_sizes(sizes);
}

// The functions in effect, by their roles: those of an adjoint are exchanged.
nb::dict functions_in(const NamedLinop& A) {
  const PythonType* const type = find_python_type(A);
  nb::dict found;
  if (!type) return found;
  constexpr std::array<Role, 6> exchanged{adj_fn, fn, adj_normal_fn, normal_fn, adj_split, split};
  for (std::size_t role = 0; role < kRoles.size(); ++role) {
    const bool is_exchanged = A.is_flipped() && role < exchanged.size();
    const std::size_t in_effect = is_exchanged ? std::size_t{exchanged[role]} : role;
    const nb::handle function = type->functions[in_effect];
    if (function.is_valid()) found[kRoles[role]] = function;
  }
  return found;
}

// The operator with the functions of another type.
NamedLinop with_type(const NamedLinop& A, std::size_t index) {
  NamedLinop made = make_linop(types().at(index), A.shape(), A.params(), A.attrs());
  made.set_name(A.name());
  const DimMap sizes = A.recorded_sizes();
  return sizes.empty() ? made : made.with_sizes(sizes);
}

// A function of Python that any thread may drop.
VariableFunction function_of(nb::handle object, const char* what) {
  if (object.is_none()) return {};
  if (!PyCallable_Check(object.ptr())) {
    throw TypeError("[SimpleLinop] got " + class_name(object) + " for " + what +
                    ", expected a function of a Variable.");
  }
  return [kept = shared_object(nb::borrow(object))](const Variable& x) {
    const Locked locked;
    return from_python<Variable>(nb::borrow(kept->get())(to_python(x)));
  };
}

}  // namespace

Attribute attribute_of(nb::handle object) {
  if (object.is_none()) return {};
  if (PyBool_Check(object.ptr())) return Attribute(object.ptr() == Py_True);
  if (is_integer(object)) return Attribute(integer_of(object, "a number"));
  if (PyFloat_Check(object.ptr())) return Attribute(PyFloat_AsDouble(object.ptr()));
  if (PyComplex_Check(object.ptr())) return Attribute(nb::cast<std::complex<double>>(object));
  if (PyUnicode_Check(object.ptr())) return Attribute(nb::cast<std::string>(object));
  if (is_dims(object)) return Attribute(from_python<Dims>(object));
  if (is_list(object)) {
    Attribute::List list;
    for (nb::handle item : object) list.push_back(attribute_of(item));
    return Attribute(std::move(list));
  }
  throw TypeError("got " + class_name(object) +
                  ", expected an array, a number, a string, dimensions or a list of these.");
}

nb::handle python_class_of(const NamedLinop& A) {
  const PythonType* const type = find_python_type(A);
  return type ? type->python_class : nb::handle();
}

void set_value(NamedLinop& A, const std::string& key, nb::handle value) {
  if (is_parameter(value)) {
    A.set_param(key, from_python<Parameter>(value));
  } else {
    A.set_attr(key, attribute_of(value));
  }
}

bool is_building() { return Building::depth > 0; }

void check_not_building() {
  if (!is_building()) return;
  throw StateError(
      "[Parameter] got a request for its value in a function that builds the graph of an operator, "
      "expected its use as a Variable. Try functions of ps.ops.");
}

nb::tuple modules_of(const NamedLinop& A) {
  std::set<std::string> names;
  std::vector<NamedLinop> rest{A};
  while (!rest.empty()) {
    const NamedLinop part = rest.back();
    rest.pop_back();
    rest.insert(rest.end(), part.linops().begin(), part.linops().end());
    if (part.type().name == "SimpleLinop") {
      throw FormatError("[" + part.name() +
                        "] save: got a closure, a function that no module has by a name. Try "
                        "linop() with a class at the top of a module.");
    }
    const PythonType* const type = find_python_type(part);
    if (!type) continue;
    if (!type->has_name) {
      throw FormatError("[" + part.name() + "] save: '" + type->name +
                        "' is a closure: its module does not have it by its name. Try to define it "
                        "at the top of a module.");
    }
    names.insert(type->module);
  }
  nb::list list;
  for (const std::string& name : names) list.append(name);
  return nb::tuple(list);
}

void bind_user_linops(nb::module_& m) {
  functions.set(nb::list());
  at_end([] { functions.clear(); });
  m.def("_define_linop", define, "name"_a, "module"_a, "has_name"_a, "functions"_a, "version"_a,
        "real_linear"_a, "python_class"_a.none() = nb::none());
  m.def("_make_linop", make, "index"_a, "ishape"_a, "oshape"_a.none(), "name"_a.none(),
        "sizes"_a.none(), "values"_a);
  m.def(
      "_begin_linop",
      [](nb::handle self, std::size_t index, Dims ishape, std::optional<Dims> oshape,
         std::optional<std::string> name, DimMap sizes, nb::dict values) {
        begin_object(self, make(index, ishape, oshape, std::move(name), sizes, values));
      },
      "self"_a, "index"_a, "ishape"_a, "oshape"_a.none(), "name"_a.none(), "sizes"_a.none(),
      "values"_a);
  m.def(
      "_linop_functions", [](NamedLinop A) { return functions_in(A); }, "A"_a);
  m.def(
      "_set_linop_functions",
      [](nb::handle self, std::size_t index) {
        change_object(self, [&](NamedLinop& A) { A = with_type(A, index); });
      },
      "self"_a, "index"_a);
  m.def(
      "SimpleLinop",
      [](nb::handle f, nb::handle adjoint, nb::handle normal, Dims ishape,
         std::optional<Dims> oshape, const std::optional<std::string>& name) {
        return SimpleLinop({.fn = function_of(f, "fn"),
                            .adj_fn = function_of(adjoint, "adj_fn"),
                            .normal_fn = function_of(normal, "normal_fn"),
                            .ishape = ishape,
                            .oshape = oshape,
                            .name = name.value_or("SimpleLinop")});
      },
      "fn"_a, "adj_fn"_a.none() = nb::none(), "normal_fn"_a.none() = nb::none(), "ishape"_a = "...",
      "oshape"_a.none() = nb::none(), "name"_a.none() = nb::none(),
      "An operator of functions of a Variable; the adjoint is derived where it is not given.");
}

}  // namespace palimpsest::python
