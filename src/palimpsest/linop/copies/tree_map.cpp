// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/copies/tree_map.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/graph/marks.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"
#include "palimpsest/run/stretched_values.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

ValueError not_registered(const std::string& what) {
  return ValueError("[MemoryMap.map] " + what +
                    " was not registered. Try add() with it before the copy");
}

bool is_part(const Variable& v) {
  const Apply owner = v.owner();
  return owner.defined() && (dynamic_cast<const ops::Subtensor*>(&owner.op()) ||
                             dynamic_cast<const ops::Strided*>(&owner.op()));
}

// The elements of a variable that a value of a graph shows, if the value is a view of a part of it.
std::optional<std::pair<Variable, ElementLayout>> part_of_variable(const Variable& v) {
  if (!is_part(v)) return {};
  std::vector<Apply> steps{v.owner()};
  Variable root = steps.back().input(0);
  for (Apply owner = root.owner();
       owner.defined() && dynamic_cast<const ops::Reshape*>(&owner.op()) != nullptr;
       owner = root.owner()) {
    steps.push_back(owner);
    root = owner.input(0);
  }
  const auto container = container_of(root);
  if (!container || !root.type().is_fully_known()) return {};
  std::optional<Layout> layout = Layout::dense(root.dtype(), root.type().shape);
  for (auto step = steps.rbegin(); layout && step != steps.rend(); ++step) {
    layout = step->op().view_layout(*step, 0, *layout);
  }
  if (!layout) return {};
  const auto item = static_cast<index_t>(item_size(layout->dtype));
  if (layout->byte_offset % item != 0) return {};
  return std::pair(root, ElementLayout{layout->dtype, layout->extents, layout->strides,
                                       layout->byte_offset / item});
}

// The graph with `to` in place of `from`, on another device: types are inferred anew and constants
// move along.
Variable rebuilt(const Variable& expression, const std::vector<Variable>& from,
                 const std::vector<Variable>& to, Device device) {
  std::unordered_map<Variable, Variable> moved;
  return map_graph({&expression, 1}, from, to, [&](const Apply& node, auto given) {
    std::vector<Variable> inputs(given.begin(), given.end());
    for (Variable& v : inputs) {
      if (!v.is_constant() || v.type().device == device) continue;
      const auto [at, is_new] = moved.try_emplace(v);
      if (is_new) {
        // An accelerator gets it when a plan needs it there.
        const Tensor& value = v.constant_value();
        at->second = constant(device.is_host() ? value.to(device) : value, v.name(), device);
      }
      v = at->second;
    }
    return node.op().make_node(inputs);
  })[0];
}

}  // namespace

// -- finding --------------------------------------------------------------------------------------

void TreeMap::collect(const NamedLinop& A) {
  std::vector<NamedLinop> roots{A};
  const std::size_t first = order_.size();
  std::size_t n_looked_at = first;
  bool is_first = true;
  while (!roots.empty()) {
    const NamedLinop root = std::move(roots.back());
    roots.pop_back();
    collect_tree(root);
    if (is_first) {
      for (std::size_t i = first; i < order_.size(); ++i) in_tree_.insert(order_[i].node().get());
      is_first = false;
    }
    if (!options_.caches) continue;
    for (; n_looked_at < order_.size(); ++n_looked_at) {
      const LinopNode& node = *order_[n_looked_at].node();
      const std::lock_guard guard(node.mutex);
      for (const auto& cached : {node.adjoint, node.normal, node.adjoint_of.lock()}) {
        if (cached && !nodes_.contains(cached.get())) roots.emplace_back(cached);
      }
    }
  }
}

// Children before parents, without recursion.
void TreeMap::collect_tree(const NamedLinop& root) {
  struct Open {
    NamedLinop linop;
    std::size_t next = 0;
  };
  std::vector<Open> path;
  const auto open = [&](const NamedLinop& A) {
    if (nodes_.contains(A.node().get())) return;
    nodes_.emplace(A.node().get(), NamedLinop());
    path.push_back({A});
  };
  open(root);
  while (!path.empty()) {
    Open& top = path.back();
    if (top.next < top.linop.linop_count()) {
      const NamedLinop child = top.linop.linops()[top.next++];
      open(child);
      continue;
    }
    add_node(top.linop);
    path.pop_back();
  }
}

