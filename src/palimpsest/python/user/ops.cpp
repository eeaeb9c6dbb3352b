// SPDX-License-Identifier: Apache-2.0
// Ops of users: opaque code in Python, on arrays over the memory of the plan.
#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/exports.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/user/held_ops.hpp"

namespace palimpsest::python {
PALIMPSEST_NAMES(Linearity, "linear_in", "no", "real", "complex", "conjugate")
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

std::map<int, Linearity> linearities(nb::handle op) {
  std::map<int, Linearity> map;
  const nb::object declared = op.attr("linear_in");
  const nb::object items = declared.attr("items")();
  for (nb::handle item : items) {
    map[static_cast<int>(integer_of(nb::object(item[0]), "the position of an input"))] =
        from_python<Linearity>(nb::object(item[1]));
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

/// The operands of a step as arrays over the memory of the plan. A user may keep them.
class LentArrays {
 public:
  void lend(const ConstView& view, bool writable, nb::list& to) {
    Tensor shown = Tensor::from_blob(
        const_cast<void*>(view.data), view.dtype, Extents(view.extents.begin(), view.extents.end()),
        Strides(view.strides.begin(), view.strides.end()), {}, writable);
    memories_.push_back(
        exported(std::move(shown), writable ? Access::write_lent : Access::read_lent));
    to.append(numpy_array(memories_.back()));
  }

  /// True if an object still shows the memory. Arrays, their views and buffers, and tensors all
  /// refer to the object that describes it. One reference is our own.
  bool are_kept() const {
    return std::any_of(memories_.begin(), memories_.end(),
                       [](const nb::object& memory) { return Py_REFCNT(memory.ptr()) > 1; });
  }

  /// For arrays that are kept, for example by frames of an exception.
  void outlive_step() {
    for (const nb::object& memory : memories_) nb::cast<ExportedMemory&>(memory).outlive_step();
  }

 private:
  std::vector<nb::object> memories_;
};

// Results of another array than the destination are copied: of its shape, and of a dtype that fits.
void take_over(const std::string& who, std::size_t j, nb::handle destination, nb::handle result) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(result);
  const nb::object shape = array.attr("shape"), expected = destination.attr("shape");
  if (!shape.equal(expected)) {
    throw ShapeError("[" + who + "] output " + std::to_string(j) + ": got an array of shape " +
                     str_of(shape) + ", expected " + str_of(expected) + ".");
  }
  const nb::object dtype = array.attr("dtype"), wanted = destination.attr("dtype");
  if (!nb::cast<bool>(numpy.attr("can_cast")(dtype, wanted, "same_kind"))) {
    throw DTypeError("[" + who + "] output " + std::to_string(j) + ": got an array of " +
                     str_of(dtype) + ", expected " + str_of(wanted) + ". Try .astype().");
  }
  destination[nb::ellipsis()] = array;
}

// Extents and strides of the views that a step of this thread hands over, until their elements are
// taken. Views of further outputs are copied.
constexpr std::size_t kMostViews = 8;
struct HandedOver {
  index_t extents[kMaxRank] = {}, strides[kMaxRank] = {};
};
constinit thread_local HandedOver handed_over[kMostViews];

// True if a value of extents `got` may have the extents `expected`. Both may leave some open.
bool fit(const Extents& got, const Extents& expected) {
  return std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                    [](index_t a, index_t b) { return a == b || a == kUnknown || b == kUnknown; });
}

// The list that a method of an op has returned: one entry for each of `expected`.
void check_returned(const std::string& method, nb::handle list, std::size_t expected) {
  if (!is_list(list)) {
    throw TypeError(method + ": got " + class_name(list) + ", expected a list of " +
                    std::to_string(expected) + ".");
  }
  if (nb::len(list) != expected) {
    throw TypeError(method + ": got a list of " + std::to_string(nb::len(list)) +
                    ", expected a list of " + std::to_string(expected) + ".");
  }
}

// The derivatives for the variables of one side of an application, each called a `role`. None is
// zero.
std::vector<Variable> derivatives_of(const std::string& method, nb::handle list,
                                     std::span<const Variable> of, const char* role) {
  check_returned(method, list, of.size());
  std::vector<Variable> result;
  for (nb::handle item : list) {
    const std::size_t i = result.size();
    result.push_back(item.is_none() ? Variable() : from_python<Variable>(item));
    if (!result[i].defined()) continue;
    const TensorType &got = result[i].type(), &expected = of[i].type();
    const auto text = [&] {
      return method + " for " + role + " " + std::to_string(i) + ": got " + got.str() +
             ", expected " + expected.str() + ".";
    };
    if (!fit(got.shape, expected.shape)) throw ShapeError(text());
    if (is_complex(got.dtype) && !is_complex(expected.dtype)) throw DTypeError(text());
  }
  return result;
}

nb::list objects_of(std::span<const Variable> variables) {
  nb::list list;
  for (const Variable& v : variables) list.append(to_python(v));
  return list;
}

/// An op with its work in an object of Python. Every method takes the lock of the interpreter.
class UserOp final : public Op {
 public:
  /// `pure`: the op that this one is in place of.
  explicit UserOp(nb::handle object, OpPtr pure = nullptr)
      : object_(shared_object(nb::borrow(object))), pure_(std::move(pure)) {
    any_was_made = true;
    name_ = str_of(nb::object(object.attr("_name")));
    parameters_ = props_text(object);
    // Two classes of one name, as after a cell of a notebook has run again, are two.
    const auto generation = integer_of(nb::object(object.attr("_generation")), "a number");
    if (generation > 0) {
      parameters_ += (parameters_.empty() ? "" : ", ") + std::string("_generation=") +
                     std::to_string(generation);
    }
    views_ = alias_map(object, "view_map");
    destroys_ = alias_map(object, "destroy_map");
    linear_in_ = linearities(object);
    is_thread_safe_ = nb::cast<bool>(nb::bool_(object.attr("thread_safe")));
    has_scratch_ = nb::hasattr(object, "scratch_bytes");
    can_fail_ = nb::cast<bool>(nb::bool_(object.attr("can_fail")));
    tolerance_ = nb::cast<double>(nb::float_(nb::object(object.attr("tolerance"))));
  }
  UserOp(const UserOp&) = delete;
  UserOp& operator=(const UserOp&) = delete;

