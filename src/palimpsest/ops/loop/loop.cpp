// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/loop/loop.hpp"

#include <unordered_set>

#include "palimpsest/ops/control/device.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

void check_taps(const std::vector<index_t>& taps, bool past_only, const std::string& what) {
  for (index_t tap : taps) {
    if (!past_only || tap < 0) continue;
    throw ValueError("[loop] taps of " + what + ": got " + std::to_string(tap) +
                     ", expected negative ones");
  }
  std::vector<index_t> sorted = taps;
  std::sort(sorted.begin(), sorted.end());
  if (taps.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw ValueError("[loop] taps of " + what + ": got " + to_string(taps) +
                     ", expected some that differ");
  }
}

void check_defined(const Variable& v, const std::string& what) {
  if (!v.defined()) throw ValueError("[loop] " + what + ": got an undefined variable");
}

void add_sequence(const LoopSequence& sequence, std::size_t i, const LoopOptions& options,
                  LoopParts& parts) {
  const std::string what = "sequence " + std::to_string(i);
  check_defined(sequence.value, what);
  check_taps(sequence.taps, false, what);
  const TensorType& type = sequence.value.type();
  if (type.rank() == 0) {
    throw ShapeError("[loop] " + what + ": got " + type.str() + ", expected a leading axis");
  }
  const TensorType row{type.dtype, Extents(type.shape.begin() + 1, type.shape.end()), type.device};
  const index_t first =
      std::min<index_t>(0, *std::min_element(sequence.taps.begin(), sequence.taps.end()));
  const index_t last =
      std::max<index_t>(0, *std::max_element(sequence.taps.begin(), sequence.taps.end()));
  for (index_t tap : sequence.taps) {
    LoopParts::Read read{sequence.value, tap - first, options.backwards, kUnknown, make_input(row)};
    if (!options.n_steps) read.tail = last - tap;
    parts.reads.push_back(std::move(read));
  }
  if (options.n_steps || i > 0) return;
  if (type.shape[0] != kUnknown) {
    parts.steps = ExtentProgram(type.shape[0] + first - last);
    return;
  }
  parts.step_arrays = {sequence.value};
  parts.steps = ExtentProgram::of_input(0, 0);
  parts.steps.number(first - last);
  parts.steps.apply(ExtentProgram::Code::add);
}

void add_state(const LoopState& state, std::size_t k, LoopParts& parts) {
  const std::string what = "state " + std::to_string(k);
  check_defined(state.init, "init of " + what);
  check_taps(state.taps, true, what);
  LoopParts::State made;
  made.init = state.init;
  made.rows = -*std::min_element(state.taps.begin(), state.taps.end());
  TensorType type = state.init.type();
  if (made.rows > 1) {
    if (type.rank() == 0) {
      throw ShapeError("[loop] init of " + what + ": got " + type.str() + ", expected " +
                       std::to_string(made.rows) + " rows for its taps");
    }
    type.shape = Extents(type.shape.begin() + 1, type.shape.end());
  }
  for (index_t tap : state.taps) {
    made.lags.push_back(-tap);
    made.inner.push_back(make_input(type));
  }
  parts.states.push_back(std::move(made));
}

void set_steps(const LoopOptions& options, LoopParts& parts) {
  if (!options.n_steps) {
    if (options.sequences.empty()) {
      throw ValueError("[loop] number of steps: got neither n_steps nor a sequence");
    }
    return;
  }
  if (!options.n_steps->is_number()) {
    check_defined(options.n_steps->variable(), "n_steps");
    if (!is_integer(options.n_steps->variable().dtype()) ||
        options.n_steps->variable().rank() != 0) {
      throw TypeError("[loop] n_steps: got " + options.n_steps->variable().type().str() +
                      ", expected an integer of no axes");
    }
  }
  SymbolicShape symbolic = symbolic_shape({*options.n_steps}, {}, "loop");
  const auto is_measured = [](const Variable& array) {
    const Apply owner = array.owner();
    return owner.defined() && dynamic_cast<const RunTimeExtent*>(&owner.op()) != nullptr;
  };
  if (std::any_of(symbolic.arrays.begin(), symbolic.arrays.end(), is_measured)) {
    parts.count = astype(options.n_steps->variable(), DType::int64);
    return;
  }
  parts.steps = std::move(symbolic.extents[0]);
  parts.step_arrays = std::move(symbolic.arrays);
}

// The value as one of the state's dtype.
Variable as_next(const Variable& v, const LoopParts::State& state, std::size_t k) {
  const DType dtype = state.inner[0].dtype();
  if (promote(v.dtype(), dtype) != dtype) {
    throw DTypeError("[loop] new value of state " + std::to_string(k) + ": got " + v.type().str() +
                     ", expected " + std::string(name_of(dtype)) +
                     ", as its init is. Try an init of the wider dtype");
  }
  return astype(v, dtype);
}

void set_inner_outputs(LoopParts& parts, const std::vector<Variable>& made) {
  auto next = made.begin();
  for (LoopParts::State& state : parts.states) state.next = *next++;
  for (Variable& v : parts.mapped) v = *next++;
  if (parts.until.defined()) parts.until = *next;
}

