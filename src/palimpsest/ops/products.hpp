// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

struct EinsumOptions {
  bool conj_a = false, conj_b = false;
};

/// Contraction of two arrays by labels: `einsum("mn,n->m", a, b)`.
///
/// Math     out[o] = sum over labels not in o of a[..] b[..], either operand conjugated on request
/// Errors   ValueError "einsum": a text that is not `a,b->out`; "repeated": a label twice in one
///          operand; ShapeError: one label with two extents
/// Cost     a (batched) matrix product where it is one, else one pass; conjugation is free
Variable einsum(std::string_view text, const Variable& a, const Variable& b,
                EinsumOptions options = {});
/// The same with labels as numbers, for programs.
Variable contract(const Variable& a, std::span<const int> labels_a, const Variable& b,
                  std::span<const int> labels_b, std::span<const int> labels_out,
                  EinsumOptions options = {});
/// Matrix product of the last two axes; leading axes must be equal (batched).
Variable matmul(const Variable& a, const Variable& b);
/// sum of conj(a) b over all elements; 0-d.
Variable vdot(const Variable& a, const Variable& b);
/// sum of |x|^2 over all elements; real, 0-d.
Variable norm2(const Variable& x);

}  // namespace palimpsest::ops