  /// The same op, which keeps its object or, with `weak`, does not.
  OpPtr held(bool weak) const {
    const nb::object kept = object();
    auto other = std::make_shared<UserOp>(kept, pure_);
    if (weak) {
      nb::object reference = nb::steal(PyWeakref_NewRef(kept.ptr(), nullptr));
      if (!reference.is_valid()) throw nb::python_error();
      other->object_ = shared_object(std::move(reference));
      other->is_weak_ = true;
    }
    return other;
  }
  nb::object object() const {
    const nb::handle kept = object_->get();
    return is_weak_ ? nb::object(kept()) : nb::borrow(kept);
  }

  static bool any_was_made;

  std::string name() const override { return name_; }
  std::string parameters() const override { return parameters_; }
  AliasMap view_map(const Apply&) const override { return views_; }
  AliasMap destroy_map(const Apply&) const override { return destroys_; }
  bool can_fail() const override { return can_fail_; }
  double tolerance(const Apply&) const override { return tolerance_; }
  Linearity linear_in(const Apply&, int in) const override {
    const auto found = linear_in_.find(in);
    return found == linear_in_.end() ? Linearity::no : found->second;
  }
  // The place of a view is known only after perform() has handed it over: its elements are copied.
  std::optional<Layout> view_layout(const Apply&, int, const Layout&) const override { return {}; }
  OpPtr pure() const override { return pure_ ? pure_ : Op::pure(); }

  OpPtr inplace_on_inputs(const Apply& node, const std::set<int>& allowed) const override {
    const Locked locked;
    if (!nb::hasattr(object(), "inplace_on_inputs")) return nullptr;
    nb::list positions;
    for (int i : allowed) positions.append(i);
    const nb::object other = object().attr("inplace_on_inputs")(nb::cast(node), positions);
    return other.is_none() ? nullptr : std::make_shared<UserOp>(other, shared_from_this());
  }

  Apply make_node(std::span<const Variable> inputs) const override {
    const Locked locked;
    nb::list arguments;
    for (const Variable& input : inputs) arguments.append(to_python(input));
    return nb::cast<Apply>(object().attr("make_node")(*nb::tuple(arguments)));
  }

