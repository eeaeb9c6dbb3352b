// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// A fault found by DebugMode: an op that declares its memory access wrongly, a rewrite that
/// changes results, a plan that lets values share bytes. Containers are as before the call.
class DebugModeError : public Error {
 public:
  struct Facts {
    std::string reason;
    Apply node;
    Variable variable;
    int input = -1;
    int output = -1;
  };
  DebugModeError(const std::string& text, Facts facts)
      : Error(text), facts_(std::make_shared<const Facts>(std::move(facts))) {}

  /// The rewrite that is to blame, or that introduced the node; empty if none did.
  const std::string& reason() const { return facts_->reason; }
  const Apply& node() const { return facts_->node; }
  const Variable& variable() const { return facts_->variable; }
  /// Positions among the inputs and outputs of node(); -1: it is about none.
  int input() const { return facts_->input; }
  int output() const { return facts_->output; }

 private:
  std::shared_ptr<const Facts> facts_;
};

/// A value that does not fit its type or its inferred shape, or that is not finite.
class InvalidValueError : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// An input was written that is not declared as destroyed, or outside of the declared region.
class BadDestroyMap : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// A result lies in the memory of an input or of another result, and that is not declared.
class BadViewMap : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// A rewrite replaced a variable by one of another value.
class BadOptimization : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// Implementations, destinations, threads or old contents of memory make a difference.
class BadThunkOutput : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// A step read or wrote memory that is not its own.
class BadAccess : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// An op that says that it cannot fail did.
class BadNoFail : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// The plan lets values share bytes, or the run differs from the plan.
class BadPlan : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};
/// Rewriting or planning twice gave two results.
class StochasticOrder : public DebugModeError {
 public:
  using DebugModeError::DebugModeError;
};

}  // namespace palimpsest
