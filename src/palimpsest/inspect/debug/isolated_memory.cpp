// SPDX-License-Identifier: Apache-2.0
// A run of an isolated step: its memory, the execution, and the changes found in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/inspect/debug/byte_sets.hpp"
#include "palimpsest/inspect/debug/isolated_step.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/loop_frame.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kScratchAlignment = 64;

bool is_declared(const AliasMap& map, std::size_t output, std::size_t input) {
  const auto it = map.find(static_cast<int>(output));
  return it != map.end() && it->second.contains(static_cast<int>(input));
}

const char* verb_of(MemoryFault::Kind kind) {
  return kind == MemoryFault::Kind::read    ? "read"
         : kind == MemoryFault::Kind::write ? "wrote"
                                            : "read or wrote";
}

}  // namespace

// Buffers: the inputs, then the results (of no bytes where a result lies in an input), then
// scratch.
struct IsolatedStep::Memory {
  Memory(const IsolatedStep& step, const RunSetup& setup)
      : pages(step.requests(setup), setup.side, step.options_.guard_pages != "off") {
    const std::size_t n = step.context_.inputs.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Layout& layout = step.context_.layouts[i];
      std::byte* const first = pages.data(i) + span_of(layout).first;
      inputs.push_back(view_at(first, layout));
      writable_inputs.push_back(view_at(first, layout));
    }
    for (std::size_t k = 0; k < step.out_layouts_.size(); ++k) {
      destinations.push_back(setup.destinations.empty() ? Destination{step.out_layouts_[k], 0}
                                                        : setup.destinations[k]);
    }
    for (std::size_t k = 0; k < destinations.size(); ++k) {
      if (step.overwrites_[k] >= 0) {
        outputs.push_back(writable_inputs[at(step.overwrites_[k])]);
        outputs.back().dtype = step.out_layouts_[k].dtype;
        continue;
      }
      const auto& [layout, lead] = destinations[k];
      outputs.push_back(view_at(pages.data(n + k) + lead + span_of(layout).first, layout));
    }
  }

  GuardedMemory pages;
  std::vector<ConstView> inputs;
  std::vector<MutableView> writable_inputs;
  std::vector<Destination> destinations;  // per result
  std::vector<MutableView> outputs;
  std::vector<std::vector<std::byte>> before;  // of the inputs' spans
  std::vector<std::pair<std::size_t, ConstView>> set;
};

std::vector<GuardedMemory::Request> IsolatedStep::requests(const RunSetup& setup) const {
  std::vector<GuardedMemory::Request> list;
  for (const Layout& layout : context_.layouts) {
    list.push_back({span_of(layout).bytes, item_size(layout.dtype)});
  }
  for (std::size_t k = 0; k < out_layouts_.size(); ++k) {
    const Destination destination =
        setup.destinations.empty() ? Destination{out_layouts_[k], 0} : setup.destinations[k];
    const std::size_t bytes = overwrites_[k] >= 0 ? 0
                                                  : span_of(destination.layout).bytes +
                                                        static_cast<std::size_t>(destination.lead);
    list.push_back({bytes, item_size(destination.layout.dtype)});
  }
  list.push_back({scratch_bytes_, kScratchAlignment});
  return list;
}

void IsolatedStep::fill(Memory& memory, const RunSetup& setup) const {
  const auto set_all = [&](std::size_t buffer, std::byte value) {
    std::memset(memory.pages.data(buffer), static_cast<int>(value), memory.pages.bytes(buffer));
  };
  const std::size_t n = context_.inputs.size();
  for (std::size_t i = 0; i < n; ++i) {
    set_all(i, setup.poison);
    context_.inputs[i].write(memory.writable_inputs[i]);
    const std::byte* const data = memory.pages.data(i);
    memory.before.emplace_back(data, data + memory.pages.bytes(i));
    if (!is_overwritten(i)) memory.pages.set_read_only(i);
  }
  for (std::size_t k = 0; k < memory.outputs.size(); ++k) {
    set_all(n + k, setup.poison);
    if (!setup.previous.empty() && overwrites_[k] < 0) setup.previous[k].write(memory.outputs[k]);
  }
  set_all(n + memory.outputs.size(), setup.poison);
}

