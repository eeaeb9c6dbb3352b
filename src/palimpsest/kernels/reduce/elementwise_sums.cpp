// SPDX-License-Identifier: Apache-2.0
// Runs an elementwise program and sums its results in one pass: blocks of elements are computed in
// cache, stored and summed. The sums have the bits of reduce_driver.cpp: the same leaves, paired in
// the same order, in chunks that depend on the number of elements alone.
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
constexpr int kRunsAtOnce = 8;  // leaves per step
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

// Does a sum read inputs of the program only? Then it reads them before arrays are stored, possibly
// over them.
bool is_of_inputs(const SumOfOutputs& sum, const ElementwiseProgram& program) {
  const auto is_input = [&](int output) {
    const int r = program.outputs()[static_cast<std::size_t>(output)];
    const auto inputs = program.inputs();
    return std::find(inputs.begin(), inputs.end(), r) != inputs.end();
  };
  return is_input(sum.a) && (!is_product(sum) || is_input(sum.b));
}

// Number of elements below which a part is not worth a second thread. With two chunks of
// kParallelGrain each thread takes one, as in other steps: otherwise half of them would change
// caches between steps.
index_t grain_of(index_t elements) {
  return std::max<index_t>(kParallelGrain / std::max<index_t>(elements, 1), 1);
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

// The parameters of the sums of a pass.
struct Task {
  std::span<const SumOfOutputs> sums;
  std::span<const MutableView> results;
  std::array<bool, kMaxSums> is_early = {};  // reads inputs only
  std::array<ReduceLeaf, kMaxSums> leaves = {};
  std::array<index_t, kMaxSums> items = {};  // bytes of an operand's element
  index_t terms = 1, chunk = 1, chunks = 0;

  Task(const ElementwiseProgram& program, std::span<const SumOfOutputs> of,
       std::span<const index_t> extents, std::span<const MutableView> to);
};

Task::Task(const ElementwiseProgram& program, std::span<const SumOfOutputs> of,
           std::span<const index_t> extents, std::span<const MutableView> to)
    : sums(of), results(to) {
  for (const index_t extent : extents) terms *= extent;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const int r = program.outputs()[static_cast<std::size_t>(sums[s].a)];
    leaves[s] = leaf_of(sums[s], program.dtype_of_register(r));
    is_early[s] = is_of_inputs(sums[s], program);
    items[s] = static_cast<index_t>(item_size(program.dtype_of_register(r)));
  }
  if (terms == 0) return;
  chunk = chunk_of_terms(terms, 1);
  chunks = (terms + chunk - 1) / chunk;
}

// Adds the leaves of a block of n elements; only the last leaf may be short.
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

// Copies a single element: this keeps the sign of 0.
void add_single(const Task& task, std::size_t s, const ComputedRows::Reader& reader,
                ScalarCascade& cascade) {
  const SumOfOutputs& sum = task.sums[s];
  const std::array<const std::byte*, 2> x{reader.output(sum.a),
                                          is_product(sum) ? reader.output(sum.b) : nullptr};
  task.leaves[s].vertical(x.data(), 1, cascade.next(), 1, Rows::first);
  cascade.push();
}

// The sums of one chunk, computed block by block.
class ChunkSums {
 public:
  explicit ChunkSums(const Task& task) : task_(task) {
    for (std::size_t s = 0; s < task.sums.size(); ++s) {
      const ReduceLeaf& leaf = task.leaves[s];
      cascades_[s] = ::new (memory_->bytes.data() + s * sizeof(ScalarCascade))
          ScalarCascade(leaf.combine, static_cast<index_t>(item_size(leaf.accumulate)), 1);
    }
  }

  void add(const ComputedRows& rows, ComputedRows::Reader& reader, index_t first, index_t end) {
    for (; first < end; first += rows.block()) {
      const index_t n = std::min(rows.block(), end - first);
      reader.bring(first, n);
      add_sums(reader, n, true);
      reader.compute(first, n);
      add_sums(reader, n, false);
    }
  }

  void put(std::byte* partials) {
    for (std::size_t s = 0; s < task_.sums.size(); ++s) {
      std::memcpy(partials + static_cast<index_t>(s) * kItem, cascades_[s]->total(),
                  item_size(task_.leaves[s].accumulate));
    }
  }

 private:
  void add_sums(const ComputedRows::Reader& reader, index_t n, bool early) {
    for (std::size_t s = 0; s < task_.sums.size(); ++s) {
      if (task_.is_early[s] != early) continue;
      if (task_.terms > 1) {
        add_block(task_, s, reader, n, *cascades_[s]);
      } else {
        add_single(task_, s, reader, *cascades_[s]);
      }
    }
  }

  struct Memory {
    alignas(ScalarCascade) std::array<std::byte, kMaxSums * sizeof(ScalarCascade)> bytes;
  };
  const Task& task_;
  const Scratched<Memory> memory_;
  std::array<ScalarCascade*, kMaxSums> cascades_{};
};

// The sums of all chunks of a pass.
class Partials {
 public:
  std::byte* of_chunk(index_t number) const { return memory_->bytes.data() + number * kRow; }
  void reduce(const Task& task) const {
    for (std::size_t s = 0; s < task.sums.size(); ++s) {
      const std::size_t bytes = item_size(task.results[s].dtype);
      if (task.terms == 0) {
        std::memset(task.results[s].data, 0, bytes);
        continue;
      }
      std::byte* const first = of_chunk(0) + static_cast<index_t>(s) * kItem;
      for (index_t width = 1; width < task.chunks; width *= 2) {
        for (index_t c = 0; c + width < task.chunks; c += 2 * width) {
          task.leaves[s].combine(first + (c + width) * kRow, first + c * kRow, 1);
        }
      }
      std::memcpy(task.results[s].data, first, bytes);
    }
  }

 private:
  static constexpr index_t kRow = kMaxSums * kItem;
  struct Memory {
    alignas(kCascadeUnit) std::array<std::byte, kMaxChunks * kRow> bytes;
  };
  const Scratched<Memory> memory_;
};

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
  const Task task(program, sums, inputs[0].extents, results);
  const ComputedRows rows(program, inputs, arrays, read_late(sums, program), filtered);
  const Partials partials;
  parallel_ranges(task.chunks, grain_of(task.chunk), [&](index_t begin, index_t end) {
    const Scratched<ComputedRows::Reader> reader(rows);
    for (index_t number = begin; number < end; ++number) {
      ChunkSums chunk(task);
      const index_t first = number * task.chunk;
      chunk.add(rows, *reader, first, std::min(first + task.chunk, task.terms));
      chunk.put(partials.of_chunk(number));
    }
  });
  partials.reduce(task);
}

}  // namespace palimpsest
