// SPDX-License-Identifier: Apache-2.0
// Makes a Plan of a graph and the layouts of its inputs, in four passes:
//  1. layouts: every variable gets a slot in a buffer. A view shares the buffer of its source, an
//     in-place result that of the overwritten input; any other variable gets a new dense buffer.
//     The steps are in the graph's order, which respects data and in-place constraints; conditions
//     of an ifelse come before the steps that only one branch needs. If a value can be computed in
//     its slice of a joined one, this pass runs again with the value there;
//  2. owners: buffers that leave the function become the caller's or a container's;
//  3. order: another order, if it lowers the peak of the other buffers; and the steps that run side
//     by side;
//  4. placement: each other buffer gets an offset in the arena, for as long as it is read. Passes 3
//     and 4 are in arrangement.cpp.
#include "palimpsest/plan/planner.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/device/devices.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/lower/lower.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/ops/transforms/library_memory.hpp"
#include "palimpsest/plan/arrangement.hpp"
#include "palimpsest/plan/guards.hpp"
#include "palimpsest/plan/host_step.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/notes.hpp"
#include "palimpsest/plan/part_places.hpp"
#include "palimpsest/plan/plan_devices.hpp"

namespace palimpsest {
namespace {

// Thrown where a plan ends because elements of an op's inputs decide the extents of its results.
struct RunTimeExtents {
  std::string op;
};

class Planner {
 public:
  Planner(const PlanRequest& request, LoopPlans& loops, PartPlaces places = {})
      : request_(request),
        loops_(loops),
        graph_(*request.graph),
        order_(graph_.toposort()),
        branches_(graph_, order_),
        places_(std::move(places)) {
    for (const auto& [part, place] : places_) part_at_[{place.node.node(), place.input}] = part;
    bring_forward();
  }

  // Passes 1 and 2.
  void lay_out() {
    bind_inputs();
    for (const Apply& node : order_) add_step(node);
    deliver();
    bound_entry_copies();
  }
  // Passes 3 and 4.
  Plan finish() {
    if (knows_devices()) prepare_device_steps();
    arrange(plan_, is_kept_, request_);
    for (const PlannedStep& planned : plan_.steps) plan_.external_bytes += library_bytes(planned);
    return std::move(plan_);
  }
  PartPlaces part_places() const {
    PartPlaces places = find_part_places({plan_, makers_, is_kept_, order_, request_.keeps_bits});
    const auto positions = positions_in_order();
    std::erase_if(places, [&](const auto& entry) {
      const auto& [part, place] = entry;
      return is_brought_before_its_condition(place.whole.owner(), positions.at(part->owner),
                                             positions);
    });
    return places;
  }
  std::size_t n_steps() const { return plan_.steps.size(); }
  // True if the value was really found in its intended slice.
  bool keeps(const VariableNode* part) const { return kept_places_.contains(part); }
  std::size_t n_places() const { return places_.size(); }
  bool is_strided(const VariableNode* part) const {
    return !plan_.slots[at(slots_.at(part))].layout.is_dense();
  }

 private:
  int step() const { return static_cast<int>(plan_.steps.size()); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  int new_buffer(BufferKind kind, int index, index_t bytes, std::string name) {
    plan_.buffers.push_back({kind, index, bytes, 0, 0, 0, std::move(name)});
    branch_of_.push_back(-1);
    makers_.emplace_back();
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  int new_slot(const Variable& v, int buffer, Layout layout, int part = -1) {
    plan_.slots.push_back({buffer, std::move(layout), part});
    const int slot = static_cast<int>(plan_.slots.size()) - 1;
    slots_[v.node()] = slot;
    return slot;
  }
  PlannedBuffer& buffer_of(int slot) { return plan_.buffers[at(plan_.slots[at(slot)].buffer)]; }

  void bind_inputs() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const bool argument = i < request_.n_arguments;
      const Layout& layout = request_.input_layouts[i];
      const int buffer =
          new_buffer(argument ? BufferKind::argument : BufferKind::container,
                     static_cast<int>(argument ? i : i - request_.n_arguments),
                     byte_count(layout.extents, layout.dtype), graph_.inputs()[i].name());
      new_slot(graph_.inputs()[i], buffer, layout);
    }
  }

