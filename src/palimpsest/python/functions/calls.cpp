// SPDX-License-Identifier: Apache-2.0
// Calls of functions: the way of arguments to the library, and of results back. A call of short
// arrays takes little longer than this way, so it looks up classes once and allocates nothing.
#include <memory_resource>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/functions/function_object.hpp"

namespace palimpsest::python {
namespace {

using Self = const FunctionObject&;

// The arguments of one call, with the objects that they refer to.
class Arguments {
 public:
  Arguments(Self self, nb::handle positional, nb::handle named, std::size_t first = 0) {
    const std::size_t n = nb::len(positional) - first;
    const std::size_t n_named = named.is_valid() ? nb::len(named) : 0;
    values_.reserve(n);
    list_.reserve(n + n_named);
    for (std::size_t i = 0; i < n; ++i) add(self, i, tuple_item(positional, i + first));
    if (n_named == 0) return;
    keywords_.reserve(n_named);
    for (const auto& [key, value] : nb::borrow<nb::dict>(named)) {
      const std::string name = nb::cast<std::string>(key);
      const auto at = std::find(self.names.begin(), self.names.end(), name) - self.names.begin();
      const Use use = self.use_of(static_cast<std::size_t>(at));
      keywords_.push_back(kw(name, argument_of(value, use, kind_)));
      list_.emplace_back(keywords_.back());
    }
  }
  std::span<const Argument> list() const { return list_; }
  Kind kind() const { return kind_; }

 private:
  static nb::handle tuple_item(nb::handle tuple, std::size_t i) {
    return PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(i));
  }
  void add(Self self, std::size_t i, nb::handle object) {
    const Use use = self.use_of(i);
    if (const Tensor* const tensor = use == Use::lent ? nullptr : tensor_in(object)) {
      kind_ = merged(kind_, Kind::tensor);
      // A handle of its own: another thread may change that of the object meanwhile.
      list_.emplace_back(values_.emplace_back(*tensor).tensor());
      return;
    }
    const Value& value = values_.emplace_back(argument_of(object, use, kind_));
    if (value.is_weak() || value.is_variable()) {
      list_.emplace_back(value);
    } else {
      list_.emplace_back(value.tensor());
    }
  }

  static constexpr std::size_t kRoom = 4 * (sizeof(Value) + sizeof(Argument));
  alignas(std::max_align_t) std::byte room_[kRoom];
  std::pmr::monotonic_buffer_resource memory_{room_, sizeof room_};
  std::pmr::vector<Value> values_{&memory_};
  std::pmr::vector<Argument> list_{&memory_};
  std::vector<Keyword> keywords_;
  Kind kind_ = Kind::none;
};

nb::object handed_out(Self self, std::size_t i, Tensor&& result, Kind kind) {
  return i < self.borrowed.size() && self.borrowed[i] ? export_lent(std::move(result), kind)
                                                      : export_array(std::move(result), kind);
}

nb::object given_back(Self self, Results&& results, Kind kind) {
  Tensor* const list = results.begin();
  switch (self.form) {
    case Form::none:
      return nb::none();
    case Form::single:
      return handed_out(self, 0, std::move(list[0]), kind);
    case Form::dict: {
      nb::dict dict;
      for (std::size_t i = 0; i < results.size(); ++i) {
        dict[nb::cast(self.keys[i])] = handed_out(self, i, std::move(list[i]), kind);
      }
      return dict;
    }
    default: {
      nb::list all;
      for (std::size_t i = 0; i < results.size(); ++i) {
        all.append(handed_out(self, i, std::move(list[i]), kind));
      }
      return all;
    }
  }
}

Kind kind_of_results(Self self, const Arguments& arguments) {
  return self.returns == Kind::none ? kind_returned(arguments.kind()) : self.returns;
}

nb::object call(Self self, nb::handle positional, nb::handle named) {
  const Arguments arguments(self, positional, named);
  Results results = released([&] { return self.f.call(arguments.list()); });
  return given_back(self, std::move(results), kind_of_results(self, arguments));
}

// The exception that is being handled, as one of Python: as a bound function raises it.
PyObject* raised() {
  const std::exception_ptr error = std::current_exception();
  try {
    nb::cpp_function([error] { std::rethrow_exception(error); })();
  } catch (nb::python_error& e) {
    e.restore();
  }
  return nullptr;
}

}  // namespace

PyObject* call_function(PyObject* self, PyObject* positional, PyObject* named) {
  try {
    if (!nb::inst_ready(self)) {
      throw TypeError("[Function] got an object without a graph. Try function().");
    }
    return call(*nb::inst_ptr<FunctionObject>(self), positional, named).release().ptr();
  } catch (...) {
    return raised();
  }
}

PlanObject plan_of_call(Self self, nb::args positional, nb::kwargs named) {
  const Arguments arguments(self, positional, named);
  auto plan =
      std::make_shared<Plan>(released([&] { return self.f.plan_of_call(arguments.list()); }));
  if (kind_of_results(self, arguments) != Kind::tensor) add_copies_of_arrays(*plan, self.borrowed);
  return {std::move(plan)};
}

void call_into(Self self, nb::args positional, nb::kwargs named) {
  if (positional.size() == 0) throw TypeError("[call_into] expected arrays to write into, first.");
  const Arguments arguments(self, positional, named, 1);
  const nb::object out = positional[0];
  std::vector<Tensor> outs;
  std::vector<Parameter> written;
  const auto add = [&](nb::handle item) {
    if (!nb::isinstance<ParameterObject>(item)) {
      return void(outs.push_back(writable_array(item, "call_into")));
    }
    written.push_back(nb::cast<ParameterObject&>(item).parameter);
    outs.push_back(written.back().borrowed());
  };
  const bool is_list = PyList_Check(out.ptr()) || PyTuple_Check(out.ptr());
  const nb::object items = is_list ? out : nb::object(nb::make_tuple(out));
  for (nb::handle item : items) add(item);
  released([&] {
    self.f.call_into(outs, arguments.list());
    for (Parameter& parameter : written) parameter.touch();
  });
  for (nb::handle item : items) report_write(item);
}

nb::object formed(Self self, nb::list results) {
  switch (self.form) {
    case Form::none:
      return nb::none();
    case Form::single:
      return results[0];
    case Form::dict: {
      nb::dict dict;
      for (std::size_t i = 0; i < self.keys.size(); ++i) dict[nb::cast(self.keys[i])] = results[i];
      return dict;
    }
    default:
      return results;
  }
}

}  // namespace palimpsest::python
