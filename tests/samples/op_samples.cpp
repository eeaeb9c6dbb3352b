// SPDX-License-Identifier: Apache-2.0
#include "samples/op_samples.hpp"

#include <utility>

#include "samples/op_lists.hpp"

namespace palimpsest::ops {

OpSample unary(std::string name, Tensor input, std::function<Variable(const Variable&)> build) {
  return {std::move(name), {std::move(input)}, [build = std::move(build)](Vars v) {
            return build(v[0]);
          }};
}

Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed) {
  const index_t n = element_count(shape);
  if (is_inexact(dtype)) {
    const DType wide = is_complex(dtype) ? DType::complex128 : DType::float64;
    Tensor result = Tensor::random_uniform(shape, wide, {seed, 0});
    auto* numbers = static_cast<double*>(result.raw_mutable_data());
    for (index_t i = 0; i < (is_complex(dtype) ? 2 * n : n); ++i) {
      numbers[i] = 0.2 + 0.7 * numbers[i];
    }
    return result.to(dtype);
  }
  std::vector<index_t> numbers;
  for (index_t i = 0; i < n; ++i) {
    const index_t k = i + static_cast<index_t>(seed);
    numbers.push_back(is_bool(dtype) ? (k % 3 == 0 ? 1 : 0) : k % 7 - (is_unsigned(dtype) ? 0 : 2));
  }
  return Tensor::from(numbers, shape).to(dtype);
}

std::vector<OpEntry> op_samples() {
  std::vector<OpEntry> entries;
  for (const auto& [name, samples] : op_sample_lists()) entries.push_back({name, samples});
  return entries;
}

std::vector<testing::Refusal> op_refusals() {
  std::vector<testing::Refusal> all;
  for (const auto refusals : op_refusal_lists()) {
    for (testing::Refusal& refusal : refusals()) all.push_back(std::move(refusal));
  }
  return all;
}

}  // namespace palimpsest::ops
