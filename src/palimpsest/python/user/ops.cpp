// SPDX-License-Identifier: Apache-2.0
// Ops of users: opaque code in Python, on arrays over the memory of the plan.
#include "palimpsest/graph/op.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/exports.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

AliasMap alias_map(nb::handle owner, const char* name) {
  AliasMap map;
  const nb::object declared = owner.attr(name);
  const nb::object items = declared.attr("items")();
  for (nb::handle item : items) {
    const Extents inputs = from_python<Extents>(nb::object(item[1]));
    std::set<int> positions;
    for (index_t input : inputs) positions.insert(static_cast<int>(input));
    map[static_cast<int>(integer_of(nb::object(item[0]), "the position of an output"))] = positions;
  }
  return map;
}

// The values of __props__, by which two ops of one class are equal.
std::string props_text(nb::handle op) {
  std::string text;
  const nb::object names = op.attr("__props__");
  for (nb::handle name : names) {
    const nb::object value = nb::getattr(op, name);
    text +=
        (text.empty() ? "" : ", ") + str_of(name) + "=" + nb::cast<std::string>(nb::repr(value));
  }
  return text;
}

nb::object array_over(const ConstView& view, bool writable) {
  Tensor shown = Tensor::from_blob(const_cast<void*>(view.data), view.dtype,
                                   Extents(view.extents.begin(), view.extents.end()),
                                   Strides(view.strides.begin(), view.strides.end()), {}, writable);
  return writable ? export_lent(std::move(shown), Kind::numpy) : export_read_only(shown);
}

/// An op whose work is done by an object of Python. Every method takes the lock of the interpreter.
class UserOp final : public Op {
 public:
  explicit UserOp(nb::handle object) : object_(object.inc_ref().ptr()) {
    const nb::handle type = object.type();
    name_ = str_of(nb::object(type.attr("__module__"))) + "." +
            str_of(nb::object(type.attr("__qualname__")));
    parameters_ = props_text(object);
    // Two classes of one name, as after a cell of a notebook has run again, are two.
    parameters_ += (parameters_.empty() ? "" : ", ") + std::string("class=") +
                   std::to_string(reinterpret_cast<std::uintptr_t>(type.ptr()));
    views_ = alias_map(object, "view_map");
    destroys_ = alias_map(object, "destroy_map");
    can_fail_ = nb::cast<bool>(nb::bool_(object.attr("can_fail")));
    tolerance_ = nb::cast<double>(nb::float_(nb::object(object.attr("tolerance"))));
  }
  ~UserOp() override {
    if (!nb::is_alive()) return;
    const Locked locked;
    Py_DECREF(object_);
  }
  UserOp(const UserOp&) = delete;
  UserOp& operator=(const UserOp&) = delete;

  std::string name() const override { return name_; }
  std::string parameters() const override { return parameters_; }
  AliasMap view_map(const Apply&) const override { return views_; }
  AliasMap destroy_map(const Apply&) const override { return destroys_; }
  bool can_fail() const override { return can_fail_; }
  double tolerance(const Apply&) const override { return tolerance_; }

  Apply make_node(std::span<const Variable> inputs) const override {
    const Locked locked;
    nb::list arguments;
    for (const Variable& input : inputs) arguments.append(to_python(input));
    return nb::cast<Apply>(object().attr("make_node")(*nb::tuple(arguments)));
  }

  std::vector<Extents> infer_shapes(const Apply& node,
                                    std::span<const Extents> inputs) const override {
    const Locked locked;
    nb::list shapes;
    for (const Extents& extents : inputs) shapes.append(to_python(extents));
    const nb::object given = object().attr("infer_shapes")(nb::cast(node), shapes);
    std::vector<Extents> result;
    for (nb::handle shape : given) result.push_back(from_python<Extents>(shape));
    return result;
  }

  void run(RunContext& context) const override {
    const Locked locked;
    const std::vector<int> destroyed = destroyed_positions();
    nb::list inputs, outputs;
    for (std::size_t i = 0; i < context.inputs().size(); ++i) {
      const bool may_write =
          std::find(destroyed.begin(), destroyed.end(), static_cast<int>(i)) != destroyed.end();
      inputs.append(array_over(context.input(i), may_write));
    }
    for (const MutableView& view : context.outputs()) outputs.append(array_over(view, true));
    const nb::list before = nb::borrow<nb::list>(nb::object(outputs.attr("copy")()));
    object().attr("perform")(nb::none(), inputs, outputs);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      if (nb::object(outputs[j]).is(nb::object(before[j]))) continue;
      // Another array in its place: its elements are taken over.
      const nb::object destination = before[j], result = outputs[j];
      destination[nb::ellipsis()] = result;
    }
    expect_given_back(inputs, before, outputs);
  }

  std::vector<Variable> pullback(const Apply& node,
                                 std::span<const Variable> cotangents) const override {
    const Locked locked;
    if (!nb::hasattr(object(), "pullback")) return Op::pullback(node, cotangents);
    nb::list given;
    for (const Variable& c : cotangents) given.append(to_python(c));
    std::vector<Variable> result;
    const nb::object all = object().attr("pullback")(nb::cast(node), given);
    for (nb::handle item : all) {
      result.push_back(item.is_none() ? Variable() : from_python<Variable>(item));
    }
    return result;
  }

 private:
  nb::handle object() const { return object_; }
  std::vector<int> destroyed_positions() const {
    std::vector<int> list;
    for (const auto& [output, inputs] : destroys_)
      list.insert(list.end(), inputs.begin(), inputs.end());
    return list;
  }

  // The memory belongs to the plan: an array that somebody keeps would show what comes later.
  void expect_given_back(nb::list& inputs, const nb::list& before, nb::list& outputs) const {
    outputs.clear();
    for (const nb::list* list : {static_cast<const nb::list*>(&inputs), &before}) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        const nb::object array = (*list)[i];
        // One reference here and one in the list.
        if (Py_REFCNT(array.ptr()) > 2) {
          throw OpError("[" + name_ +
                        "] kept an array after perform() returned. Try a copy of it.");
        }
      }
    }
  }

  PyObject* object_;
  std::string name_, parameters_;
  AliasMap views_, destroys_;
  bool can_fail_ = true;
  double tolerance_ = 16;
};

// One op per object of Python, made at its first use.
Apply make_apply(nb::handle op, std::vector<Variable> inputs, nb::handle outputs) {
  std::vector<TensorType> types;
  for (nb::handle output : outputs) {
    types.push_back(nb::isinstance<VariableObject>(output)
                        ? nb::cast<VariableObject&>(output).value.type()
                        : from_python<TensorType>(output));
  }
  Apply node = Apply::make(std::make_shared<UserOp>(op), inputs, std::move(types));
  check_declarations(node);
  return node;
}

}  // namespace

void bind_user_ops(nb::module_& m) {
  m.def("_make_apply", make_apply, "op"_a, "inputs"_a, "outputs"_a);
}

}  // namespace palimpsest::python