RunOutcome IsolatedStep::run(const RunSetup& setup) const {
  Memory memory(*this, setup);
  RunOutcome outcome;
  fill(memory, setup);
  execute(memory, setup, outcome);
  check_faults(memory, setup);
  check_inputs(memory, setup, outcome);
  check_gaps(memory, setup);
  if (outcome.error) return outcome;
  check_maps(memory, setup, outcome);
  for (std::size_t k = 0; k < memory.outputs.size(); ++k) {
    ConstView where = memory.outputs[k];
    for (const auto& [output, view] : memory.set) {
      if (output == k) where = view;
    }
    outcome.outputs.push_back(DebugValue::read(where));
  }
  return outcome;
}

void IsolatedStep::execute(Memory& memory, const RunSetup& setup, RunOutcome& outcome) const {
  const std::size_t scratch = context_.inputs.size() + memory.outputs.size();
  RunContext context(memory.inputs, memory.outputs,
                     {memory.pages.data(scratch), memory.pages.bytes(scratch)});
  std::optional<LoopFrame> loop;
  std::vector<Tensor> dense;  // a loop writes its rows one after the other
  std::vector<MutableView> dense_views;
  if (loop_) {
    loop.emplace(*loop_, Device{});
    for (const MutableView& out : memory.outputs) {
      dense.push_back(Tensor::empty(Extents(out.extents.begin(), out.extents.end()), out.dtype));
    }
    for (Tensor& t : dense) dense_views.push_back(t.mutable_view());
  }
  memory.pages.start();
  try {
    run_with_threads(setup.label.threads, [&] {
      if (loop) {
        loop->run(RunContext(memory.inputs, dense_views,
                             {memory.pages.data(scratch), memory.pages.bytes(scratch)}));
        for (std::size_t k = 0; k < dense.size(); ++k) {
          strided_copy(dense_views[k], memory.outputs[k]);
        }
      } else {
        op_.run(context);
      }
    });
  } catch (...) {
    outcome.error = std::current_exception();
  }
  memory.pages.stop();
  outcome.is_set.assign(memory.outputs.size(), false);
  for (const auto& [output, view] : context.set_outputs()) {
    outcome.is_set[output] = true;
    memory.set.emplace_back(output, view);
  }
}

std::string IsolatedStep::buffer_name(std::size_t buffer) const {
  const std::size_t n = context_.inputs.size();
  if (buffer < n) return "input " + std::to_string(buffer);
  if (buffer < n + out_layouts_.size())
    return "the destination of output " + std::to_string(buffer - n);
  return "the scratch";
}

void throw_stale_access(const MemoryFault& fault, const StepContext& context,
                        const RunLabel* label) {
  throw BadAccess(DebugMessage("BadAccess", context)
                      .line(fmt::format("stale address: it {} address {}, where no memory of this "
                                        "run lies",
                                        verb_of(fault.kind), fault.address))
                      .finish(label,
                              "Keep no address from one run to the next: inputs, outputs and "
                              "scratch lie elsewhere each time."),
                  {context.reason, context.node, {}, -1, -1});
}

void IsolatedStep::throw_access(const MemoryFault& fault, const Memory& memory,
                                const RunSetup& setup, std::string_view what) const {
  const auto size = static_cast<index_t>(memory.pages.bytes(fault.buffer));
  const std::string where = fault.offset < 0 ? fmt::format("{} bytes before", -fault.offset)
                            : fault.offset >= size
                                ? fmt::format("{} bytes behind the end of", fault.offset - size)
                                : fmt::format("at byte {}, between the elements, of", fault.offset);
  const char* const kind = verb_of(fault.kind);
  const std::size_t n = context_.inputs.size();
  const bool is_input = fault.buffer < n;
  const bool is_output = !is_input && fault.buffer < n + out_layouts_.size();
  throw BadAccess(DebugMessage("BadAccess", context_)
                      .line(fmt::format("{}: {} {} {} ({} bytes), address {}", what, kind, where,
                                        buffer_name(fault.buffer), size, fault.address))
                      .finish(&setup.label,
                              "Touch inputs, outputs and scratch only, by their strides; ask for "
                              "all the scratch that is used."),
                  {context_.reason,
                   context_.node,
                   {},
                   is_input ? static_cast<int>(fault.buffer) : -1,
                   is_output ? static_cast<int>(fault.buffer - n) : -1});
}

