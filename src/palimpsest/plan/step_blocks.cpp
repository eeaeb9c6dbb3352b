// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/step_blocks.hpp"

#include <algorithm>
#include <optional>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/graph/by_rows.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

// What a step reads or writes: rows along the first axis, or one piece that serves all rows.
struct Access {
  int space = 0;  // the arena, or a buffer with memory of its own
  index_t begin = 0, row_bytes = 0, row_step = 0, rows = 1;
  bool writes = false;

  bool is_cut() const { return rows > 1; }
  index_t end() const { return begin + (rows - 1) * row_step + row_bytes; }
  bool has_rows_of(const Access& other) const {
    return is_cut() && other.is_cut() && space == other.space && begin == other.begin &&
           row_step == other.row_step;
  }
};

constexpr int kArena = -1;
constexpr index_t kFewestRows = 4;         // of a block: cut evenly, each has 2 at least
constexpr std::size_t kMostAccesses = 64;  // of a group: each is compared with all others

// Do two accesses forbid that some rows of one step run before other rows of the other?
bool conflict(const Access& a, const Access& b) {
  if (!a.writes && !b.writes) return false;
  if (a.space != b.space || a.end() <= b.begin || b.end() <= a.begin) return false;
  return !a.has_rows_of(b);
}

// True if the axes behind the first one lie dense, in order.
bool has_dense_rows(const Layout& layout, index_t& elements) {
  elements = 1;
  for (std::size_t k = layout.extents.size(); k-- > 1;) {
    if (layout.extents[k] != 1 && layout.strides[k] != elements) return false;
    elements *= layout.extents[k];
  }
  return elements > 0 && layout.strides[0] >= elements;
}

std::optional<Access> access_of(const Plan& plan, int slot, index_t rows, bool writes) {
  const Slot& s = plan.slots[at(slot)];
  const PlannedBuffer& buffer = plan.buffers[at(s.buffer)];
  const bool in_arena = buffer.kind == BufferKind::arena;
  if (writes && !in_arena && buffer.kind != BufferKind::output) return std::nullopt;
  const index_t offset = in_arena ? buffer.offset : 0;
  Access access{in_arena ? kArena : s.buffer, offset, buffer.bytes, 0, 1, writes};
  const Layout& layout = s.layout;
  if (layout.extents.size() == 0) return std::nullopt;
  if (layout.extents[0] == 1 && !writes) return access;
  index_t elements = 0;
  if (layout.extents[0] != rows || !has_dense_rows(layout, elements)) return std::nullopt;
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  access.begin += layout.byte_offset;
  access.row_bytes = elements * item;
  access.row_step = layout.strides[0] * item;
  access.rows = rows;
  return access;
}

// Neighbouring steps that may run row by row.
class RowGroup {
 public:
  RowGroup(const Plan& plan, int first) : plan_(plan), blocks_{first, first, 0, 1} {
    const PlannedStep& step = plan.steps[at(first)];
    if (step.outputs.empty()) return;
    const Layout& layout = plan.slots[at(step.outputs[0])].layout;
    if (layout.extents.size() > 0) blocks_.rows = layout.extents[0];
  }

  bool add(int number) {
    const PlannedStep& step = plan_.steps[at(number)];
    const auto* const op = dynamic_cast<const WorksByRows*>(&step.node.op());
    if (blocks_.rows < 2 || op == nullptr || !op->works_by_rows(step.node)) return false;
    if (step.node.op().can_fail() || step.guard >= 0 || step.scratch >= 0) return false;
    std::vector<Access> added;
    const auto add_all = [&](const std::vector<int>& slots, bool writes) {
      return std::all_of(slots.begin(), slots.end(), [&](int slot) {
        const auto access = access_of(plan_, slot, blocks_.rows, writes);
        if (access) added.push_back(*access);
        return access.has_value();
      });
    };
    if (!add_all(step.inputs, false) || !add_all(step.outputs, true)) return false;
    if (accesses_.size() + added.size() > kMostAccesses) return false;
    for (const Access& a : added) {
      const auto forbids = [&](const Access& b) { return conflict(a, b); };
      if (std::any_of(accesses_.begin(), accesses_.end(), forbids)) return false;
      if (std::any_of(added.begin(), added.end(), forbids)) return false;
    }
    accesses_.insert(accesses_.end(), added.begin(), added.end());
    blocks_.last = number;
    return true;
  }

  // Blocks whose rows, of all arrays together, take a quarter of a core's cache. Nothing if whole
  // arrays stay there, or if little is read again.
  std::optional<StepBlocks> blocks() const {
    index_t row_bytes = 0, saved_bytes = 0;
    for (auto a = accesses_.begin(); a != accesses_.end(); ++a) {
      if (!a->is_cut()) continue;
      const bool is_known =
          std::any_of(accesses_.begin(), a, [&](const Access& b) { return a->has_rows_of(b); });
      (is_known ? saved_bytes : row_bytes) += a->row_bytes;
    }
    const index_t cache = core_cache_bytes();
    if (row_bytes * blocks_.rows <= cache || saved_bytes * blocks_.rows <= cache / 2) return {};
    StepBlocks made = blocks_;
    const index_t together = cache / 4 / row_bytes;
    if (together < kFewestRows) return {};
    made.blocks = (made.rows + together - 1) / together;
    return made;
  }

 private:
  const Plan& plan_;
  StepBlocks blocks_;
  std::vector<Access> accesses_;
};

}  // namespace

std::vector<StepBlocks> find_step_blocks(const Plan& plan) {
  std::vector<StepBlocks> found;
  const auto n = static_cast<int>(plan.steps.size());
  if (plan.lanes > 1 || !plan.arenas.empty()) return found;
  for (int first = 0; first < n;) {
    RowGroup group(plan, first);
    int next = first;
    while (next < n && group.add(next)) ++next;
    const auto blocks = next - first > 1 ? group.blocks() : std::nullopt;
    if (blocks) found.push_back(*blocks);
    first = std::max(next, first + 1);
  }
  return found;
}

void set_cache_of_blocks(index_t bytes) { set_core_cache_bytes(bytes); }

}  // namespace palimpsest