// True if a conversion leaves it as it is: a weight that takes the precision of x, and a value that
// is computed anew from its sources.
bool TreeMap::is_left(const NamedLinop& A, std::string_view name, const Parameter& p) const {
  if (!p.present()) return true;
  if (!options_.conversion) return false;
  return (A.has_attr("adapts") && A.attr("adapts").as_bool()) || follows_from_others(A, name, p);
}

void TreeMap::add_node(const NamedLinop& A) {
  for (const auto& [name, p] : A.params()) {
    if (!is_left(A, name, p)) add_parameter(p);
  }
  for (const auto& [name, a] : A.attrs()) add_attribute(a);
  order_.push_back(A);
}

void TreeMap::add_parameter(const Parameter& p) {
  if (options_.conversion) p.refresh();
  const auto& container = p.variable().container_ptr();
  if (!is_derived(p)) {
    const bool is_part_of_it = p.is_view();
    add_variable(container, is_part_of_it ? std::optional(p.layout()) : std::nullopt);
    return;
  }
  const auto [at, is_new] = derived_.try_emplace(container.get());
  if (!is_new) return;
  Derived& derived = at->second;
  derived.original = p;
  derived.computed_from = p.computed_from();
  derived.sources = sources_of(p.expression());
  derived_order_.push_back(container.get());
  for (const Source& source : derived.sources) {
    add_variable(source.container->shared_from_this(), source.layout);
  }
}

void TreeMap::add_attribute(const Attribute& a) {
  if (a.kind() == Attribute::Kind::tensor && a.as_tensor().defined()) {
    attributes_.push_back(a.as_tensor());
  }
  if (a.kind() != Attribute::Kind::list) return;
  for (const Attribute& entry : a.as_list()) add_attribute(entry);
}

void TreeMap::add_variable(const std::shared_ptr<Container>& container,
                           const std::optional<ElementLayout>& layout) {
  const auto [at, is_new] = cells_.try_emplace(container.get());
  Cell& cell = at->second;
  if (is_new) {
    cell.container = container;
    cell_order_.push_back(container.get());
  }
  if (cell.is_read && !cell.is_whole && !layout) cell.is_read = false;
  if (!layout) {
    cell.is_whole = true;
    return;
  }
  const auto same = [&](const Piece& piece) { return piece.layout == *layout; };
  if (std::any_of(cell.pieces.begin(), cell.pieces.end(), same)) return;
  cell.pieces.push_back({*layout, {}, {}});
  cell.is_read = cell.is_read && cell.is_whole;
}

// The graph is followed to variables and to parts of variables, which are taken as they are.
std::vector<TreeMap::Source> TreeMap::sources_of(const Variable& expression) {
  std::vector<Source> sources;
  std::unordered_set<const VariableNode*> seen;
  std::vector<Variable> open{expression};
  while (!open.empty()) {
    const Variable v = std::move(open.back());
    open.pop_back();
    if (!seen.insert(v.node()).second) continue;
    if (const auto part = part_of_variable(v)) {
      sources.push_back({v, container_of(part->first).get(), part->second});
      continue;
    }
    if (const auto container = container_of(v)) sources.push_back({v, container.get(), {}});
    const Apply owner = v.owner();
    if (!owner.defined()) continue;
    for (const Variable& input : owner.inputs()) open.push_back(input);
  }
  return sources;
}

std::vector<std::shared_ptr<Container>> TreeMap::containers() const {
  std::vector<std::shared_ptr<Container>> result = variables();
  for (const Container* c : derived_order_) {
    result.push_back(derived_.at(c).original.variable().container_ptr());
  }
  return result;
}

std::vector<std::shared_ptr<Container>> TreeMap::variables() const {
  std::vector<std::shared_ptr<Container>> result;
  for (const Container* c : cell_order_) result.push_back(cells_.at(c).container);
  return result;
}