void IsolatedStep::check_faults(const Memory& memory, const RunSetup& setup) const {
  for (const MemoryFault& fault : memory.pages.faults()) {
    if (fault.is_stale) throw_stale_access(fault, context_, &setup.label);
    const bool inside =
        fault.offset >= 0 && fault.offset < static_cast<index_t>(memory.pages.bytes(fault.buffer));
    if (!inside) throw_access(fault, memory, setup, "guard page");
    // The only pages of a buffer that are watched are those of inputs that must not be written.
    const int input = static_cast<int>(fault.buffer);
    const std::byte old = memory.before[fault.buffer][static_cast<std::size_t>(fault.offset)];
    throw BadDestroyMap(
        DebugMessage("BadDestroyMap", context_)
            .line(fmt::format("input {} {} was written at byte {} (of {}), where {:#04x} was",
                              input, context_.node.input(fault.buffer).str(), fault.offset,
                              memory.pages.bytes(fault.buffer), static_cast<int>(old)))
            .line("destroy map: " + text_of(destroys_) +
                  ", destroyed inputs: " + text_of(overwritten_))
            .finish(&setup.label,
                    "Declare it in destroy_map or destroyed_inputs, or do not write "
                    "it, not even to put the old value back."),
        {context_.reason, context_.node, context_.node.input(fault.buffer), input, -1});
  }
  for (const MemoryFault& fault : memory.pages.changed_zones()) {
    throw_access(fault, memory, setup, "guard zone changed");
  }
}

void IsolatedStep::check_inputs(Memory& memory, const RunSetup& setup, RunOutcome& outcome) const {
  outcome.is_changed.assign(context_.inputs.size(), false);
  for (std::size_t i = 0; i < context_.inputs.size(); ++i) {
    const std::vector<std::byte>& before = memory.before[i];
    const std::byte* const now = memory.pages.data(i);
    if (before.empty() || std::memcmp(now, before.data(), before.size()) == 0) continue;
    outcome.is_changed[i] = true;
    if (is_overwritten(i)) {
      check_region(memory, setup, i);
      continue;
    }
    const auto [old, changed] = std::mismatch(before.begin(), before.end(), now);
    throw BadDestroyMap(
        DebugMessage("BadDestroyMap", context_)
            .line(fmt::format("input {} {} was changed from byte {} on (of {}): {:#04x} to {:#04x}",
                              i, context_.node.input(i).str(), old - before.begin(), before.size(),
                              static_cast<int>(*old), static_cast<int>(*changed)))
            .value("value now", DebugValue::read(memory.inputs[i]))
            .line("destroy map: " + text_of(destroys_) +
                  ", destroyed inputs: " + text_of(overwritten_))
            .finish(&setup.label, "Declare it in destroy_map or destroyed_inputs."),
        {context_.reason, context_.node, context_.node.input(i), static_cast<int>(i), -1});
  }
}

// Checks that only the declared region of an overwritten input has changed.
void IsolatedStep::check_region(const Memory& memory, const RunSetup& setup,
                                std::size_t input) const {
  const Layout& layout = context_.layouts[input];
  const std::size_t item = item_size(layout.dtype);
  const std::vector<std::byte>& before = memory.before[input];
  const std::byte* const now = memory.pages.data(input);
  const ByteMask elements = mask_of(layout);
  for (std::size_t b = 0; b < before.size(); ++b) {
    if (now[b] == before[b] || elements[b]) continue;
    throw_access({input, static_cast<index_t>(b), MemoryFault::Kind::write, now + b}, memory, setup,
                 "memory between elements changed");
  }
  const Region region = op_.write_region(context_.node, static_cast<int>(input));
  if (region.is_whole() || region.is_unknown()) return;
  const DebugValue after = DebugValue::read(memory.inputs[input]);
  const DebugValue& old = context_.inputs[input];
  const TensorType type{layout.dtype, layout.extents, {}};
  for (std::size_t e = 0; e * item < after.bytes(); ++e) {
    const std::size_t byte = e * item;
    if (std::memcmp(after.data() + byte, old.data() + byte, item) == 0) continue;
    if (holds(region, type, static_cast<index_t>(byte), static_cast<index_t>(item))) continue;
    throw BadDestroyMap(
        DebugMessage("BadDestroyMap", context_)
            .line(fmt::format("input {} {} was changed outside of the declared region, in bytes "
                              "{}..{} of its row-major elements",
                              input, context_.node.input(input).str(), byte, byte + item - 1))
            .line("write region: " + region.str())
            .line("destroy map: " + text_of(destroys_))
            .value("value now", after)
            .finish(&setup.label, "write_region must hold every byte that the op may write."),
        {context_.reason, context_.node, context_.node.input(input), static_cast<int>(input), -1});
  }
}

