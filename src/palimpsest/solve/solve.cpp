// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solve.hpp"

#include <utility>

namespace palimpsest {
namespace {

thread_local const CancelScope* innermost_scope = nullptr;

}  // namespace

CancelScope::CancelScope(CancelToken token) : token_(std::move(token)), outer_(innermost_scope) {
  innermost_scope = this;
}

CancelScope::~CancelScope() { innermost_scope = outer_; }

bool CancelScope::is_cancelled() noexcept {
  for (const CancelScope* scope = innermost_scope; scope != nullptr; scope = scope->outer_) {
    if (scope->token_.is_cancelled()) return true;
  }
  return false;
}

std::string_view name_of(Status status) {
  static constexpr std::string_view kNames[] = {
      "converged", "max_iterations", "time_limit", "breakdown", "diverged", "stopped", "cancelled"};
  return kNames[static_cast<std::size_t>(status)];
}

}  // namespace palimpsest