  int slot_of(const Variable& v) {
    const auto it = slots_.find(v.node());
    if (it != slots_.end()) return it->second;
    if (!v.is_constant()) {
      throw InternalError("[plan] " + v.str() + " is used before it is computed");
    }
    const Tensor& value = v.node()->value;
    const int buffer = new_buffer(BufferKind::constant, static_cast<int>(plan_.constants.size()),
                                  value.nbytes(), v.name());
    plan_.constants.push_back(v);
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
    plan_.saved_by_view_bytes += byte_count(layout->extents, layout->dtype);
    new_slot(node.output(at(output)), source.buffer, std::move(*layout), source.part);
    note_writer(source.buffer, node);
    return true;
  }

  index_t library_bytes(const PlannedStep& planned) const {
    if (planned.loop) return planned.loop->body.external_bytes;
    const auto* op = dynamic_cast<const ops::HasLibraryMemory*>(&planned.node.op());
    if (!op) return 0;
    const auto layouts = [&](std::span<const int> slots) {
      std::vector<Layout> result;
      for (int slot : slots) result.push_back(plan_.slots[at(slot)].layout);
      return result;
    };
    return static_cast<index_t>(
        op->library_bytes(planned.node, layouts(planned.inputs), layouts(planned.outputs)));
  }

  // -- parts of joined values ------------------------------------------------------------------

  using Positions = std::unordered_map<const ApplyNode*, std::size_t>;
  Positions positions_in_order() const {
    Positions positions;
    for (std::size_t i = 0; i < order_.size(); ++i) positions[order_[i].node()] = i;
    return positions;
  }

  // True if a step of a branch would come before the condition of that branch is computed.
  bool is_brought_before_its_condition(const Apply& step, std::size_t position,
                                       const Positions& positions) const {
    for (int b = branches_.of(step); b >= 0; b = branches_[b].parent) {
      const Apply owner = branches_[b].condition.owner();
      if (owner.defined() && positions.at(owner.node()) >= position) return true;
    }
    return false;
  }

  // An array that parts are computed in is filled before the first of them.
  void bring_forward() {
    const Positions positions = positions_in_order();
    std::unordered_map<const ApplyNode*, std::size_t> first_parts;  // by filling step
    for (const auto& [part, place] : places_) {
      const ApplyNode* const filler = place.whole.owner().node();
      if (filler == place.node.node()) continue;
      const std::size_t position = positions.at(part->owner);
      std::size_t& first = first_parts.try_emplace(filler, position).first->second;
      first = std::min(first, position);
    }
    if (first_parts.empty()) return;
    // A step that is brought forward comes right before the step at its new position.
    using Key = std::pair<std::size_t, bool>;
    std::vector<std::pair<Key, Apply>> moved;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto it = first_parts.find(order_[i].node());
      const bool is_early = it != first_parts.end() && it->second < i;
      moved.emplace_back(is_early ? Key(it->second, false) : Key(i, true), order_[i]);
    }
    std::stable_sort(moved.begin(), moved.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = std::move(moved[i].second);
  }

  // A new value of a step: in a buffer of its own, or in the slice of the one that it goes into.
  void new_value(const Variable& v, Layout layout, std::string name) {
    const Apply owner = v.owner();
    const auto it = places_.find(v.node());
    if (it != places_.end()) {
      const PartPlace& place = it->second;
      if (!slots_.contains(place.whole.node())) {
        new_value(place.whole, place.whole_layout,
                  label(place.whole.owner(), at(place.whole.index())));
      }
      const Slot whole = plan_.slots[at(slot_of(place.whole))];
      const auto slice =
          slice_for(place.node, place.input, whole.layout, place.value.extents, place.start);
      if (auto own = slice ? layout_in(place, *slice) : std::nullopt) {
        plan_.parts.push_back({whole.buffer, whole.part});
        note_writer(whole.buffer, owner);
        new_slot(v, whole.buffer, std::move(*own), static_cast<int>(plan_.parts.size()) - 1);
        return;
      }
    }
    const index_t bytes = byte_count(layout.extents, layout.dtype);
    const int buffer = new_buffer(BufferKind::arena, 0, bytes, std::move(name));
    makers_[at(buffer)] = v;
    branch_of_[at(buffer)] = branches_.of(owner);
    new_slot(v, buffer, std::move(layout));
  }

