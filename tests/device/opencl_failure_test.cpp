// SPDX-License-Identifier: Apache-2.0
// Failures of each function of OpenCL, at each of its calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <tuple>

#include "device/kernel_samples.hpp"
#include "device/on_device.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/device/opencl/opencl_backend.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::opencl {
namespace {

using palimpsest::testing::expect_error;
using palimpsest::testing::sample_text;

// The functions of the loader, one call of which fails.
struct Failing {
  static inline Api own;
  static inline Api counted;
  static inline long calls = 0;
  static inline long fail_at = 0;  // number of a call; 0: none
  static inline bool has_failed = false;
  static inline const char* only = nullptr;
  static constexpr Int kCode = -5;

  static bool fails_now(const char* name) {
    if (only != nullptr && std::string_view(only) != name) return false;
    if (++calls != fail_at) return false;
    has_failed = true;
    return true;
  }
};

// Functions whose failure nobody can react to.
bool only_releases(std::string_view name) {
  return name.starts_with("clRelease") || name == "clRetainEvent" || name == "clFinish" ||
         name == "clFlush";
}

template <class Result, class... Arguments>
Result failure(Arguments... arguments) {
  if constexpr (std::is_pointer_v<Result>) {
    *std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)) = Failing::kCode;
    return nullptr;
  } else {
    return Failing::kCode;
  }
}

