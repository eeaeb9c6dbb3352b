// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/random_state.hpp"

#include <utility>

namespace palimpsest {
namespace {

SharedOptions with_shape(SharedOptions options) {
  options.shape = Extents{2};
  return options;
}

}  // namespace

RandomState::RandomState(std::uint64_t seed, std::uint64_t stream, SharedOptions options)
    : key_(shared(Tensor::from<std::uint64_t>({seed, stream}), with_shape(std::move(options)))),
      n_draws_(std::make_shared<std::atomic<index_t>>(0)) {
  key_.set_default_update(ops::next_key(key_));
}

Variable RandomState::next() {
  return ops::child_key(key_, n_draws_->fetch_add(1, std::memory_order_relaxed));
}

Variable RandomState::normal(const ShapeArgument& shape, DType dtype, const Operand& mean,
                             const Operand& deviation) {
  return ops::random_normal(next(), shape, dtype, mean, deviation);
}

Variable RandomState::uniform(const ShapeArgument& shape, DType dtype, const Operand& low,
                              const Operand& high) {
  return ops::random_uniform(next(), shape, dtype, low, high);
}

Variable RandomState::bits(const ShapeArgument& shape, DType dtype) {
  return ops::random_bits(next(), shape, dtype);
}

Variable RandomState::integers(const ShapeArgument& shape, const Operand& low, const Operand& high,
                               DType dtype) {
  return ops::random_integers(next(), shape, low, high, dtype);
}

}  // namespace palimpsest
