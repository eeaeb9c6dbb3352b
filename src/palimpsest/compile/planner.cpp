// SPDX-License-Identifier: Apache-2.0
// From a graph and the layouts of its inputs to a Plan, in four passes:
//  1. order: the graph's own, which respects data and in-place constraints;
//  2. layouts: every variable gets a slot in a buffer. A view shares the buffer of what it views,
//     an in-place result that of what it overwrites, everything else gets a new dense buffer;
//  3. owners: buffers that leave the function become the caller's or a container's;
//  4. placement: what is left gets an offset in the arena, for as long as it is read.
#include "palimpsest/compile/planner.hpp"

#include <algorithm>
#include <unordered_map>

#include "palimpsest/compile/placement.hpp"

namespace palimpsest {
namespace {

class Planner {
 public:
  explicit Planner(const PlanRequest& request) : request_(request), graph_(*request.graph) {}

  Plan run() {
    bind_inputs();
    for (const Apply& node : graph_.toposort()) add_step(node);
    deliver_results();
    deliver_updates();
    place_arena();
    return std::move(plan_);
  }

 private:
  int step() const { return static_cast<int>(plan_.steps.size()); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  int new_buffer(BufferKind kind, int index, index_t bytes, std::string name) {
    plan_.buffers.push_back({kind, index, bytes, 0, step(), step(), std::move(name)});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  int new_slot(const Variable& v, int buffer, Layout layout) {
    plan_.slots.push_back({buffer, std::move(layout)});
    const int slot = static_cast<int>(plan_.slots.size()) - 1;
    slots_[v.node()] = slot;
    return slot;
  }
  PlannedBuffer& buffer_of(int slot) { return plan_.buffers[at(plan_.slots[at(slot)].buffer)]; }
  void mark_used(int slot, int when) {
    PlannedBuffer& buffer = buffer_of(slot);
    buffer.last_step = std::max(buffer.last_step, when);
  }

  void bind_inputs() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const bool argument = i < request_.n_arguments;
      const Layout& layout = request_.input_layouts[i];
      const int buffer =
          new_buffer(argument ? BufferKind::argument : BufferKind::container,
                     static_cast<int>(argument ? i : i - request_.n_arguments),
                     byte_count(layout.extents, layout.dtype), graph_.inputs()[i].name());
      plan_.buffers[at(buffer)].first_step = -1;
      new_slot(graph_.inputs()[i], buffer, layout);
    }
  }

  int slot_of(const Variable& v) {
    const auto it = slots_.find(v.node());
    if (it != slots_.end()) return it->second;
    if (!v.is_constant()) {
      throw InternalError("[plan] " + v.str() + " is used before it is computed");
    }
    const Tensor& value = v.constant_value();
    const int buffer = new_buffer(BufferKind::constant, static_cast<int>(plan_.constants.size()),
                                  value.nbytes(), v.name());
    plan_.constants.push_back(v);
    plan_.buffers[at(buffer)].first_step = -1;
    return new_slot(v, buffer, {value.dtype(), value.shape(), value.strides(), 0});
  }

  // A view gets the slot it shows; false when these strides allow none.
  bool try_view(const Apply& node, int output, const AliasMap& views) {
    const auto it = views.find(output);
    if (it == views.end() || it->second.size() != 1) return false;
    const int input = *it->second.begin();
    const Slot source = plan_.slots[at(slot_of(node.input(at(input))))];
    std::optional<Layout> layout = node.op().view_layout(node, output, source.layout);
    if (!layout) return false;
    new_slot(node.output(at(output)), source.buffer, std::move(*layout));
    return true;
  }

  void add_step(const Apply& node) {
    std::vector<Extents> input_extents;
    std::vector<Layout> input_layouts;
    PlannedStep planned{node, {}, {}, -1};
    for (const Variable& v : node.inputs()) {
      planned.inputs.push_back(slot_of(v));
      input_layouts.push_back(plan_.slots[at(planned.inputs.back())].layout);
      input_extents.push_back(input_layouts.back().extents);
    }
    const std::vector<Extents> extents = node.op().infer_shapes(node, input_extents);
    const AliasMap views = node.op().view_map(node), destroys = node.op().destroy_map(node);
    bool runs = false;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      const int output = static_cast<int>(k);
      if (try_view(node, output, views)) continue;
      runs = true;
      const auto destroyed = destroys.find(output);
      if (destroyed != destroys.end()) {
        overwrite(node, output, *destroyed->second.begin());
      } else {
        Layout layout = Layout::dense(node.output(k).dtype(), extents[k]);
        const index_t bytes = byte_count(layout.extents, layout.dtype);
        const int buffer = new_buffer(BufferKind::arena, 0, bytes, label(node, k));
        new_slot(node.output(k), buffer, std::move(layout));
      }
    }
    if (!runs) return;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      planned.outputs.push_back(slot_of(node.output(k)));
      mark_used(planned.outputs.back(), step());
    }
    for (int slot : planned.inputs) mark_used(slot, step());
    const std::size_t scratch = node.op().scratch_bytes(node, input_layouts);
    if (scratch > 0) {
      planned.scratch = new_buffer(BufferKind::arena, 0, static_cast<index_t>(scratch),
                                   "scratch of " + node.op().name());
    }
    plan_.steps.push_back(std::move(planned));
  }

