// SPDX-License-Identifier: Apache-2.0
// Contractions of two operands.
//
// 1. Labels fall into groups: batch (a, b, out), m (a, out), n (b, out), k (a, b), and those that
//    are summed in one operand alone.
// 2. If m, n and k are large enough, each operand is a matrix of two groups, or is copied to
//    scratch as one. The contraction is then a batch of matrix products. Matrices of up to 16 rows,
//    columns and terms are multiplied in place, without a library.
// 3. Everything else is one pass that multiplies and sums strided operands (reduce_driver.hpp).
#include "palimpsest/kernels/matrices/contract.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/matrices/blas.hpp"
#include "palimpsest/kernels/matrices/contraction_order.hpp"
#include "palimpsest/kernels/matrices/small_products.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

enum Operand : std::size_t { kA, kB, kOut };

constexpr index_t kSmallestFactor = 4;   // m, n, k below which BLAS does not pay
constexpr index_t kSmallestPacked = 16;  // the same if an operand is packed
constexpr index_t kTaskProducts = 1 << 21;
constexpr index_t kLeastRows = 256;        // rows of a block of a long product
constexpr index_t kLargestOfParts = 4096;  // elements of a product whose sum over k may be cut
constexpr std::size_t kAlignment = 64;

// A label: its extent and its stride in each operand, 0 where it does not occur.
struct Label {
  index_t extent = 1;
  std::array<index_t, 3> strides{};
  std::array<bool, 3> occurs{};
};
using Labels = SmallVector<Label, kMaxRank>;

index_t size_of(const Labels& group) {
  index_t n = 1;
  for (const Label& l : group) n *= l.extent;
  return n;
}

// Every label once, in order of first occurrence in out, a, b.
Labels all_labels(const Contraction& c, const ConstView& a, const ConstView& b,
                  const MutableView& out) {
  Labels labels;
  SmallVector<int, kMaxRank> names;
  const auto enter = [&](const SmallVector<int, 8>& list, const ConstView& view, Operand operand) {
    assert(list.size() == view.rank());
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::size_t k = 0;
      while (k < names.size() && names[k] != list[i]) ++k;
      if (k == names.size()) {
        names.push_back(list[i]);
        labels.push_back({view.extents[i], {}, {}});
      }
      assert(labels[k].extent == view.extents[i] && !labels[k].occurs[operand]);
      labels[k].strides[operand] = view.strides[i];
      labels[k].occurs[operand] = true;
    }
  };
  enter(c.out, out, kOut);
  enter(c.a, a, kA);
  enter(c.b, b, kB);
  return labels;
}

// A matrix with groups of labels as rows and columns.
struct Matrix {
  bool fits = false;        // no packing needed; else it is packed: dense, rows before columns
  bool transposed = false;  // the rows are the dense direction
  index_t leading = 1;
};

struct Plan {
  bool use_gemm = false, use_small = false;
  Labels batch, m, n, k;
  index_t size_m = 1, size_n = 1, size_k = 1, n_batch = 1;
  std::array<Matrix, 3> matrices;              // by Operand
  std::array<std::size_t, 3> scratch_bytes{};  // of the packed copies
  index_t part = 0;                            // terms_of_part()
  std::size_t parts_bytes = 0;
  std::size_t total_scratch() const {
    return scratch_bytes[0] + scratch_bytes[1] + scratch_bytes[2] + parts_bytes;
  }
};

// Sorts labels by the strides of `operand`, outer ones first.
void order_by(Labels& group, Operand operand) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    for (std::size_t j = i;
         j > 0 && std::abs(group[j - 1].strides[operand]) < std::abs(group[j].strides[operand]);
         --j) {
      std::swap(group[j - 1], group[j]);
    }
  }
}

// The stride with which an operand walks a whole group in order; 0 if it has several.
index_t group_stride(const Labels& group, Operand operand) {
  if (group.empty()) return 1;
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (group[i - 1].strides[operand] != group[i].strides[operand] * group[i].extent) return 0;
  }
  return group.back().strides[operand];
}

Matrix as_matrix(const Labels& rows, const Labels& cols, Operand operand) {
  const index_t row = group_stride(rows, operand), col = group_stride(cols, operand);
  const index_t n_rows = size_of(rows), n_cols = size_of(cols);
  constexpr index_t kLargest = std::numeric_limits<int>::max();
  if (col == 1 && row >= n_cols && row <= kLargest) return {true, false, row};
  if (row == 1 && col >= n_rows && col <= kLargest) return {true, true, col};
  return {false, false, n_cols};
}

