// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "palimpsest/base/view.hpp"

namespace palimpsest {

/// Checks that every index lies in [-size, size).
/// DTypes   int64
/// Errors   ValueError naming `who`, the first index out of range and the size
void check_index_range(const ConstView& indices, index_t size, std::string_view who);

/// y[b..., k...] = x[b..., i_1[k...], ..., i_D[k...]]: D = number of index views picks from the
/// last D axes of x.
///
/// Shapes   x (b..., n_1, ..., n_D); indices (k...) each, broadcast by stride 0; y (b..., k...)
/// DTypes   x and y the same, any; indices int64, checked by check_index_range; negative ones count
///          from the end
/// Aliases  disjoint
void run_gather(const ConstView& x, std::span<const ConstView> indices, const MutableView& y);

/// Start value of elements that a scatter does not reach: zero, or the previous value.
enum class ScatterStart : std::uint8_t { zero, keep };

/// y[b..., i_1[k], ..., i_D[k]] += x[b..., k]; repeated indices add in row-major order of k, so the
/// result does not depend on threads.
///
/// Shapes   x (b..., k...); y (b..., n_1, ..., n_D); else as run_gather
void run_scatter_add(const ConstView& x, std::span<const ConstView> indices, const MutableView& y,
                     ScatterStart start);
/// The same with assignment: of repeated indices the last one wins.
void run_scatter_set(const ConstView& x, std::span<const ConstView> indices, const MutableView& y,
                     ScatterStart start);

}  // namespace palimpsest
