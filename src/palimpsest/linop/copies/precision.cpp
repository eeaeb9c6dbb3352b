// SPDX-License-Identifier: Apache-2.0
// Copies of an operator in another precision. Every storage is converted once, as its real numbers,
// so that views, gaps and sharing stay, with scaled offsets.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/run/stretched_values.hpp"
#include "palimpsest/tensor/layout.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

index_t bytes_of_item(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

// Weights that are exact numbers and take the precision of x.
bool adapts(const NamedLinop& A) { return A.has_attr("adapts") && A.attr("adapts").as_bool(); }

class Conversion {
 public:
  Conversion(const NamedLinop& A, DType target) : A_(A), real_(real_of(target)) {}

  NamedLinop run() {
    TreeMap tree;
    tree.collect(A_);
    for (const NamedLinop& node : tree.nodes()) find(node);
    {
      const HeldContainers held(containers(), "to");
      for (const auto& container : order_) read(cells_.at(container.get()));
      memory_.lazy_copy();
    }
    convert();
    for (const auto& container : order_) make(cells_.at(container.get()));
    for (const NamedLinop& node : tree.nodes()) make(node);
    return made_.at(A_.node().get());
  }

 private:
  struct Cell {
    std::shared_ptr<Container> container;
    bool is_whole = false, changes = false;
    std::vector<ElementLayout> layouts;
    std::vector<Tensor> tensors;  // the whole value, or one per layout
    SharedVariable made;
    std::vector<ElementLayout> made_layouts;
  };

  std::vector<std::shared_ptr<Container>> containers() const { return order_; }

  void find(const NamedLinop& A) {
    if (!adapts(A)) {
      for (const auto& [name, p] : A.params()) {
        if (!p.present() || follows_from_others(A, name, p)) continue;
        p.refresh();
        find(p);
      }
    }
    for (const auto& [name, a] : A.attrs()) find(a);
  }

  void find(const Parameter& p) {
    const auto& container = p.variable().container_ptr();
    const auto [at, is_new] = cells_.try_emplace(container.get());
    Cell& cell = at->second;
    if (is_new) {
      cell.container = container;
      order_.push_back(container);
    }
    if (!p.is_view()) {
      cell.is_whole = true;
    } else if (std::find(cell.layouts.begin(), cell.layouts.end(), p.layout()) ==
               cell.layouts.end()) {
      cell.layouts.push_back(p.layout());
    }
  }

  void find(const Attribute& a) {
    if (a.kind() == Attribute::Kind::tensor && a.as_tensor().defined()) {
      note(a.as_tensor(), a.as_tensor().dtype());
    }
    if (a.kind() != Attribute::Kind::list) return;
    for (const Attribute& entry : a.as_list()) find(entry);
  }

  // All that is seen of one storage must scale alike.
  void note(const Tensor& t, DType dtype) {
    const DType kind = is_inexact(dtype) ? real_of(dtype) : dtype;
    const auto [at, is_new] = kinds_.try_emplace(t.storage().id(), kind);
    if (is_new || at->second == kind || (!is_inexact(at->second) && !is_inexact(kind))) return;
    throw DTypeError(who(A_) + "to: a storage is reinterpreted: it is read as " +
                     std::string(name_of(at->second)) + " and as " + std::string(name_of(kind)));
  }

  void read(Cell& cell) {
    const Tensor& value = cell.container->held_value();
    if (!cell.is_whole) {
      for (const ElementLayout& layout : cell.layouts) {
        auto part = elements_of(value, layout);
        if (!part) {
          cell.is_whole = true;
          break;
        }
        cell.tensors.push_back(std::move(*part));
      }
    }
    for (const ElementLayout& layout : cell.layouts) note(value, layout.dtype);
    if (cell.is_whole) {
      cell.tensors = {value};
      note(value, value.dtype());
    }
    const DType dtype = cell.tensors[0].dtype();
    cell.changes = is_inexact(dtype) && real_of(dtype) != real_;
    if (!cell.changes) return;
    for (const Tensor& t : cell.tensors) palimpsest::add(memory_, t);
    moving_.insert(moving_.end(), cell.tensors.begin(), cell.tensors.end());
  }

  // One storage of the other precision for each that is used.
  void convert() {
    struct Hull {
      Tensor any;
      std::int64_t lo = INT64_MAX, hi = 0;
    };
    std::map<std::uint64_t, Hull> hulls;
    for (const Tensor& t : moving_) {
      const Tensor there = palimpsest::map(memory_, t);
      const Extent extent = memory_extent(byte_layout(there));
      Hull& hull = hulls[there.storage().id()];
      hull.any = there;
      if (extent.lo == extent.hi) continue;
      hull.lo = std::min(hull.lo, extent.lo);
      hull.hi = std::max(hull.hi, extent.hi);
    }
    for (auto& [id, hull] : hulls) {
      const DType old = real_of(hull.any.dtype());
      if (hull.hi == 0) hull.lo = 0;
      hull.lo -= hull.lo % (2 * bytes_of_item(old));
      const Tensor reals(hull.any.storage(), old, {(hull.hi - hull.lo) / bytes_of_item(old)}, {1},
                         hull.lo / bytes_of_item(old));
      storages_.emplace(id, Converted{reals.to(real_).contiguous(), hull.lo});
    }
  }

  Tensor converted(const Tensor& t) const {
    const Tensor there = palimpsest::map(memory_, t);
    const Converted& to = storages_.at(there.storage().id());
    const DType dtype = converted(t.dtype());
    const index_t before =
        there.numel() == 0 ? 0 : there.offset() - to.lo / bytes_of_item(t.dtype());
    const index_t start = to.reals.offset() * bytes_of_item(real_) / bytes_of_item(dtype);
    return Tensor(to.reals.storage(), dtype, there.shape(), there.strides(), start + before);
  }

  void make(Cell& cell) {
    if (!cell.changes) return;
    const Container& old = *cell.container;
    if (cell.is_whole) {
      const Tensor value = converted(cell.tensors[0]);
      TensorType type = old.type();
      type.dtype = value.dtype();
      const KeepStretchedValues keep;
      cell.made = SharedVariable(type, value,
                                 {.name = old.name(),
                                  .borrow = true,
                                  .strict = old.strict(),
                                  .allow_downcast = old.allow_downcast()});
      return;
    }
    std::vector<Tensor> views;
    for (const Tensor& t : cell.tensors) views.push_back(converted(t));
    Reduced made = reduced(views, views[0].dtype(), old.name());
    cell.made = std::move(made.variable);
    cell.made_layouts = std::move(made.layouts);
  }

  Parameter converted(const Parameter& p) const {
    const Cell& cell = cells_.at(p.variable().container_ptr().get());
    if (!cell.changes) return p;
    const Parameter whole = Parameter(cell.made).as_trainable(p.is_trainable());
    if (!p.is_view()) return whole;
    ElementLayout layout = p.layout();
    if (!cell.is_whole) {
      const auto at = std::find(cell.layouts.begin(), cell.layouts.end(), layout);
      return whole.view(cell.made_layouts[static_cast<std::size_t>(at - cell.layouts.begin())]);
    }
    layout.dtype = converted(layout.dtype);
    return whole.view(layout);
  }

  DType converted(DType dtype) const { return is_complex(dtype) ? complex_of(real_) : real_; }

  // The attribute in the other precision, if it has one.
  std::optional<Attribute> converted(const Attribute& a) const {
    if (a.kind() == Attribute::Kind::tensor && a.as_tensor().defined()) {
      const Tensor& t = a.as_tensor();
      if (!is_inexact(t.dtype()) || real_of(t.dtype()) == real_) return {};
      return Attribute(t.to(converted(t.dtype())));
    }
    if (a.kind() != Attribute::Kind::list) return {};
    Attribute::List list = a.as_list();
    bool changes = false;
    for (Attribute& entry : list) {
      auto there = converted(entry);
      changes = changes || there;
      if (there) entry = std::move(*there);
    }
    return changes ? std::optional<Attribute>(std::move(list)) : std::nullopt;
  }

  void make(const NamedLinop& A) {
    LinopData data = copy_data(A);
    bool changes = false;
    if (!adapts(A)) {
      for (auto& [name, p] : data.params) {
        if (!p.present() || follows_from_others(A, name, p)) continue;
        const Parameter there = converted(p);
        changes = changes || !there.is(p);
        // A value that no longer follows from its sources is a value like others.
        if (!there.is(p)) p = there;
      }
    }
    for (auto& [name, a] : data.attrs) {
      auto there = converted(a);
      changes = changes || there;
      if (there) a = std::move(*there);
    }
    for (NamedLinop& child : data.children) {
      const NamedLinop& there = made_.at(child.node().get());
      changes = changes || !there.is(child);
      child = there;
    }
    if (!changes) {
      made_.emplace(A.node().get(), A);
    } else {
      made_.emplace(A.node().get(),
                    A.type().derive ? from_arguments(std::move(data)) : from_data(std::move(data)));
    }
  }

  struct Converted {
    Tensor reals;
    std::int64_t lo = 0;  // where its first byte was
  };

  NamedLinop A_;
  DType real_;
  MemoryMap memory_;
  std::vector<std::shared_ptr<Container>> order_;
  std::unordered_map<const Container*, Cell> cells_;
  std::map<std::uint64_t, DType> kinds_;  // by storage
  std::vector<Tensor> moving_;
  std::map<std::uint64_t, Converted> storages_;
  std::unordered_map<const LinopNode*, NamedLinop> made_;
};

}  // namespace

NamedLinop NamedLinop::to(DType dtype) const {
  data();
  if (!is_inexact(dtype)) {
    throw DTypeError(who(*this) + "to: got " + std::string(name_of(dtype)) +
                     ", expected a floating or complex dtype");
  }
  return Conversion(*this, dtype).run();
}

}  // namespace palimpsest
