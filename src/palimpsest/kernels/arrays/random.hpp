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

/// Salts of the seed and of the stream of a derived key: it is {random_bits({seed ^ salt.seed,
/// stream}, i), random_bits({seed ^ salt.stream, stream}, i)}. The bits of different ones are
/// unrelated.
inline constexpr RandomKey kChildSalt{0x9E3779B97F4A7C15U, 0xBF58476D1CE4E5B9U},
    kNextSalt{0x94D049BB133111EBU, 0xD6E8FEB86659FD93U};

/// The key of the i-th independent stream; and the key after this one. Streams of a key, its
/// children and its successor are unrelated.
RandomKey child_key(RandomKey key, std::uint64_t i);
RandomKey next_key(RandomKey key);

}  // namespace palimpsest