  // Takes note of the inputs that lie in their slices already. True if nothing is left to do.
  bool has_all_parts(const PlannedStep& planned, std::span<const Extents> extents) {
    if (places_.empty()) return false;
    const std::vector<index_t> starts = starts_of(planned.node, extents);
    if (starts.empty()) return false;
    const Slot result = plan_.slots[at(slot_of(planned.node.output(0)))];
    bool all = true, any = false;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      const auto slice = slice_for(planned.node, i, result.layout, extents[i], starts[i]);
      if (!slice) continue;
      const Slot& value = plan_.slots[at(planned.inputs[i])];
      any = true;
      if (value.buffer != result.buffer || !are_same_bytes(value.layout, *slice)) {
        all = false;
        continue;
      }
      plan_.saved_by_join_bytes += bytes_of(value);
      const auto part = part_at_.find({planned.node.node(), i});
      if (part != part_at_.end()) kept_places_.insert(part->second);
    }
    return any && all;
  }

  // A shape error in a branch counts only when the branch is taken.
  std::vector<Extents> inferred(const Apply& node, std::span<const Extents> inputs) const try {
    return inferred_shapes(node, inputs);
  } catch (Error& error) {
    const bool is_certain = branches_.of(node) < 0 && !branches_.may_be_idle(node);
    if (dynamic_cast<const ShapeError*>(&error) && !is_certain) {
      throw RunTimeExtents{node.op().name()};
    }
    error.add_note(describe_node(node, inputs));
    throw;
  }

  static void check_known(const Apply& node, const std::vector<Extents>& extents) {
    for (const Extents& of_output : extents) {
      if (!is_known(of_output)) throw RunTimeExtents{node.op().name()};
    }
  }

  void add_step(const Apply& node) {
    std::vector<Extents> input_extents;
    std::vector<Layout> input_layouts;
    PlannedStep planned{node};
    for (const Variable& v : node.inputs()) {
      planned.inputs.push_back(slot_of(v));
      input_layouts.push_back(plan_.slots[at(planned.inputs.back())].layout);
      input_extents.push_back(input_layouts.back().extents);
    }
    const std::vector<Extents> extents = inferred(node, input_extents);
    check_known(node, extents);
    const AliasMap views = node.op().view_map(node), destroys = node.op().destroy_map(node);
    bool runs = dynamic_cast<const ops::PassThrough*>(&node.op()) != nullptr;
    if (const auto* choice = dynamic_cast<const ops::IfElse*>(&node.op())) {
      if (!place_choice(*choice, planned, extents)) return;
      return push_step(std::move(planned), 0);
    }
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      const int output = static_cast<int>(k);
      if (try_view(node, output, views)) continue;
      runs = true;
      const auto destroyed = destroys.find(output);
      if (destroyed != destroys.end()) {
        planned.in_place_bytes += overwrite(node, output, *destroyed->second.begin());
      } else {
        Layout layout = Layout::dense(node.output(k).dtype(), extents[k]);
        planned.new_bytes += byte_count(layout.extents, layout.dtype);
        // It is there already when one of its parts was computed.
        if (slots_.contains(node.output(k).node())) continue;
        new_value(node.output(k), std::move(layout), label(node, k));
      }
    }
    if (!runs || has_all_parts(planned, input_extents)) return;
    std::size_t scratch = node.op().scratch_bytes(node, input_layouts);
    if (dynamic_cast<const ops::Loop*>(&node.op())) {
      planned.loop = loops_.find_or_make(node, input_layouts, devices_of_inputs(planned));
      if (!planned.loop->body.run_time_extents.empty()) throw RunTimeExtents{node.op().name()};
      scratch = static_cast<std::size_t>(planned.loop->scratch_bytes.on_device);
    }
    push_step(std::move(planned), scratch);
  }

