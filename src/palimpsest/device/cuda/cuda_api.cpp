// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/cuda/cuda_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/device/quiet_signals.hpp"

namespace palimpsest::cuda {
namespace {

constexpr int kOldestDriver = 12000;

template <class Functions>
struct Loaded {
  Functions functions;
  std::string why;  // empty: all functions are there
};

void* open_first(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

#define PALIMPSEST_CUDA_LOAD(name, exported, parameters)                            \
  loaded.functions.name =                                                           \
      reinterpret_cast<decltype(loaded.functions.name)>(dlsym(library, #exported)); \
  if (loaded.functions.name == nullptr && loaded.why.empty()) loaded.why = #exported;

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

Loaded<Driver> open_driver() {
  Loaded<Driver> loaded;
  const QuietSignals quiet;
  void* const library = open_first({"libcuda.so.1"});
  if (library == nullptr) {
    loaded.why = "no CUDA driver (libcuda.so.1) here";
    return loaded;
  }
  PALIMPSEST_CUDA_FUNCTIONS(PALIMPSEST_CUDA_LOAD)
  if (loaded.why == "cuFuncGetParamInfo") loaded.why.clear();  // of later drivers
  const Driver& driver = loaded.functions;
  int has = 0;
  if (driver.cuInit == nullptr || driver.cuDriverGetVersion == nullptr) {
    loaded.why = "libcuda.so.1 is no CUDA driver";
    return loaded;
  }
  const Result code = driver.cuInit(0);
  if (code == kStub) {
    loaded.why = "libcuda.so.1 is the toolkit's stub, not a driver";
  } else if (driver.cuDriverGetVersion(&has) == 0 && has < kOldestDriver) {
    loaded.why =
        fmt::format("driver {}, expected {} or later", version(has), version(kOldestDriver));
  } else if (!loaded.why.empty()) {
    loaded.why = "the CUDA driver (libcuda.so.1) here lacks " + loaded.why;
  } else if (code != 0) {
    loaded.why = code == kNoDevice ? "no CUDA device here"
                                   : "the CUDA driver gives " + error_name(driver, code);
  }
  return loaded;
}

Loaded<Nvrtc> open_nvrtc() {
  Loaded<Nvrtc> loaded;
  const QuietSignals quiet;
  void* const library = open_first({"libnvrtc.so.13", "libnvrtc.so.12"});
  if (library == nullptr) {
    loaded.why = "no NVRTC (libnvrtc.so.13, .12) here";
    return loaded;
  }
  PALIMPSEST_NVRTC_FUNCTIONS(PALIMPSEST_CUDA_LOAD)
  if (!loaded.why.empty()) loaded.why = "NVRTC here lacks " + loaded.why;
  return loaded;
}
#undef PALIMPSEST_CUDA_LOAD

template <class Functions>
const Functions* usable(const Loaded<Functions>& loaded, std::string* why) {
  if (loaded.why.empty()) return &loaded.functions;
  if (why != nullptr) *why = loaded.why;
  return nullptr;
}

}  // namespace

const Driver* load_driver(std::string* why) {
  return usable(immortal([] { return open_driver(); }), why);
}

const Nvrtc* load_nvrtc(std::string* why) {
  return usable(immortal([] { return open_nvrtc(); }), why);
}

std::string error_name(const Driver& driver, Result code) {
  const char* name = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(code, &name) != 0) name = nullptr;
  return fmt::format("{} ({})", name == nullptr ? "error" : name, code);
}

}  // namespace palimpsest::cuda
