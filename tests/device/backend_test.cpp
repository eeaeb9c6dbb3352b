// SPDX-License-Identifier: Apache-2.0
// Contract of DeviceBackend, on each kind of device that this machine has.
#include "palimpsest/device/backend.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <csignal>
#include <thread>

#include "device/kernel_samples.hpp"
#include "device/on_device.hpp"
#include "device/tested_device.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/device/devices.hpp"
#include "support/delaying_backend.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using testing::counted;
using testing::expect_error;
using testing::finish;
using testing::OnDevice;
using testing::sample_text;
using testing::Staged;

// A device, or the first one of OpenCL with commands that are delayed.
struct Subject {
  const char* name;
  bool is_delayed = false;
  std::uint32_t seed = 0;
};

DeviceBackend& backend_for(const Subject& subject, std::unique_ptr<DeviceBackend>& owner) {
  DeviceBackend& device = backend_of(testing::tested_device());
  if (!subject.is_delayed) return device;
  owner = std::make_unique<testing::DelayingBackend>(device, subject.seed);
  return *owner;
}

class Backend : public ::testing::TestWithParam<Subject> {
 private:
  std::unique_ptr<DeviceBackend> owner_;

 protected:
  void launch(std::size_t kernel, std::vector<KernelArgument> arguments, index_t groups = 4) {
    const int items = kernel == testing::kAddLater ? 1 : 64;
    backend.launch({.program = program.get(),
                    .kernel = kernel,
                    .groups = {groups, 1, 1},
                    .items = items,
                    .arguments = arguments});
  }
  void add_later(std::byte* to, std::int64_t value, std::int64_t rounds = 0) {
    launch(testing::kAddLater,
           {KernelArgument::of(to), KernelArgument::of(value), KernelArgument::of(rounds)}, 1);
  }

  DeviceBackend& backend = backend_for(GetParam(), owner_);
  KernelProgram program = backend.load(sample_text(), {});
};

constexpr std::int64_t kLong = 20'000'000;  // rounds of add_later: tens of milliseconds

TEST_P(Backend, ToldFactsAreUsable) {
  const DeviceFacts& facts = backend.facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_FALSE(facts.driver.empty());
  EXPECT_FALSE(facts.isa.empty());
  EXPECT_GE(facts.memory_bytes, facts.largest_allocation);
  EXPECT_GE(facts.largest_allocation, std::uint64_t{1} << 27);
  EXPECT_GE(facts.local_bytes, 32u << 10);
  EXPECT_GE(facts.groups, 1);
}

TEST_P(Backend, ObtainsSeparateAlignedMemory) {
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (const std::size_t bytes : {1, 64, 100, 4096, 5000, 1 << 20}) {
    blocks.emplace_back(backend.obtain(bytes), bytes);
    ASSERT_NE(blocks.back().first, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().first) % 64, 0u);
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].first, blocks[i - 1].first + blocks[i - 1].second);
  }
  for (const auto& [first, bytes] : blocks) {
    EXPECT_TRUE(backend.owns(first));
    EXPECT_TRUE(backend.owns(first + bytes - 1));
    backend.give_back(first, bytes);
    EXPECT_FALSE(backend.owns(first));
  }
  int local = 0;
  EXPECT_FALSE(backend.owns(&local));
  EXPECT_FALSE(backend.owns(nullptr));
}

TEST_P(Backend, MemoryThatIsNotThereIsNull) {
  EXPECT_EQ(backend.obtain(backend.facts().largest_allocation + 1), nullptr);
  EXPECT_EQ(backend.obtain(std::size_t{1} << 60), nullptr);
  EXPECT_EQ(backend.obtain(0), nullptr);
  backend.give_back(nullptr, 0);
}

