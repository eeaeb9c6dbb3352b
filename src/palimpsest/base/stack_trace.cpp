// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/stack_trace.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

namespace palimpsest {
namespace {

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 && name ? name.get() : symbol;
}

// By name: the library may be linked statically.
bool is_own(const Dl_info& where) {
  return where.dli_sname && demangled(where.dli_sname).starts_with("palimpsest::");
}

constinit std::atomic<OriginSource> source_of_origins{nullptr};

}  // namespace

void set_origin_source(OriginSource source) noexcept { source_of_origins.store(source); }
OriginSource origin_source() noexcept { return source_of_origins.load(std::memory_order_relaxed); }

StackTrace StackTrace::capture(std::size_t limit) {
  std::array<void*, 64> addresses;
  const int n = backtrace(addresses.data(), static_cast<int>(addresses.size()));
  StackTrace trace;
  bool is_outside = false;
  for (int i = 1; i < n && trace.frames_.size() < limit; ++i) {
    void* const address = addresses[static_cast<std::size_t>(i)];
    Dl_info where = {};
    const bool is_known = dladdr(address, &where) != 0;
    is_outside = is_outside || !is_known || !is_own(where);
    if (is_outside) trace.frames_.push_back(address);
  }
  return trace;
}

StackTrace StackTrace::of_lines(std::vector<std::string> lines) {
  StackTrace trace;
  trace.lines_ = std::move(lines);
  return trace;
}

StackTrace StackTrace::introduced_by(std::string rewrite) const {
  StackTrace trace = *this;
  trace.rewrite_ = std::move(rewrite);
  return trace;
}

std::string StackTrace::str() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  for (void* address : frames_) {
    Dl_info where = {};
    const bool is_known = dladdr(address, &where) != 0;
    if (is_known && where.dli_sname) {
      text += demangled(where.dli_sname);
    } else if (is_known && where.dli_fname) {
      text += fmt::format(
          "{}+{:#x}", where.dli_fname,
          static_cast<const char*>(address) - static_cast<const char*>(where.dli_fbase));
    } else {
      text += fmt::format("{}", address);
    }
    text += "\n";
  }
  return text;
}

}  // namespace palimpsest
