// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/interop/torch_tensors.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_set>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/run/container.hpp"

namespace palimpsest::python {

bool has_torch_containers = false;

namespace {

// A container and the tensor whose memory it holds. The memory that the container has borrowed
// keeps the tensor, or a module does that learns it.
struct Backed {
  PyObject* weak_tensor;  // weakref.ref
  std::weak_ptr<Container> container;
  std::int64_t torch_version;
  std::uintptr_t address;
};
// Guarded by the lock of the interpreter.
constinit Global<std::vector<Backed>> all_backed;
std::vector<Backed>& backed() { return all_backed.get(); }

constinit GlobalObject is_grad_enabled;  // torch.is_grad_enabled
constinit GlobalObject forward_mode;     // torch.autograd.forward_ad
constinit GlobalObject is_wrapped;       // torch._C._functorch.is_functorch_wrapped_tensor

nb::object torch() { return nb::module_::import_("torch"); }

nb::object tensor_of(const Backed& entry) { return nb::borrow(nb::handle(entry.weak_tensor))(); }

std::int64_t version_of(nb::handle tensor) {
  return nb::cast<std::int64_t>(nb::object(tensor.attr("_version")));
}

std::uintptr_t address_of(nb::handle tensor) {
  return nb::cast<std::uintptr_t>(nb::object(tensor.attr("data_ptr")()));
}

// Entries whose tensor or container is gone.
void drop_the_dead() {
  std::erase_if(backed(), [](const Backed& entry) {
    if (!entry.container.expired() && !tensor_of(entry).is_none()) return false;
    Py_DECREF(entry.weak_tensor);
    return true;
  });
  has_torch_containers = !backed().empty();
}

void add(nb::handle tensor, const std::shared_ptr<Container>& container) {
  const nb::object weak = nb::module_::import_("weakref").attr("ref")(tensor);
  backed().push_back(
      {nb::object(weak).release().ptr(), container, version_of(tensor), address_of(tensor)});
  has_torch_containers = true;
}

const Backed* find(const Container* container) {
  if (!container) return nullptr;
  for (const Backed& entry : backed()) {
    if (entry.container.lock().get() == container) return &entry;
  }
  return nullptr;
}

// The memory of a tensor, which it keeps alive.
Tensor memory_of(nb::handle tensor) {
  const nb::object plain = tensor.attr("detach")();
  const Tensor shown = import_array(plain, false);
  tensor.inc_ref();
  return Tensor::from_blob(
      const_cast<void*>(shown.raw_data()), shown.dtype(), shown.shape(), shown.strides(),
      [object = tensor.ptr()] {
        if (!nb::is_alive()) return;
        const Locked locked;
        Py_DECREF(object);
      },
      true);
}

// A tensor was given other memory, as by `tensor.data = ..`.
void follow(Backed& entry, nb::handle tensor) {
  const std::shared_ptr<Container> container = entry.container.lock();
  const Tensor memory = memory_of(tensor);
  const TensorType& type = container->type();
  if (memory.dtype() != type.dtype || memory.shape() != type.shape) {
    throw StateError("[Parameter] its tensor of torch was given another dtype or shape: expected " +
                     type.str() + ". Try to make the operator of it anew.");
  }
  container->set_value(memory, {.borrow = true});
  entry.address = address_of(tensor);
}

// -- dependences of a graph or an operator ------------------------------------------------------

using Containers = std::vector<const Container*>;

void collect(const Container* container, Containers& found) {
  if (std::find(found.begin(), found.end(), container) != found.end()) return;
  found.push_back(container);
  if (const Derivation* derivation = container->derivation()) {
    for (const auto& source : derivation->sources()) collect(source.get(), found);
  }
}

void collect(const NamedLinop& A, Containers& found) {
  for (const auto& [name, parameter] : A.params()) {
    if (parameter.present()) collect(&parameter.variable().container(), found);
  }
  for (const NamedLinop& child : A.linops()) collect(child, found);
}

// The learned variables that these depend on, each once, in the order in which they are met.
std::vector<Variable> learned_roots(const std::vector<Variable>& outputs) {
  std::vector<Variable> roots, rest(outputs.rbegin(), outputs.rend());
  std::unordered_set<const VariableNode*> seen;
  while (!rest.empty()) {
    const Variable v = rest.back();
    rest.pop_back();
    if (!seen.insert(v.node()).second) continue;
    if (!v.is_root()) {
      const Apply apply = v.owner();
      for (const Variable& input : apply.inputs()) rest.push_back(input);
    } else if (find(dynamic_cast<const Container*>(v.attachment()))) {
      roots.push_back(v);
    }
  }
  return roots;
}

nb::list weights_of_graph(std::vector<Variable> outputs) {
  nb::list list;
  for (const Variable& root : learned_roots(outputs)) {
    const nb::object tensor = tensor_of(*find(dynamic_cast<const Container*>(root.attachment())));
    if (!tensor.is_none()) list.append(nb::make_tuple(to_python(root), tensor));
  }
  return list;
}

// The tensors of an operator, in the order in which a graph that applies it meets them.
nb::list weights_of_operator(const NamedLinop& A) {
  Containers containers;
  collect(A, containers);
  nb::list list;
  for (const Container* container : containers) {
    const Backed* const entry = find(container);
    if (!entry) continue;
    const nb::object tensor = tensor_of(*entry);
    if (!tensor.is_none()) list.append(tensor);
  }
  return list;
}

// A module learns a parameter that is not of torch: torch.nn.Parameter over its memory.
nb::object backing(const Parameter& parameter) {
  if (parameter.is_view() || parameter.is_derived()) return nb::none();
  const std::shared_ptr<Container>& container = parameter.variable().container_ptr();
  if (const Backed* const entry = find(container.get())) return tensor_of(*entry);
  const nb::object shown =
      export_in_place(released([&] { return parameter.borrowed(); }), Kind::torch);
  const nb::object made = torch().attr("nn").attr("Parameter")(shown);
  add(made, container);
  return made;
}

// Tensor within grad, vjp, jvp or vmap of torch.func: it has no memory of its own.
bool is_of_transform(nb::handle x) {
  if (!is_wrapped.is_set()) {
    const nb::object functorch = torch().attr("_C").attr("_functorch");
    is_wrapped.set(functorch.attr("is_functorch_wrapped_tensor"));
  }
  return nb::cast<bool>(nb::borrow(is_wrapped.get())(x));
}

}  // namespace

bool records_gradients() {
  if (!is_grad_enabled.is_set()) is_grad_enabled.set(torch().attr("is_grad_enabled"));
  return nb::cast<bool>(nb::borrow(is_grad_enabled.get())());
}

bool is_learned(nb::handle tensor) {
  return nb::cast<bool>(nb::object(tensor.attr("requires_grad"))) ||
         nb::isinstance(tensor, torch().attr("nn").attr("Parameter"));
}

nb::object torch_tensor_of(const Parameter& parameter) {
  if (!has_torch_containers || parameter.is_view()) return nb::none();
  const Backed* const entry = find(&parameter.variable().container());
  return entry ? tensor_of(*entry) : nb::none();
}

bool write_torch_tensor(const Parameter& parameter, const Tensor& value) {
  const nb::object tensor = torch_tensor_of(parameter);
  if (tensor.is_none()) return false;
  if (value.shape() != parameter.shape() || value.dtype() != parameter.dtype()) return false;
  tensor.attr("detach")().attr("copy_")(export_array(Tensor(value), Kind::torch));
  return true;
}

bool records_tangents() {
  if (!forward_mode.is_set()) {
    forward_mode.set(nb::module_::import_("torch.autograd.forward_ad"));
  }
  return nb::cast<int>(nb::object(forward_mode.get().attr("_current_level"))) >= 0 &&
         nb::cast<bool>(nb::object(torch().attr("_C").attr("_is_fwd_grad_enabled")()));
}

bool is_recorded(const NamedLinop& A, nb::handle x) {
  if (records_tangents() || is_of_transform(x)) return true;
  if (!records_gradients()) return false;
  if (nb::cast<bool>(nb::object(x.attr("requires_grad")))) return true;
  if (!has_torch_containers) return false;
  for (nb::handle tensor : weights_of_operator(A)) {
    if (nb::cast<bool>(nb::object(tensor.attr("requires_grad")))) return true;
  }
  return false;
}

Parameter learned_parameter(nb::handle tensor) {
  drop_the_dead();
  const bool is_trainable = nb::cast<bool>(nb::object(tensor.attr("requires_grad")));
  for (const Backed& entry : backed()) {
    if (!tensor_of(entry).is(tensor)) continue;
    const std::shared_ptr<Container> container = entry.container.lock();
    return Parameter(SharedVariable(container->type(), container)).as_trainable(is_trainable);
  }
  // A tensor that is conjugated or negated lazily, or expanded, has no memory with its own
  // elements.
  nb::object plain = tensor.attr("resolve_conj")().attr("resolve_neg")();
  if (has_internal_overlap(import_array(plain.attr("detach")()))) {
    plain = plain.attr("contiguous")();
  }
  const Parameter made = Parameter::borrow(memory_of(plain)).as_trainable(is_trainable);
  add(plain, made.variable().container_ptr());
  return made;
}

void announce_torch_writes() {
  bool is_any_dead = false;
  for (Backed& entry : backed()) {
    const std::shared_ptr<Container> container = entry.container.lock();
    const nb::object tensor = tensor_of(entry);
    if (!container || tensor.is_none()) {
      is_any_dead = true;
      continue;
    }
    if (const std::uintptr_t address = address_of(tensor); address != entry.address) {
      follow(entry, tensor);
    } else if (version_of(tensor) != entry.torch_version) {
      container->touch();
    }
    entry.torch_version = version_of(tensor);
  }
  if (is_any_dead) drop_the_dead();
}

void bind_torch_tensors(nb::module_& m) {
  at_end([] {
    for (const Backed& entry : std::exchange(backed(), {})) Py_DECREF(entry.weak_tensor);
    has_torch_containers = false;
    is_grad_enabled.clear();
    forward_mode.clear();
    is_wrapped.clear();
  });
  m.def("_torch_weights", weights_of_graph, "outputs"_a);
  m.def(
      "_torch_weights_of", [](NamedLinop A) { return weights_of_operator(A); }, "A"_a);
  m.def(
      "_torch_backing", [](Parameter p) { return backing(p); }, "parameter"_a);
}

}  // namespace palimpsest::python
