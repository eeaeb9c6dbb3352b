// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/cuda/cuda_api.hpp"

#include <fmt/format.h>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/device/loaded_library.hpp"
#include "palimpsest/device/quiet_signals.hpp"

namespace palimpsest::cuda {
namespace {

constexpr int kOldestDriver = 12000;

#define PALIMPSEST_CUDA_LOAD(name, exported, parameters) \
  loaded.find(#exported, loaded.functions.name);

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

LoadedLibrary<Driver> open_driver() {
  const QuietSignals quiet;
  LoadedLibrary<Driver> loaded({"libcuda.so.1"}, "no CUDA driver (libcuda.so.1) here");
  if (loaded.library == nullptr) return loaded;
  PALIMPSEST_CUDA_FUNCTIONS(PALIMPSEST_CUDA_LOAD)
  if (loaded.missing == "cuFuncGetParamInfo") loaded.missing.clear();  // of later drivers
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
  } else if (!loaded.missing.empty()) {
    loaded.why = "the CUDA driver (libcuda.so.1) here lacks " + loaded.missing;
  } else if (code != 0) {
    loaded.why = code == kNoDevice ? "no CUDA device here"
                                   : "the CUDA driver gives " + error_name(driver, code);
  }
  return loaded;
}

LoadedLibrary<Nvrtc> open_nvrtc() {
  const QuietSignals quiet;
  LoadedLibrary<Nvrtc> loaded({"libnvrtc.so.13", "libnvrtc.so.12"},
                              "no NVRTC (libnvrtc.so.13, .12) here");
  if (loaded.library == nullptr) return loaded;
  PALIMPSEST_NVRTC_FUNCTIONS(PALIMPSEST_CUDA_LOAD)
  if (!loaded.missing.empty()) loaded.why = "NVRTC here lacks " + loaded.missing;
  return loaded;
}
#undef PALIMPSEST_CUDA_LOAD

}  // namespace

const Driver* load_driver(std::string* why) {
  return immortal([] { return open_driver(); }).usable(why);
}

const Nvrtc* load_nvrtc(std::string* why) {
  return immortal([] { return open_nvrtc(); }).usable(why);
}

std::string error_name(const Driver& driver, Result code) {
  const char* name = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(code, &name) != 0) name = nullptr;
  return fmt::format("{} ({})", name == nullptr ? "error" : name, code);
}

}  // namespace palimpsest::cuda
