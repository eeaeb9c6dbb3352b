// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

struct EinsumOptions {
  bool conj_a = false, conj_b = false;
};

/// Contraction of two arrays by labels: `einsum("mn,n->m", a, b)`.
///
/// Math     out[o] = sum over labels not in o of a[..] b[..], either operand conjugated on request
/// Errors   ValueError "einsum": a text that is not `a,b->out`; "repeated": a label twice in the
///          result; ShapeError: one label with two extents
/// Cost     a (batched) matrix product where it is one, else one pass; conjugation is free
Variable einsum(std::string_view text, const Variable& a, const Variable& b,
                EinsumOptions options = {});
/// The same for any number of arrays, two at a time, the pair with the smallest result first.
///
/// Math     a label twice in one operand is its diagonal; `...` stands for the other axes, which
///          broadcast where they are known to be 1; without `->` the result has the labels that
///          occur once, sorted, behind the axes of `...`
Variable einsum(std::string_view text, std::span<const Variable> operands);
Variable einsum(std::string_view text, std::initializer_list<Variable> operands);
/// A contraction of two arrays with labels as numbers, for programs.
Variable contract(const Variable& a, std::span<const int> labels_a, const Variable& b,
                  std::span<const int> labels_b, std::span<const int> labels_out,
                  EinsumOptions options = {});

/// Matrix product of the last two axes; leading axes broadcast. A vector is a row on the left and a
/// column on the right; the result lacks that axis.
Variable matmul(const Variable& a, const Variable& b);
/// Sum over the last axis of a and the last but one of b (the only one, if b is a vector); with a
/// scalar or a number the product. Nothing is conjugated.
Variable dot(const Operand& a, const Operand& b);
/// Sum over the last `n_axes` axes of a and the first of b; over these pairs of axes.
Variable tensordot(const Variable& a, const Variable& b, index_t n_axes = 2);
Variable tensordot(const Variable& a, const Variable& b, const Axes& axes_a, const Axes& axes_b);
/// All products of the elements of a with those of b, (elements of a, elements of b).
Variable outer(const Variable& a, const Variable& b);
/// sum of conj(a) b over all elements; 0-d.
Variable vdot(const Variable& a, const Variable& b);
/// sum of |x|^2 over all elements; real, 0-d.
Variable norm2(const Variable& x);

/// beta z + alpha x y: of matrices, of a matrix and a vector, and alpha x y^T + z of two vectors.
///
/// DTypes   all are promoted to one, floating or complex
/// Aliases  in place: the result overwrites z
/// Errors   ShapeError
/// Cost     one library call on z; where beta is 0 nothing of z is read
Variable gemm(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
              const Operand& beta);
Variable gemv(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
              const Operand& beta);
Variable ger(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y);

/// The elements with column - row = offset of the axes (a, b), along a new last axis. A view.
Variable diagonal(const Variable& x, index_t offset = 0, index_t a = -2, index_t b = -1);
/// The sum of the elements that diagonal() has.
Variable trace(const Variable& x, index_t offset = 0, index_t a = -2, index_t b = -1);

}  // namespace ops
}  // namespace palimpsest
