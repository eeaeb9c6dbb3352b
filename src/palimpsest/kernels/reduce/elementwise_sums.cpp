// SPDX-License-Identifier: Apache-2.0
// An elementwise program and sums of what it makes, in one pass: blocks of elements are computed in
// cache, stored, and summed up from there. The sums are those of reduce_driver.cpp: the same
// leaves, paired in the same order, in chunks that depend on the number of elements alone.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/elementwise/computed_rows.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/cascade.hpp"
#include "palimpsest/kernels/reduce/reduce_driver.hpp"

namespace palimpsest {
namespace {

constexpr int kMaxSums = ElementwiseProgram::kMaxOutputs;
constexpr index_t kItem = 16;   // bytes of the largest sum
constexpr int kRunsAtOnce = 8;  // leaves that are taken up at once
constexpr index_t kScalarBytes = (kCascadeLevels + 1) * kCascadeUnit;
using ScalarCascade = Cascade<kScalarBytes>;

static_assert(ComputedRows::kRun == kLeafElements, "blocks consist of whole leaves");

ReduceLeaf leaf_of(const SumOfOutputs& sum, DType operand) {
  switch (sum.kind) {
    case SumOfOutputs::Kind::plain:
      return reduce_leaf(ReduceOp::sum, operand);
    case SumOfOutputs::Kind::norm2:
      return norm2_leaf(operand);
    case SumOfOutputs::Kind::product:
      return product_leaf(operand, false, false);
    case SumOfOutputs::Kind::conj_product:
      return product_leaf(operand, true, false);
  }
  throw InternalError("[elementwise] a sum of no kind");
}

bool is_product(const SumOfOutputs& sum) {
  return sum.kind == SumOfOutputs::Kind::product || sum.kind == SumOfOutputs::Kind::conj_product;
}

// Are all that a sum reads inputs of the program? Then they are read before arrays are written,
// maybe in their place.
bool is_of_inputs(const SumOfOutputs& sum, const ElementwiseProgram& program) {
  const auto is_input = [&](int output) {
    const int r = program.outputs()[static_cast<std::size_t>(output)];
    const auto inputs = program.inputs();
    return std::find(inputs.begin(), inputs.end(), r) != inputs.end();
  };
  return is_input(sum.a) && (!is_product(sum) || is_input(sum.b));
}

std::uint32_t read_late(std::span<const SumOfOutputs> sums, const ElementwiseProgram& program) {
  std::uint32_t bits = 0;
  for (const SumOfOutputs& sum : sums) {
    if (is_of_inputs(sum, program)) continue;
    bits |= std::uint32_t{1} << sum.a;
    if (is_product(sum)) bits |= std::uint32_t{1} << sum.b;
  }
  return bits;
}

struct Task {
  std::span<const SumOfOutputs> sums;
  const ComputedRows& rows;
  std::array<bool, kMaxSums> is_early = {};  // of inputs only
  std::array<ReduceLeaf, kMaxSums> leaves = {};
  std::array<index_t, kMaxSums> items = {};  // bytes of an operand
  index_t terms = 0, chunk = 0;
};

// Adds the leaves of a block of n elements, of which only the last one may be short.
void add_block(const Task& task, std::size_t s, const ComputedRows::Reader& reader, index_t n,
               ScalarCascade& cascade) {
  const SumOfOutputs& sum = task.sums[s];
  const ReduceLeaf& leaf = task.leaves[s];
  std::array<const std::byte*, 2> x{reader.output(sum.a), nullptr};
  if (is_product(sum)) x[1] = reader.output(sum.b);
  for (index_t done = 0; done < n;) {
    int at_once = leaf.runs != nullptr ? kRunsAtOnce : 1;
    while (at_once > 1 && (n - done < at_once * kLeafElements || !cascade.takes(at_once))) {
      at_once /= 2;
    }
    const index_t length = std::min(n - done, at_once * kLeafElements);
    if (at_once > 1) {
      leaf.runs(x.data(), at_once, cascade.next(), false);
      cascade.push(static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(at_once))));
    } else {
      leaf.horizontal(x.data(), length, cascade.next());
      cascade.push();
    }
    for (const std::byte*& from : x) {
      if (from != nullptr) from += length * task.items[s];
    }
    done += length;
  }
}

// A single element keeps its sign if it is 0.
void add_single(const Task& task, std::size_t s, const ComputedRows::Reader& reader,
                ScalarCascade& cascade) {
  const SumOfOutputs& sum = task.sums[s];
  const std::array<const std::byte*, 2> x{reader.output(sum.a),
                                          is_product(sum) ? reader.output(sum.b) : nullptr};
  task.leaves[s].vertical(x.data(), 1, cascade.next(), 1, Rows::first);
  cascade.push();
}