// The gaps between the elements of strided destinations belong to other values.
void IsolatedStep::check_gaps(const Memory& memory, const RunSetup& setup) const {
  const std::size_t n = context_.inputs.size();
  for (std::size_t k = 0; k < memory.outputs.size(); ++k) {
    if (overwrites_[k] >= 0) continue;
    const Destination& destination = memory.destinations[k];
    if (destination.lead == 0 && destination.layout.is_dense()) continue;
    const ByteMask elements = mask_of(destination.layout);
    const std::byte* const data = memory.pages.data(n + k);
    for (std::size_t b = 0; b < memory.pages.bytes(n + k); ++b) {
      const index_t in_span = static_cast<index_t>(b) - destination.lead;
      if (in_span >= 0 && elements[static_cast<std::size_t>(in_span)]) continue;
      if (data[b] == setup.poison) continue;
      throw_access({n + k, static_cast<index_t>(b), MemoryFault::Kind::write, data + b}, memory,
                   setup, "memory between elements changed");
    }
  }
}

// Compares the places of results with the maps that the op declares.
void IsolatedStep::check_maps(const Memory& memory, const RunSetup& setup,
                              RunOutcome& outcome) const {
  const auto fail = [&](std::size_t output, int input, const std::string& what) {
    throw BadViewMap(
        DebugMessage("BadViewMap", context_)
            .line(what)
            .line("view map: " + text_of(views_) + ", destroy map: " + text_of(destroys_))
            .finish(&setup.label, "Declare it in view_map or output_aliases, or copy."),
        {context_.reason, context_.node, context_.node.output(output), input,
         static_cast<int>(output)});
  };
  const std::size_t n = context_.inputs.size();
  std::vector<ConstView> places(memory.outputs.begin(), memory.outputs.end());
  for (const auto& [output, view] : memory.set) places[output] = view;
  for (const auto& [output, view] : memory.set) {
    const int buffer = memory.pages.buffer_at(view.data);
    if (buffer < 0 || at(buffer) >= n || range_of(view).empty()) continue;
    if (is_declared(views_, output, at(buffer)) || is_declared(destroys_, output, at(buffer))) {
      continue;
    }
    const ByteRange range = range_of(view);
    const std::byte* const base = memory.pages.data(at(buffer));
    fail(output, buffer,
         fmt::format("output {} lies in the memory of input {}, bytes {}..{}", output, buffer,
                     range.begin - base, range.end - base - 1));
  }
  std::vector<std::set<int>> groups = op_.output_aliases(context_.node);
  for (std::size_t a = 0; a < places.size(); ++a) {
    for (std::size_t b = a + 1; b < places.size(); ++b) {
      if (!outcome.is_set[a] && !outcome.is_set[b]) continue;
      if (!context_.is_read_later[a] || !context_.is_read_later[b]) continue;
      const bool declared = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
        return group.contains(static_cast<int>(a)) && group.contains(static_cast<int>(b));
      });
      if (declared || share_an_input(views_, a, b) || !bytes_meet(places[a], places[b])) continue;
      fail(b, -1, fmt::format("outputs {} and {} share memory, and later steps read both", a, b));
    }
  }
}

}  // namespace palimpsest
