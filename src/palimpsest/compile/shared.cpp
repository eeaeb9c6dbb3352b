// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/shared.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace palimpsest {
namespace {

std::uint64_t next_container_id() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

std::string who(const Container& container) {
  return "[shared variable '" + container.name() + "'] ";
}

void check_fits(const TensorType& type, const Tensor& value, const std::string& prefix) {
  if (!value.defined()) throw ValueError(prefix + "got an undefined tensor");
  if (value.dtype() != type.dtype) {
    throw DTypeError(prefix + "got " + std::string(name_of(value.dtype())) + ", expected " +
                     std::string(name_of(type.dtype)));
  }
  if (value.device() != type.device) {
    throw DeviceError(prefix + "device: got " + value.device().str() + ", expected " +
                      type.device.str());
  }
  if (!type.admits(value.shape())) {
    throw ShapeError(prefix + "got shape " + to_string(value.shape()) + ", expected " + type.str());
  }
}

// What a container stores for a value: the caller's Storage when lent, else a lazy clone. Elements
// that overlap one another cannot be updated in place, so such a value is made dense.
Tensor stored(const Tensor& value, bool borrow) {
  if (has_internal_overlap(value)) return value.clone();
  return borrow ? value : value.lazy_clone();
}

}  // namespace

Container::Container(TensorType type, Tensor value, std::string name)
    : type_(std::move(type)),
      name_(std::move(name)),
      id_(next_container_id()),
      value_(std::move(value)) {}
Container::~Container() = default;

std::uint64_t Container::version() const {
  const std::shared_lock guard(lock_);
  return version_;
}

void Container::touch() {
  const std::unique_lock guard(lock_);
  ++version_;
}

void Container::commit_locked(Tensor&& value) noexcept {
  value_ = std::move(value);
  ++version_;
}

SharedVariable::SharedVariable(TensorType type, const Tensor& value, SharedOptions options) {
  check_fits(type, value, "[shared '" + options.name + "'] ");
  auto node = std::make_shared<VariableNode>();
  node->type = type;
  node->name = options.name;
  container_ = std::make_shared<Container>(std::move(type), stored(value, options.borrow),
                                           std::move(options.name));
  node->attachment = container_;
  variable_ = Variable(std::move(node));
}

SharedVariable shared(const Tensor& value, SharedOptions options) {
  if (!value.defined()) throw ValueError("[shared] got an undefined tensor");
  TensorType type{value.dtype(), Extents(value.rank(), kUnknown), value.device()};
  if (options.shape) type.shape = *options.shape;
  return SharedVariable(std::move(type), value, std::move(options));
}

Tensor SharedVariable::get_value(BorrowOption options) const {
  const std::shared_lock guard(container_->lock_);
  return options.borrow ? container_->value_ : container_->value_.lazy_clone();
}

void SharedVariable::set_value(const Tensor& value, BorrowOption options) {
  exchange(stored((check_fits(type(), value, who(*container_)), value), options.borrow));
}

void SharedVariable::modify(const std::function<void(Tensor&)>& change) {
  const std::unique_lock guard(container_->lock_);
  Tensor value = container_->value_;
  ++container_->version_;
  change(value);
  check_fits(type(), value, who(*container_));
  container_->value_ = std::move(value);
}

Tensor SharedVariable::exchange(const Tensor& value) {
  check_fits(type(), value, who(*container_));
  const std::unique_lock guard(container_->lock_);
  Tensor old = std::exchange(container_->value_, value);
  ++container_->version_;
  return old;
}

std::shared_ptr<Container> container_of(const Variable& v) {
  return std::dynamic_pointer_cast<Container>(v.handle()->attachment);
}

}  // namespace palimpsest
