// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

std::vector<OpSample> if_else_samples() {
  std::vector<OpSample> result;
  const auto choose = [](Vars v) { return ifelse(v[0], v[1], v[2]); };
  for (bool condition : {true, false}) {
    for (DType dtype : {DType::float64, DType::complex128, DType::float32, DType::int16}) {
      result.push_back({std::string(condition ? "then " : "else ") + std::string(name_of(dtype)),
                        {Tensor::scalar(condition), sample_values({3, 4}, dtype, 1),
                         sample_values({3, 4}, dtype, 2)},
                        choose});
    }
  }
  result.push_back({"0-d",
                    {Tensor::scalar(true), sample_values({}, DType::float64, 1),
                     sample_values({}, DType::float64, 2)},
                    choose});
  return result;
}

std::vector<OpSample> assert_that_samples() {
  std::vector<OpSample> result;
  const Tensor holds = Tensor::ones({3, 4}, DType::bool_);
  for (DType dtype : {DType::float64, DType::complex128, DType::int16}) {
    result.push_back({std::string(name_of(dtype)),
                      {sample_values({3, 4}, dtype), holds},
                      [](Vars v) { return assert_that(v[0], v[1], "text"); }});
  }
  result.push_back({"two conditions",
                    {sample_values({2}, DType::float64), holds, Tensor::scalar(true)},
                    [](Vars v) {
                      return assert_that(v[0], std::vector<Variable>{v[1], v[2]}, "text");
                    }});
  return result;
}

std::vector<OpSample> breakpoint_samples() {
  set_breakpoint_hook("sample", [](const BreakpointHit&) {});
  std::vector<OpSample> result;
  for (const PassDirection direction : {PassDirection::forward, PassDirection::adjoint}) {
    for (DType dtype : {DType::float64, DType::complex64, DType::complex128}) {
      result.push_back(
          unary(std::string(direction == PassDirection::forward ? "forward " : "adjoint ") +
                    std::string(name_of(dtype)),
                sample_values({3, 4}, dtype),
                [=](const Variable& x) { return breakpoint(x, "sample", direction); }));
    }
  }
  return result;
}

std::vector<OpSample> sleep_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::float64, DType::complex64, DType::complex128, DType::int16}) {
    result.push_back(unary(std::string(name_of(dtype)), sample_values({3, 4}, dtype),
                           [](const Variable& x) { return sleep(x, 1e-5); }));
  }
  return result;
}

}  // namespace palimpsest::ops
