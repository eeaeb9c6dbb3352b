// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "palimpsest/base/api.hpp"
#include "palimpsest/ops/create/random.hpp"
#include "palimpsest/run/shared.hpp"

namespace PALIMPSEST_API palimpsest {

/// A source of random numbers for functions: a shared key whose default update is its successor. So
/// two calls of a function that draws from it differ. Copies of the handle are the same source.
///
/// Equal seeds give equal numbers, call by call, as long as graphs draw in the same order: the n-th
/// draw takes the n-th key that splits off the shared one.
/// Threads  all members may be called concurrently
class RandomState {
 public:
  explicit RandomState(std::uint64_t seed, std::uint64_t stream = 0, SharedOptions options = {});

  /// The shared key, uint64 (2,). Set its value to start again; it should not be drawn from.
  SharedVariable key() const { return key_; }
  /// A key for one draw, which no other draw takes.
  Variable next();

  // Call ops::random_normal and so on, each with a key of its own.
  Variable normal(const ShapeArgument& shape, DType dtype = DType::float64,
                  const Operand& mean = 0.0, const Operand& deviation = 1.0);
  Variable uniform(const ShapeArgument& shape, DType dtype = DType::float64,
                   const Operand& low = 0.0, const Operand& high = 1.0);
  Variable bits(const ShapeArgument& shape, DType dtype = DType::uint64);
  Variable integers(const ShapeArgument& shape, const Operand& low, const Operand& high,
                    DType dtype = DType::int64);

 private:
  SharedVariable key_;
  std::shared_ptr<std::atomic<index_t>> n_draws_;
};

}  // namespace palimpsest
