// SPDX-License-Identifier: Apache-2.0
// A device that fails at the first, second, .. call of its driver, and does not come back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "device/tested_device.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

const Device kThere = testing::tested_device();

enum Ending { finished, unnamed, of_step, of_recording, wrong };

// Arrays, an operator with a step on the host, and calls that are recorded.
void use_device() {
  const Tensor near = Tensor::random_normal({4, 8}, DType::complex64, {1});
  const NamedLinop A = Chain(Diagonal(near, "NxNy"), Fft(2));
  A.to(kThere)(near.to(kThere));
  const Variable x = make_input({DType::float64, {64}, kThere}, "x");
  const Variable a = ops::cumsum(x, 0);
  const Function f = function({x}, {ops::cumsum(ops::roll(a, {3}, {0}), 0)});
  const Tensor far = Tensor::ones({64}, DType::float64, kThere);
  std::vector<Tensor> results{Tensor::zeros({64}, DType::float64, kThere)};
  for (int call = 0; call < 3; ++call) f.call_into(results, far);
  if (on_host(results[0]).to_vector<double>()[0] != 62.0) throw InternalError("wrong sum");
}

// The error names the device, stays, and nothing of it waits or crashes at the end.
Ending ending_of_use() {
  try {
    use_device();
    return finished;
  } catch (const Error& error) {
    const std::string text = error.what(), first = text.substr(0, text.find('\n'));
    if (first.find("[" + kThere.str() + "] lost after ") != 0) {
      if (text.find(kThere.str()) != std::string::npos) return unnamed;
      std::cerr << text << '\n';
      return wrong;
    }
    try {
      Tensor::ones({2}, DType::float32, kThere);
      return wrong;
    } catch (const Error&) {
    }
    if (first.find("lost after step ") == std::string::npos) return unnamed;
    return first.find(") to step ") == std::string::npos ? of_step : of_recording;
  }
}

TEST(DeviceFailure, AtEachCallOfTheDriver) {
  int n_of_steps = 0, n_of_recordings = 0, k = 0;
  for (int ending = wrong; ending != finished;
       n_of_steps += ending == of_step, n_of_recordings += ending == of_recording) {
    ++k;
    ASSERT_LT(k, 2000);
    ending = testing::in_child([&] {
      setenv("FAKE_CUDA_FAIL", std::to_string(k).c_str(), 1);
      return static_cast<int>(ending_of_use());
    });
    ASSERT_LT(ending, static_cast<int>(wrong)) << "at call " << k;
  }
  EXPECT_GT(k, 50);
  EXPECT_GT(n_of_steps, 5);
  EXPECT_GT(n_of_recordings, 0);
}

}  // namespace
}  // namespace palimpsest
