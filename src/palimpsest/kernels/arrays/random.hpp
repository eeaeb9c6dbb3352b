// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>

#include "palimpsest/base/random.hpp"

namespace palimpsest {

enum class RandomKind : std::uint8_t { normal, uniform, bits };

/// Fills out with random numbers. Element i (row-major number) depends on the key and i alone.
///
/// DTypes   normal, uniform: floating and complex (random_normal, random_uniform of base); bits:
///          integers, the low bits of random_bits
/// Cost     threads over the elements; results do not depend on them
void run_random(RandomKind kind, RandomKey key, const MutableView& out);

/// Integers low, ..., low + range - 1, uniform to 2^-64; a range of 0 means 2^64.
/// DTypes   integers, which wrap
void run_random_integers(RandomKey key, std::uint64_t low, std::uint64_t range,
                         const MutableView& out);

/// The key of the i-th independent stream; and the key after this one. Streams of a key, its
/// children and its successor are unrelated.
RandomKey child_key(RandomKey key, std::uint64_t i);
RandomKey next_key(RandomKey key);

}  // namespace palimpsest