void TreeMap::give(const Container& container, SharedVariable counterpart) {
  Cell& cell = cells_.at(&container);
  cell.made = std::move(counterpart);
  cell.is_whole = cell.is_read = cell.is_made = true;
}

std::unordered_map<const Container*, std::shared_ptr<Container>> TreeMap::whole_copies() const {
  std::unordered_map<const Container*, std::shared_ptr<Container>> result;
  for (const auto& [container, cell] : cells_) {
    if (!cell.is_whole || !cell.made.defined()) continue;
    result.emplace(&cell.made.container(), cell.container);
  }
  return result;
}

// -- reading --------------------------------------------------------------------------------------

void TreeMap::read(Cell& cell, MemoryMap& map) {
  cell.is_read = true;
  if (!cell.value.defined()) cell.value = cell.container->held_value();
  if (options_.moves && cell.value.device() == options_.device) {
    cell.stays = true;
    return;
  }
  for (Piece& piece : cell.pieces) {
    if (cell.is_whole) break;
    if (piece.tensor.defined()) continue;
    if (auto part = elements_of(cell.value, piece.layout)) {
      piece.tensor = std::move(*part);
    } else {
      cell.is_whole = true;
    }
  }
  cell.stays = options_.conversion && keeps_precision(cell);
  if (cell.stays) return;
  const auto add_part = [&](const Tensor& t) {
    options_.conversion ? options_.conversion->add(map, t) : add(map, t);
  };
  if (cell.is_whole) return add_part(cell.value);
  for (const Piece& piece : cell.pieces) add_part(piece.tensor);
}

bool TreeMap::keeps_precision(const Cell& cell) const {
  for (const Piece& piece : cell.pieces) options_.conversion->note(cell.value, piece.layout.dtype);
  if (cell.is_whole) options_.conversion->note(cell.value, cell.value.dtype());
  return !options_.conversion->changes(
      (cell.is_whole ? cell.value : cell.pieces[0].tensor).dtype());
}

void TreeMap::read(MemoryMap& map) {
  for (const Container* c : cell_order_) {
    Cell& cell = cells_.at(c);
    if (!cell.is_read) read(cell, map);
  }
  for (const Container* c : derived_order_) {
    Derived& derived = derived_.at(c);
    if (derived.is_read) continue;
    derived.is_read = true;
    const Tensor& value = derived.original.variable().container().held_value();
    derived.is_stale = derived.computed_from != derived.original.source_versions();
    if (!options_.moves) {
      // Never written in place: sharing it cannot be seen, and costs nothing.
      derived.value = value.lazy_clone();
      continue;
    }
    derived.value = value;
    if (value.device() != options_.device) add(map, value);
  }
  for (; n_attributes_read_ < attributes_.size(); ++n_attributes_read_) {
    const Tensor& t = attributes_[n_attributes_read_];
    options_.conversion ? options_.conversion->note(t, t.dtype()) : add(map, t);
  }
}

std::vector<Tensor> TreeMap::derived_values() const {
  std::vector<Tensor> result;
  for (const Container* c : derived_order_) result.push_back(derived_.at(c).value);
  return result;
}

// -- counterparts ---------------------------------------------------------------------------------

Tensor TreeMap::counterpart(const Tensor& t, const MemoryMap& map) const {
  return options_.conversion ? options_.conversion->mapped(map, t) : palimpsest::map(map, t);
}

void TreeMap::make(Cell& cell, const MemoryMap& map) {
  if (cell.is_made) return;
  if (!cell.is_read) throw not_registered("a parameter");
  if (!cell.stays && cell.is_whole) {
    const Tensor value = counterpart(cell.value, map);
    cell.stays = shares_storage(value, cell.value);  // it is there already
    TensorType type = cell.container->type();
    type.device = value.device();
    type.dtype = value.dtype();
    if (!cell.stays) {
      const KeepStretchedValues keep;
      cell.made = SharedVariable(type, value,
                                 {.name = cell.container->name(),
                                  .borrow = true,
                                  .strict = cell.container->strict(),
                                  .allow_downcast = cell.container->allow_downcast()});
    }
  } else if (!cell.stays) {
    std::vector<Tensor> views;
    for (const Piece& piece : cell.pieces) views.push_back(counterpart(piece.tensor, map));
    cell.stays = shares_storage(views[0], cell.value);
    if (!cell.stays) {
      const DType whole = cell.container->type().dtype;
      Reduced made =
          reduced(views, options_.conversion ? views[0].dtype() : whole, cell.container->name());
      cell.made = std::move(made.variable);
      for (std::size_t k = 0; k < cell.pieces.size(); ++k) {
        cell.pieces[k].made = std::move(made.layouts[k]);
      }
    }
  }
  cell.is_made = true;
}

