// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/devices.hpp"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct Answer {
  int status = 0;
  std::string text;  // standard output and standard error
};

// The answer of tests/device/device_probe.cpp in an environment `NAME=value NAME=value`.
Answer probe(const std::string& environment, const std::string& question) {
  const std::string command = "env " + environment + " " + DEVICE_PROBE + " " + question + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  Answer answer;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) answer.text += part;
  const int status = pclose(pipe);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

void expect_answer(const std::string& environment, const std::string& question,
                   const std::string& text = "") {
  const Answer answer = probe(environment, question);
  EXPECT_EQ(answer.status, 0) << answer.text;
  EXPECT_NE(answer.text.find(text), std::string::npos) << answer.text;
}

// A folder with an empty file in place of a library, which hides the real one.
class HiddenLibrary {
 public:
  explicit HiddenLibrary(const std::string& name) : folder_(::testing::TempDir() + "no_" + name) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/" + name).close();
  }
  ~HiddenLibrary() { std::filesystem::remove_all(folder_); }
  HiddenLibrary(const HiddenLibrary&) = delete;
  HiddenLibrary& operator=(const HiddenLibrary&) = delete;

  const std::string& folder() const { return folder_; }
  std::string environment() const { return "LD_LIBRARY_PATH=" + folder_; }

 private:
  std::string folder_;
};

// The other tests say little without it.
TEST(Devices, PoclIsInstalled) {
  std::string why;
  EXPECT_FALSE(devices_here(DeviceType::opencl, &why).empty())
      << why
      << ". These tests need the package pocl-opencl-icd: tools/install_dependencies.sh test";
}

TEST(Devices, AreTheSameAtEachCall) {
  const std::vector<Device> here = devices_here(DeviceType::opencl);
  ASSERT_FALSE(here.empty());
  EXPECT_EQ(here[0], (Device{DeviceType::opencl, 0}));
  EXPECT_EQ(&backend_of(here[0]), &backend_of(here[0]));
  EXPECT_EQ(devices_here(DeviceType::cpu), std::vector<Device>{Device{}});
  expect_error<DeviceError>([] { backend_of(Device{}); }, "got cpu, expected an accelerator");
}

TEST(Devices, NumberThatIsNotHere) {
  expect_answer("", "tell opencl:3", "opencl:3: this machine has 1");
}

TEST(Devices, NoLoader) {
  const HiddenLibrary hidden("libOpenCL.so.1");
  expect_answer(hidden.environment(), "tell opencl:0", "no OpenCL loader (libOpenCL.so.1) here");
  expect_answer(hidden.environment(), "tell opencl:0", "0 here no OpenCL loader");
}

TEST(Devices, NoDevice) {
  const std::string folder = ::testing::TempDir() + "no_vendors";
  std::filesystem::create_directories(folder);
  expect_answer("OCL_ICD_VENDORS=" + folder, "tell opencl:0",
                "no OpenCL device. Try pocl-opencl-icd");
}

TEST(Devices, NoCudaDriver) {
  const HiddenLibrary hidden("libcuda.so.1");
  expect_answer(hidden.environment(), "tell cuda:0",
                "no CUDA driver (libcuda.so.1) here; devices: cpu:0");
}

TEST(Devices, CudaDriversThatCannotBeUsed) {
  const std::string fake = "LD_LIBRARY_PATH=" FAKE_CUDA;
  expect_answer(fake + " FAKE_CUDA_STUB=1", "tell cuda:0",
                "libcuda.so.1 is the toolkit's stub, not a driver");
  expect_answer(fake + " FAKE_CUDA_VERSION=11040", "tell cuda:0",
                "driver 11.4, expected 12.0 or later");
}

TEST(Devices, NoCompilerForCuda) {
  const HiddenLibrary hidden("libnvrtc.so.13"), older("libnvrtc.so.12");
  expect_answer(hidden.environment() + ":" + older.folder() + ":" FAKE_CUDA, "compile cuda:0",
                "[cuda:0] no NVRTC (libnvrtc.so.13, .12) here");
}

TEST(Devices, LoadingAndCompilingKeepHandlersOfSignals) {
  const std::string cache = ::testing::TempDir() + "pocl_cache_of_signals";
  std::filesystem::remove_all(cache);
  expect_answer("POCL_CACHE_DIR=" + cache, "signals");
  expect_answer("POCL_CACHE_DIR=" + cache, "signals");
  std::filesystem::remove_all(cache);
}

TEST(Devices, TwoAreIndependent) {
  expect_answer("POCL_DEVICES='pthread pthread'", "two", "opencl:2: this machine has 2");
}

TEST(Devices, ChildrenLoadDriversThatTheirParentsDidNot) { expect_answer("", "child"); }

TEST(Devices, MemoryEndsBeforeCommandsFail) { expect_answer("POCL_MEMORY_LIMIT=1", "exhaust"); }

TEST(Devices, ProcessesEndWhileCommandsRun) { expect_answer("", "end"); }

// A backend that is only somebody else.
class Other final : public DeviceBackend {
 public:
  const DeviceFacts& facts() const override { return facts_; }
  std::byte* obtain(std::size_t) noexcept override { return nullptr; }
  void give_back(std::byte*, std::size_t) noexcept override {}
  std::byte* obtain_staging(std::size_t) noexcept override { return nullptr; }
  void give_back_staging(std::byte*, std::size_t) noexcept override {}
  KernelProgram load(const KernelText&, std::span<const std::byte>) override { return nullptr; }
  void launch(const Launch&) override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, std::uint8_t, std::size_t) override {}
  Mark mark() override { return 0; }
  bool passed(Mark) override { return true; }
  void wait_on_host(Mark) override {}
  bool owns(const void*) const noexcept override { return false; }

 private:
  DeviceFacts facts_;
};

TEST(Devices, TestsAddABackend) {
  const Device device{DeviceType::cuda, 5};
  for (int i = 0; i < 2; ++i) {
    const auto added = std::make_shared<Other>();
    add_backend(device, added);
    EXPECT_EQ(&backend_of(device), added.get());
  }
}

}  // namespace
}  // namespace palimpsest