// Makes values of the graph around the body inputs of the body: a value that does not depend on the
// body's arguments is computed once, outside.
void capture(LoopParts& parts) {
  const std::vector<Variable> inner = parts.inner_inputs(), outputs = parts.inner_outputs();
  std::unordered_set<const VariableNode*> depends, seen;
  for (const Variable& v : inner) depends.insert(v.node());
  std::vector<Variable> outer;
  const auto note = [&](const Variable& v) {
    if (depends.contains(v.node()) || v.is_constant()) return;
    if (seen.insert(v.node()).second) outer.push_back(v);
  };
  for (const Apply& node : applications_of(outputs, inner)) {
    const auto inputs = node.inputs();
    const bool inside = std::any_of(inputs.begin(), inputs.end(),
                                    [&](const Variable& v) { return depends.contains(v.node()); });
    if (!inside) continue;
    for (const Variable& v : inputs) note(v);
    for (const Variable& v : node.outputs()) depends.insert(v.node());
  }
  for (const Variable& v : outputs) note(v);

  std::vector<Variable> from = inner, to = inner;
  for (const Variable& v : outer) {
    parts.captured.push_back({v, make_input(v.type(), v.name())});
    from.push_back(v);
    to.push_back(parts.captured.back().inner);
  }
  set_inner_outputs(parts, clone_graph(outputs, from, to));
}

Variable moved(const Variable& v, Device device) {
  if (v.is_constant()) return constant(v.constant_value(), v.name(), device);
  return to_device(v, device);
}

// Constant arrays go with any device, but their rows are no constants: they are placed beside the
// other operands.
LoopOptions with_placed_constants(LoopOptions options) {
  Device device;
  const auto visit = [&](const auto& f) {
    for (LoopSequence& sequence : options.sequences) f(sequence.value, 1);
    for (LoopState& state : options.states) {
      f(state.init, std::ranges::any_of(state.taps, [](index_t tap) { return tap < -1; }) ? 1 : 0);
    }
  };
  const auto look = [&](const Variable& v, int = 0) {
    if (v.defined() && device.is_host()) device = v.type().device;
  };
  visit(look);
  for (const Variable& v : options.fixed) look(v);
  if (device.is_host()) return options;
  visit([&](Variable& v, int n_leading) {
    if (!v.defined() || !v.is_constant() || !v.type().device.is_host()) return;
    if (std::ssize(v.type().shape) > n_leading) v = moved(v, device);
  });
  return options;
}

// Constants and numbers of the host with new values that are computed on another device go there:
// a state lies in one place.
void follow_new_values(LoopParts& parts) {
  for (;;) {
    std::vector<Variable> from, to;
    for (LoopParts::State& state : parts.states) {
      const Device device = state.next.type().device;
      const bool follows = state.init.is_constant() || state.init.rank() == 0;
      if (device.is_host() || !state.init.type().device.is_host() || !follows) continue;
      state.init = moved(state.init, device);
      for (Variable& inner : state.inner) {
        from.push_back(inner);
        TensorType type = inner.type();
        type.device = device;
        to.push_back(inner = make_input(std::move(type), inner.name()));
      }
    }
    if (from.empty()) return;
    set_inner_outputs(parts, clone_graph(parts.inner_outputs(), from, to));
  }
}

void run_body(const LoopBody& body, const LoopOptions& options, LoopParts& parts) {
  std::vector<Variable> arguments = parts.inner_inputs();
  for (const Variable& v : options.fixed) {
    check_defined(v, "fixed value");
    arguments.push_back(v);
  }
  const std::vector<Variable> results = body(arguments);
  for (const Variable& v : results) check_defined(v, "result of the body");
  if (results.size() < parts.states.size()) {
    throw ValueError("[loop] number of results of the body: got " + std::to_string(results.size()) +
                     ", expected at least " + std::to_string(parts.states.size()) +
                     ", the next states");
  }
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    parts.states[k].next = as_next(results[k], parts.states[k], k);
  }
  parts.mapped.assign(results.begin() + static_cast<std::ptrdiff_t>(parts.states.size()),
                      results.end());
  if (!options.until) return;
  parts.until = options.until(arguments, results);
  check_defined(parts.until, "result of until");
  if (parts.until.rank() != 0) {
    throw TypeError("[loop] until: got " + parts.until.type().str() +
                    ", expected one value. Try all_of or any");
  }
  if (!is_bool(parts.until.dtype())) parts.until = ne(parts.until, 0);
}

const Loop& loop_of(const Apply& node) { return dynamic_cast<const Loop&>(node.op()); }

}  // namespace

LoopResult loop(const LoopBody& body, const LoopOptions& given) {
  const LoopOptions options = with_placed_constants(given);
  LoopParts parts;
  for (std::size_t i = 0; i < options.sequences.size(); ++i) {
    add_sequence(options.sequences[i], i, options, parts);
  }
  for (std::size_t k = 0; k < options.states.size(); ++k) add_state(options.states[k], k, parts);
  set_steps(options, parts);
  run_body(body, options, parts);
  LoopResult result;
  result.n_states_ = parts.states.size();
  result.n_mapped_ = parts.mapped.size();
  capture(parts);
  follow_new_values(parts);
  result.node_ = Loop::make(std::move(parts));
  return result;
}

void LoopResult::check(std::size_t k, std::size_t count, const char* what) const {
  if (k < count) return;
  throw ValueError(std::string("[loop] ") + what + ": got number " + std::to_string(k) +
                   ", expected one below " + std::to_string(count));
}

Variable LoopResult::trace(std::size_t k) const {
  check(k, n_states_, "trace of a state");
  const Loop& op = loop_of(node_);
  return index(node_.output(*op.history_output(k)), {slice(op.structure().states[k].rows, {})});
}

Variable LoopResult::last(std::size_t k) const {
  check(k, n_states_, "last value of a state");
  return node_.output(*loop_of(node_).last_output(k));
}

Variable LoopResult::mapped(std::size_t k) const {
  check(k, n_mapped_, "mapped value");
  return node_.output(loop_of(node_).mapped_output(k));
}

Variable LoopResult::n_steps() const {
  const Loop& op = loop_of(node_);
  if (!op.structure().until.defined()) {
    throw NotSupported("[loop] n_steps: only a loop with until counts its steps");
  }
  return node_.output(op.count_output());
}

}  // namespace palimpsest::ops
