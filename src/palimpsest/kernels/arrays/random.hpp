// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>

#include "palimpsest/base/random.hpp"

namespace palimpsest {

enum class RandomKind : std::uint8_t { normal, uniform, bits };

/// Element i of out, counted row-major, depends on the key and i alone.
///
/// DTypes   normal, uniform: floating and complex (random_normal, random_uniform of base); bits:
///          integers, the low bits of random_bits
/// Cost     threads over the elements, which cannot change them
void run_random(RandomKind kind, RandomKey key, const MutableView& out);

/// Integers low, ..., low + range - 1, each as likely as 2^-64 allows; a range of 0 is 2^64.
/// DTypes   integers, which wrap
void run_random_integers(RandomKey key, std::uint64_t low, std::uint64_t range,
                         const MutableView& out);

/// The key of a stream of its own, one for each i; and the key that comes after this one. Neither
/// is a child of itself or of the other in any way that matters.
RandomKey child_key(RandomKey key, std::uint64_t i);
RandomKey next_key(RandomKey key);

}  // namespace palimpsest