TEST_P(Backend, CopiesToWithinAndFromTheDevice) {
  const std::vector<float> values = counted<float>(1000);
  const OnDevice<float> a(backend, values);
  const OnDevice<float> b(backend, std::size_t{1000});
  backend.copy(b.at(500), a.data(), 500 * sizeof(float));
  backend.copy(b.data(), a.at(500), 500 * sizeof(float));
  std::vector<float> expected = values;
  std::rotate(expected.begin(), expected.begin() + 500, expected.end());
  EXPECT_EQ(b.values(), expected);
  backend.copy(b.data(), b.at(500), 500 * sizeof(float));
  backend.copy(b.at(1000), b.data(), 0);
  std::copy(expected.begin() + 500, expected.end(), expected.begin());
  EXPECT_EQ(b.values(), expected);
}

TEST_P(Backend, FillsBytesAndNoOthers) {
  const OnDevice<std::uint8_t> a(backend, std::vector<std::uint8_t>(301, 7));
  backend.fill(a.at(3), 0xA5, 295);
  backend.fill(a.at(301), 1, 0);
  std::vector<std::uint8_t> expected(301, 0xA5);
  for (const std::size_t i : {0, 1, 2, 298, 299, 300}) expected[i] = 7;
  EXPECT_EQ(a.values(), expected);
}

TEST_P(Backend, RefusesAddressesOutsideOfItsMemory) {
  const OnDevice<float> a(backend, std::size_t{64});
  const Staged<float> staged(backend, 1000);
  const char* const text = "an address outside";
  const auto expect_refused = [&](auto action, const char* message) {
    expect_error<InternalError>(
        [&] {
          action();
          finish(backend);  // delayed commands are refused here
        },
        message);
  };
  expect_refused([&] { backend.fill(a.at(1), 0, 64 * 4); }, text);
  expect_refused([&] { backend.fill(staged.data(), 0, 4); }, text);
  expect_refused([&] { backend.copy(staged.data(), staged.data() + 500, 4); }, text);
  expect_refused([&] { backend.copy(staged.data() + 937, a.data(), 64 * 4); }, text);
  std::vector<float> not_staged(64);
  expect_refused([&] { backend.copy(a.data(), not_staged.data(), 4); }, text);
  expect_refused(
      [&] {
        launch(testing::kDuplicate,
               {KernelArgument::of(a.data()), KernelArgument::of(staged.data()),
                KernelArgument::of(std::int64_t{1})});
      },
      text);
}

TEST_P(Backend, LaunchesKernelsOnPlacesWithinAllocations) {
  const std::vector<float> values = counted<float>(1001);
  const OnDevice<float> from(backend, values);
  const OnDevice<float> to(backend, std::vector<float>(1001, -1.f));
  launch(testing::kDuplicate, {KernelArgument::of(to.at(1)), KernelArgument::of(from.at(3)),
                               KernelArgument::of(std::int64_t{990})});
  std::vector<float> expected(1001, -1.f);
  std::copy_n(values.begin() + 3, 990, expected.begin() + 1);
  EXPECT_EQ(to.values(), expected);
}

TEST_P(Backend, RoundsProductsBeforeSums) {
  std::vector<float> a(5000);
  std::vector<float> b(5000);
  std::vector<float> c(5000);
  std::vector<float> expected(5000);
  for (std::size_t i = 0; i < 5000; ++i) {
    a[i] = 1.f + static_cast<float>(i) * 0x1.2p-23f;
    b[i] = 1.f / (1.f + static_cast<float>(i));
    c[i] = -a[i] * b[i];
    const volatile float product = a[i] * b[i];
    expected[i] = product + c[i];
  }
  const OnDevice<float> on_a(backend, a);
  const OnDevice<float> on_b(backend, b);
  const OnDevice<float> on_c(backend, c);
  const OnDevice<float> y(backend, std::size_t{5000});
  launch(testing::kScaleAdd, {KernelArgument::of(y.data()), KernelArgument::of(on_a.data()),
                              KernelArgument::of(on_b.data()), KernelArgument::of(on_c.data()),
                              KernelArgument::of(std::int64_t{5000})});
  EXPECT_EQ(y.values(), expected);
}

