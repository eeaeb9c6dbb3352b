// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Choices that hold for a thread. A value.
struct Config {
  /// An Identity inside a normal operator counts as none.
  bool reduce_identity_in_normal = true;
  /// Operators keep their adjoint and their normal operator.
  bool cache_adjoint_normal = true;
  /// Chains and sums resolve wildcards of a child from its neighbours.
  bool shape_inference = true;
  /// Compiled functions that one operator keeps; the least recently used goes first.
  index_t function_cache = 16;
  /// Largest matrix in bytes that to_dense makes.
  index_t to_dense_limit = index_t{1} << 30;
};

/// Fields to override; absent ones stay as they are.
struct ConfigOverrides {
  std::optional<bool> reduce_identity_in_normal = {};
  std::optional<bool> cache_adjoint_normal = {};
  std::optional<bool> shape_inference = {};
  std::optional<index_t> function_cache = {};
  std::optional<index_t> to_dense_limit = {};
};

/// The configuration of the calling thread: that of its innermost ConfigScope, else the default.
Config config();
/// Replaces what threads outside of any scope see.
void set_default_config(const Config& value);

/// Overrides fields for the calling thread during its life. Scopes nest; they end in the reverse of
/// the order in which they began, also when an exception passes.
///
///     ConfigScope scope({.function_cache = 4});
class ConfigScope {
 public:
  explicit ConfigScope(const ConfigOverrides& overrides);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;

 private:
  std::optional<Config> outer_;
};

}  // namespace palimpsest
