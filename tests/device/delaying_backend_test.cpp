// SPDX-License-Identifier: Apache-2.0
// Each fault that DelayingBackend is for is found, and programs without it are not blamed.
#include "support/delaying_backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/kernel_samples.hpp"
#include "device/on_device.hpp"
#include "device/tested_device.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/device/devices.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::DelayingBackend;
using testing::finish;
using testing::OnDevice;
using testing::Staged;

constexpr std::uint8_t kOld = 1;
constexpr std::uint8_t kNew = 2;

// The byte that a program gets on devices without and with each of several seeds.
template <class Program>
std::vector<std::uint8_t> results(Program program) {
  std::vector<std::uint8_t> all;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    DelayingBackend backend(backend_of(testing::tested_device()), seed);
    all.push_back(program(backend));
  }
  return all;
}

void expect_all(const std::vector<std::uint8_t>& got, std::uint8_t byte) {
  EXPECT_EQ(got, std::vector<std::uint8_t>(got.size(), byte));
}

TEST(DelayingBackend, RunsOnlyWhatAWaitNeeds) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  const OnDevice<std::uint8_t> x(backend, std::size_t{64});
  const OnDevice<std::uint8_t> y(backend, std::size_t{64});
  backend.fill(x.data(), 1, 64);
  backend.fill(y.data(), 1, 64);
  const Mark first = backend.mark();
  backend.fill(y.data(), 2, 64);
  EXPECT_EQ(backend.pending(), 3u);
  backend.wait_on_host(first);
  EXPECT_EQ(backend.pending(), 1u);
  EXPECT_FALSE(backend.passed(backend.mark()));
  finish(backend);
  EXPECT_EQ(backend.pending(), 0u);
}

TEST(DelayingBackend, IsAFurtherDevice) {
  DeviceBackend& own = backend_of(testing::tested_device());
  DeviceBackend& delayed = backend_of(testing::delayed(testing::tested_device()));
  EXPECT_EQ(&delayed, &backend_of(testing::delayed(testing::tested_device())));
  const KernelProgram before = own.load(testing::sample_text(), {});
  const KernelProgram program = delayed.load(testing::sample_text(), {});
  const OnDevice<float> x(own, std::vector<float>{1.f});
  const std::vector<KernelArgument> arguments = {
      KernelArgument::of(x.data()), KernelArgument::of(3.0), KernelArgument::of(std::int64_t{1})};
  for (const KernelProgram& one : {before, program}) {
    delayed.launch(
        {.program = one.get(), .kernel = testing::kScale, .items = 64, .arguments = arguments});
  }
  EXPECT_EQ(x.values()[0], 1.f);
  finish(delayed);
  EXPECT_EQ(x.values()[0], 9.f);
  testing::expect_error<InternalError>([&] { own.launch({.program = program.get()}); },
                                       "kernels of another device");
}

TEST(DelayingBackend, AskingOftenEnoughRuns) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  const OnDevice<std::uint8_t> x(backend, std::size_t{64});
  backend.fill(x.data(), 1, 64);
  int asked = 1;
  while (!backend.passed(backend.mark())) ++asked;
  EXPECT_GT(asked, 10);
}

TEST(DelayingBackend, FreshMemoryIsPoisoned) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  const OnDevice<std::uint8_t> x(backend, std::size_t{64});
  const Staged<std::uint8_t> staged(backend, 64);
  EXPECT_EQ(staged.data()[63], DelayingBackend::kPoison);
  expect_all(x.values(), DelayingBackend::kPoison);
}

// The byte that a launch reads after another one of the same recording has written it, or before.
std::uint8_t record_two(DeviceBackend& backend, bool is_writer_first, bool waits) {
  const KernelProgram program = backend.load(testing::sample_text(), {});
  const float old = kOld, other = kNew;
  const OnDevice<float> x(backend, std::vector<float>{is_writer_first ? old : other});
  const OnDevice<float> y(backend, std::vector<float>{is_writer_first ? other : old});
  const OnDevice<float> z(backend, std::size_t{1});
  const auto duplicate = [&](std::byte* to, std::byte* from, std::vector<std::size_t> after) {
    return RecordedLaunch{
        {.program = program.get(), .kernel = testing::kDuplicate, .items = 64},
        {KernelArgument::of(to), KernelArgument::of(from), KernelArgument::of(std::int64_t{1})},
        std::move(after)};
  };
  std::vector<RecordedLaunch> launches{duplicate(x.data(), y.data(), {}),
                                       duplicate(z.data(), x.data(), {})};
  if (!is_writer_first) std::swap(launches[0], launches[1]);
  if (waits) launches[1].after = {0};
  backend.record(launches)->enqueue();
  return static_cast<std::uint8_t>(z.values()[0]);
}

