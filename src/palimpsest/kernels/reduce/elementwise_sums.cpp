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

  explicit Task(const ElementwisePass& pass);
};

Task::Task(const ElementwisePass& pass) : sums(pass.sums), results(pass.results) {
  for (const index_t extent : pass.inputs[0].extents) terms *= extent;
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const int r = pass.program.outputs()[static_cast<std::size_t>(sums[s].a)];
    leaves[s] = leaf_of(sums[s], pass.program.dtype_of_register(r));
    is_early[s] = is_of_inputs(sums[s], pass.program);
    items[s] = static_cast<index_t>(item_size(pass.program.dtype_of_register(r)));
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

  // Adds elements first .. end - 1: whole leaves, except at the end of the chunk. Calls
  // after(first, n) for each block once it is computed.
  template <class After>
  void add(const ComputedRows& rows, ComputedRows::Reader& reader, index_t first, index_t end,
           After&& after) {
    for (; first < end; first += rows.block()) {
      const index_t n = std::min(rows.block(), end - first);
      reader.bring(first, n);
      add_sums(reader, n, true);
      reader.compute(first, n);
      add_sums(reader, n, false);
      after(first, n);
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
  const Task task({program, sums, inputs, arrays, results, filtered});
  const ComputedRows rows(program, inputs, arrays, read_late(sums, program), filtered);
  const Partials partials;
  parallel_ranges(task.chunks, grain_of(task.chunk), [&](index_t begin, index_t end) {
    const Scratched<ComputedRows::Reader> reader(rows);
    for (index_t number = begin; number < end; ++number) {
      ChunkSums chunk(task);
      const index_t first = number * task.chunk;
      chunk.add(rows, *reader, first, std::min(first + task.chunk, task.terms),
                [](index_t, index_t) {});
      chunk.put(partials.of_chunk(number));
    }
  });
  partials.reduce(task);
}

// -- joined passes -------------------------------------------------------------------------------
//
// A thread computes a stretch of a chunk by the first pass, then the part of the second pass that
// depends on it. The linked values lie in a window of the thread: those of the last stretch, and
// those that filters reach back to. At both ends of a chunk filters reach into other chunks, whose
// threads may already have overwritten the inputs of the first pass. So the linked values around
// borders are computed first.

namespace {

constexpr index_t kWindowBytes = 524288, kLongestStretch = 8192, kShortestStretch = 1024;
// At most one of kMostTwice elements may be computed twice.
constexpr index_t kMostTwice = 4;

std::uint32_t bits_of(std::span<const HandedOn> handed) {
  std::uint32_t bits = 0;
  for (const HandedOn& link : handed) bits |= std::uint32_t{1} << link.output;
  return bits;
}

// Sizes of the values handed from pass to pass.
struct Handed {
  std::span<const HandedOn> links;
  std::array<index_t, ComputedRows::kMostFiltered> items = {};  // bytes of an element, by link
  FilterReach reach;
  index_t item = 0;     // bytes of an element, all links together
  index_t stretch = 0;  // in elements
  bool is_possible = true;

  Handed(const ElementwisePass& first, const ElementwisePass& second,
         std::span<const HandedOn> handed)
      : links(handed) {
    for (std::size_t k = 0; k < handed.size(); ++k) {
      const HandedOn& link = handed[k];
      const int r = first.program.outputs()[static_cast<std::size_t>(link.output)];
      items[k] = static_cast<index_t>(item_size(first.program.dtype_of_register(r)));
      item += items[k];
      const auto filter =
          std::find_if(second.filtered.begin(), second.filtered.end(),
                       [&](const FilteredInput& f) { return f.input == link.input; });
      is_possible = is_possible && filter != second.filtered.end() &&
                    filter->stencil.edge != StencilEdge::periodic;
      if (!is_possible) return;
      const FilterReach one =
          reach_of(*filter, second.inputs[static_cast<std::size_t>(link.input)].extents);
      reach.before = std::max(reach.before, one.before);
      reach.behind = std::max(reach.behind, one.behind);
    }
    const index_t room = kWindowBytes / std::max<index_t>(item, 1) - beside_stretch();
    stretch = std::min(room, kLongestStretch) / kLeafElements * kLeafElements;
    index_t terms = 1;
    for (const index_t extent : second.inputs[0].extents) terms *= extent;
    const index_t chunk = terms > 0 ? chunk_of_terms(terms, 1) : 0;
    const bool is_worth = chunk == terms || kMostTwice * at_border() <= chunk;
    is_possible = stretch >= kShortestStretch && is_worth;
  }
  // The number of elements around a border that both chunks need.
  index_t at_border() const { return reach.before + reach.behind; }
  // Additional elements of a window: leaves that are not whole wait for the next stretch.
  index_t beside_stretch() const { return reach.before + 2 * reach.behind + kLeafElements; }
};

// The linked values around borders of chunks, in the scratch of the step.
class Borders {
 public:
  Borders(const Handed& handed, const Task& task, std::byte* memory)
      : handed_(handed), task_(task), memory_(memory) {}
  index_t count() const { return std::max<index_t>(task_.chunks - 1, 0); }
  index_t begin(index_t border) const {
    return std::max<index_t>((border + 1) * task_.chunk - handed_.reach.before, 0);
  }
  index_t end(index_t border) const {
    return std::min((border + 1) * task_.chunk + handed_.reach.behind, task_.terms);
  }
  // Element `element` of link k.
  std::byte* at(index_t border, std::size_t k, index_t element) const {
    std::byte* place = memory_ + border * handed_.at_border() * handed_.item;
    for (std::size_t before = 0; before < k; ++before) {
      place += handed_.at_border() * handed_.items[before];
    }
    return place + (element - begin(border)) * handed_.items[k];
  }

 private:
  const Handed& handed_;
  const Task& task_;
  std::byte* memory_;
};

// The linked values that one thread holds.
class Window {
 public:
  Window(const Handed& handed) : handed_(handed) {
    const index_t most = handed.beside_stretch() + handed.stretch;
    index_t place = 0;
    for (std::size_t k = 0; k < handed.links.size(); ++k) {
      places_[k] = memory_->bytes.data() + place;
      place += most * handed.items[k];
    }
  }
  void begin_at(index_t element) { first_ = element; }
  std::byte* at(std::size_t k, index_t element) const {
    return places_[k] + (element - first_) * handed_.items[k];
  }
  void take(const ComputedRows::Reader& reader, index_t element, index_t n) const {
    for (std::size_t k = 0; k < handed_.links.size(); ++k) {
      std::memcpy(at(k, element), reader.output(handed_.links[k].output),
                  static_cast<std::size_t>(n * handed_.items[k]));
    }
  }
  void take(const Borders& borders, index_t border, index_t begin, index_t end) const {
    for (std::size_t k = 0; k < handed_.links.size() && begin < end; ++k) {
      std::memcpy(at(k, begin), borders.at(border, k, begin),
                  static_cast<std::size_t>((end - begin) * handed_.items[k]));
    }
  }
  // Discards the elements before `element`; `end` is the end of those computed.
  void move_to(index_t element, index_t end) {
    if (element <= first_) return;
    for (std::size_t k = 0; k < handed_.links.size(); ++k) {
      std::memmove(places_[k], at(k, element),
                   static_cast<std::size_t>((end - element) * handed_.items[k]));
    }
    first_ = element;
  }

 private:
  struct Memory {
    alignas(64) std::array<std::byte, kWindowBytes> bytes;
  };
  const Handed& handed_;
  const Scratched<Memory> memory_;
  std::array<std::byte*, ComputedRows::kMostFiltered> places_{};
  index_t first_ = 0;
};

// Both passes on one thread.
class JoinedRun {
 public:
  JoinedRun(const ElementwisePass& first, const ElementwisePass& second, const Handed& handed)
      : handed_(handed),
        window_(handed),
        first_rows_(first.program, first.inputs, first.arrays,
                    read_late(first.sums, first.program) | bits_of(handed.links), first.filtered),
        second_rows_(second.program, second.inputs, second.arrays,
                     read_late(second.sums, second.program), second.filtered),
        first_(first_rows_),
        second_(second_rows_) {}

  void run_chunk(index_t number, const Borders& borders, ChunkSums& first_sums,
                 ChunkSums& second_sums, index_t begin, index_t end) {
    window_.begin_at(number > 0 ? borders.begin(number - 1) : 0);
    if (number > 0) window_.take(borders, number - 1, borders.begin(number - 1), begin);
    for (index_t made = begin, done = begin; done < end;) {
      const index_t until = std::min(made + handed_.stretch, end);
      first_sums.add(first_rows_, *first_, made, until,
                     [&](index_t from, index_t n) { window_.take(*first_, from, n); });
      made = until;
      index_t ready = end;
      if (made < end) {
        ready = begin + (made - handed_.reach.behind - begin) / kLeafElements * kLeafElements;
      } else if (number < borders.count()) {
        window_.take(borders, number, end, borders.end(number));
      }
      if (ready <= done) continue;
      for (std::size_t k = 0; k < handed_.links.size(); ++k) {
        second_rows_.read_filtered_from(handed_.links[k].input, window_.at(k, 0));
      }
      second_sums.add(second_rows_, *second_, done, ready, [](index_t, index_t) {});
      done = ready;
      window_.move_to(done - handed_.reach.before, made);
    }
  }

 private:
  const Handed& handed_;
  Window window_;
  ComputedRows first_rows_, second_rows_;
  const Scratched<ComputedRows::Reader> first_, second_;
};

}  // namespace

bool can_join_passes(const ElementwisePass& first, const ElementwisePass& second,
                     std::span<const HandedOn> handed) {
  return Handed(first, second, handed).is_possible;
}

index_t joined_passes_scratch_bytes(const ElementwisePass& first, const ElementwisePass& second,
                                    std::span<const HandedOn> handed) {
  const Handed all(first, second, handed);
  return std::max<index_t>(Task(first).chunks - 1, 0) * all.at_border() * all.item;
}

void run_joined_passes(const ElementwisePass& first, const ElementwisePass& second,
                       std::span<const HandedOn> handed, std::span<std::byte> scratch) {
  const Handed all(first, second, handed);
  const Task one(first), two(second);
  assert(all.is_possible && one.terms == two.terms);
  const Borders borders(all, one, scratch.data());
  parallel_ranges(borders.count(), grain_of(all.at_border()), [&](index_t begin, index_t end) {
    const ComputedRows rows(first.program, first.inputs, {}, bits_of(handed), first.filtered);
    const Scratched<ComputedRows::Reader> reader(rows);
    for (index_t border = begin; border < end; ++border) {
      const index_t last = borders.end(border);
      for (index_t from = borders.begin(border); from < last; from += rows.block()) {
        const index_t n = std::min(rows.block(), last - from);
        reader->bring(from, n);
        reader->compute(from, n);
        for (std::size_t k = 0; k < handed.size(); ++k) {
          std::memcpy(borders.at(border, k, from), reader->output(handed[k].output),
                      static_cast<std::size_t>(n * all.items[k]));
        }
      }
    }
  });
  const Partials first_partials, second_partials;
  parallel_ranges(one.chunks, grain_of(one.chunk), [&](index_t begin, index_t end) {
    const Scratched<JoinedRun> run(first, second, all);
    for (index_t number = begin; number < end; ++number) {
      ChunkSums first_sums(one), second_sums(two);
      const index_t from = number * one.chunk;
      run->run_chunk(number, borders, first_sums, second_sums, from,
                     std::min(from + one.chunk, one.terms));
      first_sums.put(first_partials.of_chunk(number));
      second_sums.put(second_partials.of_chunk(number));
    }
  });
  first_partials.reduce(one);
  second_partials.reduce(two);
}

}  // namespace palimpsest
