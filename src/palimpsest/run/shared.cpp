// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/shared.hpp"

#include <utility>

namespace palimpsest {
namespace {

Variable variable_on(const std::shared_ptr<Container>& container) {
  auto node = std::make_shared<VariableNode>();
  node->type = container->type();
  node->name = container->name();
  node->attachment = container;
  return Variable(std::move(node));
}

}  // namespace

SharedVariable::SharedVariable(TensorType type, const Value& value, SharedOptions options)
    : container_(
          std::make_shared<Container>(std::move(type), value,
                                      ContainerOptions{std::move(options.name), options.borrow,
                                                       options.strict, options.allow_downcast})),
      variable_(variable_on(container_)) {}

SharedVariable::SharedVariable(const TensorType& type, std::shared_ptr<Container> container)
    : container_(std::move(container)) {
  if (!container_) throw ValueError("[SharedVariable] undefined: got an empty handle");
  if (!(container_->type() == type)) {
    throw TypeError("[SharedVariable '" + container_->name() + "'] type: got " + type.str() +
                    ", expected the container's, " + container_->type().str());
  }
  variable_ = variable_on(container_);
}

SharedVariable shared(const Value& value, SharedOptions options) {
  const std::string who = "shared" + (options.name.empty() ? "" : " '" + options.name + "'");
  if (value.is_variable()) {
    throw TypeError("[" + who + "] got the Variable " + value.variable().str() +
                    ", expected a value. Try to evaluate it first");
  }
  const Tensor& tensor = value.tensor();
  if (!tensor.defined()) throw TypeError("[" + who + "] got an undefined tensor");
  TensorType type{tensor.dtype(), options.shape.of(tensor.shape()), tensor.device()};
  if (options.device) type.device = *options.device;
  return SharedVariable(std::move(type), value, std::move(options));
}

Container& SharedVariable::container() const {
  if (!container_)
    throw ValueError("[SharedVariable] undefined: expected a variable that was made");
  return *container_;
}

SharedVariable SharedVariable::clone() const {
  SharedVariable result;
  result.container_ = container().shared_from_this();
  result.variable_ = variable_on(result.container_);
  return result;
}

index_t SharedVariable::length() const {
  if (type().rank() > 0 && type().shape[0] != kUnknown) return type().shape[0];
  throw ValueError("[length] '" + name() + "' has no length in graphs: got " + type().str() +
                   ". Try to fix it: shared(value) without .shape");
}

}  // namespace palimpsest