  void overwrite(const Apply& node, int output, int input) {
    const Slot target = plan_.slots[at(slot_of(node.input(at(input))))];
    Layout layout = target.layout;
    layout.dtype = node.output(at(output)).dtype();
    new_slot(node.output(at(output)), target.buffer, std::move(layout));
  }

  static std::string label(const Apply& node, std::size_t k) {
    const Variable v = node.output(k);
    return v.name().empty() ? node.op().name() : v.name();
  }

  void keep_to_the_end(int slot) { mark_used(slot, std::max(step() - 1, 0)); }

  static index_t bytes_of(const Slot& slot) {
    return byte_count(slot.layout.extents, slot.layout.dtype);
  }

  // A view of less than half of its buffer is copied out, so that a small result never keeps a big
  // buffer alive.
  bool is_small_view(int slot) {
    return 2 * bytes_of(plan_.slots[at(slot)]) < buffer_of(slot).bytes;
  }

  void deliver_results() {
    for (std::size_t i = 0; i < request_.n_results; ++i) {
      const int slot = slot_of(graph_.outputs()[i]);
      keep_to_the_end(slot);
      Delivery delivery{slot, false};
      PlannedBuffer& buffer = buffer_of(slot);
      if (is_small_view(slot) && !(request_.borrowed[i] && buffer.kind == BufferKind::arena)) {
        delivery.compact = true;
        plan_.output_bytes += bytes_of(plan_.slots[at(slot)]);
      } else if (buffer.kind == BufferKind::arena && !request_.borrowed[i]) {
        buffer.kind = BufferKind::output;
        buffer.index = static_cast<int>(i);
        plan_.output_bytes += buffer.bytes;
      }
      plan_.outputs.push_back(delivery);
    }
  }

  void deliver_updates() {
    for (std::size_t u = 0; u < request_.updated.size(); ++u) {
      const int slot = slot_of(graph_.outputs()[request_.n_results + u]);
      keep_to_the_end(slot);
      Delivery delivery{slot, false};
      PlannedBuffer& buffer = buffer_of(slot);
      const bool in_place =
          buffer.kind == BufferKind::container && buffer.index == request_.updated[u];
      if (!in_place && is_small_view(slot)) {
        delivery.compact = true;
        plan_.output_bytes += bytes_of(plan_.slots[at(slot)]);
      } else if (buffer.kind == BufferKind::arena) {
        if (borrowed_too(slot)) {
          delivery.compact = true;
          plan_.output_bytes += bytes_of(plan_.slots[at(slot)]);
        } else {
          buffer.kind = BufferKind::update;
          buffer.index = static_cast<int>(u);
          plan_.update_bytes += buffer.bytes;
        }
      }
      plan_.updates.push_back(delivery);
    }
  }

  // A borrowed result stays in the arena; a container must not point there.
  bool borrowed_too(int slot) {
    const int buffer = plan_.slots[at(slot)].buffer;
    return std::any_of(plan_.outputs.begin(), plan_.outputs.end(), [&](const Delivery& d) {
      return !d.compact && plan_.slots[at(d.slot)].buffer == buffer;
    });
  }

  void place_arena() {
    std::vector<Interval> intervals;
    std::vector<std::size_t> which;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlannedBuffer& buffer = plan_.buffers[b];
      if (buffer.kind == BufferKind::arena || buffer.kind == BufferKind::output ||
          buffer.kind == BufferKind::update) {
        plan_.no_reuse_bytes += buffer.bytes;
      }
      if (buffer.kind != BufferKind::arena) continue;
      intervals.push_back({buffer.bytes, buffer.first_step, buffer.last_step, 0});
      which.push_back(b);
    }
    const Placement placement = place(intervals);
    for (std::size_t i = 0; i < which.size(); ++i) {
      plan_.buffers[which[i]].offset = intervals[i].offset;
    }
    plan_.arena_bytes = placement.bytes;
    plan_.lower_bound_bytes = placement.lower_bound;
    plan_.peak_bytes = plan_.arena_bytes + plan_.output_bytes + plan_.update_bytes;
  }

  const PlanRequest& request_;
  const FunctionGraph& graph_;
  Plan plan_;
  std::unordered_map<const VariableNode*, int> slots_;
};

}  // namespace

Plan make_plan(const PlanRequest& request) { return Planner(request).run(); }

}  // namespace palimpsest