bool is_lone(const Label& l) { return !l.occurs[kOut] && !(l.occurs[kA] && l.occurs[kB]); }

// The bytes of a dense copy of an operand, batches included, rounded up to the alignment.
std::size_t packed_bytes(const Plan& plan, const Labels& rows, const Labels& cols, Operand operand,
                         std::size_t item) {
  index_t n = size_of(rows) * size_of(cols);
  for (const Label& l : plan.batch) n *= l.occurs[operand] ? l.extent : 1;
  return (static_cast<std::size_t>(n) * item + kAlignment - 1) / kAlignment * kAlignment;
}

// True if the matrices of an operand are not interleaved with those of other batches.
bool lies_in_matrices(const Plan& plan, const Labels& rows, const Labels& cols, Operand operand) {
  const bool has_batch = std::any_of(plan.batch.begin(), plan.batch.end(),
                                     [&](const Label& l) { return l.occurs[operand]; });
  if (group_stride(rows, operand) == 0 || group_stride(cols, operand) == 0) return false;
  const auto is_unit = [&](const Labels& group) {
    return !group.empty() && group_stride(group, operand) == 1;
  };
  return !has_batch || is_unit(rows) || is_unit(cols);
}

bool has_small_matrices(const Plan& plan) {
  return std::max({plan.size_m, plan.size_n, plan.size_k}) <= kMostOfSmallProduct &&
         plan.size_m * plan.size_n * plan.size_k > 1 &&
         lies_in_matrices(plan, plan.m, plan.k, kA) && lies_in_matrices(plan, plan.k, plan.n, kB) &&
         lies_in_matrices(plan, plan.m, plan.n, kOut);
}

// Terms per part of the sum over k of a single product that is too small for several blocks, such
// as a Gram matrix; 0: no cut. The cut depends on sizes alone, so that bits do not depend on
// threads.
index_t terms_of_part(const Plan& plan) {
  const index_t elements = plan.size_m * plan.size_n;
  if (plan.n_batch != 1 || elements > kLargestOfParts) return 0;
  const index_t terms = kTaskProducts / elements;
  return plan.size_k >= 4 * terms ? terms : 0;
}

Plan make_plan(const Labels& labels, DType dtype) {
  Plan plan;
  if (!is_inexact(dtype)) return plan;
  for (const Label& l : labels) {
    if (l.extent == 1) continue;
    if (is_lone(l)) return plan;
    Labels& group = !l.occurs[kOut] ? plan.k
                    : !l.occurs[kB] ? plan.m
                    : !l.occurs[kA] ? plan.n
                                    : plan.batch;
    group.push_back(l);
  }
  order_by(plan.m, kOut);
  order_by(plan.n, kOut);
  order_by(plan.k, kA);
  plan.size_m = size_of(plan.m);
  plan.size_n = size_of(plan.n);
  plan.size_k = size_of(plan.k);
  plan.n_batch = size_of(plan.batch);
  if (has_small_matrices(plan)) {
    plan.use_small = true;
    return plan;
  }
  const index_t least = std::min({plan.size_m, plan.size_n, plan.size_k});
  const index_t most = std::max({plan.size_m, plan.size_n, plan.size_k});
  if (least < kSmallestFactor || most > std::numeric_limits<int>::max()) return plan;
  const std::array<std::pair<const Labels*, const Labels*>, 3> sides{
      {{&plan.m, &plan.k}, {&plan.k, &plan.n}, {&plan.m, &plan.n}}};
  for (const Operand operand : {kA, kB, kOut}) {
    const auto& [rows, cols] = sides[operand];
    plan.matrices[operand] = as_matrix(*rows, *cols, operand);
    if (plan.matrices[operand].fits) continue;
    if (least < kSmallestPacked) return plan;
    plan.scratch_bytes[operand] = packed_bytes(plan, *rows, *cols, operand, item_size(dtype));
  }
  plan.use_gemm = true;
  plan.part = terms_of_part(plan);
  if (plan.part > 0) {
    const index_t parts = (plan.size_k + plan.part - 1) / plan.part;
    plan.parts_bytes =
        static_cast<std::size_t>(parts * plan.size_m * plan.size_n) * item_size(dtype);
  }
  return plan;
}

// Copies an operand to its dense copy in scratch, or back.
class Packing {
 public:
  Packing(const Plan& plan, const Labels& rows, const Labels& cols, Operand operand) {
    for (const Labels* group : {&plan.batch, &rows, &cols}) {
      for (const Label& l : *group) {
        if (!l.occurs[operand]) continue;
        extents_.push_back(l.extent);
        strides_.push_back(l.strides[operand]);
      }
    }
    dense_ = contiguous_strides(extents_);
  }
  void pack(const void* from, DType dtype, void* scratch) const {
    strided_copy({from, dtype, extents_, strides_}, {scratch, dtype, extents_, dense_});
  }
  void unpack(const void* scratch, DType dtype, void* to) const {
    strided_copy({scratch, dtype, extents_, dense_}, {to, dtype, extents_, strides_});
  }

