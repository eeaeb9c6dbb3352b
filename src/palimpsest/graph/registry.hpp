// SPDX-License-Identifier: Apache-2.0
// Internal: values by their names, for all threads.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/fork.hpp"

namespace palimpsest {

template <class Value>
class Registry {
 public:
  /// False, without an effect, if the name is taken.
  bool add(std::string_view name, Value value) {
    const std::lock_guard guard(mutex_);
    return values_.emplace(std::string(name), std::move(value)).second;
  }
  void set(std::string_view name, Value value) {
    const std::lock_guard guard(mutex_);
    values_.insert_or_assign(std::string(name), std::move(value));
  }
  /// Value() for an unknown name.
  Value find(std::string_view name) const {
    const std::lock_guard guard(mutex_);
    const auto found = values_.find(name);
    return found == values_.end() ? Value() : found->second;
  }
  /// In alphabetical order.
  std::vector<std::string> names() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> list;
    for (const auto& [name, value] : values_) list.push_back(name);
    return list;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace palimpsest
