// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/products/block_matrices.hpp"

#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/block_matrices_op.hpp"

namespace palimpsest::ops {
namespace {

static_assert(kMatrixColumns == BlockMatrices::kColumns && kMatrixBatch == BlockMatrices::kBatch);

BlockMatrices matrices_of(const Extents& axes) { return {axes}; }

index_t count_cut(const Extents& axes) {
  return std::count_if(axes.begin(), axes.end(), [](index_t a) { return a > 0; });
}

void check_array(const Extents& axes, const TensorType& x, const std::string& who) {
  if (!is_inexact(x.dtype)) {
    throw DTypeError("[" + who + "] got " + x.str() + ", expected floating or complex data");
  }
  const bool is_known = std::all_of(axes.begin(), axes.end(), [](index_t a) { return a >= -1; });
  if (axes.size() == x.rank() && is_known) return;
  throw ValueError("[" + who + "] axes: got " + to_string(axes) + " for " + x.str() +
                   ", expected for each axis the extent of a block, columns (-1) or batch (0)");
}

// Scratch for each thread that may help; results do not depend on how many do.
std::size_t scratch_for(const Extents& axes, const Layout& x) {
  const BlockMatrices m = matrices_of(axes);
  const std::size_t one = block_matrices_scratch(m, {nullptr, x.dtype, x.extents, x.strides});
  return one * static_cast<std::size_t>(std::max(1, pool_threads()));
}

}  // namespace

Apply SoftenSingularValues::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 3, name());
  const TensorType &x = inputs[0].type(), &threshold = inputs[1].type(), &shift = inputs[2].type();
  check_array(axes_, x, name());
  if (threshold.dtype != real_of(x.dtype) || shift.dtype != DType::int64) {
    throw DTypeError("[" + name() + "] got a threshold " + threshold.str() + " and a shift " +
                     shift.str() + ", expected " + std::string(name_of(real_of(x.dtype))) +
                     " and int64");
  }
  common_device(inputs, name());
  const Extents shapes[] = {x.shape, threshold.shape, shift.shape};
  return node(inputs, {{x.dtype, infer_shapes({}, shapes)[0], x.device}});
}

std::vector<Extents> SoftenSingularValues::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  const Extents &x = inputs[0], &threshold = inputs[1], &shift = inputs[2];
  bool fits = threshold.size() == x.size();
  for (std::size_t k = 0; fits && k < x.size(); ++k) {
    const index_t n = threshold[k];
    const bool may_vary = axes_[k] == kMatrixBatch && (n == x[k] || x[k] == kUnknown);
    fits = n == 1 || n == kUnknown || may_vary;
  }
  if (!fits) {
    throw ShapeError("[" + name() + "] threshold: got " + to_string(threshold) + " for " +
                     to_string(x) + ", expected one number for each element of the batch");
  }
  const index_t n_cut = count_cut(axes_);
  if (shift.size() != 1 || (shift[0] != n_cut && shift[0] != kUnknown)) {
    throw ShapeError("[" + name() + "] shift: got " + to_string(shift) + ", expected (" +
                     std::to_string(n_cut) + ",), one for each axis with blocks");
  }
  return {x};
}

std::size_t SoftenSingularValues::scratch_bytes(const Apply&,
                                                std::span<const Layout> inputs) const {
  return scratch_for(axes_, inputs[0]);
}

void SoftenSingularValues::run(RunContext& context) const {
  const ConstView x = context.input(0), given = context.input(1);
  SmallVector<index_t, 8> strides(x.rank());
  const ConstView threshold = stretched(given, x.extents, strides);
  soften_singular_values(matrices_of(axes_), x, threshold, context.input(2), context.output(0),
                         context.scratch());
}

Apply NuclearNorms::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& x = inputs[0].type();
  check_array(axes_, x, name());
  return node(inputs, {{real_of(x.dtype), infer_shapes({}, {&x.shape, 1})[0], x.device}});
}

std::vector<Extents> NuclearNorms::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  for (std::size_t k = 0; k < result.size(); ++k) {
    if (axes_[k] != kMatrixBatch) result[k] = 1;
  }
  return {std::move(result)};
}

std::size_t NuclearNorms::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return scratch_for(axes_, inputs[0]);
}

void NuclearNorms::run(RunContext& context) const {
  nuclear_norms(matrices_of(axes_), context.input(0), context.output(0), context.scratch());
}

Variable soften_singular_values(const Variable& x, const Variable& threshold, const Variable& shift,
                                Extents axes) {
  const Variable inputs[] = {x, with_rank(threshold, x.rank()), shift};
  return std::make_shared<SoftenSingularValues>(std::move(axes))->make_node(inputs).output(0);
}

Variable nuclear_norms(const Variable& x, Extents axes) {
  return std::make_shared<NuclearNorms>(std::move(axes))->make_node({&x, 1}).output(0);
}

void register_ops_of_block_matrices() {
  register_type<NuclearNorms>();
  register_type<SoftenSingularValues>();
}

}  // namespace palimpsest::ops
