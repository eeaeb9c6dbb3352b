// SPDX-License-Identifier: Apache-2.0
// planted_fault race|bounds|uninitialized: runs the kernel of a sum with a fault in its text, which
// the interpreter of kernels must report.
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "device/tested_device.hpp"
#include "lower/lowered.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

void run_with_fault(const std::string& from, const std::string& to) {
  const Device there = testing::tested_device();
  const Tensor here = Tensor::ones({1000}, DType::float32), ones = here.to(there);
  const Variable x = make_input({DType::float32, {1000}, there}, "x");
  const auto step =
      testing::lowered({"sum", {x}, ops::sum(x).owner(), {here}}, testing::some_device());
  const PlannedLaunch& launch = step.value().launches.at(0);
  KernelText text = *launch.text;
  std::size_t at = text.text.find(from);
  if (at == std::string::npos) throw InternalError("the text has no " + from);
  for (; at != std::string::npos; at = text.text.find(from, at + to.size())) {
    text.text.replace(at, from.size(), to);
  }
  const Tensor sum = Tensor::zeros({}, DType::float32, there);
  std::vector<KernelArgument> arguments;
  for (const LaunchArgument& a : launch.arguments) {
    const bool is_input = a.kind == LaunchArgument::Kind::input;
    const bool is_array = is_input || a.kind == LaunchArgument::Kind::output;
    arguments.push_back(is_array ? KernelArgument::of((is_input ? ones : sum).raw_data())
                                 : KernelArgument::of(a.integer));
  }
  DeviceBackend& backend = backend_of(there);
  const KernelProgram program = backend.load(text, {});
  backend.launch({program.get(), 0, launch.groups, launch.items, arguments});
  backend.wait_on_host(backend.mark());
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  const std::map<std::string, std::pair<std::string, std::string>> faults{
      {"race", {"BARRIER;", ";"}},
      {"bounds", {"lanes0[64]", "lanes0[32]"}},
      {"uninitialized", {"lanes0[ITEM] = v0;", ";"}}};
  const auto fault = faults.find(argc > 1 ? argv[1] : "");
  if (fault == faults.end()) {
    std::fprintf(stderr, "usage: planted_fault race|bounds|uninitialized\n");
    return 2;
  }
  palimpsest::run_with_fault(fault->second.first, fault->second.second);
  return 0;
}