TEST_P(Backend, MultipliesComplexNumbers) {
  using c32 = std::complex<float>;
  std::vector<c32> a;
  std::vector<c32> b;
  std::vector<c32> expected;
  for (int i = 0; i < 333; ++i) {
    const auto x = static_cast<float>(i);
    a.emplace_back(x, 1.f - x);
    b.emplace_back(2.f, x);
    expected.push_back(a.back() * b.back());
  }
  const OnDevice<c32> on_a(backend, a);
  const OnDevice<c32> on_b(backend, b);
  const OnDevice<c32> y(backend, a.size());
  launch(testing::kMultiply,
         {KernelArgument::of(y.data()), KernelArgument::of(on_a.data()),
          KernelArgument::of(on_b.data()), KernelArgument::of(std::int64_t{333})});
  EXPECT_EQ(y.values(), expected);
}

TEST_P(Backend, PassesNumbersInDouble) {
  const OnDevice<float> y(backend, std::vector<float>{1.f, 3.f});
  launch(testing::kScale, {KernelArgument::of(y.data()), KernelArgument::of(1.0 / 3.0),
                           KernelArgument::of(std::int64_t{2})});
  EXPECT_EQ(y.values(), (std::vector<float>{static_cast<float>(1.0 / 3.0), 1.f}));
}

TEST_P(Backend, LaunchOfNoGroupsDoesNothing) {
  const OnDevice<float> y(backend, std::vector<float>{1.f});
  launch(
      testing::kScale,
      {KernelArgument::of(y.data()), KernelArgument::of(2.0), KernelArgument::of(std::int64_t{1})},
      0);
  EXPECT_EQ(y.values(), std::vector<float>{1.f});
}

TEST_P(Backend, RefusesWrongParameters) {
  const OnDevice<float> y(backend, std::size_t{1});
  expect_error<InternalError>(
      [&] {
        launch(testing::kScale, {KernelArgument::of(y.data()), KernelArgument::of(2.0)});
        finish(backend);  // delayed commands are refused here
      },
      "kernel scale: got 3 parameters and 64 items, expected 4 and 64");
  const std::vector<KernelArgument> arguments = {
      KernelArgument::of(y.data()), KernelArgument::of(2.0), KernelArgument::of(std::int64_t{1})};
  expect_error<InternalError>(
      [&] {
        backend.launch({.program = program.get(),
                        .kernel = testing::kScale,
                        .items = 128,
                        .arguments = arguments});
        finish(backend);
      },
      "got 4 parameters and 128 items");
}

TEST_P(Backend, WrongTextNamesTheTextAndTheLine) {
  KernelText text = sample_text();
  text.name = "wrong";
  text.text = "KERNEL(f, 1)(i64 n) {\n  no_such_thing = n;\n}\n";
  text.kernels = {"f"};
  expect_error<DeviceError>([&] { backend.load(text, {}); },
                            "[wrong] does not compile on " + testing::tested_device().str());
  expect_error<DeviceError>([&] { backend.load(text, {}); }, "no_such_thing");
  text.text = "KERNEL(g, 1)(i64 n) {}\n";
  expect_error<DeviceError>([&] { backend.load(text, {}); }, "no kernel 'f'");
}

TEST_P(Backend, BinariesGiveTheSameKernels) {
  const std::vector<std::byte> binary = program->binary();
  ASSERT_FALSE(binary.empty());
  program = backend.load(sample_text(), binary);
  const OnDevice<float> y(backend, std::vector<float>{1.f, 3.f});
  launch(testing::kScale, {KernelArgument::of(y.data()), KernelArgument::of(2.0),
                           KernelArgument::of(std::int64_t{2})});
  EXPECT_EQ(y.values(), (std::vector<float>{2.f, 6.f}));
}