const Api& failing_api() {
  Failing::own = *load_api(nullptr);
#define COUNTED(Result, name, parameters)                                                         \
  Failing::counted.name = [](auto... arguments) -> Result {                                       \
    if (!only_releases(#name) && Failing::fails_now(#name)) return failure<Result>(arguments...); \
    return Failing::own.name(arguments...);                                                       \
  };
  PALIMPSEST_OPENCL_FUNCTIONS(COUNTED)
#undef COUNTED
  return Failing::counted;
}

void fail_at(long call, const char* only = nullptr) {
  Failing::calls = 0;
  Failing::fail_at = call;
  Failing::only = only;
}

enum class Outcome { right, refused, no_device };

// A whole program: a device, memory, copies, a kernel, its result.
Outcome run_all(const Api& api) {
  std::string why;
  const auto devices = backends(api, why);
  if (devices.empty()) return Outcome::no_device;
  DeviceBackend& backend = *devices[0];
  Outcome outcome = Outcome::refused;
  std::byte* const x = backend.obtain(64);
  std::byte* const y = backend.obtain(64);
  std::byte* const staged = backend.obtain_staging(64);
  auto* const numbers = reinterpret_cast<float*>(staged);
  std::fill_n(numbers, 16, 2.f);
  try {
    if (x != nullptr && y != nullptr) {
      const KernelProgram program = backend.load(sample_text(), {});
      backend.copy(x, staged, 64);
      backend.fill(y, 0, 64);
      const std::array arguments = {KernelArgument::of(x), KernelArgument::of(3.0),
                                    KernelArgument::of(std::int64_t{16})};
      backend.launch({.program = program.get(),
                      .kernel = palimpsest::testing::kScale,
                      .items = 64,
                      .arguments = arguments});
      backend.copy(y, x, 64);
      backend.copy(staged, y, 64);
      palimpsest::testing::finish(backend);
      EXPECT_EQ(std::vector<float>(numbers, numbers + 16), std::vector<float>(16, 6.f));
      outcome = Outcome::right;
    }
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
  }
  fail_at(0);
  backend.give_back(x, 64);
  backend.give_back(y, 64);
  // Commands of a device that is lost may still use staging memory until they have run.
  try {
    palimpsest::testing::finish(backend);
  } catch (const DeviceError&) {
  }
  backend.give_back_staging(staged, 64);
  return outcome;
}

TEST(OpenClFailures, EachCallMayFail) {
  const Api& api = failing_api();
  fail_at(0);
  ASSERT_EQ(run_all(api), Outcome::right);
  int right = 0;
  int refused = 0;
  for (long call = 1;; ++call) {
    Failing::has_failed = false;
    fail_at(call);
    const Outcome outcome = run_all(api);
    if (!Failing::has_failed) break;
    if (outcome == Outcome::right) ++right;
    if (outcome == Outcome::refused) ++refused;
  }
  EXPECT_GT(refused, 20);  // the others asked for facts, or failed to list devices
  EXPECT_GT(right, 0);
}

class OpenClFailure : public ::testing::Test {
 protected:
  void SetUp() override {
    fail_at(0);
    std::string why;
    devices = backends(failing_api(), why);
    ASSERT_FALSE(devices.empty()) << why;
    program = devices[0]->load(sample_text(), {});
    x = devices[0]->obtain(64);
    launch();
    palimpsest::testing::finish(*devices[0]);
  }
  void TearDown() override {
    fail_at(0);
    devices[0]->give_back(x, 64);
  }
  void launch() {
    const std::array arguments = {KernelArgument::of(x), KernelArgument::of(1.0),
                                  KernelArgument::of(std::int64_t{16})};
    devices[0]->launch({.program = program.get(),
                        .kernel = palimpsest::testing::kScale,
                        .items = 64,
                        .arguments = arguments,
                        .step = step});
  }
  // The error stays when the driver works again.
  void expect_lost(const std::string& text) {
    DeviceBackend& backend = *devices[0];
    for (const auto& action : std::initializer_list<std::function<void()>>{
             [&] { launch(); }, [&] { backend.fill(x, 0, 64); }, [&] { backend.mark(); },
             [&] { backend.passed(0); }, [&] { backend.wait_on_host(0); },
             [&] { backend.load(sample_text(), {}); }}) {
      expect_error<DeviceError>(action, "[opencl:0] lost after " + text);
    }
  }

  std::vector<std::shared_ptr<DeviceBackend>> devices;
  KernelProgram program;
  std::shared_ptr<const std::string> step;  // of the launches
  std::byte* x = nullptr;
};

TEST_F(OpenClFailure, OfALaunchLosesTheDevice) {
  fail_at(1, "clEnqueueNDRangeKernel");
  const std::string text = "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES (-5)";
  expect_error<DeviceError>([&] { launch(); }, "lost after " + text);
  expect_lost(text);
}

TEST_F(OpenClFailure, OfACommandThatRunsLosesTheDevice) {
  static Int (*own)(Event, UInt, std::size_t, void*, std::size_t*);
  own = Failing::counted.clGetEventInfo;
  step = std::make_shared<const std::string>("step 12 (Fft) of A/Chain[1]");
  launch();
  Failing::counted.clGetEventInfo = [](Event, UInt, std::size_t, void* status, std::size_t*) {
    *static_cast<Int*>(status) = -5;
    return Int{0};
  };
  expect_error<DeviceError>([&] { palimpsest::testing::finish(*devices[0]); }, "lost after");
  Failing::counted.clGetEventInfo = own;
  expect_lost("step 12 (Fft) of A/Chain[1], a command: CL_OUT_OF_RESOURCES (-5)");
}

TEST_F(OpenClFailure, OfMemoryIsNull) {
  for (const char* const function : {"clCreateBuffer", "clEnqueueMigrateMemObjects"}) {
    fail_at(1, function);
    EXPECT_EQ(devices[0]->obtain(64), nullptr) << function;
  }
  fail_at(0);
  std::byte* const block = devices[0]->obtain(64);
  EXPECT_NE(block, nullptr);
  devices[0]->give_back(block, 64);
}

TEST(OpenClFailures, OfAContextLeavesTheDeviceOut) {
  for (const char* const function : {"clCreateContext", "clCreateCommandQueue"}) {
    fail_at(1, function);
    std::string why;
    const auto found = backends(failing_api(), why);
    if (found.empty()) {
      EXPECT_NE(why.find("cannot be used: CL_OUT_OF_RESOURCES (-5)"), std::string::npos) << why;
    }
  }
  fail_at(1, "clGetPlatformIDs");
  std::string why;
  EXPECT_TRUE(backends(failing_api(), why).empty());
  EXPECT_EQ(why, "no OpenCL device. Try pocl-opencl-icd");
  fail_at(0);
}

}  // namespace
}  // namespace palimpsest::opencl
