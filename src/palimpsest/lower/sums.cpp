// SPDX-License-Identifier: Apache-2.0
// Reductions. Terms are combined in the order of the host (ReductionOrder), so that sums have its
// bits on every device:
//  leaves   horizontal form: 16 items have a lane each of a leaf, 4 leaves at once in a group,
//           which combines a block of 64 leaves as a Cascade does. Vertical form: an item has an
//           output, and combines its leaves of 16 terms in the same way;
//  blocks   an item combines the blocks of a chunk, if there are several;
//  chunks   an item combines the chunks of an output, if there are several.
#include "palimpsest/lower/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "palimpsest/base/error.hpp"

namespace palimpsest::lower {
namespace {

constexpr int kLanes = 16, kSlots = 4, kGroup = kLanes * kSlots;
constexpr int kBlock = 64;  // leaves of a group: a full subtree of the cascade
constexpr int kLevels = 28;
constexpr index_t kMostTerms = std::numeric_limits<std::int32_t>::max() / 2;

template <class Axes>
std::vector<index_t> extents_of(const Axes& axes) {
  std::vector<index_t> extents;
  for (const auto& axis : axes) extents.push_back(axis.extent);
  return extents;
}

// Kernels of one SumTask.
class SumKernels {
 public:
  SumKernels(DeviceStep& step, std::string_view what, const SumTask& task)
      : step_(step), what_(what), task_(task), order_(task.order) {
    if (order_.vertical) return;
    const index_t length = order_.reduced.back().extent;
    const index_t runs = (length + kLeafElements - 1) / kLeafElements;
    blocks_ = ((order_.chunk / length + 2) * runs + kBlock - 1) / kBlock;
    if (order_.reduced.size() == 1) {
      blocks_ = ((order_.chunk + kLeafElements - 1) / kLeafElements + kBlock - 1) / kBlock;
    }
  }

  bool add() {
    const index_t rows = order_.chunks * blocks_;
    if (order_.terms > kMostTerms || order_.outputs * rows > kMostTerms) return false;
    std::vector<Piece> of_blocks, of_chunks;
    if (blocks_ > 1) of_blocks = partials(order_.outputs * rows);
    if (order_.chunks > 1) of_chunks = partials(order_.outputs * order_.chunks);
    const std::vector<Piece>& of_leaves = blocks_ > 1         ? of_blocks
                                          : order_.chunks > 1 ? of_chunks
                                                              : task_.results;
    bool fits = order_.vertical ? add_vertical(of_leaves) : add_horizontal(of_leaves);
    if (blocks_ > 1) {
      fits = fits && add_blocks(of_blocks, order_.chunks > 1 ? of_chunks : task_.results);
    }
    return fits && (order_.chunks == 1 || add_chunks(of_chunks));
  }

 private:
  std::size_t count() const { return task_.sums.size(); }
  DType dtype(std::size_t s) const { return task_.sums[s].accumulate; }
  std::vector<Piece> partials(index_t n) {
    std::vector<Piece> made;
    for (std::size_t s = 0; s < count(); ++s) made.push_back(scratch_piece(step_, dtype(s), {n}));
    return made;
  }
  bool is_result(const std::vector<Piece>& to) const { return &to == &task_.results; }

  std::string combined(KernelWriter& w, std::size_t s, const std::string& a,
                       const std::string& b) const {
    return fmt::format("{}({}, {})", w.numbers().function(task_.sums[s].combine, dtype(s)), a, b);
  }

  static std::string offset(KernelWriter& w, const std::vector<std::string>& names,
                            std::span<const ReductionOrder::Axis> axes, std::size_t operand) {
    std::string text;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      text += w.offset(names[a], axes[a].steps[operand], 0);
    }
    return text;
  }