// The elements of one chunk; its sums go to `partials`.
void run_chunk(const Task& task, ComputedRows::Reader& reader, index_t number,
               std::byte* partials) {
  struct Memory {
    alignas(ScalarCascade) std::array<std::byte, kMaxSums * sizeof(ScalarCascade)> bytes;
  };
  const Scratched<Memory> memory;
  const std::size_t n_sums = task.sums.size();
  std::array<ScalarCascade*, kMaxSums> cascades{};
  for (std::size_t s = 0; s < n_sums; ++s) {
    const ReduceLeaf& leaf = task.leaves[s];
    cascades[s] = ::new (memory->bytes.data() + s * sizeof(ScalarCascade))
        ScalarCascade(leaf.combine, static_cast<index_t>(item_size(leaf.accumulate)), 1);
  }
  const index_t end = std::min((number + 1) * task.chunk, task.terms);
  for (index_t first = number * task.chunk; first < end; first += task.rows.block()) {
    const index_t n = std::min(task.rows.block(), end - first);
    const auto add = [&](bool early) {
      for (std::size_t s = 0; s < n_sums; ++s) {
        if (task.is_early[s] != early) continue;
        if (task.terms > 1) {
          add_block(task, s, reader, n, *cascades[s]);
        } else {
          add_single(task, s, reader, *cascades[s]);
        }
      }
    };
    reader.bring(first, n);
    add(true);
    reader.compute(first, n);
    add(false);
  }
  for (std::size_t s = 0; s < n_sums; ++s) {
    std::memcpy(partials + static_cast<index_t>(s) * kItem, cascades[s]->total(),
                item_size(task.leaves[s].accumulate));
  }
}

}  // namespace

DType sum_dtype(const SumOfOutputs& sum, const ElementwiseProgram& program) {
  const auto dtype = [&](int output) {
    return program.dtype_of_register(program.outputs()[static_cast<std::size_t>(output)]);
  };
  const DType a = dtype(sum.a);
  if (!is_inexact(a) || (is_product(sum) && dtype(sum.b) != a)) {
    throw DTypeError("[elementwise] sum: got " + std::string(name_of(a)) +
                     (is_product(sum) ? " and " + std::string(name_of(dtype(sum.b))) : "") +
                     ", expected floating or complex numbers of one dtype");
  }
  return sum.kind == SumOfOutputs::Kind::norm2 ? real_of(a) : a;
}

void run_elementwise_sums(const ElementwiseProgram& program, std::span<const SumOfOutputs> sums,
                          std::span<const ConstView> inputs, std::span<const MutableView> arrays,
                          std::span<const MutableView> results,
                          std::span<const FilteredInput> filtered) {
  assert(sums.size() <= kMaxSums && sums.size() == results.size() && !inputs.empty());
  Task task{.sums = sums,
            .rows = ComputedRows(program, inputs, arrays, read_late(sums, program), filtered)};
  task.terms = 1;
  for (const index_t extent : inputs[0].extents) task.terms *= extent;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const int r = program.outputs()[static_cast<std::size_t>(sums[s].a)];
    task.leaves[s] = leaf_of(sums[s], program.dtype_of_register(r));
    task.is_early[s] = is_of_inputs(sums[s], program);
    task.items[s] = static_cast<index_t>(item_size(program.dtype_of_register(r)));
    if (task.terms == 0) std::memset(results[s].data, 0, item_size(results[s].dtype));
  }
  if (task.terms == 0) return;
  task.chunk = chunk_of_terms(task.terms, 1);
  const index_t chunks = (task.terms + task.chunk - 1) / task.chunk;
  struct Partials {
    alignas(kCascadeUnit) std::array<std::byte, kMaxChunks * kMaxSums * kItem> bytes;
  };
  const Scratched<Partials> memory;
  std::byte* const partials = memory->bytes.data();
  const index_t row = static_cast<index_t>(kMaxSums) * kItem;
  parallel_ranges(chunks, kParallelGrain / task.chunk + 1, [&](index_t begin, index_t end) {
    const Scratched<ComputedRows::Reader> reader(task.rows);
    for (index_t number = begin; number < end; ++number) {
      run_chunk(task, *reader, number, partials + number * row);
    }
  });
  for (std::size_t s = 0; s < sums.size(); ++s) {
    std::byte* const first = partials + static_cast<index_t>(s) * kItem;
    for (index_t width = 1; width < chunks; width *= 2) {
      for (index_t c = 0; c + width < chunks; c += 2 * width) {
        task.leaves[s].combine(first + (c + width) * row, first + c * row, 1);
      }
    }
    std::memcpy(results[s].data, first, item_size(results[s].dtype));
  }
}

}  // namespace palimpsest