bool TreeMap::stays(const Derived& derived) {
  if (!options_.moves || derived.value.device() != options_.device) return false;
  return std::all_of(derived.sources.begin(), derived.sources.end(),
                     [&](const Source& s) { return cells_.at(s.container).stays; });
}

void TreeMap::make(Derived& derived, const MemoryMap& map) {
  if (derived.is_made) return;
  if (!derived.is_read) throw not_registered("a derived parameter");
  std::vector<Variable> from, to;
  for (const Source& source : derived.sources) {
    Cell& cell = cells_.at(source.container);
    make(cell, map);
    if (cell.stays) continue;
    from.push_back(source.in_graph);
    if (!source.layout) {
      to.push_back(cell.made.var());
      continue;
    }
    ElementLayout layout = *source.layout;
    for (const Piece& piece : cell.pieces) {
      if (!cell.is_whole && piece.layout == layout) {
        layout = piece.made;
        break;
      }
    }
    to.push_back(Parameter(cell.made).view(layout).var());
  }
  if (stays(derived)) {
    derived.made = derived.original;
  } else {
    const Variable& original = derived.original.expression();
    const bool goes_elsewhere = !to.empty() && to[0].type().device != original.type().device;
    const Variable expression = goes_elsewhere ? rebuilt(original, from, to, to[0].type().device)
                                               : clone_graph({&original, 1}, from, to)[0];
    const TensorType& type = expression.type();
    const bool moved = options_.moves && derived.value.device() != options_.device;
    Tensor value = moved ? palimpsest::map(map, derived.value) : derived.value.lazy_clone();
    // A map that moved the sources alone leaves it to be computed there.
    const bool is_elsewhere = value.device() != type.device;
    if (is_elsewhere) value = Tensor::empty(type.shape, type.dtype, type.device);
    derived.made = Parameter::derived(expression, value, derived.is_stale || is_elsewhere)
                       .as_trainable(derived.original.is_trainable());
  }
  derived.is_made = true;
}

Parameter TreeMap::mapped(const Parameter& p, const MemoryMap& map) {
  const Container* container = p.variable().container_ptr().get();
  if (is_derived(p)) {
    Derived& derived = derived_.at(container);
    make(derived, map);
    return p.is_view() ? derived.made.view(p.layout()) : derived.made;
  }
  Cell& cell = cells_.at(container);
  make(cell, map);
  if (cell.stays) return p;
  const Parameter whole = Parameter(cell.made).as_trainable(p.is_trainable());
  if (!p.is_view()) return whole;
  ElementLayout layout = p.layout();
  for (const Piece& piece : cell.pieces) {
    if (!cell.is_whole && piece.layout == layout) return whole.view(piece.made);
  }
  if (options_.conversion) layout.dtype = options_.conversion->converted(layout.dtype);
  return whole.view(layout);
}

Attribute TreeMap::mapped(const Attribute& a, const MemoryMap& map) const {
  if (a.kind() == Attribute::Kind::tensor && a.as_tensor().defined()) {
    const Tensor& t = a.as_tensor();
    if (!options_.conversion) return palimpsest::map(map, t);
    return stays(a) ? a : Attribute(t.to(options_.conversion->converted(t.dtype())));
  }
  if (a.kind() != Attribute::Kind::list) return a;
  Attribute::List list;
  for (const Attribute& entry : a.as_list()) list.push_back(mapped(entry, map));
  return list;
}