  // Adds a step. Its inputs exist, and its outputs have slots.
  void push_step(PlannedStep planned, std::size_t scratch) {
    for (const Variable& v : planned.node.outputs()) planned.outputs.push_back(slot_of(v));
    for (const auto* const slots : {&planned.inputs, &planned.outputs}) {
      for (int slot : *slots) {
        planned.work = std::max(planned.work, element_count(plan_.slots[at(slot)].layout.extents));
      }
    }
    planned.guard = guard_of(branches_.of(planned.node));
    planned.new_bytes += static_cast<index_t>(scratch);
    plan_.saved_by_inplace_bytes += planned.in_place_bytes;
    const auto new_scratch = [&](index_t bytes) {
      return new_buffer(BufferKind::arena, 0, bytes, "scratch of " + planned.node.op().name());
    };
    if (scratch > 0 || (knows_devices() && needs_device_step(planned))) {
      planned.scratch = new_scratch(static_cast<index_t>(scratch));
    }
    if (planned.loop && planned.loop->scratch_bytes.on_host > 0) {
      planned.host_scratch = new_scratch(planned.loop->scratch_bytes.on_host);
      planned.new_bytes += planned.loop->scratch_bytes.on_host;
    }
    plan_.steps.push_back(std::move(planned));
  }

  // Steps on accelerators become launches of kernels, or run on the host: then their scratch has
  // room for copies of their operands.
  void prepare_device_steps() {
    for (PlannedStep& planned : plan_.steps) {
      if (!needs_device_step(planned)) continue;
      PlannedBuffer& scratch = plan_.buffers[at(planned.scratch)];
      index_t bytes = 0;
      if (auto launches = lowered(planned)) {
        bytes = launches->scratch_bytes;
        planned.on_device = std::make_shared<DeviceStep>(std::move(*launches));
      } else {
        auto made = std::make_shared<HostStep>(make_host_step(plan_, planned, scratch.bytes));
        bytes = made->scratch_bytes;
        scratch.name = "host copies for " + planned.node.op().name();
        planned.on_host = std::move(made);
      }
      planned.new_bytes += bytes - scratch.bytes;
      scratch.bytes = bytes;
    }
  }
  // The launches of a step on one accelerator, if there are kernels for it.
  std::optional<DeviceStep> lowered(const PlannedStep& planned) const {
    const Device device = planned.node.output(0).type().device;
    if (device.is_host() || planned.loop) return std::nullopt;
    LowerRequest request{planned.node, {}, {}, {}, {}, {}, backend_of(device).facts()};
    if (!request.facts.has_float64) refuse_float64(plan_, planned);
    std::vector<Layout> inputs, outputs;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      const Slot& slot = plan_.slots[at(planned.inputs[i])];
      const bool on_host = is_on_host(planned.node.input(i), slot);
      if (!on_host && planned.node.input(i).type().device != device) return std::nullopt;
      inputs.push_back(slot.layout);
      request.input_buffers.push_back(slot.buffer);
      request.on_host.push_back(on_host);
    }
    for (const int output : planned.outputs) {
      const Slot& slot = plan_.slots[at(output)];
      outputs.push_back(slot.layout);
      request.output_buffers.push_back(slot.buffer);
    }
    request.inputs = inputs;
    request.outputs = outputs;
    return lower_step(request);
  }
  // Constants are on the host, and so are views of them.
  bool is_on_host(const Variable& v, const Slot& slot) const {
    const bool is_constant = plan_.buffers[at(slot.buffer)].kind == BufferKind::constant;
    return is_constant || v.type().device.is_host();
  }
  // False for a loop that runs on the accelerator: the steps of its body do.
  static bool needs_device_step(const PlannedStep& planned) {
    if (planned.loop && !planned.loop->device.is_host()) return false;
    return is_on_accelerator(planned) &&
           dynamic_cast<const ops::ToDevice*>(&planned.node.op()) == nullptr;
  }
  // In the body of a loop on the host all operands are there.
  bool knows_devices() const { return request_.body != PlanRequest::Body::on_host; }
  std::vector<Device> devices_of_inputs(const PlannedStep& planned) const {
    std::vector<Device> devices;
    if (!knows_devices()) return devices;
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      const Variable& v = planned.node.input(i);
      const bool on_host = is_on_host(v, plan_.slots[at(planned.inputs[i])]);
      devices.push_back(on_host ? Device{} : v.type().device);
    }
    return devices;
  }

  // -- branches --------------------------------------------------------------------------------

  // Guards of outer branches come before those of inner ones.
  int guard_of(int branch) {
    std::vector<int> missing;  // innermost first
    for (; branch >= 0 && !guards_.contains(branch); branch = branches_[branch].parent) {
      missing.push_back(branch);
    }
    int guard = branch < 0 ? -1 : guards_.at(branch);
    for (auto b = missing.rbegin(); b != missing.rend(); ++b) {
      const int condition = slot_of(branches_[*b].condition);
      plan_.guards.push_back({condition, branches_[*b].when, guard});
      guard = guards_[*b] = static_cast<int>(plan_.guards.size()) - 1;
    }
    return guard;
  }

  void note_writer(int buffer, const Apply& node) {
    branch_of_[at(buffer)] = branches_.around(branch_of_[at(buffer)], branches_.of(node));
  }

  // The buffer of a value that only this branch needs and that is all of its buffer; -1 if none.
  int buffer_within(const Apply& choice, bool when, int slot) {
    const int branch = branches_.find(choice, when);
    const Slot& value = plan_.slots[at(slot)];
    const PlannedBuffer& buffer = plan_.buffers[at(value.buffer)];
    if (branch < 0 || buffer.kind != BufferKind::arena) return -1;
    if (!branches_.is_within(branch_of_[at(value.buffer)], branch)) return -1;
    const bool is_all =
        value.layout.is_dense() && value.layout.byte_offset == 0 && bytes_of(value) == buffer.bytes;
    return is_all ? value.buffer : -1;
  }

  // Places both values of an output in its buffer, where no other value needs that memory: at most
  // one of them is computed. False if the op has nothing to do when it runs.
  bool place_choice(const ops::IfElse& op, const PlannedStep& planned,
                    const std::vector<Extents>& extents) {
    const Apply& node = planned.node;
    bool runs = false;
    for (std::size_t k = 0; k < op.count(); ++k) {
      const int a = buffer_within(node, true, planned.inputs[op.then_input(k)]);
      const int b = buffer_within(node, false, planned.inputs[op.else_input(k)]);
      Layout layout = Layout::dense(node.output(k).dtype(), extents[k]);
      int buffer = a >= 0 ? a : b;
      if (buffer < 0) {
        const index_t bytes = byte_count(layout.extents, layout.dtype);
        buffer = new_buffer(BufferKind::arena, 0, bytes, label(node, k));
      }
      if (a >= 0 && b >= 0) {
        unite(a, b);
      } else {
        runs = true;
      }
      branch_of_[at(buffer)] = branches_.of(node);
      new_slot(node.output(k), buffer, std::move(layout));
    }
    return runs;
  }

  void unite(int kept, int other) {
    for (Slot& slot : plan_.slots) {
      if (slot.buffer == other) slot.buffer = kept;
    }
    for (BufferPart& part : plan_.parts) {
      if (part.buffer == other) part.buffer = kept;
    }
    makers_[at(kept)] = makers_[at(other)] = {};
    PlannedBuffer &into = plan_.buffers[at(kept)], &from = plan_.buffers[at(other)];
    into.bytes = std::max(into.bytes, from.bytes);
    from.bytes = 0;
  }

  index_t overwrite(const Apply& node, int output, int input) {
    const Slot target = plan_.slots[at(slot_of(node.input(at(input))))];
    Layout layout = target.layout;
    layout.dtype = node.output(at(output)).dtype();
    const index_t bytes = byte_count(layout.extents, layout.dtype);
    new_slot(node.output(at(output)), target.buffer, std::move(layout), target.part);
    note_writer(target.buffer, node);
    return bytes;
  }

  static std::string label(const Apply& node, std::size_t k) {
    const Variable v = node.output(k);
    return v.name().empty() ? node.op().name() : v.name();
  }

  static index_t bytes_of(const Slot& slot) {
    return byte_count(slot.layout.extents, slot.layout.dtype);
  }

  // Decides who takes each buffer over, in this order: containers whose new value lies in their own
  // memory; containers that take over the old memory of another one; results, the borrowed ones
  // last; the other updates. Later ones get a lazy clone.
  void deliver() {
    const std::size_t n_updates = request_.updated.size();
    results_.resize(request_.n_results);
    updates_.resize(n_updates);
    std::vector<int> slots;
    for (const Variable& v : graph_.outputs()) {
      slots.push_back(slot_of(v));
    }
    is_updated_.assign(graph_.inputs().size(), false);
    for (int container : request_.updated) {
      if (at(container) < is_updated_.size()) is_updated_[at(container)] = true;
    }
    is_taken_.assign(plan_.buffers.size(), false);
    is_kept_.assign(plan_.buffers.size(), false);
    for (int slot : slots) is_kept_[at(plan_.slots[at(slot)].buffer)] = true;
    const int* update_slots = slots.data() + request_.n_results;
    for (std::size_t u = 0; u < n_updates; ++u) keep_in_place(u, update_slots[u]);
    for (std::size_t u = 0; u < n_updates; ++u) move_container(u, update_slots[u]);
    for (const bool borrowed : {false, true}) {
      for (std::size_t i = 0; i < request_.n_results; ++i) {
        if (request_.borrowed[i] == borrowed) results_[i] = handover_of_result(i, slots[i]);
      }
    }
    for (std::size_t u = 0; u < n_updates; ++u) {
      if (!updates_[u]) updates_[u] = handover_of_update(u, update_slots[u]);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const bool is_result = i < request_.n_results;
      const Delivery delivery{slots[i],
                              is_result ? *results_[i] : *updates_[i - results_.size()],
                              {},
                              graph_.outputs()[i].type().device};
      if (delivery.how == Handover::compact) {
        plan_.output_bytes += bytes_of(plan_.slots[at(delivery.slot)]);
      }
      (is_result ? plan_.outputs : plan_.updates).push_back(delivery);
    }
  }

  // A view of less than half of its buffer is copied out, so that a small result never keeps a big
  // buffer alive.
  bool is_small_view(int slot) {
    return 2 * bytes_of(plan_.slots[at(slot)]) < buffer_of(slot).bytes;
  }
  // A container's elements must not overlap one another: they are to be written.
  bool is_storable(int slot) {
    return !is_small_view(slot) && !may_overlap_itself(plan_.slots[at(slot)].layout);
  }
  bool is_taken(int slot) const { return is_taken_[at(plan_.slots[at(slot)].buffer)]; }
  Handover take(int slot, Handover how = Handover::own) {
    is_taken_[at(plan_.slots[at(slot)].buffer)] = true;
    return how;
  }
  bool is_updated(int container) const { return is_updated_[at(container)]; }

  void keep_in_place(std::size_t u, int slot) {
    const PlannedBuffer& buffer = buffer_of(slot);
    if (buffer.kind != BufferKind::container || buffer.index != request_.updated[u]) return;
    if (is_storable(slot)) updates_[u] = take(slot, Handover::keep);
  }

  void move_container(std::size_t u, int slot) {
    const PlannedBuffer& buffer = buffer_of(slot);
    if (updates_[u] || buffer.kind != BufferKind::container || !is_updated(buffer.index)) return;
    if (is_storable(slot) && !is_taken(slot)) updates_[u] = take(slot);
  }

  Handover handover_of_result(std::size_t i, int slot) {
    PlannedBuffer& buffer = buffer_of(slot);
    const bool borrowed = request_.borrowed[i], small = is_small_view(slot);
    switch (buffer.kind) {
      case BufferKind::argument: {
        const bool overwritten = request_.overwritten[at(buffer.index)];
        if (borrowed && (overwritten || request_.argument_is_lent[at(buffer.index)])) {
          return Handover::borrow;
        }
        return small && !overwritten ? Handover::compact : Handover::clone;
      }
      case BufferKind::container:
        if (!is_updated(buffer.index) && borrowed) return Handover::borrow;
        if (small) return Handover::compact;
        return is_updated(buffer.index) && !is_taken(slot) ? take(slot) : Handover::clone;
      case BufferKind::constant:
        return is_on_its_device(i) ? Handover::clone : Handover::compact;
      case BufferKind::arena:
        if (borrowed) return take(slot, Handover::borrow);
        if (small) return Handover::compact;
        buffer.kind = BufferKind::output;
        buffer.index = static_cast<int>(i);
        plan_.output_bytes += buffer.bytes;
        return take(slot);
      case BufferKind::output:
      case BufferKind::update:
        return small ? Handover::compact : Handover::clone;
    }
    throw InternalError("[plan] not a kind of buffer");
  }

  // False for a constant of an accelerator, which is on the host.
  bool is_on_its_device(std::size_t output) const {
    const Variable& v = graph_.outputs()[output];
    const Slot& slot = plan_.slots[at(slots_.at(v.node()))];
    const bool is_constant = plan_.buffers[at(slot.buffer)].kind == BufferKind::constant;
    return !is_constant || v.type().device.is_host();
  }

  Handover handover_of_update(std::size_t u, int slot) {
    PlannedBuffer& buffer = buffer_of(slot);
    if (!is_storable(slot) || !is_on_its_device(request_.n_results + u)) return Handover::compact;
    if (buffer.kind != BufferKind::arena) return Handover::clone;
    if (is_taken(slot)) return Handover::compact;  // a borrowed result stays in the arena
    buffer.kind = BufferKind::update;
    buffer.index = static_cast<int>(u);
    plan_.update_bytes += buffer.bytes;
    return take(slot);
  }

  // The copies that only the state of a call can force.
  void bound_entry_copies() {
    for (const PlannedBuffer& buffer : plan_.buffers) {
      const bool argument = buffer.kind == BufferKind::argument;
      if (!argument && buffer.kind != BufferKind::container) continue;
      const std::size_t input = at(buffer.index) + (argument ? 0 : request_.n_arguments);
      if (request_.overwritten[input]) plan_.entry_copy_bytes += buffer.bytes;
    }
    const auto add = [&](const Delivery& delivery) {
      const BufferKind kind = buffer_of(delivery.slot).kind;
      if (delivery.how != Handover::clone) return;
      if (kind == BufferKind::argument || kind == BufferKind::container) {
        plan_.entry_copy_bytes += bytes_of(plan_.slots[at(delivery.slot)]);
      }
    };
    for (const Delivery& delivery : plan_.outputs) add(delivery);
    for (const Delivery& delivery : plan_.updates) add(delivery);
  }

  const PlanRequest& request_;
  LoopPlans& loops_;
  const FunctionGraph& graph_;
  std::vector<Apply> order_;
  Branches branches_;
  Plan plan_;
  std::unordered_map<int, int> guards_;  // of branches
  std::vector<int> branch_of_;           // per buffer: the branch that all its writers are within
  std::vector<Variable> makers_;         // per buffer: the variable of a new value
  PartPlaces places_;
  std::map<std::pair<const ApplyNode*, std::size_t>, const VariableNode*> part_at_;  // of an input
  std::unordered_set<const VariableNode*> kept_places_;
  std::unordered_map<const VariableNode*, int> slots_;
  std::vector<std::optional<Handover>> results_, updates_;
  std::vector<bool> is_kept_;     // per buffer: is it looked at when the last step is done?
  std::vector<bool> is_updated_;  // per container that is an input: has it a new value?
  std::vector<bool> is_taken_;    // per buffer: has it an owner outside of the frame?
};