TEST(DelayingBackend, FindsRecordedLaunchesThatDoNotWait) {
  for (const bool is_writer_first : {true, false}) {
    const auto with = [&](bool waits) {
      return results([&](auto& backend) { return record_two(backend, is_writer_first, waits); });
    };
    expect_all(with(true), kNew);
    // Seeds choose the right order now and then.
    const std::vector<std::uint8_t> got = with(false);
    EXPECT_EQ(got[0], kOld);
    EXPECT_GT(std::ranges::count(got, kOld), 2);
  }
}

// The element that is uploaded from staging memory that is used again for another one.
std::uint8_t reuse_staging(DeviceBackend& backend, bool waits) {
  const OnDevice<std::uint8_t> x(backend, std::size_t{1});
  const Staged<std::uint8_t> staged(backend, 1);
  staged.data()[0] = kNew;
  backend.copy(x.data(), staged.data(), 1);
  if (waits) finish(backend);
  staged.data()[0] = kOld;
  return x.values()[0];
}

TEST(DelayingBackend, FindsStagingMemoryThatIsReusedTooEarly) {
  expect_all(results([](auto& backend) { return reuse_staging(backend, true); }), kNew);
  expect_all(results([](auto& backend) { return reuse_staging(backend, false); }), kOld);
}

std::uint8_t give_staging_back(DeviceBackend& backend, bool waits) {
  const OnDevice<std::uint8_t> x(backend, std::size_t{1});
  {
    const Staged<std::uint8_t> staged(backend, 1);
    staged.data()[0] = kNew;
    backend.copy(x.data(), staged.data(), 1);
    if (waits) finish(backend);
  }
  return x.values()[0];
}

TEST(DelayingBackend, FindsStagingMemoryThatIsGivenBackTooEarly) {
  expect_all(results([](auto& backend) { return give_staging_back(backend, true); }), kNew);
  expect_all(results([](auto& backend) { return give_staging_back(backend, false); }),
             DelayingBackend::kPoison);
}

// The element read from memory of somebody else, whose deleter runs when the queue has passed the
// last use, or at once.
std::uint8_t read_foreign(DelayingBackend& backend, bool waits) {
  DeviceBackend& device = backend_of(testing::tested_device());
  std::byte* const foreign = device.obtain(64);
  device.fill(foreign, kNew, 64);
  finish(device);
  const OnDevice<std::uint8_t> x(backend, std::vector<std::uint8_t>{kOld});
  backend.copy(x.data(), foreign, 1);
  const Mark last_use = backend.mark();
  const auto deleter = [&] { device.give_back(foreign, 64); };
  bool is_deleted = !waits;
  if (is_deleted) deleter();
  try {
    while (!is_deleted) {
      if (backend.passed(last_use)) {
        deleter();
        is_deleted = true;
      }
    }
    return x.values()[0];
  } catch (const InternalError&) {
    return 0;
  }
}

TEST(DelayingBackend, FindsADeleterThatRunsTooEarly) {
  expect_all(results([](auto& backend) { return read_foreign(backend, true); }), kNew);
  expect_all(results([](auto& backend) { return read_foreign(backend, false); }), 0);
}

TEST(DelayingBackend, FindsACommandOnMemoryThatWasGivenBack) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  std::byte* const x = backend.obtain(64);
  backend.fill(x, 1, 64);
  backend.give_back(x, 64);
  EXPECT_FALSE(backend.owns(x));
  EXPECT_THROW(backend.fill(x, 1, 64), InternalError);
  finish(backend);
}

}  // namespace
}  // namespace palimpsest
