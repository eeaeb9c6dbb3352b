// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/container.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/memory/claimed_ranges.hpp"
#include "palimpsest/run/stretched_values.hpp"

namespace palimpsest {
namespace {

std::uint64_t next_container_id() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

// Claims a Storage and, where other Storages may show its memory, its bytes. False, and no claim,
// if one of the two has another holder. `present` is the caller's own Storage, which it gives up.
bool claim_memory(Storage& storage, const Storage& present) {
  if (!storage.claim_if_free()) return false;
  try {
    if (claim_range(storage, present)) return true;
  } catch (...) {
    storage.give_up_claim();
    throw;
  }
  storage.give_up_claim();
  return false;
}

void give_up(Storage& storage) noexcept {
  storage.give_up_claim();
  if (!storage.is_claimed()) release_range(storage);
}

thread_local int n_keeping_stretched = 0;

bool is_older(const std::shared_ptr<Container>& a, const std::shared_ptr<Container>& b) {
  return a->id() < b->id();
}

}  // namespace

constinit thread_local HeldScope* HeldScope::newest_ = nullptr;

bool HeldScope::holds_here(const Container& container) {
  for (const HeldScope* scope = newest_; scope != nullptr; scope = scope->older_) {
    if (scope->holds(container)) return true;
  }
  return false;
}

void HeldScope::enter() noexcept {
  older_ = newest_;
  if (older_ != nullptr) older_->newer_ = this;
  newest_ = this;
  is_entered_ = true;
}

HeldScope::~HeldScope() {
  if (!is_entered_) return;
  (newer_ != nullptr ? newer_->older_ : newest_) = older_;
  if (older_ != nullptr) older_->newer_ = newer_;
}

void HeldScope::keep_all_in_child() noexcept {
  for (const HeldScope* scope = newest_; scope != nullptr; scope = scope->older_) {
    scope->keep_in_child();
  }
}

// Kept without the shared variables it refers back to: those are named weakly, or a container would
// keep itself alive.
struct Container::DefaultUpdate {
  Variable expression;
  std::vector<Variable> stand_ins;
  std::vector<std::weak_ptr<VariableNode>> originals;
};

Container::Container(TensorType type, const Value& value, ContainerOptions options)
    : type_(std::move(type)),
      name_(std::move(options.name)),
      strict_(options.strict),
      allow_downcast_(options.allow_downcast),
      id_(next_container_id()),
      home_(host_of(value.tensor().defined() ? value.tensor().device() : type_.device)) {
  after_fork_in_child(HeldScope::keep_all_in_child);
  store(admitted(value, options.borrow));
}

Container::~Container() {
  if (value_.defined()) give_up(value_.storage());
}

std::string Container::who() const {
  return name_.empty() ? "shared variable " + type_.str() : "shared variable '" + name_ + "'";
}

// The container has claimed the Storage of the value.
void Container::store(Tensor value) noexcept {
  const ForkSection whole;
  if (lock_.is_torn()) lock_.heal();
  if (value_.defined()) give_up(value_.storage());
  value_ = std::move(value);
  hold_range(value_.storage());
}

// filter() does not know how a variable comes to have fixed extents.
static void check_extents(const TensorType& type, const Value& value, const std::string& who) {
  const Tensor& tensor = value.tensor();
  if (value.is_variable() || !tensor.defined() || type.admits(tensor.shape())) return;
  throw ShapeError("[" + who + "] shape: got " + to_string(tensor.shape()) + ", expected " +
                   type.str() +
                   ". Try {.shape = std::nullopt} where it is made, for values of any "
                   "extents");
}

// The tensor to store for a value, claimed. A lent value keeps the caller's Storage, unless that or
// its memory belongs to another container or to the frame of a function; any other is a lazy clone.
// A value whose elements overlap one another cannot be updated in place, so it is made dense, or, a
// first value on request, when it is updated.
Tensor Container::admitted(const Value& value, bool borrow) {
  check_extents(type_, value, who());
  Tensor tensor = filter(type_, value, {strict_, allow_downcast_}, who());
  const Storage present = value_.defined() ? value_.storage() : Storage();
  const bool is_present = shares_storage(tensor, value_);
  const bool stays = !value_.defined() && n_keeping_stretched > 0;
  if (!stays && has_internal_overlap(tensor)) {
    tensor = tensor.clone();
  } else if (!(borrow && is_present)) {
    if (borrow && claim_memory(tensor.storage(), present)) return tensor;
    tensor = tensor.lazy_clone();
    if (claim_memory(tensor.storage(), present)) return tensor;
    tensor = tensor.clone();  // the clone shows read-only memory that another container writes
  }
  tensor.storage().claim();
  return tensor;
}

Tensor Container::get_value(GetOptions options) const {
  Tensor value;
  {
    const ContainerHold hold(*this, HoldMode::shared, "get_value");
    const bool moves = !options.return_internal_type && home_ != type_.device;
    value = options.borrow || moves ? value_ : value_.lazy_clone();
    if (moves) value = value.to(home_);
  }
  return value;
}

void Container::set_value(const Value& value, SetOptions options) {
  Tensor dropped;  // after the lock
  const ContainerHold hold(*this, HoldMode::replacing, "set_value");
  Tensor made = admitted(value, options.borrow);
  dropped = value_;
  store(std::move(made));
  count_version();
}

void Container::zero(SetOptions options) {
  Tensor dropped;  // after the lock
  const ContainerHold hold(*this, HoldMode::replacing, "zero");
  if (options.borrow) {
    separate_elements(*this);
    value_.fill(0);
    renew_range(value_.storage());
    lock_.heal();
  } else {
    Tensor zeros = Tensor::zeros(value_.shape(), value_.dtype(), value_.device());
    zeros.storage().claim();
    dropped = value_;
    store(std::move(zeros));
  }
  count_version();
}

void Container::modify(const std::function<void(Tensor&)>& change) {
  Tensor dropped;  // after the lock
  const ContainerHold hold(*this, HoldMode::exclusive, "modify");
  separate_elements(*this);
  dropped = value_;
  Tensor value = value_;
  count_version();
  change(value);
  const bool is_same = value.defined() && shares_storage(value, value_) &&
                       passes_unchanged(type_, value) && !has_internal_overlap(value);
  if (!is_same) return store(admitted(value, false));
  renew_range(value.storage());
  value.storage().claim();
  store(std::move(value));
}

Tensor Container::exchange(Value value) {
  const ContainerHold hold(*this, HoldMode::exclusive, "exchange");
  check_extents(type_, value, who());
  Tensor made = filter(type_, value, {strict_, allow_downcast_}, who());
  value = Value(Tensor());
  if (has_internal_overlap(made)) {
    made = made.clone();
  } else if (made.storage().use_count() > 1) {
    made = made.lazy_clone();  // another handle on it exists
  }
  Tensor old = value_;
  if (!claim_memory(made.storage(), old.storage())) {
    made = made.clone();
    made.storage().claim();
  }
  store(std::move(made));
  count_version();
  return old;
}

void Container::commit(Tensor&& value) noexcept {
  store(std::move(value));
  count_version();
}

KeepStretchedValues::KeepStretchedValues() { ++n_keeping_stretched; }
KeepStretchedValues::~KeepStretchedValues() { --n_keeping_stretched; }

void separate_elements(Container& container) {
  const Tensor& value = container.held_value();
  if (value.is_contiguous() || !has_internal_overlap(value)) return;
  Tensor separate = value.clone();
  separate.storage().claim();
  container.commit(std::move(separate));
}

void Container::set_default_update(const Variable& expression) {
  auto made = std::make_unique<DefaultUpdate>();
  if (expression.defined()) {
    check_update_type(type_, expression.type(), "default update of " + who());
    // Roots whose own default updates lead back to this container, itself included.
    std::vector<Variable> back;
    const auto leads_back = [&](const Variable& root) {
      std::vector<Variable> pending{root};
      PointerSet<const Container> seen;
      while (!pending.empty()) {
        const auto container = container_of(pending.back());
        pending.pop_back();
        if (container.get() == this) return true;
        if (!container || !seen.insert(container.get())) continue;
        const Variable next = container->default_update();
        if (!next.defined()) continue;
        for (const Variable& v : values_of({&next, 1})) pending.push_back(v);
      }
      return false;
    };
    for (const Variable& v : values_of({&expression, 1})) {
      if (v.is_root() && leads_back(v)) back.push_back(v);
    }
    for (const Variable& v : back) {
      made->stand_ins.push_back(make_input(v.type(), v.name()));
      made->originals.push_back(v.handle());
    }
    made->expression = clone_graph({&expression, 1}, back, made->stand_ins)[0];
  }
  const ContainerHold hold(*this, HoldMode::exclusive, "set_default_update");
  default_update_.swap(made);
}

Variable Container::default_update() const {
  const ContainerHold hold(*this, HoldMode::shared, "default_update");
  if (!default_update_ || !default_update_->expression.defined()) return {};
  std::vector<Variable> originals;
  for (std::size_t i = 0; i < default_update_->originals.size(); ++i) {
    auto node = default_update_->originals[i].lock();
    originals.push_back(node ? Variable(std::move(node)) : default_update_->stand_ins[i]);
  }
  return clone_graph({&default_update_->expression, 1}, default_update_->stand_ins, originals)[0];
}

void Container::check_not_held_here(std::string_view doing) const {
  if (!HeldScope::holds_here(*this)) return;
  throw StateError("[" + std::string(doing) + "] " + who() +
                   " is held by this thread already. Try to leave modify() or the function's call "
                   "first");
}

void Container::throw_lost(HoldMode mode, std::string_view doing) const {
  release(mode);
  throw StateError("[" + std::string(doing) + "] " + who() +
                   " was being written by another thread when this process was forked: its value "
                   "is lost. Try set_value, or to fork while no thread updates it");
}

HeldContainers::HeldContainers(std::span<const std::shared_ptr<Container>> containers,
                               std::string_view doing)
    : containers_(containers.begin(), containers.end()) {
  std::sort(containers_.begin(), containers_.end(), is_older);
  containers_.erase(std::unique(containers_.begin(), containers_.end()), containers_.end());
  for (const auto& container : containers_) container->check_not_held(doing);
  std::size_t n_held = 0;
  try {
    for (; n_held < containers_.size(); ++n_held)
      containers_[n_held]->hold(HoldMode::shared, doing);
  } catch (...) {
    while (n_held > 0) containers_[--n_held]->release(HoldMode::shared);
    throw;
  }
  enter();
}

HeldContainers::~HeldContainers() {
  for (const auto& container : containers_) container->release(HoldMode::shared);
}

void HeldContainers::let_go_of_unshared() noexcept {
  std::erase_if(containers_, [](const auto& container) {
    if (container.use_count() > 1) return false;
    container->release(HoldMode::shared);
    return true;
  });
}

bool HeldContainers::holds(const Container& container) const {
  const auto first =
      std::lower_bound(containers_.begin(), containers_.end(), container.id(),
                       [](const auto& one, std::uint64_t id) { return one->id() < id; });
  return first != containers_.end() && first->get() == &container;
}

void HeldContainers::keep_in_child() const noexcept {
  for (const auto& container : containers_) container->keep_hold(HoldMode::shared);
}

std::shared_ptr<Container> container_of(const Variable& v) {
  return std::dynamic_pointer_cast<Container>(v.handle()->attachment);
}

void check_update_type(const TensorType& type, const TensorType& given, std::string_view who) {
  bool fits =
      type.dtype == given.dtype && type.device == given.device && type.rank() == given.rank();
  for (std::size_t i = 0; fits && i < type.rank(); ++i) {
    const bool may_agree =
        type.shape[i] == given.shape[i] || type.shape[i] == kUnknown || given.shape[i] == kUnknown;
    fits = may_agree && (given.shape[i] != 1 || type.shape[i] == 1);
  }
  if (fits) return;
  throw TypeError("[" + std::string(who) + "] got " + given.str() + ", expected " + type.str());
}

}  // namespace palimpsest
