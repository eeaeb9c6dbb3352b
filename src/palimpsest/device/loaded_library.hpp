// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace palimpsest {

/// Functions of a driver's library, which is opened when the program runs.
template <class Functions>
struct LoadedLibrary {
  /// Opens the first library that is there; without one, `why` is `none_here`.
  LoadedLibrary(std::initializer_list<const char*> names, const char* none_here) {
    for (const char* const name : names) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) why = none_here;
  }
  /// Finds a function by its exported name. The first one that is not there is `missing`.
  template <class Function>
  void find(const char* exported, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, exported));
    if (function == nullptr && missing.empty()) missing = exported;
  }
  /// Null, and the reason, if it cannot be used.
  const Functions* usable(std::string* reason) const {
    if (why.empty()) return &functions;
    if (reason != nullptr) *reason = why;
    return nullptr;
  }

  void* library = nullptr;
  Functions functions;
  std::string missing;
  std::string why;  ///< empty: it can be used
};

}  // namespace palimpsest
