// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/samples.hpp"

namespace palimpsest::ops {

std::vector<OpSample> full_samples() {
  return {unary("f64", sample_values({}, DType::float64),
                [](const Variable& x) {
                  return full({2, 3}, x);
                }),
          unary("c64", sample_values({}, DType::complex64),
                [](const Variable& x) { return full({5}, x); }),
          unary("nothing", sample_values({}, DType::int32), [](const Variable& x) {
            return full({0, 2}, x);
          })};
}

std::vector<OpSample> full_like_samples() {
  const auto like = [](Vars v) { return std::make_shared<FullLike>()->make_node(v).output(0); };
  return {
      {"c128", {sample_values({}, DType::complex128), sample_values({2, 3}, DType::int8)}, like}};
}

std::vector<OpSample> axis_count_samples() {
  const auto count = [](Vars v) {
    return std::make_shared<AxisCount>(Axes{0, 2}, DType::float64)->make_node(v).output(0);
  };
  return {{"two axes", {sample_values({2, 3, 4}, DType::complex64)}, count}};
}

}  // namespace palimpsest::ops
