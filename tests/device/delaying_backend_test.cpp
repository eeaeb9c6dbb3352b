// SPDX-License-Identifier: Apache-2.0
// Each fault that DelayingBackend is for is found with every seed, and programs without it are not
// blamed.
#include "support/delaying_backend.hpp"

#include <gtest/gtest.h>

#include <cstring>

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
  backend.fill(Queue::in, x.data(), 1, 64);
  backend.fill(Queue::work, y.data(), 1, 64);
  const Mark first = backend.mark(Queue::work);
  backend.fill(Queue::work, y.data(), 2, 64);
  EXPECT_EQ(backend.pending(), 3u);
  backend.wait_on_host(Queue::work, first);
  EXPECT_EQ(backend.pending(), 2u);
  EXPECT_FALSE(backend.passed(Queue::work, backend.mark(Queue::work)));
  backend.wait(Queue::work, Queue::in, backend.mark(Queue::in));
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
        Queue::work,
        {.program = one.get(), .kernel = testing::kScale, .items = 64, .arguments = arguments});
  }
  EXPECT_EQ(x.values()[0], 1.f);
  finish(delayed);
  EXPECT_EQ(x.values()[0], 9.f);
  testing::expect_error<InternalError>([&] { own.launch(Queue::work, {.program = program.get()}); },
                                       "kernels of another device");
}

TEST(DelayingBackend, AskingOftenEnoughRuns) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  const OnDevice<std::uint8_t> x(backend, std::size_t{64});
  backend.fill(Queue::work, x.data(), 1, 64);
  int asked = 1;
  while (!backend.passed(Queue::work, backend.mark(Queue::work))) ++asked;
  EXPECT_GT(asked, 10);
}

TEST(DelayingBackend, FreshMemoryIsPoisoned) {
  DelayingBackend backend(backend_of(testing::tested_device()));
  const OnDevice<std::uint8_t> x(backend, std::size_t{64});
  const Staged<std::uint8_t> staged(backend, 64);
  EXPECT_EQ(staged.data()[63], DelayingBackend::kPoison);
  expect_all(x.values(), DelayingBackend::kPoison);
}

// The element that a copy on `out` reads after `work` has written it.
std::uint8_t read_written(DeviceBackend& backend, bool waits) {
  const OnDevice<std::uint8_t> x(backend, std::vector<std::uint8_t>{kOld});
  backend.fill(Queue::work, x.data(), kNew, 1);
  if (waits) backend.wait(Queue::out, Queue::work, backend.mark(Queue::work));
  return x.values(Queue::out)[0];
}

TEST(DelayingBackend, FindsAReaderThatDoesNotWait) {
  expect_all(results([](auto& backend) { return read_written(backend, true); }), kNew);
  expect_all(results([](auto& backend) { return read_written(backend, false); }), kOld);
}

// The element that `work` reads before `in` overwrites it.
std::uint8_t read_overwritten(DeviceBackend& backend, bool waits) {
  const OnDevice<std::uint8_t> x(backend, std::vector<std::uint8_t>{kNew});
  const OnDevice<std::uint8_t> y(backend, std::size_t{1});
  backend.copy(Queue::work, y.data(), x.data(), 1);
  if (waits) backend.wait(Queue::in, Queue::work, backend.mark(Queue::work));
  backend.fill(Queue::in, x.data(), kOld, 1);
  finish(backend, Queue::in);
  return y.values()[0];
}

TEST(DelayingBackend, FindsAWriterThatDoesNotWait) {
  expect_all(results([](auto& backend) { return read_overwritten(backend, true); }), kNew);
  expect_all(results([](auto& backend) { return read_overwritten(backend, false); }), kOld);
}

// The element that is uploaded from staging memory that is used again for another one.
std::uint8_t reuse_staging(DeviceBackend& backend, bool waits) {
  const OnDevice<std::uint8_t> x(backend, std::size_t{1});
  const Staged<std::uint8_t> staged(backend, 1);
  staged.data()[0] = kNew;
  backend.copy(Queue::in, x.data(), staged.data(), 1);
  if (waits) finish(backend, Queue::in);
  staged.data()[0] = kOld;
  return x.values(Queue::in)[0];
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
    backend.copy(Queue::work, x.data(), staged.data(), 1);
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
  device.fill(Queue::work, foreign, kNew, 64);
  finish(device);
  const OnDevice<std::uint8_t> x(backend, std::vector<std::uint8_t>{kOld});
  backend.copy(Queue::work, x.data(), foreign, 1);
  const Mark last_use = backend.mark(Queue::work);
  const auto deleter = [&] { device.give_back(foreign, 64); };
  bool is_deleted = !waits;
  if (is_deleted) deleter();
  try {
    while (!is_deleted) {
      if (backend.passed(Queue::work, last_use)) {
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
  backend.fill(Queue::work, x, 1, 64);
  backend.give_back(x, 64);
  EXPECT_FALSE(backend.owns(x));
  EXPECT_THROW(backend.fill(Queue::work, x, 1, 64), InternalError);
  finish(backend);
}

}  // namespace
}  // namespace palimpsest