  std::size_t scratch_bytes(const Apply& node, std::span<const Layout> inputs) const override {
    if (!has_scratch_) return 0;
    const Locked locked;
    nb::list shapes;
    for (const Layout& input : inputs) shapes.append(to_python(input.extents));
    const nb::object given = object().attr("scratch_bytes")(nb::cast(node), shapes);
    const index_t bytes = integer_of(given, "a number of bytes from scratch_bytes");
    if (bytes < 0) {
      throw ValueError("[" + name_ + "] scratch_bytes: got " + std::to_string(bytes) +
                       ", expected a number of bytes from 0 on.");
    }
    return static_cast<std::size_t>(bytes);
  }

  std::vector<Extents> infer_shapes(const Apply& node,
                                    std::span<const Extents> inputs) const override {
    const Locked locked;
    nb::list shapes;
    for (const Extents& extents : inputs) shapes.append(to_python(extents));
    const nb::object given = object().attr("infer_shapes")(nb::cast(node), shapes);
    // inferred_shapes() compares them with the types of the outputs.
    std::vector<Extents> result;
    const auto is_open = [](const Extents& shape) {
      return std::any_of(shape.begin(), shape.end(), [](index_t extent) { return extent < 0; });
    };
    const bool may_be_open = std::any_of(inputs.begin(), inputs.end(), is_open);
    try {
      if (!is_list(given)) throw TypeError("got " + class_name(given) + ", expected a list.");
      for (nb::handle shape : given) {
        result.push_back(from_python<Extents>(shape));
        if (may_be_open || !is_open(result.back())) continue;
        throw ShapeError("got " + to_string(result.back()) + ", expected extents from 0 on.");
      }
    } catch (const Error& error) {
      throw OpError("[" + name_ + "] infer_shapes: " + error.what());
    }
    return result;
  }

  void run(RunContext& context) const override {
    const Locked locked;
    LentArrays lent;
    try {
      perform(context, lent);
      if (!lent.are_kept()) return;
      nb::module_::import_("gc").attr("collect")();
    } catch (...) {
      lent.outlive_step();
      throw;
    }
    if (!lent.are_kept()) return;
    lent.outlive_step();
    throw OpError("[" + name_ + "] kept an array after perform() returned. Try a copy of it.");
  }

  std::vector<Variable> pullback(const Apply& node,
                                 std::span<const Variable> cotangents) const override {
    const Locked locked;
    if (!nb::hasattr(object(), "pullback")) return Op::pullback(node, cotangents);
    const nb::object given = object().attr("pullback")(nb::cast(node), objects_of(cotangents));
    return derivatives_of("[" + name_ + "] pullback", given, node.inputs(), "input");
  }

  std::vector<Variable> pushforward(const Apply& node,
                                    std::span<const Variable> tangents) const override {
    const Locked locked;
    if (!nb::hasattr(object(), "pushforward")) return {};
    const nb::object given = object().attr("pushforward")(nb::cast(node), objects_of(tangents));
    return derivatives_of("[" + name_ + "] pushforward", given, node.outputs(), "output");
  }

 private:
  std::vector<int> destroyed_positions() const {
    std::vector<int> list;
    for (const auto& [output, inputs] : destroys_)
      list.insert(list.end(), inputs.begin(), inputs.end());
    return list;
  }