TEST_P(Backend, RefusesOtherBytesAsABinary) {
  const std::vector<std::byte> bytes(100, std::byte{0x42});
  expect_error<DeviceError>([&] { backend.load(sample_text(), bytes); },
                            "is no binary for " + testing::tested_device().str());
}

TEST_P(Backend, CommandsRunInOrder) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  const OnDevice<std::int64_t> y(backend, std::size_t{50});
  for (std::size_t i = 0; i < 50; ++i) {
    add_later(x.data(), 1, i % 10 == 0 ? kLong / 10 : 0);
    backend.copy(y.at(i), x.data(), 8);
  }
  std::vector<std::int64_t> expected(50);
  for (std::size_t i = 0; i < 50; ++i) expected[i] = static_cast<std::int64_t>(i) + 1;
  EXPECT_EQ(y.values(), expected);
}

TEST_P(Backend, MarksPassInOrder) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  add_later(x.data(), 0);  // waits if the driver compiles now
  const Mark before = backend.mark();
  backend.wait_on_host(before);
  EXPECT_TRUE(backend.passed(before));
  add_later(x.data(), 1, kLong);
  const Mark first = backend.mark();
  EXPECT_FALSE(backend.passed(first));
  EXPECT_TRUE(backend.passed(before));
  add_later(x.data(), 1);
  const Mark second = backend.mark();
  EXPECT_LT(first, second);
  backend.wait_on_host(second);
  EXPECT_TRUE(backend.passed(first));
  EXPECT_TRUE(backend.passed(second));
  expect_error<InternalError>([&] { backend.wait_on_host(second + 100); }, "mark");
}

// Launches that add to two numbers in turns, and then one that adds up, from numbers of the host.
TEST_P(Backend, RecordingsRunTheirLaunchesInOrderWhereverTheyMust) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0, 5});
  const OnDevice<std::int64_t> y(backend, std::vector<std::int64_t>{7});
  const auto later = [&](std::byte* to, std::int64_t value, std::vector<std::size_t> after) {
    return RecordedLaunch{
        {.program = program.get(), .kernel = testing::kAddLater, .items = 1},
        {KernelArgument::of(to), KernelArgument::of(value), KernelArgument::of(kLong / 100)},
        std::move(after)};
  };
  const auto scaled = [&](std::vector<std::size_t> after) {
    return RecordedLaunch{{.program = program.get(), .kernel = testing::kDuplicate, .items = 64},
                          {KernelArgument::of(y.data()), KernelArgument::of(x.data()),
                           KernelArgument::of(std::int64_t{2})},
                          std::move(after)};
  };
  const std::vector<RecordedLaunch> launches{later(x.at(0), 1, {}), later(x.at(1), 1, {}),
                                             later(x.at(0), 2, {0}), scaled({2}),
                                             later(x.at(0), 4, {3})};
  const std::unique_ptr<Recording> recording = backend.record(launches);
  if (recording == nullptr) GTEST_SKIP() << "no recordings";
  for (std::int64_t round = 0; round < 5; ++round) {
    recording->enqueue();
    EXPECT_EQ(y.values(), std::vector<std::int64_t>{7 * round + 3});
    EXPECT_EQ(x.values(), (std::vector<std::int64_t>{7 * round + 7, 6 + round}));
  }
}

TEST_P(Backend, RecordingsAreKeptByTheirCommands) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  const std::vector<RecordedLaunch> launches{
      {{.program = program.get(), .kernel = testing::kAddLater, .items = 1},
       {KernelArgument::of(x.data()), KernelArgument::of(std::int64_t{3}),
        KernelArgument::of(kLong / 10)},
       {}}};
  std::unique_ptr<Recording> recording = backend.record(launches);
  if (recording == nullptr) GTEST_SKIP() << "no recordings";
  recording->enqueue();
  recording.reset();
  program.reset();
  EXPECT_EQ(x.values(), std::vector<std::int64_t>{3});
}

