// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft_wisdom.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"

namespace palimpsest {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, name;
  while (std::getline(info, line)) {
    // A virtual machine may hide the model name; the flags still differ.
    if (line.starts_with("model name") || line.starts_with("flags")) name += line;
    if (line.empty()) break;
  }
  return name;
}

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

}  // namespace

std::string machine_name() {
  return immortal([] {
    return std::to_string(std::hash<std::string>()(processor_name() + fft_library_version()));
  });
}

WisdomPlace wisdom_place(const char* setting, const char* cache_home, const char* home) {
  const std::string_view wanted = setting == nullptr ? "" : setting;
  if (wanted == "off") return {false, ""};
  if (wanted == "memory") return {true, ""};
  if (!wanted.empty()) return {true, std::string(wanted)};
  std::filesystem::path folder;
  if (is_absolute(cache_home)) {
    folder = cache_home;
  } else if (is_absolute(home)) {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {true, ""};
  }
  return {true, (folder / "palimpsest" / ("fft-" + machine_name())).string()};
}

const WisdomPlace& wisdom_place() {
  return immortal([] {
    return wisdom_place(std::getenv("PALIMPSEST_FFT_WISDOM"), std::getenv("XDG_CACHE_HOME"),
                        std::getenv("HOME"));
  });
}

}  // namespace palimpsest
