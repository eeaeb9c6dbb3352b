// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/view.hpp"

namespace PALIMPSEST_API palimpsest {

/// Selects one stream of counter-based random numbers (Philox 4x32-10).
struct RandomKey {
  std::uint64_t seed = 0, stream = 0;
  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

/// Standard normal numbers; complex ones have unit variance in total. Element i, counted row-major
/// from `first`, depends on the key and i alone, so tiling and threads cannot change it.
/// DTypes   float32, float64, complex64, complex128
/// Source   Salmon et al. 2011, doi:10.1145/2063384.2063405; Box & Muller 1958
void random_normal(RandomKey key, const MutableView& out, std::uint64_t first = 0);
/// Uniform in [0, 1); complex: both parts.
void random_uniform(RandomKey key, const MutableView& out, std::uint64_t first = 0);
/// A uniform 64-bit word of the stream.
std::uint64_t random_bits(RandomKey key, std::uint64_t i);

}  // namespace palimpsest
