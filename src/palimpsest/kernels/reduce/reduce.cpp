// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/reduce/reduce.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <complex>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/reduce/reduce_driver.hpp"

namespace palimpsest {
namespace {

bool is_empty(std::span<const index_t> extents) {
  return std::find(extents.begin(), extents.end(), 0) != extents.end();
}

// Writes the result of reducing no elements, given as int64, converted to out's dtype.
void fill_identity(ReduceOp op, const MutableView& out) {
  assert(op != ReduceOp::max && op != ReduceOp::min);
  const std::int64_t value = op == ReduceOp::prod || op == ReduceOp::all ? 1 : 0;
  const Strides still(out.rank());
  strided_copy({&value, DType::int64, out.extents, still}, out);
}

// Calls run(leaf, to) unless nothing is reduced; `to` is out with stride 0 along the axes.
template <class F>
void reduce(ReduceOp op, std::span<const index_t> extents, std::span<const index_t> axes,
            const MutableView& out, F&& run) {
  assert(extents.size() == out.rank() + axes.size());
  assert(std::is_sorted(axes.begin(), axes.end()));
  assert(out.dtype == DType::bool_ || (op != ReduceOp::any && op != ReduceOp::all));
  if (is_empty(out.extents)) return;
  if (is_empty(extents)) {
    fill_identity(op, out);
    return;
  }
  Strides strides(extents.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(i))) continue;
    assert(extents[i] == out.extents[kept]);
    strides[i] = out.strides[kept++];
  }
  run(reduce_leaf(op, out.dtype), MutableView{out.data, out.dtype, extents, strides});
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  constexpr std::array<std::string_view, 6> kNames{"sum", "prod", "max", "min", "any", "all"};
  return kNames[static_cast<std::size_t>(op)];
}

DType result_dtype(ReduceOp op, DType operand) {
  switch (op) {
    case ReduceOp::any:
    case ReduceOp::all:
      return DType::bool_;
    case ReduceOp::max:
    case ReduceOp::min:
      if (is_complex(operand)) {
        throw DTypeError("[" + std::string(name_of(op)) + "] got " + std::string(name_of(operand)) +
                         ", expected real numbers, which have an order. Try abs or real");
      }
      return operand;
    case ReduceOp::sum:
    case ReduceOp::prod:
      if (is_inexact(operand)) return operand;
      return is_unsigned(operand) ? DType::uint64 : DType::int64;
  }
  throw InternalError("result_dtype: not a reduction");
}

void run_reduce(ReduceOp op, const ConstView& x, std::span<const index_t> axes,
                const MutableView& out) {
  reduce(op, x.extents, axes, out, [&](const ReduceLeaf& leaf, const MutableView& to) {
    run_reduction(leaf, std::array{x}, to);
  });
}

void run_fused_reduce(ReduceOp op, const ElementwiseProgram& program,
                      std::span<const ConstView> inputs, std::span<const index_t> axes,
                      const MutableView& out) {
  reduce(op, inputs[0].extents, axes, out, [&](const ReduceLeaf& leaf, const MutableView& to) {
    run_reduction(leaf, ComputedRows(program, inputs), to);
  });
}

void run_inner(const ConstView& a, bool conj_a, const ConstView& b, const MutableView& out) {
  assert(out.rank() == 0 && a.rank() == b.rank());
  if (is_empty(a.extents)) {
    fill_identity(ReduceOp::sum, out);
    return;
  }
  const Strides still(a.rank());
  run_reduction(product_leaf(out.dtype, conj_a, false), std::array{a, b},
                {out.data, out.dtype, a.extents, still});
}

void run_norm2(const ConstView& x, const MutableView& out) {
  assert(out.rank() == 0 && !is_complex(out.dtype));
  if (is_empty(x.extents)) {
    fill_identity(ReduceOp::sum, out);
    return;
  }
  const Strides still(x.rank());
  const DType load = is_complex(x.dtype) ? complex_of(out.dtype) : out.dtype;
  run_reduction(norm2_leaf(load), std::array{x}, {out.data, out.dtype, x.extents, still});
}

}  // namespace palimpsest