// The plan with inputs of joins in their places, if that takes no more memory.
Plan best_plan(const PlanRequest& request) {
  LoopPlans loops;
  Planner plain(request, loops);
  plain.lay_out();
  PartPlaces places = request.places_joins ? plain.part_places() : PartPlaces();
  const std::size_t n_steps = plain.n_steps();
  Plan plan = plain.finish();
  while (!places.empty()) {
    Planner placed(request, loops, places);
    placed.lay_out();
    std::erase_if(places, [&](const auto& entry) { return !placed.keeps(entry.first); });
    if (placed.n_places() > places.size()) continue;
    if (placed.n_steps() > n_steps) {
      // Strides that some view does not work on: a copy was needed.
      std::erase_if(places, [&](const auto& entry) { return placed.is_strided(entry.first); });
      if (placed.n_places() > places.size()) continue;
    }
    Plan other = placed.finish();
    return other.serial_peak_bytes <= plan.serial_peak_bytes ? std::move(other) : std::move(plan);
  }
  return plan;
}

}  // namespace

Plan make_plan(const PlanRequest& request) {
  try {
    Plan plan = best_plan(request);
    if (request.body != PlanRequest::Body::on_host) separate_devices(plan, request);
    return plan;
  } catch (const RunTimeExtents& found) {
    Plan plan;
    plan.run_time_extents = found.op;
    return plan;
  }
}

}  // namespace palimpsest
