// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

Tensor sample_key() { return Tensor::from<std::uint64_t>({12345, 678}); }

}  // namespace

std::vector<OpSample> random_samples() {
  std::vector<OpSample> result;
  for (DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const std::string name(name_of(dtype));
    result.push_back(unary("normal " + name, sample_key(), [=](const Variable& key) {
      return random_normal(key, {3, 5}, dtype);
    }));
    result.push_back(unary("uniform " + name, sample_key(), [=](const Variable& key) {
      return random_uniform(key, {1, 7, 2}, dtype);
    }));
  }
  for (DType dtype : {DType::uint8, DType::int16, DType::uint32, DType::int64}) {
    result.push_back(
        unary("bits " + std::string(name_of(dtype)), sample_key(), [=](const Variable& key) {
          return random_bits(key, {4, 3}, dtype);
        }));
  }
  result.push_back(
      unary("0-d", sample_key(), [](const Variable& key) { return random_normal(key, {}); }));
  result.push_back(unary("nothing", sample_key(), [](const Variable& key) {
    return random_bits(key, {3, 0});
  }));
  result.push_back(
      {"computed extents", {sample_key(), sample_values({2, 3}, DType::int8)}, [](Vars v) {
         return random_normal(v[0], {v[1].shape(1), v[1].shape(0)});
       }});
  return result;
}

std::vector<OpSample> random_integers_samples() {
  const auto between_inputs = [](Vars v) {
    return random_integers(v[0], {5}, v[1], v[2], DType::int32);
  };
  return {{"constant bounds",
           {sample_key()},
           [](Vars v) {
             return random_integers(v[0], {3, 4}, -2, 9);
           }},
          {"bounds as inputs",
           {sample_key(), Tensor::scalar<index_t>(3), Tensor::scalar<index_t>(40)},
           between_inputs}};
}

std::vector<OpSample> split_key_samples() {
  const auto split = [](index_t n, index_t first) {
    return [=](const Variable& key) {
      return std::make_shared<SplitKey>(n, first)->make_node({&key, 1}).output(0);
    };
  };
  return {unary("three", sample_key(), split(3, 0)),
          unary("from two on", sample_key(), split(2, 2))};
}

std::vector<OpSample> next_key_samples() { return {unary("key", sample_key(), next_key)}; }

}  // namespace palimpsest::ops
