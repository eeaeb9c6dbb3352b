// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/parameter.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "palimpsest/compile/function.hpp"

namespace palimpsest {
namespace {

SharedVariable fixed(const Tensor& value, bool borrow) {
  if (!value.defined()) throw ValueError("[Parameter] got an undefined tensor");
  return shared(value, {.borrow = borrow, .strict = true, .shape = value.shape()});
}

Tensor evaluate(const Variable& expression) {
  return function({}, {Out(expression)}, {.name = "derived parameter"})()[0];
}

std::vector<std::shared_ptr<Container>> containers_in(const Variable& expression) {
  std::vector<std::shared_ptr<Container>> found;
  const auto visit = [&](const Variable& v) {
    const auto container = container_of(v);
    if (container && std::find(found.begin(), found.end(), container) == found.end()) {
      found.push_back(container);
    }
  };
  for (const Apply& node : applications_of({&expression, 1})) {
    for (const Variable& v : node.inputs()) visit(v);
  }
  visit(expression);
  return found;
}

}  // namespace

// What a derived value was computed from, and from which versions.
struct Parameter::Derivation {
  Variable expression;
  std::vector<std::shared_ptr<Container>> sources;
  std::mutex mutex;
  std::vector<std::uint64_t> versions;  // guarded by mutex

  std::vector<std::uint64_t> present_versions() const {
    std::vector<std::uint64_t> result;
    for (const auto& source : sources) result.push_back(source->version());
    return result;
  }
};

Parameter::Parameter(const Tensor& value) : variable_(fixed(value, false)) {}

Parameter::Parameter(SharedVariable variable) : variable_(std::move(variable)) {
  if (present() && !variable_.type().is_fully_known()) {
    throw ValueError("[Parameter] an extent is open: got " + variable_.type().str() +
                     ", expected a fixed shape. Try shared(value, {.shape = value.shape()})");
  }
}

Parameter Parameter::borrow(const Tensor& value) { return Parameter(fixed(value, true)); }

Parameter Parameter::derived(const Variable& expression) {
  auto derivation = std::make_shared<Derivation>();
  derivation->expression = expression;
  derivation->sources = containers_in(expression);
  derivation->versions = derivation->present_versions();
  Parameter result = borrow(evaluate(expression));
  result.derivation_ = std::move(derivation);
  return result;
}

void Parameter::refresh() const {
  if (!derivation_) return;
  const std::lock_guard guard(derivation_->mutex);
  std::vector<std::uint64_t> versions = derivation_->present_versions();
  if (versions == derivation_->versions) return;
  SharedVariable target = variable_;
  target.set_value(evaluate(derivation_->expression), {.borrow = true});
  derivation_->versions = std::move(versions);
}

const Variable& Parameter::var() const {
  if (!present()) throw ValueError("[Parameter] it is absent: expected a value");
  return variable_.var();
}

bool Parameter::is(const Parameter& other) const {
  if (!present() || !other.present()) return present() == other.present();
  return variable_.is(other.variable_);
}

bool Parameter::shares_storage(const Parameter& other) const {
  if (!present() || !other.present()) return false;
  return palimpsest::shares_storage(variable_.get_value({.borrow = true}),
                                    other.variable_.get_value({.borrow = true}));
}

Tensor Parameter::value() const {
  var();
  return variable_.get_value();
}

void Parameter::set_value(const Tensor& value) {
  var();
  variable_.set_value(value);
}

void Parameter::modify(const std::function<void(Tensor&)>& change) {
  var();
  variable_.modify(change);
}

void Parameter::touch() {
  var();
  variable_.container().touch();
}

std::uint64_t Parameter::version() const {
  var();
  return variable_.version();
}

}  // namespace palimpsest
