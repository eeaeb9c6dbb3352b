// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// Reaction to something that is probably a mistake.
enum class Reaction { raise, warn, ignore };
/// Amount of detail in an error at run time.
enum class Verbosity { low, medium, high };

// Every field of Config: X(type, name, default). The comments below the list explain them.
#define PALIMPSEST_CHECK_FIELDS(X)                     \
  X(index_t, debug_patience, 10)                       \
  X(bool, debug_check_finite, true)                    \
  X(std::vector<std::string>, debug_preallocated,      \
    {std::string("previous"), std::string("strided")}) \
  X(index_t, debug_preallocated_ndim, 4)               \
  X(std::string, debug_guard_pages, "auto")            \
  X(bool, debug_poison, true)                          \
  X(std::string, debug_check_branches, "both")         \
  X(bool, debug_check_plan, true)                      \
  X(bool, debug_warn_not_reused, true)                 \
  X(bool, nan_guard_nan_is_error, true)                \
  X(bool, nan_guard_inf_is_error, true)                \
  X(bool, nan_guard_big_is_error, true)                \
  X(double, nan_guard_big, 1e10)                       \
  X(Reaction, nan_guard_action, Reaction::raise)
#define PALIMPSEST_CONFIG_FIELDS(X)                   \
  X(std::string, mode, "FastRun")                     \
  X(DType, default_float, DType::float64)             \
  X(std::optional<index_t>, budget, std::nullopt)     \
  X(Reaction, on_unused_input, Reaction::raise)       \
  X(Reaction, on_opt_error, Reaction::warn)           \
  X(std::vector<std::string>, rewrites_including, {}) \
  X(std::vector<std::string>, rewrites_excluding, {}) \
  X(bool, rewrite_trace, false)                       \
  X(bool, allow_gc, false)                            \
  X(Verbosity, exception_verbosity, Verbosity::low)   \
  X(index_t, traceback_limit, 8)                      \
  X(std::optional<index_t>, threads, std::nullopt)    \
  X(index_t, parallel_grain, 32768)                   \
  X(index_t, plan_effort_ms, 100)                     \
  X(bool, profile, false)                             \
  X(bool, profile_memory, false)                      \
  X(bool, alias_regions, true)                        \
  X(bool, reduce_identity_in_normal, true)            \
  X(bool, cache_adjoint_normal, true)                 \
  X(bool, shape_inference, true)                      \
  X(bool, log_device_transfers, false)                \
  X(index_t, function_cache, 16)                      \
  X(index_t, to_dense_limit, index_t{1} << 30)        \
  PALIMPSEST_CHECK_FIELDS(X)

/// Choices that hold for a thread. A value.
///
///     mode                  how functions are rewritten: FastRun, FastCompile, NoRewrite; or how
///                           their calls are checked: DebugMode, NanGuardMode
///     default_float         dtype of a creation that names none
///     budget                bytes that one call of a function may hold; unset: no limit
///     on_unused_input       an input that no output needs
///     on_opt_error          a rewrite that throws or changes a type; the graph is as before it
///     rewrites_including,   tags of the rewrites to add and to leave out
///       rewrites_excluding
///     rewrite_trace         one line for each replacement that a rewrite attempts or is refused
///     allow_gc              functions release their memory after every call
///     exception_verbosity   low: the step; medium: also where its op was built, if that was known
///                           to be wanted then; high: also the plan and the buffers held
///     traceback_limit       how many calls are noted when an op is built
///     threads               of the pool, that work for one call of a function; unset: all
///     parallel_grain        elements below which a step of a function gets no task of its own
///     plan_effort_ms        effort of one plan for a better placement, in units of 0.2 to 1 ms
///     profile,              measure every step of functions compiled from now on, its bytes too
///       profile_memory
///     alias_regions         views of disjoint parts do not overlap; false: any two views of one
///                           array do, to find out whether a fault comes from the regions
///     reduce_identity_in_normal  an Identity inside a normal operator counts as none
///     cache_adjoint_normal  operators keep their adjoint and their normal operator
///     shape_inference       chains and sums resolve wildcards of a child from its neighbours
///     log_device_transfers  log one line for each array that a function copies to another device
///     function_cache        compiled functions that one operator keeps, the latest used ones
///     to_dense_limit        largest matrix in bytes that to_dense makes
///     debug.*, nan_guard.*  defaults of DebugOptions and NanGuardOptions; in C++ the fields are
///                           debug_patience, nan_guard_big and so on
struct Config {
#define PALIMPSEST_CONFIG_FIELD(Type, name, ...) Type name = Type(__VA_ARGS__);
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_CONFIG_FIELD)
#undef PALIMPSEST_CONFIG_FIELD

  /// Sets one field from text, as in `default_float`, `float32` or `debug.patience`, `3`; lists are
  /// separated by colons.
  /// Errors  ValueError "Invalid config key", with the nearest one; a wrong value
  void set(std::string_view key, std::string_view value);
  /// The text that set() would take. ValueError "Invalid config key".
  std::string get(std::string_view key) const;
  /// This config with `key=value,key=value` applied. ValueError, and then nothing has changed.
  Config with_flags(std::string_view flags) const;
  /// All keys, in the order above.
  static std::vector<std::string> keys();

  friend bool operator==(const Config&, const Config&) = default;
};

/// Fields to override; absent ones stay as they are.
struct ConfigOverrides {
#define PALIMPSEST_CONFIG_OVERRIDE(Type, name, ...) std::optional<Type> name = {};
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_CONFIG_OVERRIDE)
#undef PALIMPSEST_CONFIG_OVERRIDE
};

/// The configuration of the calling thread: that of its innermost ConfigScope, else the default.
/// The default begins with the environment variable PALIMPSEST_FLAGS (`key=value,...`).
///
/// The reference holds until this thread begins or ends a scope, or asks again.
const Config& config();
/// The same as a pointer that stays valid.
std::shared_ptr<const Config> shared_config();
/// Replaces the configuration of threads outside of any scope.
void set_default_config(const Config& value);

/// Overrides fields for the calling thread during its life. Scopes nest; they end in the reverse of
/// the order in which they began, also when an exception passes.
///
///     ConfigScope scope({.function_cache = 4});
class ConfigScope {
 public:
  explicit ConfigScope(const ConfigOverrides& overrides);
  /// A whole config, such as that of the thread for which this one works.
  explicit ConfigScope(std::shared_ptr<const Config> config);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;

 private:
  std::shared_ptr<const Config> outer_;
};

}  // namespace palimpsest