 private:
  Extents extents_;
  Strides strides_, dense_;
};

// The strides of batch labels in the operand or its dense copy, whichever the products use.
void batch_strides(const Plan& plan, Operand operand, index_t matrix_size,
                   std::array<index_t, kMaxRank>& strides) {
  index_t dense = matrix_size;
  for (std::size_t i = plan.batch.size(); i-- > 0;) {
    const Label& l = plan.batch[i];
    strides[i] = plan.matrices[operand].fits ? l.strides[operand] : dense;
    dense *= l.extent;
  }
}

struct Factors {
  DType dtype;
  std::array<GemmFactor, 2> factors;  // of the row-major product
  std::byte* out;
  index_t leading, rows, cols;
  GemmScale scale;
};

// Computes rows [first, last) of one product; offsets of the factors are in bytes.
void multiply_rows(const Factors& f, const std::array<index_t, 3>& offsets, index_t inner,
                   index_t first, index_t last) {
  const auto item = static_cast<index_t>(item_size(f.dtype));
  GemmFactor left = f.factors[0], right = f.factors[1];
  const index_t skip = first * (left.transposed ? 1 : left.leading) * item;
  left.data = static_cast<const std::byte*>(left.data) + offsets[0] + skip;
  right.data = static_cast<const std::byte*>(right.data) + offsets[1];
  gemm(f.dtype, last - first, f.cols, inner, left, right,
       f.out + offsets[2] + first * f.leading * item, f.leading, f.scale);
}

template <class T>
void add_parts(const Factors& f, index_t parts, const std::byte* sums) {
  const auto* from = reinterpret_cast<const T*>(sums);
  auto* to = reinterpret_cast<T*>(f.out);
  const index_t elements = f.rows * f.cols;
  for (index_t i = 0; i < elements; ++i) {
    T sum = from[i];
    for (index_t p = 1; p < parts; ++p) sum += from[p * elements + i];
    to[i / f.cols * f.leading + i % f.cols] = sum;
  }
}

// Computes one product as a sum of products over `part` terms each; `sums` holds them until they
// are added.
void run_parts(const Factors& f, index_t inner, index_t part, std::byte* sums) {
  const auto item = static_cast<index_t>(item_size(f.dtype));
  const index_t parts = (inner + part - 1) / part;
  parallel_ranges(parts, 1, [&](index_t begin, index_t end) {
    for (index_t p = begin; p < end; ++p) {
      const index_t first = p * part;
      GemmFactor left = f.factors[0], right = f.factors[1];
      left.data = static_cast<const std::byte*>(left.data) +
                  first * (left.transposed ? left.leading : 1) * item;
      right.data = static_cast<const std::byte*>(right.data) +
                   first * (right.transposed ? 1 : right.leading) * item;
      gemm(f.dtype, f.rows, f.cols, std::min(part, inner - first), left, right,
           sums + p * f.rows * f.cols * item, f.cols, {});
    }
  });
  visit_inexact(f.dtype, "contract",
                [&](auto tag) { add_parts<typename decltype(tag)::type>(f, parts, sums); });
}