TEST_P(Backend, MemoryIsGivenBackOnceItsCommandsHaveRun) {
  const OnDevice<std::int64_t> result(backend, std::vector<std::int64_t>{5});
  for (int round = 0; round < 20; ++round) {
    const OnDevice<std::int64_t> x(backend, std::size_t{1 << 16});
    add_later(result.data(), 0, kLong / 20);
    backend.fill(x.data(), 0, x.size_bytes());
    add_later(x.data(), round);
    backend.copy(result.data(), x.data(), 8);
  }
  EXPECT_EQ(result.values(), std::vector<std::int64_t>{19});
}

TEST_P(Backend, TakesAnyNumberOfCommands) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  for (int i = 0; i < 5000; ++i) add_later(x.data(), 1);
  EXPECT_EQ(x.values(), std::vector<std::int64_t>{5000});
}

TEST_P(Backend, ThreadsMayEnqueueTogether) {
  constexpr int kThreads = 4;
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>(kThreads, 0));
  const OnDevice<std::int64_t> sum(backend, std::vector<std::int64_t>{0});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        add_later(x.at(static_cast<std::size_t>(t)), t);
        add_later(sum.data(), 1);
        const OnDevice<std::int64_t> own(backend, std::vector<std::int64_t>{i});
        if (i % 50 == 0) {
          EXPECT_EQ(own.values()[0], i);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.values(), (std::vector<std::int64_t>{0, 300, 600, 900}));
  EXPECT_EQ(sum.values(), std::vector<std::int64_t>{1200});
}

struct Stopped {};

TEST_P(Backend, WaitsAreInterrupted) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  add_later(x.data(), 0);  // waits if the driver compiles now
  add_later(x.data(), 1, kLong);
  set_interrupt_check([] { throw Stopped(); });
  EXPECT_THROW(finish(backend), Stopped);
  static int calls = 0;
  calls = 0;
  set_interrupt_check([] { ++calls; });
  finish(backend);
  set_interrupt_check(nullptr);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(x.values(), std::vector<std::int64_t>{1});
}

TEST_P(Backend, ChildrenOfForkAreRefused) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{7});
  const Staged<std::int64_t> staged(backend, 1);
  EXPECT_EQ(testing::in_child([&] {
              int refused = 0;
              const auto count = [&](auto action) {
                try {
                  action();
                } catch (const DeviceError& error) {
                  refused +=
                      std::string(error.what()).find("forked: devices cannot be used here") !=
                      std::string::npos;
                }
              };
              count([&] { backend_of(testing::tested_device()); });
              count([&] { backend.copy(staged.data(), x.data(), 8); });
              count([&] { backend.fill(x.data(), 0, 8); });
              count([&] { backend.load(sample_text(), {}); });
              count([&] { backend.mark(); });
              count([&] { add_later(x.data(), 1); });
              count([&] { backend.wait_on_host(1); });
              if (backend.obtain(64) != nullptr) return -1;
              std::string why;
              if (!devices_here(testing::tested_device().type, &why).empty()) return -2;
              program.reset();
              return refused;
            }),
            7);
  EXPECT_EQ(x.values(), std::vector<std::int64_t>{7});
}

TEST_P(Backend, HostAccessesFaultAtOnce) {
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{7});
  EXPECT_EQ(testing::in_child([&] {
              std::signal(SIGSEGV, SIG_DFL);
              return static_cast<int>(*reinterpret_cast<volatile std::int64_t*>(x.data()));
            }),
            128 + SIGSEGV);
  EXPECT_EQ(testing::in_child([&] {
              std::signal(SIGSEGV, SIG_DFL);
              *reinterpret_cast<volatile std::int64_t*>(x.data()) = 1;
              return 0;
            }),
            128 + SIGSEGV);
}

INSTANTIATE_TEST_SUITE_P(, Backend,
                         ::testing::Values(Subject{"Direct"}, Subject{"Delayed", true},
                                           Subject{"DelayedBySeed", true, 7}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace palimpsest
