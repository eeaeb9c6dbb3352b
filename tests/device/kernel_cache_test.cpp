// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/kernel_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "device/kernel_samples.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/device/devices.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::sample_text;

// Compiles by turning the text around.
class Compiler final : public DeviceBackend {
 public:
  struct Kernels final : LoadedKernels {
    std::vector<std::byte> binary() const override { return bytes; }
    std::vector<std::byte> bytes;
  };

  const DeviceFacts& facts() const override { return facts_; }
  KernelProgram load(const KernelText& text, std::span<const std::byte> binary) override {
    if (text.text == "wrong") throw DeviceError("[wrong] does not compile on this");
    const auto kernels = std::make_shared<Kernels>();
    const auto* const first = reinterpret_cast<const std::byte*>(text.text.data());
    kernels->bytes.assign(first, first + text.text.size());
    std::reverse(kernels->bytes.begin(), kernels->bytes.end());
    ++(binary.empty() ? compiled : taken);
    if (!binary.empty() &&
        !std::equal(binary.begin(), binary.end(), kernels->bytes.begin(), kernels->bytes.end())) {
      throw DeviceError("[text] is no binary for this");
    }
    return kernels;
  }

  std::byte* obtain(std::size_t) noexcept override { return nullptr; }
  void give_back(std::byte*, std::size_t) noexcept override {}
  std::byte* obtain_staging(std::size_t) noexcept override { return nullptr; }
  void give_back_staging(std::byte*, std::size_t) noexcept override {}
  void launch(const Launch&) override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, std::uint8_t, std::size_t) override {}
  Mark mark() override {
    if (is_lost) throw DeviceError("[this] lost after a command");
    return 0;
  }
  bool passed(Mark) override { return true; }
  void wait_on_host(Mark) override {}
  bool owns(const void*) const noexcept override { return false; }

  int compiled = 0;
  int taken = 0;
  bool is_lost = false;
  DeviceFacts facts_;
};

class KernelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(folder)) return found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
    return found;
  }
  // Changes the only file; the next load must compile, the one after it must not.
  template <class Change>
  void expect_replaced(Change change) {
    cache.load(compiler, text);
    ASSERT_EQ(files().size(), 1u);
    change(files()[0]);
    cache.load(compiler, text);
    EXPECT_EQ(compiler.compiled, 2);
    cache.load(compiler, text);
    EXPECT_EQ(compiler.compiled, 2);
    EXPECT_EQ(files().size(), 1u);
  }

  const std::string folder = ::testing::TempDir() + "kernels_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const KernelCache cache{folder, ""};
  Compiler compiler;
  KernelText text{.name = "text", .text = "abc", .kernels = {"f"}};
};

TEST_F(KernelCacheTest, CompilesEachTextOnce) {
  for (int i = 0; i < 3; ++i) cache.load(compiler, text);
  EXPECT_EQ(compiler.compiled, 1);
  EXPECT_EQ(compiler.taken, 2);
  KernelCache(folder, "").load(compiler, text);
  EXPECT_EQ(compiler.compiled, 1);
}

TEST_F(KernelCacheTest, NameOfTheTextDoesNotMatterAllElseDoes) {
  cache.load(compiler, text);
  text.name = "other";
  cache.load(compiler, text);
  EXPECT_EQ(compiler.compiled, 1);
  int expected = 1;
  const auto expect_compiled = [&] {
    cache.load(compiler, text);
    EXPECT_EQ(compiler.compiled, ++expected);
  };
  text.text = "abd";
  expect_compiled();
  text.kernels = {"f", "g"};
  expect_compiled();
  for (std::string DeviceFacts::*field :
       {&DeviceFacts::name, &DeviceFacts::driver, &DeviceFacts::isa, &DeviceFacts::options}) {
    compiler.facts_.*field = "x";
    expect_compiled();
  }
}

TEST_F(KernelCacheTest, DamagedFilesAreReplaced) {
  expect_replaced([](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); });
}

TEST_F(KernelCacheTest, EmptyFilesAreReplaced) {
  expect_replaced([](const fs::path& path) { fs::resize_file(path, 0); });
}

TEST_F(KernelCacheTest, FilesWithAnotherByteAreReplaced) {
  expect_replaced([](const fs::path& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('x');
  });
}