// Computes all products of the batch. `data` points to the operands or their packed copies, `sums`
// to room for parts.
void run_products(const Plan& plan, const Contraction& c, DType dtype, const GemmScale& scale,
                  const std::array<std::byte*, 3>& data, std::byte* sums) {
  const auto& [a, b, out] = plan.matrices;
  // A transposed result is the product of the transposed factors in the other order.
  const bool swap = out.transposed;
  Factors f{dtype,
            {GemmFactor{data[kA], a.leading, a.transposed != swap, c.conj_a},
             GemmFactor{data[kB], b.leading, b.transposed != swap, c.conj_b}},
            data[kOut],
            out.leading,
            swap ? plan.size_n : plan.size_m,
            swap ? plan.size_m : plan.size_n,
            scale};
  std::array<std::array<index_t, kMaxRank>, 3> strides;
  batch_strides(plan, kA, plan.size_m * plan.size_k, strides[0]);
  batch_strides(plan, kB, plan.size_k * plan.size_n, strides[1]);
  batch_strides(plan, kOut, plan.size_m * plan.size_n, strides[2]);
  if (swap) {
    std::swap(f.factors[0], f.factors[1]);
    std::swap(strides[0], strides[1]);
  }
  if (plan.part > 0 && scale.alpha == nullptr && scale.beta == nullptr) {
    run_parts(f, plan.size_k, plan.part, sums);
    return;
  }
  const auto item = static_cast<index_t>(item_size(dtype));
  // Each block packs the right factor again, in the order in which the library reads it.
  const index_t enough = kTaskProducts / (f.cols * plan.size_k) + 1;
  // A product with rows for one block only is cut in two to use a second thread.
  const index_t least = f.rows < 2 * kLeastRows ? kLeastRows / 2 : kLeastRows;
  const index_t block = std::min(f.rows, (enough + least - 1) / least * least);
  const index_t blocks = (f.rows + block - 1) / block;
  const index_t grain = kTaskProducts / (block * f.cols * plan.size_k) + 1;
  parallel_ranges(plan.n_batch * blocks, grain, [&](index_t begin, index_t end) {
    for (index_t task = begin; task < end; ++task) {
      const index_t first = task % blocks * block;
      index_t flat = task / blocks;
      std::array<index_t, 3> offsets{};
      for (std::size_t i = plan.batch.size(); i-- > 0;) {
        const index_t position = flat % plan.batch[i].extent;
        flat /= plan.batch[i].extent;
        for (std::size_t k = 0; k < 3; ++k) offsets[k] += position * strides[k][i] * item;
      }
      multiply_rows(f, offsets, plan.size_k, first, std::min(first + block, f.rows));
    }
  });
}

void run_gemm(const Plan& plan, const Contraction& c, const ConstView& a, const ConstView& b,
              const MutableView& out, const GemmScale& scale, std::span<std::byte> scratch) {
  std::array<std::byte*, 3> data{static_cast<std::byte*>(const_cast<void*>(a.data)),
                                 static_cast<std::byte*>(const_cast<void*>(b.data)),
                                 static_cast<std::byte*>(out.data)};
  std::byte* next = scratch.data();
  for (const Operand operand : {kA, kB, kOut}) {
    if (plan.matrices[operand].fits) continue;
    data[operand] = next;
    next += plan.scratch_bytes[operand];
  }
  if (data[kA] != a.data) Packing(plan, plan.m, plan.k, kA).pack(a.data, a.dtype, data[kA]);
  if (data[kB] != b.data) Packing(plan, plan.k, plan.n, kB).pack(b.data, b.dtype, data[kB]);
  if (data[kOut] != out.data && scale.beta != nullptr) {
    Packing(plan, plan.m, plan.n, kOut).pack(out.data, out.dtype, data[kOut]);
  }
  run_products(plan, c, out.dtype, scale, data, next);
  if (data[kOut] != out.data) {
    Packing(plan, plan.m, plan.n, kOut).unpack(data[kOut], out.dtype, out.data);
  }
}

void run_small(const Plan& plan, const Contraction& c, const ConstView& a, const ConstView& b,
               const MutableView& out) {
  SmallProduct product;
  product.m = plan.size_m;
  product.n = plan.size_n;
  product.k = plan.size_k;
  product.a_row = group_stride(plan.m, kA);
  product.a_col = group_stride(plan.k, kA);
  product.b_row = group_stride(plan.k, kB);
  product.b_col = group_stride(plan.n, kB);
  product.out_row = group_stride(plan.m, kOut);
  product.out_col = group_stride(plan.n, kOut);
  product.conj_a = c.conj_a;
  product.conj_b = c.conj_b;
  bool exchanged = false;
  const SmallProductLoop loop = small_product_loop(product, exchanged, out.dtype);
  StridedLoop<3> batch;
  Extents extents;
  std::array<Strides, 3> strides;
  for (const Label& l : plan.batch) {
    extents.push_back(l.extent);
    for (const Operand k : {kA, kB, kOut}) strides[k].push_back(l.strides[k]);
  }
  const std::size_t item = item_size(out.dtype);
  batch.set_extents(extents);
  batch.add_operand(exchanged ? b.data : a.data, strides[exchanged ? kB : kA], item);
  batch.add_operand(exchanged ? a.data : b.data, strides[exchanged ? kA : kB], item);
  batch.add_operand(out.data, strides[kOut], item);
  batch.squeeze();
  batch.merge(0, batch.rank);
  const int inner = std::max(batch.rank - 1, 0);
  const index_t length = batch.rank == 0 ? 1 : batch.at(inner).extent;
  const index_t grain = kParallelGrain / (product.m * product.n * product.k) + 1;
  parallel_ranges(plan.n_batch, grain, [&](index_t begin, index_t end) {
    for (index_t row = begin; row < end;) {
      const index_t first = row % length, n = std::min(length - first, end - row);
      std::array<std::byte*, 3> data;
      std::array<index_t, 3> step{};
      for (int k = 0; k < 3; ++k) {
        const auto operand = static_cast<std::size_t>(k);
        if (batch.rank > 0) step[operand] = batch.step(k, inner);
        data[operand] =
            batch.data[operand] + batch.offset(k, 0, inner, row / length) + first * step[operand];
      }
      for (index_t i = 0; i < n; ++i) {
        loop(product, data[0] + i * step[0], data[1] + i * step[1], data[2] + i * step[2]);
      }
      row += n;
    }
  });
}

