// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/config.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "palimpsest/base/edit_distance.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/base/per_thread.hpp"

namespace palimpsest {
namespace {

[[noreturn]] void throw_value(std::string_view key, std::string_view value,
                              std::string_view expected) {
  throw ValueError("[config " + std::string(key) + "] got '" + std::string(value) + "', expected " +
                   std::string(expected));
}

// -- from and to text --------------------------------------------------------------------------

struct Key {
  std::string_view name;
};

// Fields of a group have a dot in their key: debug_patience is debug.patience.
std::string key_of(std::string_view field) {
  std::string key(field);
  for (const std::string_view group : {"debug", "nan_guard"}) {
    if (field.starts_with(group) && field.substr(group.size()).starts_with('_')) {
      key[group.size()] = '.';
    }
  }
  return key;
}

template <class E>
struct Names;
template <>
struct Names<Reaction> {
  static constexpr std::string_view kNames[] = {"raise", "warn", "ignore"};
};
template <>
struct Names<Verbosity> {
  static constexpr std::string_view kNames[] = {"low", "medium", "high"};
};

template <class E>
requires std::is_enum_v<E>
void read_field(Key key, std::string_view text, E& field) {
  std::string all;
  for (std::size_t i = 0; i < std::size(Names<E>::kNames); ++i) {
    if (Names<E>::kNames[i] == text) {
      field = static_cast<E>(i);
      return;
    }
    all += (i > 0 ? ", " : "") + std::string(Names<E>::kNames[i]);
  }
  throw_value(key.name, text, all);
}
void read_field(Key, std::string_view text, DType& field) { field = parse_dtype(text); }
void read_field(Key, std::string_view text, std::string& field) { field = std::string(text); }
void read_field(Key key, std::string_view text, bool& field) {
  if (text != "true" && text != "false") throw_value(key.name, text, "true or false");
  field = text == "true";
}
void read_field(Key key, std::string_view text, index_t& field) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), field);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw_value(key.name, text, "an integer");
  }
}
void read_field(Key key, std::string_view text, double& field) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), field);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw_value(key.name, text, "a number");
  }
}
void read_field(Key key, std::string_view text, std::optional<index_t>& field) {
  index_t value = 0;
  if (text != "none") read_field(key, text, value);
  field = text == "none" ? std::nullopt : std::optional(value);
}
void read_field(Key, std::string_view text, std::vector<std::string>& field) {
  field.clear();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) field.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

template <class E>
requires std::is_enum_v<E> std::string written(E field) {
  return std::string(Names<E>::kNames[static_cast<std::size_t>(field)]);
}
std::string written(DType field) { return std::string(name_of(field)); }
std::string written(const std::string& field) { return field; }
std::string written(bool field) { return field ? "true" : "false"; }
std::string written(index_t field) { return std::to_string(field); }
std::string written(double field) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), field).ptr};
}
std::string written(const std::optional<index_t>& field) {
  return field ? written(*field) : "none";
}
std::string written(const std::vector<std::string>& field) {
  std::string text;
  for (const std::string& item : field) text += (text.empty() ? "" : ":") + item;
  return text;
}

// Calls visit(key, field) for every field.
template <class C, class Visit>
void for_each_field(C& config, Visit visit) {
#define PALIMPSEST_VISIT_FIELD(Type, name, ...) visit(key_of(#name), config.name);
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_VISIT_FIELD)
#undef PALIMPSEST_VISIT_FIELD
}

[[noreturn]] void throw_unknown(std::string_view key) {
  const std::vector<std::string> keys = Config::keys();
  const auto nearest = std::min_element(
      keys.begin(), keys.end(),
      [&](const auto& a, const auto& b) { return edit_distance(a, key) < edit_distance(b, key); });
  throw ValueError("[config] Invalid config key: got '" + std::string(key) + "'. Try '" + *nearest +
                   "'");
}

// -- whose config ------------------------------------------------------------------------------

// The configuration of threads outside of any scope. It is replaced as a whole. Each thread keeps
// its last one until `generation` changes.
struct Default {
  Mutex mutex;
  std::shared_ptr<const Config> config;  // guarded by mutex
  std::atomic<std::uint64_t> generation{1};

  Default() {
    const char* const flags = std::getenv("PALIMPSEST_FLAGS");
    config = std::make_shared<const Config>(Config().with_flags(flags ? flags : ""));
  }
};
Default& process_default() {
  return immortal([] { return Default(); });
}

struct OfThread {
  std::shared_ptr<const Config> scoped;  // null outside of any scope
  std::shared_ptr<const Config> seen;
  std::uint64_t generation = 0;
};

const std::shared_ptr<const Config>& current() {
  OfThread& of_thread = of_this_thread<OfThread>();
  if (of_thread.scoped) return of_thread.scoped;
  Default& now = process_default();
  if (now.generation.load(std::memory_order_acquire) != of_thread.generation) {
    const std::lock_guard guard(now.mutex);
    of_thread.seen = now.config;
    of_thread.generation = now.generation.load(std::memory_order_relaxed);
  }
  return of_thread.seen;
}

}  // namespace

void Config::set(std::string_view key, std::string_view value) {
  bool found = false;
  for_each_field(*this, [&](const std::string& name, auto& field) {
    if (name != key) return;
    found = true;
    read_field(Key{name}, value, field);
  });
  if (!found) throw_unknown(key);
}

std::string Config::get(std::string_view key) const {
  std::optional<std::string> text;
  for_each_field(*this, [&](const std::string& name, const auto& field) {
    if (name == key) text = written(field);
  });
  if (!text) throw_unknown(key);
  return *text;
}

Config Config::with_flags(std::string_view flags) const {
  Config result = *this;
  while (!flags.empty()) {
    const std::size_t end = std::min(flags.find(','), flags.size());
    const std::string_view item = flags.substr(0, end);
    flags.remove_prefix(std::min(end + 1, flags.size()));
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw ValueError("[config] got '" + std::string(item) + "', expected key=value");
    }
    result.set(item.substr(0, equals), item.substr(equals + 1));
  }
  return result;
}

std::vector<std::string> Config::keys() {
  std::vector<std::string> keys;
  const Config any;
  for_each_field(any, [&](const std::string& name, const auto&) { keys.push_back(name); });
  return keys;
}

const Config& config() { return *current(); }
std::shared_ptr<const Config> shared_config() { return current(); }

void set_default_config(const Config& value) {
  auto made = std::make_shared<const Config>(value);
  Default& now = process_default();
  const std::lock_guard guard(now.mutex);
  now.config.swap(made);
  now.generation.fetch_add(1, std::memory_order_release);
}

ConfigScope::ConfigScope(const ConfigOverrides& overrides) {
  auto changed = std::make_shared<Config>(config());
#define PALIMPSEST_OVERRIDE(Type, name, ...) \
  if (overrides.name) changed->name = *overrides.name;
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_OVERRIDE)
#undef PALIMPSEST_OVERRIDE
  outer_ = std::exchange(of_this_thread<OfThread>().scoped, std::move(changed));
}

ConfigScope::ConfigScope(std::shared_ptr<const Config> config) {
  if (!config) throw ValueError("[ConfigScope] undefined: got an empty handle");
  outer_ = std::exchange(of_this_thread<OfThread>().scoped, std::move(config));
}

ConfigScope::~ConfigScope() { of_this_thread<OfThread>().scoped = std::move(outer_); }

}  // namespace palimpsest