TEST_F(KernelCacheTest, BinariesThatTheDriverRefusesAreReplaced) {
  cache.load(compiler, text);
  text.text = "xyz";
  cache.load(compiler, text);
  const std::vector<fs::path> both = files();
  ASSERT_EQ(both.size(), 2u);
  fs::copy_file(both[0], both[1], fs::copy_options::overwrite_existing);
  text.text = "abc";
  cache.load(compiler, text);
  text.text = "xyz";
  cache.load(compiler, text);
  EXPECT_EQ(compiler.compiled, 3);
  for (const char* const again : {"abc", "xyz"}) {
    text.text = again;
    cache.load(compiler, text);
  }
  EXPECT_EQ(compiler.compiled, 3);
}

TEST_F(KernelCacheTest, LostDevicesAreNotAskedToCompile) {
  cache.load(compiler, text);
  text.text = "xyz";
  cache.load(compiler, text);
  const std::vector<fs::path> both = files();
  fs::copy_file(both[0], both[1], fs::copy_options::overwrite_existing);
  compiler.is_lost = true;
  const auto load_both = [&] {
    cache.load(compiler, text);
    text.text = "abc";
    cache.load(compiler, text);
  };
  expect_error<DeviceError>(load_both, "lost after");
  EXPECT_EQ(compiler.compiled, 2);
}

TEST_F(KernelCacheTest, FolderThatCannotBeWrittenCostsOnlyTheCompilation) {
  std::ofstream(folder).put('x');
  std::string lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines += line; });
  set_log_level(LogLevel::info);
  for (int i = 0; i < 2; ++i) cache.load(compiler, text);
  set_log_level(LogLevel::warn);
  set_log_sink({});
  EXPECT_EQ(compiler.compiled, 2);
  EXPECT_NE(lines.find("[kernel cache]"), std::string::npos) << lines;
}

TEST_F(KernelCacheTest, WrongTextIsRefusedAndNotKept) {
  text.text = "wrong";
  expect_error<DeviceError>([&] { cache.load(compiler, text); }, "does not compile on");
  EXPECT_TRUE(files().empty());
}

TEST_F(KernelCacheTest, LeastRecentlyUsedGoesFirst) {
  const KernelCache small(folder, "", 3 * 1024);
  const auto load = [&](char c) {
    text.text = std::string(900, c);
    small.load(compiler, text);
  };
  for (const char c : {'a', 'b', 'c'}) {
    load(c);
    for (const fs::path& path : files()) {
      fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
    }
  }
  load('a');
  load('d');
  EXPECT_EQ(compiler.compiled, 4);
  load('a');
  load('c');
  EXPECT_EQ(compiler.compiled, 4);
  load('b');
  EXPECT_EQ(compiler.compiled, 5);
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(KernelCacheTest, OtherFilesStay) {
  fs::create_directories(folder);
  std::ofstream(folder + "/notes.txt") << std::string(5000, 'x');
  const KernelCache small(folder, "", 1024);
  for (const char c : {'a', 'b'}) {
    text.text = std::string(900, c);
    small.load(compiler, text);
  }
  EXPECT_TRUE(fs::exists(folder + "/notes.txt"));
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(KernelCacheTest, WithoutAFolderNothingIsKept) {
  const KernelCache off("", folder);
  for (int i = 0; i < 2; ++i) off.load(compiler, text);
  EXPECT_EQ(compiler.compiled, 2);
  std::ifstream kept(folder + "/text.c");
  std::string line;
  std::getline(kept, line);
  EXPECT_EQ(line, "abc");  // the text itself, for reading
}

TEST_F(KernelCacheTest, LeavesKernelsToADriverThatKeepsThem) {
  DeviceBackend& backend = backend_of({DeviceType::opencl, 0});
  if (!backend.facts().compiles_late) GTEST_SKIP() << "not a driver of processors";
  EXPECT_FALSE(cache.load(backend, sample_text())->binary().empty());
  EXPECT_EQ(files().size(), 0u);
}

TEST(KernelFolder, FollowsTheSettings) {
  EXPECT_EQ(kernel_folder("off", "/c", "/h"), "");
  EXPECT_EQ(kernel_folder("/k", "/c", "/h"), "/k");
  EXPECT_EQ(kernel_folder(nullptr, "/c", "/h"), "/c/palimpsest/kernels");
  EXPECT_EQ(kernel_folder("", "c", "/h"), "/h/.cache/palimpsest/kernels");
  EXPECT_EQ(kernel_folder(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace palimpsest
