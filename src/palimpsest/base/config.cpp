// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/config.hpp"

#include <mutex>

namespace palimpsest {
namespace {

std::mutex default_mutex;
Config default_config;  // guarded by default_mutex
thread_local std::optional<Config> scoped;

template <class T>
void override_field(T& field, const std::optional<T>& with) {
  if (with) field = *with;
}

}  // namespace

Config config() {
  if (scoped) return *scoped;
  const std::lock_guard guard(default_mutex);
  return default_config;
}

void set_default_config(const Config& value) {
  const std::lock_guard guard(default_mutex);
  default_config = value;
}

ConfigScope::ConfigScope(const ConfigOverrides& overrides) : outer_(scoped) {
  Config changed = config();
  override_field(changed.reduce_identity_in_normal, overrides.reduce_identity_in_normal);
  override_field(changed.cache_adjoint_normal, overrides.cache_adjoint_normal);
  override_field(changed.shape_inference, overrides.shape_inference);
  override_field(changed.function_cache, overrides.function_cache);
  override_field(changed.to_dense_limit, overrides.to_dense_limit);
  scoped = changed;
}

ConfigScope::~ConfigScope() { scoped = outer_; }

}  // namespace palimpsest
