// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

// Random numbers are functions of a key and of their position, counted row-major: tiling, threads
// and splitting cannot change them, and equal keys give equal numbers. Different draws take
// different keys. (Philox 4x32-10, Salmon et al. 2011, doi:10.1145/2063384.2063405.)

/// A key, uint64 (2,), from a number or from an integer of a graph.
Variable random_key(std::uint64_t seed, std::uint64_t stream = 0);
Variable random_key(const Variable& seed);
/// Independent keys out of one, which should not be used besides.
std::vector<Variable> split_key(const Variable& key, index_t n = 2);
/// The i-th of these keys, counted from 0.
Variable child_key(const Variable& key, index_t i);
/// The key for the next time. Aliases  an in-place variant overwrites the key
Variable next_key(const Variable& key);

/// Normal numbers; complex ones have the variance in total, half of it in each part.
/// DTypes   floating, complex
/// Errors   TypeError: no key; DTypeError; NotSupported: as alloc
Variable random_normal(const Variable& key, const ShapeArgument& shape,
                       DType dtype = DType::float64, const Operand& mean = 0.0,
                       const Operand& deviation = 1.0);
/// Uniform in [low, high); complex: both parts in [0, 1) before they are scaled.
Variable random_uniform(const Variable& key, const ShapeArgument& shape,
                        DType dtype = DType::float64, const Operand& low = 0.0,
                        const Operand& high = 1.0);
/// Every bit 0 or 1; integers.
Variable random_bits(const Variable& key, const ShapeArgument& shape, DType dtype = DType::uint64);
/// Integers low, ..., high - 1.
/// Errors   ValueError: high is not above low
Variable random_integers(const Variable& key, const ShapeArgument& shape, const Operand& low,
                         const Operand& high, DType dtype = DType::int64);

}  // namespace ops
}  // namespace palimpsest
