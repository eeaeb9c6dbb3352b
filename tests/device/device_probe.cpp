// SPDX-License-Identifier: Apache-2.0
// A process of its own for questions about loading drivers: device_probe QUESTION. It ends with 0
// if all is well and else says why on standard error.
#include <dirent.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "device/kernel_samples.hpp"
#include "device/on_device.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/device/devices.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using testing::OnDevice;
using testing::sample_text;

int complain(const std::string& text) {
  std::cerr << text << '\n';
  return 1;
}

// Compiles, launches and waits.
bool works(DeviceBackend& backend) {
  const KernelProgram program = backend.load(sample_text(), {});
  const OnDevice<float> y(backend, std::vector<float>{1.f, 2.f});
  const std::array arguments = {KernelArgument::of(y.data()), KernelArgument::of(3.0),
                                KernelArgument::of(std::int64_t{2})};
  backend.launch(
      {.program = program.get(), .kernel = testing::kScale, .items = 64, .arguments = arguments});
  return y.values() == std::vector<float>{3.f, 6.f};
}

// `tell TYPE:INDEX` prints the message of a device that cannot be had.
int tell(const std::string& name) {
  try {
    backend_of(Device::parse(name));
  } catch (const DeviceError& error) {
    std::cout << error.what() << '\n';
    std::string why;
    const auto here = devices_here(Device::parse(name).type, &why);
    std::cout << here.size() << " here " << why << '\n';
    return 0;
  }
  return complain("no DeviceError");
}

// `compile TYPE:INDEX` prints the message of a device that cannot compile.
int compile(const std::string& name) {
  try {
    backend_of(Device::parse(name)).load(sample_text(), {});
  } catch (const DeviceError& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return complain("no DeviceError");
}

void handler_of_user(int) {}

// Handlers of signals stay, and new threads have all signals blocked.
int keep_signals() {
  std::signal(SIGINT, handler_of_user);
  std::signal(SIGUSR1, SIG_IGN);
  std::array<struct sigaction, 65> before{};
  for (int i = 1; i < 65; ++i) sigaction(i, nullptr, &before[i]);
  sigset_t mask_before;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  if (!works(backend_of({DeviceType::opencl, 0}))) return complain("wrong result");
  for (int i = 1; i < 65; ++i) {
    struct sigaction now {};
    if (sigaction(i, nullptr, &now) != 0) continue;
    constexpr int kRestorer = 0x04000000;  // set by the C library
    if (now.sa_handler != before[i].sa_handler ||
        ((now.sa_flags ^ before[i].sa_flags) & ~kRestorer) != 0) {
      return complain("the handler of signal " + std::to_string(i) + " has changed");
    }
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  if (std::memcmp(&mask, &mask_before, sizeof mask) != 0) return complain("the mask has changed");
  int threads = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const entry = readdir(tasks)) {
    const std::string id = entry->d_name;
    if (id[0] == '.' || id == std::to_string(getpid())) continue;
    ++threads;
    std::ifstream status("/proc/self/task/" + id + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGWINCH}) {
        if ((blocked >> (signal - 1) & 1) == 0) {
          return complain("a thread takes signal " + std::to_string(signal));
        }
      }
    }
  }
  closedir(tasks);
  return threads > 0 ? 0 : complain("no threads were started");
}

// Two devices have memory, queues and results of their own.
int use_two() {
  const std::vector<Device> here = devices_here(DeviceType::opencl);
  if (here.size() != 2) return complain("got " + std::to_string(here.size()) + " devices");
  DeviceBackend& a = backend_of(here[0]);
  DeviceBackend& b = backend_of(here[1]);
  const OnDevice<int> x(a, std::vector<int>(100, 1));
  const OnDevice<int> y(b, std::vector<int>(100, 2));
  if (a.owns(y.data()) || b.owns(x.data()) || !a.owns(x.data()) || !b.owns(y.data())) {
    return complain("memory of the other device");
  }
  y.upload(x.values());
  if (y.values() != std::vector<int>(100, 1)) return complain("wrong elements");
  if (!works(a) || !works(b)) return complain("wrong result");
  try {
    backend_of({DeviceType::opencl, 2});
  } catch (const DeviceError& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return complain("a third device");
}

// A child may load a driver that its parent did not.
int load_in_child() {
  const int status = testing::in_child([] { return works(backend_of({DeviceType::opencl, 0})); });
  if (status != 0) return complain("the child ended with " + std::to_string(status));
  return works(backend_of({DeviceType::opencl, 0})) ? 0 : complain("wrong result");
}

// All memory of a small device: null comes before a command fails.
int exhaust() {
  DeviceBackend& backend = backend_of({DeviceType::opencl, 0});
  const std::size_t bytes = backend.facts().largest_allocation / 4;
  std::vector<std::byte*> blocks;
  while (std::byte* const block = backend.obtain(bytes)) {
    blocks.push_back(block);
    backend.fill(block, 0, 64);
    if (blocks.size() * bytes > backend.facts().memory_bytes) return complain("never null");
  }
  testing::finish(backend);
  for (std::byte* const block : blocks) backend.give_back(block, bytes);
  std::byte* const again = backend.obtain(bytes);
  if (blocks.size() < 4 || again == nullptr) return complain("null too early");
  return 0;
}

// The process ends while commands run.
int end_early() {
  DeviceBackend& backend = backend_of({DeviceType::opencl, 0});
  const KernelProgram program = backend.load(sample_text(), {});
  const OnDevice<std::int64_t> x(backend, std::vector<std::int64_t>{0});
  const std::array arguments = {KernelArgument::of(x.data()), KernelArgument::of(std::int64_t{1}),
                                KernelArgument::of(std::int64_t{20'000'000})};
  for (int i = 0; i < 100; ++i) {
    backend.launch(
        {.program = program.get(), .kernel = testing::kAddLater, .arguments = arguments});
  }
  return 0;
}

int answer(const std::string& question, const std::string& detail) {
  if (question == "tell") return tell(detail);
  if (question == "compile") return compile(detail);
  if (question == "signals") return keep_signals();
  if (question == "two") return use_two();
  if (question == "child") return load_in_child();
  if (question == "exhaust") return exhaust();
  if (question == "end") return end_early();
  return complain("unknown question");
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  try {
    return palimpsest::answer(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