bool TreeMap::stays(const Attribute& a) const {
  if (a.kind() == Attribute::Kind::tensor && a.as_tensor().defined()) {
    const Tensor& t = a.as_tensor();
    return options_.conversion ? !options_.conversion->changes(t.dtype())
                               : t.device() == options_.device;
  }
  if (a.kind() != Attribute::Kind::list) return true;
  return std::all_of(a.as_list().begin(), a.as_list().end(),
                     [&](const Attribute& entry) { return stays(entry); });
}

// True if no part of A moves or changes. The counterparts of its children are known.
bool TreeMap::stays(const NamedLinop& A) {
  if (!options_.moves && !options_.conversion) return false;
  for (const auto& [name, p] : A.params()) {
    if (is_left(A, name, p)) continue;
    const Container* container = p.variable().container_ptr().get();
    if (is_derived(p) ? !stays(derived_.at(container)) : !cells_.at(container).stays) return false;
  }
  for (const auto& [name, a] : A.attrs()) {
    if (!stays(a)) return false;
  }
  return std::all_of(A.linops().begin(), A.linops().end(), [&](const NamedLinop& child) {
    return nodes_.at(child.node().get()).is(child);
  });
}

void TreeMap::make_nodes(const MemoryMap& map) {
  for (; n_made_ < order_.size(); ++n_made_) {
    const NamedLinop& A = order_[n_made_];
    if (stays(A)) {
      nodes_.at(A.node().get()) = A;
      continue;
    }
    LinopData data = copy_data(A);
    for (auto& [name, p] : data.params) {
      if (!is_left(A, name, p)) p = mapped(p, map);
    }
    for (auto& [name, a] : data.attrs) a = mapped(a, map);
    for (NamedLinop& child : data.children) child = nodes_.at(child.node().get());
    const bool is_derived_anew = options_.conversion && A.type().derive;
    nodes_.at(A.node().get()) =
        is_derived_anew ? from_arguments(std::move(data)) : from_data(std::move(data));
  }
}

void TreeMap::link_adjoint(const NamedLinop& owner, const NamedLinop& other) {
  const LinopNode& from = *owner.node();
  const LinopNode& to = *other.node();
  {
    const std::scoped_lock guard(from.mutex, to.mutex);
    if (from.adjoint || to.adjoint || !from.adjoint_of.expired() || !to.adjoint_of.expired()) {
      return;
    }
    to.adjoint_of = owner.node();
    from.adjoint = other.node();
  }
}

// Restores the caches of adjoints and normal operators. Of a pair of adjoints the one in the tree
// owns the other, so that the other lives as long as the tree.
void TreeMap::link_caches() {
  for (const NamedLinop& A : order_) {
    const NamedLinop& made = nodes_.at(A.node().get());
    if (made.is(A)) continue;
    std::shared_ptr<const LinopNode> adjoint, normal;
    {
      const std::lock_guard guard(A.node()->mutex);
      adjoint = A.node()->adjoint;
      normal = A.node()->normal;
    }
    if (normal && nodes_.contains(normal.get())) {
      const std::lock_guard guard(made.node()->mutex);
      if (!made.node()->normal) made.node()->normal = nodes_.at(normal.get()).node();
    }
    if (!adjoint || !nodes_.contains(adjoint.get())) continue;
    const NamedLinop& other = nodes_.at(adjoint.get());
    if (other.node() == adjoint || other.is(made)) continue;
    const bool flips = in_tree_.contains(adjoint.get()) && !in_tree_.contains(A.node().get());
    flips ? link_adjoint(other, made) : link_adjoint(made, other);
  }
}

NamedLinop TreeMap::mapped(const MemoryMap& map, const NamedLinop& A) {
  const std::lock_guard guard(mutex_);
  const auto found = nodes_.find(A.node().get());
  if (found == nodes_.end()) throw not_registered("operator " + A.name());
  if (n_made_ < order_.size()) {
    make_nodes(map);
    if (options_.caches) link_caches();
  }
  return found->second;
}

void TreeMap::forget() {
  nodes_.clear();
  in_tree_.clear();
  order_.clear();
  cell_order_.clear();
  cells_.clear();
  derived_.clear();
  derived_order_.clear();
  attributes_.clear();
  n_made_ = n_attributes_read_ = 0;
}

}  // namespace palimpsest