  // Writes what output `o` needs before its terms.
  void begin_output(KernelWriter& w) {
    kept_ = w.positions("o", extents_of(order_.kept), "k");
    for (std::size_t k = 1; k <= task_.n_walked(); ++k) {
      w.line(fmt::format("const i64 base{} = {}{};", k, w.integer(order_.offsets[k]),
                         offset(w, kept_, order_.kept, k)));
    }
  }
  void declare_pieces(KernelWriter& w) {
    names_.clear();
    for (const auto* const pieces : {&task_.arrays, &task_.operands}) {
      for (const Piece& piece : *pieces) names_.push_back(w.piece(piece));
    }
  }
  // Writes what reads and computes the operands of term `t`. Their names.
  std::vector<std::string> operands_of_term(KernelWriter& w) {
    const std::vector<std::string> places = w.positions("t", extents_of(order_.reduced), "q");
    std::vector<std::string> offsets;
    for (std::size_t k = 1; k <= task_.n_walked(); ++k) {
      offsets.push_back(fmt::format(" + base{}{}", k, offset(w, places, order_.reduced, k)));
    }
    if (task_.program == nullptr) {
      std::vector<std::string> values;
      for (std::size_t k = 0; k < task_.operands.size(); ++k) {
        values.push_back(fmt::format("x_{}", k));
        w.line(fmt::format("const {} {} = {};", type_of(task_.load), values.back(),
                           w.load(names_[k], task_.operands[k], offsets[k], task_.load)));
      }
      return values;
    }
    // Positions in a dense array that is not stored.
    w.line(fmt::format("const i32 at = (i32)(0{});", offsets[0]));
    std::vector<Piece> all(task_.arrays);
    all.insert(all.end(), task_.operands.begin(), task_.operands.end());
    std::vector<NestAxis> nest = merged_axes(task_.extents, all);
    std::ranges::reverse(nest);
    const std::vector<std::string> indices = w.positions("at", extents_of(nest), "i");
    std::vector<std::string> at(all.size());
    for (std::size_t a = 0; a < nest.size(); ++a) {
      for (std::size_t p = 0; p < all.size(); ++p) {
        const auto item = static_cast<index_t>(item_size(all[p].layout.dtype));
        at[p] += w.offset(indices[a], nest[a].steps[p], item);
      }
    }
    const std::size_t n_arrays = task_.arrays.size();
    const ElementwiseProgram& program = *task_.program;
    const auto register_type = [&](std::span<const int> registers, std::size_t i) {
      return program.dtype_of_register(registers[i]);
    };
    std::vector<std::string> values = w.program(program, [&](std::size_t i) {
      const std::size_t p = n_arrays + i;
      return w.load(names_[p], all[p], at[p], register_type(program.inputs(), i));
    });
    for (std::size_t k = 0; k < n_arrays; ++k) {
      w.store(names_[k], all[k], at[k], values[k], register_type(program.outputs(), k));
    }
    if (task_.converts) {
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] =
            w.numbers().converted(values[k], register_type(program.outputs(), k), task_.load);
      }
    }
    return values;
  }
  std::string term(KernelWriter& w, std::size_t s, const std::vector<std::string>& values) const {
    const Sum& sum = task_.sums[s];
    const std::string& a = values[static_cast<std::size_t>(sum.a)];
    const std::string& b = values[static_cast<std::size_t>(sum.b)];
    Numbers& numbers = w.numbers();
    switch (sum.term) {
      case Sum::Term::element:
        return a;
      case Sum::Term::norm2:
        return fmt::format("{}({})", numbers.function(ScalarOp::abs2, sum.load), a);
      case Sum::Term::product:
        return fmt::format("{}({}, {})", numbers.function(ScalarOp::mul, sum.load), a, b);
      case Sum::Term::conj_product:
        return fmt::format("{}({}, {})", numbers.conj_product(sum.load), a, b);
      case Sum::Term::product_of_conj:
        return fmt::format("{}({}({}, {}))", numbers.function(ScalarOp::conj, sum.load),
                           numbers.function(ScalarOp::mul, sum.load), a, b);
    }
    throw InternalError("[lower] not a term");
  }

  void declare_values(KernelWriter& w) const {
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("{} v{} = {};", type_of(dtype(s)), s, zero_of(dtype(s))));
    }
  }
  // Combines the terms t = first, first + by, .. below end to v0, v1, ..
  void combine_terms(KernelWriter& w, std::string_view first, std::string_view end,
                     std::string_view by) {
    w.open(fmt::format("for (i32 t = {}; t < {}; t += {})", first, end, by));
    const std::vector<std::string> values = operands_of_term(w);
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("const {} e{} = {};", type_of(dtype(s)), s, term(w, s, values)));
      w.line(fmt::format("v{} = t == {} ? e{} : {};", s, first, s,
                         combined(w, s, fmt::format("v{}", s), fmt::format("e{}", s))));
    }
    w.close();
  }
  void declare_stacks(KernelWriter& w, std::string_view memory) const {
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("{}{} stack{}[{}];", memory, type_of(dtype(s)), s, kLevels));
    }
  }
  // Adds v0, .., which combine 2^level leaves, to the stacks, which have `pushed` ones.
  void push(KernelWriter& w, std::string_view level) const {
    w.line(fmt::format("i32 l = {};", level));
    w.open("for (; (pushed >> l & 1) != 0; ++l)");
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("v{} = {};", s,
                         combined(w, s, fmt::format("v{}", s), fmt::format("stack{}[l]", s))));
    }
    w.close();
    for (std::size_t s = 0; s < count(); ++s) w.line(fmt::format("stack{}[l] = v{};", s, s));
    w.line(fmt::format("pushed += 1 << {};", level));
  }
  // Combines the stacks to v0, ..; `is_begun`: v0, .. are the last part, which was not pushed.
  void total(KernelWriter& w, std::string_view is_begun) const {
    w.line(fmt::format("bool is_begun = {};", is_begun));
    w.open(fmt::format("for (i32 l = 0; l < {}; ++l)", kLevels));
    w.open("if ((pushed >> l & 1) != 0)");
    for (std::size_t s = 0; s < count(); ++s) {
      const std::string level = fmt::format("stack{}[l]", s);
      w.line(fmt::format("v{} = is_begun ? {} : {};", s,
                         combined(w, s, level, fmt::format("v{}", s)), level));
    }
    w.line("is_begun = true;");
    w.close();
    w.close();
  }
  // Stores v0, ..: of output `o`, or as element `row * n + column` of partial results.
  void store(KernelWriter& w, const std::vector<std::string>& names, const std::vector<Piece>& to,
             std::string_view element) const {
    std::string place;
    if (is_result(to)) {
      const auto kept = w.positions("o", extents_of(order_.kept), "z");
      place = fmt::format(" + {}{}", w.integer(order_.offsets[0]), offset(w, kept, order_.kept, 0));
    }
    for (std::size_t s = 0; s < count(); ++s) {
      const std::string at =
          is_result(to) ? place : fmt::format(" + (i64)({}) * {}", element, item_size(dtype(s)));
      w.store(names[s], to[s], at, fmt::format("v{}", s), dtype(s));
    }
  }
  static std::vector<std::string> declared(KernelWriter& w, const std::vector<Piece>& pieces) {
    std::vector<std::string> names;
    for (const Piece& piece : pieces) names.push_back(w.piece(piece));
    return names;
  }

  // Writes the terms [begin, end) of chunk `c`, and its leaves: those of the first row of the
  // innermost axis, which it may share with the chunk before, and of the rows behind.
  void write_leaves(KernelWriter& w) const {
    const std::string terms = w.integer(order_.terms), chunk = w.integer(order_.chunk);
    const std::string length = w.integer(order_.reduced.back().extent);
    w.line(fmt::format("const i32 begin = c * (i32){};", chunk));
    w.line(fmt::format("const i32 end = begin + (i32){} < (i32){} ? begin + (i32){} : (i32){};",
                       chunk, terms, chunk, terms));
    w.line(fmt::format("const i32 row = (i32){};", length));
    w.line("const i32 in_row = row - begin % row;");
    w.line("const i32 head = in_row < end - begin ? in_row : end - begin;");
    w.line(fmt::format("const i32 head_leaves = (head + {}) / {}, row_leaves = (row + {}) / {};",
                       kLeafElements - 1, kLeafElements, kLeafElements - 1, kLeafElements));
    w.line("const i32 behind = end - begin - head;");
    w.line(fmt::format(
        "const i32 leaves = head_leaves + behind / row * row_leaves + (behind % row + {}) / {};",
        kLeafElements - 1, kLeafElements));
  }

  bool add_horizontal(const std::vector<Piece>& to) {
    KernelWriter w("sums", what_, kGroup);
    declare_pieces(w);
    const std::vector<std::string> targets = declared(w, to);
    const std::string outputs = w.integer(order_.outputs), blocks = w.integer(blocks_);
    const std::string chunks = w.integer(order_.chunks);
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("LOCAL {} lanes{}[{}];", type_of(dtype(s)), s, kGroup));
    }
    declare_stacks(w, "LOCAL ");
    w.line(fmt::format("const i32 lane = ITEM % {}, slot = ITEM / {};", kLanes, kLanes));
    w.open(fmt::format("for (i32 o = (i32)GROUP(1); o < (i32){}; o += (i32)GROUPS(1))", outputs));
    begin_output(w);
    w.open(fmt::format("for (i32 g = (i32)GROUP(0); g < (i32)({} * {}); g += (i32)GROUPS(0))",
                       chunks, blocks));
    w.line(fmt::format("const i32 c = g / (i32){}, block = g % (i32){};", blocks, blocks));
    write_leaves(w);
    w.line(fmt::format("const i32 last = (block + 1) * {} < leaves ? (block + 1) * {} : leaves;",
                       kBlock, kBlock));
    w.line("i32 pushed = 0;");
    w.open(fmt::format("for (i32 first = block * {}; first < last; first += {})", kBlock, kSlots));
    write_slot(w);
    w.close();
    w.open("if (ITEM == 0)");
    declare_values(w);
    total(w, "false");
    // A chunk may have fewer blocks than others.
    if (blocks_ > 1) w.open(fmt::format("if (block * {} < leaves)", kBlock));
    store(w, targets, to,
          blocks_ > 1 ? fmt::format("(o * (i32){} + c) * (i32){} + block", chunks, blocks)
                      : fmt::format("c * (i32){} + o", outputs));
    if (blocks_ > 1) w.close();
    w.close();
    w.close();
    w.close();
    return w.add_to(step_, {order_.chunks * blocks_, order_.outputs, 1});
  }
  // Writes the leaves first, .. first + kSlots - 1: an item has a lane of its slot's leaf.
  void write_slot(KernelWriter& w) {
    w.line("const i32 leaf = first + slot;");
    w.line("i32 from = 0, n = 0;");
    w.open("if (leaf < last && leaf < head_leaves)");
    w.line(fmt::format("from = begin + {} * leaf;", kLeafElements));
    w.line(fmt::format("n = head - {} * leaf;", kLeafElements));
    w.close();
    w.open("if (leaf < last && leaf >= head_leaves)");
    w.line("const i32 number = leaf - head_leaves;");
    w.line("const i32 start = begin + head + number / row_leaves * row;");
    w.line(fmt::format("from = start + number % row_leaves * {};", kLeafElements));
    w.line("n = (start + row < end ? start + row : end) - from;");
    w.close();
    w.line(fmt::format("if (n > {}) n = {};", kLeafElements, kLeafElements));
    w.open(fmt::format("if (n >= {} || (n > 0 && lane == 0))", kLanes));
    w.line(fmt::format("const i32 t0 = n >= {} ? from + lane : from, by = n >= {} ? {} : 1;",
                       kLanes, kLanes, kLanes));
    declare_values(w);
    combine_terms(w, "t0", "from + n", "by");
    for (std::size_t s = 0; s < count(); ++s) w.line(fmt::format("lanes{}[ITEM] = v{};", s, s));
    w.close();
    w.line("BARRIER;");
    w.open(fmt::format("for (i32 half_lanes = {}; half_lanes > 0; half_lanes /= 2)", kLanes / 2));
    w.open(fmt::format("if (lane < half_lanes && n >= {})", kLanes));
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("lanes{}[ITEM] = {};", s,
                         combined(w, s, fmt::format("lanes{}[ITEM]", s),
                                  fmt::format("lanes{}[ITEM + half_lanes]", s))));
    }
    w.close();
    w.line("BARRIER;");
    w.close();
    w.open("if (ITEM == 0)");
    w.line(
        fmt::format("const i32 n_slots = last - first < {} ? last - first : {};", kSlots, kSlots));
    w.open("for (i32 p = 0; p < n_slots; ++p)");
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("{} v{} = lanes{}[p * {}];", type_of(dtype(s)), s, s, kLanes));
    }
    push(w, "0");
    w.close();
    w.close();
    w.line("BARRIER;");
  }

  bool add_vertical(const std::vector<Piece>& to) {
    KernelWriter w("rows", what_);
    declare_pieces(w);
    const std::vector<std::string> targets = declared(w, to);
    const std::string outputs = w.integer(order_.outputs), chunks = w.integer(order_.chunks);
    const std::string terms = w.integer(order_.terms), chunk = w.integer(order_.chunk);
    declare_stacks(w, "");
    w.open(fmt::format("for (i32 c = (i32)GROUP(1); c < (i32){}; c += (i32)GROUPS(1))", chunks));
    w.open(
        fmt::format("for (i32 o = (i32)GROUP(0) * {} + ITEM; o < (i32){}; o += (i32)GROUPS(0) "
                    "* {})",
                    kItems, outputs, kItems));
    begin_output(w);
    w.line(fmt::format("const i32 begin = c * (i32){};", chunk));
    w.line(fmt::format("const i32 end = begin + (i32){} < (i32){} ? begin + (i32){} : (i32){};",
                       chunk, terms, chunk, terms));
    w.line("i32 pushed = 0;");
    declare_values(w);
    w.open(fmt::format("for (i32 first = begin; first < end; first += {})", kLeafRows));
    w.line(
        fmt::format("const i32 last = first + {} < end ? first + {} : end;", kLeafRows, kLeafRows));
    combine_terms(w, "first", "last", "1");
    push(w, "0");
    w.close();
    total(w, "false");
    store(w, targets, to, fmt::format("c * (i32){} + o", outputs));
    w.close();
    w.close();
    return w.add_to(step_, {(order_.outputs + kItems - 1) / kItems, order_.chunks, 1});
  }

  // An item combines the blocks of chunk c of output o.
  bool add_blocks(const std::vector<Piece>& from, const std::vector<Piece>& to) {
    KernelWriter w("blocks", what_);
    const std::vector<std::string> sources = declared(w, from), targets = declared(w, to);
    const std::string outputs = w.integer(order_.outputs), chunks = w.integer(order_.chunks);
    const std::string blocks = w.integer(blocks_);
    declare_stacks(w, "");
    w.open(
        fmt::format("for (i32 i = (i32)GROUP(0) * {} + ITEM; i < (i32)({} * {}); i += "
                    "(i32)GROUPS(0) * {})",
                    kItems, outputs, chunks, kItems));
    w.line(fmt::format("const i32 o = i / (i32){}, c = i % (i32){};", chunks, chunks));
    write_leaves(w);
    w.line(fmt::format("const i32 n_full = leaves / {};", kBlock));
    w.line("i32 pushed = 0;");
    declare_values(w);
    const auto read = [&](std::string_view block) {
      for (std::size_t s = 0; s < count(); ++s) {
        w.line(fmt::format("v{} = *AT({}, {}, {}_at + ((i64)i * {} + {}) * {});", s,
                           type_of(dtype(s)), sources[s], sources[s], blocks, block,
                           item_size(dtype(s))));
      }
    };
    w.open("for (i32 b = 0; b < n_full; ++b)");
    read("b");
    push(w, "0");
    w.close();
    w.line(fmt::format("const bool has_rest = leaves % {} != 0;", kBlock));
    w.open("if (has_rest)");
    read("n_full");
    w.close();
    total(w, "has_rest");
    store(w, targets, to, fmt::format("c * (i32){} + o", outputs));
    w.close();
    const index_t n = order_.outputs * order_.chunks;
    return w.add_to(step_, {(n + kItems - 1) / kItems, 1, 1});
  }

  // An item combines the chunks of output o in pairs.
  bool add_chunks(const std::vector<Piece>& from) {
    KernelWriter w("chunks", what_);
    const std::vector<std::string> sources = declared(w, from);
    const std::vector<std::string> targets = declared(w, task_.results);
    const std::string outputs = w.integer(order_.outputs), chunks = w.integer(order_.chunks);
    w.open(
        fmt::format("for (i32 o = (i32)GROUP(0) * {} + ITEM; o < (i32){}; o += (i32)GROUPS(0) "
                    "* {})",
                    kItems, outputs, kItems));
    const auto element = [&](std::size_t s, std::string_view c) {
      return fmt::format("*AT({}, {}, {}_at + ((i64)({}) * {} + o) * {})", type_of(dtype(s)),
                         sources[s], sources[s], c, outputs, item_size(dtype(s)));
    };
    w.open(fmt::format("for (i32 width = 1; width < (i32){}; width *= 2)", chunks));
    w.open(fmt::format("for (i32 c = 0; c + width < (i32){}; c += 2 * width)", chunks));
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("{} = {};", element(s, "c"),
                         combined(w, s, element(s, "c"), element(s, "c + width"))));
    }
    w.close();
    w.close();
    for (std::size_t s = 0; s < count(); ++s) {
      w.line(fmt::format("const {} v{} = {};", type_of(dtype(s)), s, element(s, "0")));
    }
    store(w, targets, task_.results, "");
    w.close();
    return w.add_to(step_, {(order_.outputs + kItems - 1) / kItems, 1, 1});
  }

  DeviceStep& step_;
  std::string_view what_;
  const SumTask& task_;
  const ReductionOrder& order_;
  index_t blocks_ = 1;
  std::vector<std::string> names_, kept_;
};

}  // namespace

bool add_sums(DeviceStep& step, std::string_view what, const SumTask& task) {
  return SumKernels(step, what, task).add();
}

}  // namespace palimpsest::lower