// The operands of the pass that multiplies and sums, over all labels.
struct StridedPass {
  Extents extents;
  std::array<Strides, 3> strides;
  bool exchanged, conj_first, conj_both;

  StridedPass(const Contraction& c, const Labels& labels)
      : exchanged(c.conj_b && !c.conj_a),
        conj_first(c.conj_a || c.conj_b),
        conj_both(c.conj_a && c.conj_b) {
    for (const Label& l : labels) {
      extents.push_back(l.extent);
      for (const Operand k : {kA, kB, kOut}) strides[k].push_back(l.strides[k]);
    }
  }
  ReduceLeaf leaf(DType dtype) const { return product_leaf(dtype, conj_first, conj_both); }
  std::array<ConstView, 2> operands(const ConstView& a, const ConstView& b) const {
    const ConstView left{a.data, a.dtype, extents, strides[kA]};
    const ConstView right{b.data, b.dtype, extents, strides[kB]};
    return exchanged ? std::array{right, left} : std::array{left, right};
  }
  MutableView result(const MutableView& out) const {
    return {out.data, out.dtype, extents, strides[kOut]};
  }
};

}  // namespace

std::size_t contraction_scratch_bytes(const Contraction& contraction, const ConstView& a,
                                      const ConstView& b, const MutableView& out) {
  const Plan plan = make_plan(all_labels(contraction, a, b, out), out.dtype);
  return plan.use_gemm ? plan.total_scratch() : 0;
}

void run_contraction(const Contraction& contraction, const ConstView& a, const ConstView& b,
                     const MutableView& out, std::span<std::byte> scratch) {
  assert(a.dtype == out.dtype && b.dtype == out.dtype);
  const Labels labels = all_labels(contraction, a, b, out);
  if (std::find(out.extents.begin(), out.extents.end(), 0) != out.extents.end()) return;
  for (const Label& l : labels) {
    if (l.extent != 0) continue;
    const std::array<std::byte, 16> zero{};
    strided_fill(zero.data(), out);
    return;
  }
  const Plan plan = make_plan(labels, out.dtype);
  if (plan.use_gemm && plan.total_scratch() <= scratch.size()) {
    run_gemm(plan, contraction, a, b, out, {}, scratch);
  } else if (plan.use_small) {
    run_small(plan, contraction, a, b, out);
  } else {
    const StridedPass pass(contraction, labels);
    run_reduction(pass.leaf(out.dtype), pass.operands(a, b), pass.result(out));
  }
}

std::optional<std::size_t> scaled_product_scratch_bytes(const Contraction& contraction,
                                                        const ConstView& a, const ConstView& b,
                                                        const MutableView& out) {
  const Labels labels = all_labels(contraction, a, b, out);
  const auto is_empty = [](const Label& l) { return l.extent == 0; };
  if (std::any_of(labels.begin(), labels.end(), is_empty)) return {};
  const Plan plan = make_plan(labels, out.dtype);
  if (!plan.use_gemm) return {};
  return plan.total_scratch();
}

void run_scaled_product(const Contraction& contraction, const void* alpha, const ConstView& a,
                        const ConstView& b, const void* beta, const MutableView& out,
                        std::span<std::byte> scratch) {
  const Plan plan = make_plan(all_labels(contraction, a, b, out), out.dtype);
  assert(plan.use_gemm && plan.total_scratch() <= scratch.size());
  run_gemm(plan, contraction, a, b, out, {alpha, beta}, scratch);
}

ContractionOrder contraction_order(const Contraction& contraction, const ConstView& a,
                                   const ConstView& b, const MutableView& out) {
  const StridedPass pass(contraction, all_labels(contraction, a, b, out));
  return {reduction_order(pass.leaf(out.dtype), pass.operands(a, b), pass.result(out)),
          pass.exchanged, pass.conj_first, pass.conj_both};
}

}  // namespace palimpsest