  // Empties the lists at the end: the memory belongs to the plan, and a kept array would show later
  // values. If perform() raises, the lists stay, because frames of the exception show them.
  void perform(RunContext& context, LentArrays& lent) const {
    const std::vector<int> destroyed = destroyed_positions();
    nb::list inputs, outputs;
    for (std::size_t i = 0; i < context.inputs().size(); ++i) {
      const bool may_write =
          std::find(destroyed.begin(), destroyed.end(), static_cast<int>(i)) != destroyed.end();
      lent.lend(context.input(i), may_write, inputs);
    }
    for (const MutableView& view : context.outputs()) lent.lend(view, true, outputs);
    const nb::list destinations = nb::borrow<nb::list>(nb::object(outputs.attr("copy")()));
    nb::list arguments;
    for (nb::handle given : {nb::handle(Py_None), nb::handle(inputs), nb::handle(outputs)}) {
      arguments.append(given);
    }
    if (has_scratch_) lend_scratch(context, lent, arguments);
    object().attr(is_thread_safe_ ? "perform" : "_perform_alone")(*nb::tuple(arguments));
    arguments.clear();
    if (outputs.size() != destinations.size()) {
      throw ValueError("[" + name_ + "] perform() left " + std::to_string(outputs.size()) +
                       " outputs, expected " + std::to_string(destinations.size()) + ".");
    }
    for (std::size_t j = 0; j < destinations.size(); ++j) {
      const nb::object result = outputs[j], destination = destinations[j];
      if (result.is(destination) || hand_over(context, j, inputs, destination, result)) continue;
      take_over(name_, j, destination, result);
    }
    inputs.clear();
    outputs.clear();
  }

  static void lend_scratch(RunContext& context, LentArrays& lent, nb::list& arguments) {
    const std::span<std::byte> scratch = context.scratch();
    const auto extent = static_cast<index_t>(scratch.size());
    constexpr index_t stride = 1;
    lent.lend({scratch.data(), DType::uint8, {&extent, 1}, {&stride, 1}}, true, arguments);
  }

  // Hands a view of an input over without a copy: the executor takes its elements from there, and
  // DebugMode checks that it was declared.
  static bool hand_over(RunContext& context, std::size_t j, const nb::list& inputs,
                        nb::handle destination, nb::handle result) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const auto shares = [&](nb::handle input) {
      return nb::cast<bool>(numpy.attr("may_share_memory")(result, input));
    };
    if (j >= kMostViews || !nb::isinstance(result, numpy.attr("ndarray")) ||
        std::none_of(inputs.begin(), inputs.end(), shares)) {
      return false;
    }
    for (const char* name : {"shape", "dtype"}) {
      if (!nb::object(result.attr(name)).equal(destination.attr(name))) return false;
    }
    const Tensor view = import_array(result);
    HandedOver& place = handed_over[j];
    std::copy(view.shape().begin(), view.shape().end(), place.extents);
    std::copy(view.strides().begin(), view.strides().end(), place.strides);
    context.set_output(j, {view.raw_data(),
                           view.dtype(),
                           {place.extents, view.rank()},
                           {place.strides, view.rank()}});
    return true;
  }

  std::shared_ptr<GlobalObject> object_;  // a weak reference to it if is_weak_
  bool is_weak_ = false;
  OpPtr pure_;
  std::map<int, Linearity> linear_in_;
  bool is_thread_safe_ = true, has_scratch_ = false;
  std::string name_, parameters_;
  AliasMap views_, destroys_;
  bool can_fail_ = true;
  double tolerance_ = 16;
};

bool UserOp::any_was_made = false;

const UserOp* user_op(const Apply& node) { return dynamic_cast<const UserOp*>(&node.op()); }

// An op per object of Python, made at its first use.
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

std::vector<nb::object> hold_ops(std::vector<Variable>& graph, std::span<const Variable> inputs,
                                 bool weak) {
  std::vector<nb::object> objects;
  const auto has_user_op = [&] {
    const std::vector<Apply> nodes = applications_of(graph, inputs);
    return std::any_of(nodes.begin(), nodes.end(), user_op);
  };
  if (!UserOp::any_was_made || !has_user_op()) return objects;
  graph = clone_graph(graph, inputs, inputs);
  for (const Apply& node : applications_of(graph, inputs)) {
    const UserOp* const op = user_op(node);
    if (!op) continue;
    objects.push_back(op->object());
    node.node()->op = op->held(weak);
  }
  return objects;
}

void bind_user_ops(nb::module_& m) {
  m.def("_make_apply", make_apply, "op"_a, "inputs"_a, "outputs"_a);
  m.def("_register_op", [](const std::string& name) {
    register_op(name, [](std::string_view of, std::string_view parameters) -> OpPtr {
      const Locked locked;
      const nb::object restored = nb::module_::import_("palimpsest.user_ops").attr("_restored");
      return std::make_shared<UserOp>(restored(std::string(of), std::string(parameters)));
    });
  });
}

}  // namespace palimpsest::python
