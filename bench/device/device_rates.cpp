// SPDX-License-Identifier: Apache-2.0
// device_rates [DEVICE [ELEMENTS]]: bytes per second of kernels on an accelerator, beside a copy on
// the same device in the same run; and the time of a call that launches one small kernel.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <palimpsest/palimpsest.hpp>
#include <string>
#include <vector>

namespace {

using namespace palimpsest;

// The least seconds of 20 calls, each with the wait for its end.
double least_seconds(Device device, const std::function<void()>& run) {
  double least = 1e9;
  for (int k = 0; k < 20; ++k) {
    const auto start = std::chrono::steady_clock::now();
    run();
    synchronize(device);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    least = std::min(least, time.count());
  }
  return least;
}

void report(const std::string& work, double bytes, double seconds, double copy_rate) {
  const double rate = bytes / seconds;
  std::printf("%-34s %10.3f ms %9.1f GB/s", work.c_str(), 1e3 * seconds, rate / 1e9);
  if (copy_rate > 0) std::printf("  %5.2f of the copy", rate / copy_rate);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Device device = Device::parse(argc > 1 ? argv[1] : "opencl:0");
    const index_t n = argc > 2 ? std::stoll(argv[2]) : index_t{1} << 24;
    const double item = sizeof(std::complex<float>), bytes = item * static_cast<double>(n);
    const auto random = [&](std::uint64_t seed) {
      return Tensor::random_normal({n}, DType::complex64, {seed}).to(device);
    };
    const Tensor x = random(1), m = random(2), z = random(3);
    const TensorType type{DType::complex64, {n}, device};
    const Variable vx = make_input(type, "x"), vm = make_input(type, "m"),
                   vz = make_input(type, "z");

    const double copy = least_seconds(device, [&] { x.clone(); });
    const double rate = 2 * bytes / copy;
    report("copy", 2 * bytes, copy, 0);

    const Function fused = function({vx, vm, vz}, {ops::conj(vm) * vx + vz * 0.5});
    report("conj(m) x + 0.5 z", 4 * bytes, least_seconds(device, [&] { fused(x, m, z); }), rate);
    const Function norm = function({vx}, {ops::norm2(vx)});
    report("sum of |x|^2", bytes, least_seconds(device, [&] { norm(x); }), rate);
    const Function inner = function({vx, vz}, {ops::vdot(vx, vz)});
    report("inner product", 2 * bytes, least_seconds(device, [&] { inner(x, z); }), rate);

    const Tensor small = Tensor::ones({64}, DType::complex64, device);
    const Variable vs = make_input({DType::complex64, {64}, device}, "s");
    const Function step = function({vs}, {vs * 2.0});
    std::printf("a call of one kernel, with its wait: %.1f us\n",
                1e6 * least_seconds(device, [&] { step(small); }));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
