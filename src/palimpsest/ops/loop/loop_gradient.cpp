// SPDX-License-Identifier: Apache-2.0
// Derivatives of loops are loops. The pullback runs the steps in reverse order. Its states are the
// cotangents of the values made by forward steps that are still to be undone. With s steps back,
// carried[k][i] is the contribution of later steps to the value that state k had i steps before the
// one being undone.

#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

Variable sum_of(const Variable& a, const Variable& b) {
  if (!a.defined()) return b;
  return b.defined() ? add(a, b) : a;
}

Variable input_like(const Variable& v) { return make_input(v.type()); }

// Turns reads of reversed arrays round. A loop that stops early knows only at run time which row of
// a reversed array comes last; the turned array begins where the loop does.
LoopParts reading_forwards(LoopParts parts) {
  if (!parts.until.defined()) return parts;
  for (LoopParts::Read& read : parts.reads) {
    if (!read.reversed) continue;
    if (read.tail == kUnknown) {
      if (parts.count.defined() || !parts.steps.is_number()) {
        throw NotSupported(
            "[loop] gradient of a loop with until that reads a sequence backwards: got a number of "
            "steps that is not constant. Try to turn the sequence round with flip");
      }
      const index_t n = std::max<index_t>(*parts.steps.evaluate({}), 0);
      read.array = index(read.array, {slice(0, read.offset + n)});
      read.tail = 0;
    }
    read.array = flip(read.array, {0});
    std::swap(read.offset, read.tail);
    read.reversed = false;
  }
  return parts;
}

class ReverseLoop {
 public:
  ReverseLoop(const Loop& op, const Apply& apply, std::span<const Variable> cotangents)
      : op_(op), forward_(reading_forwards(op.parts(apply))), cotangents_(cotangents) {
    const std::vector<Variable> all_values = histories(apply);
    set_number_of_steps(apply, all_values);
    read_forward_values(all_values);
    carry_states();
    read_mapped_cotangents();
    differentiate_body();
    drop_unread(parts_);
    node_ = Loop::make(std::move(parts_));
  }

  std::vector<Variable> cotangents_of_inputs(const Apply& apply) const {
    std::vector<Variable> result(apply.input_count());
    for (std::size_t i = 0; i < forward_.reads.size(); ++i) {
      if (!mapped_of_read_[i]) continue;
      result[i] = of_read(i);
      const Variable& array = forward_.reads[i].array;
      if (array == apply.input(i)) continue;
      result[i] = palimpsest::pullback({&array, 1}, {&apply.input(i), 1}, {&result[i], 1})[0];
    }
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      if (!first_carried_[k]) continue;
      result[op_.init_input(k)] = of_init(k);
    }
    for (std::size_t j = 0; j < forward_.captured.size(); ++j) {
      if (state_of_captured_[j]) {
        result[op_.captured_input(j)] = last(*state_of_captured_[j]);
      }
    }
    return result;
  }

 private:
  // All values of the states: outputs of the loop, or of one that is run again with them.
  std::vector<Variable> histories(const Apply& apply) const {
    const bool has_all = std::all_of(forward_.states.begin(), forward_.states.end(),
                                     [](const auto& state) { return state.has_history; });
    Apply source = apply;
    if (!has_all) {
      LoopParts again = forward_;
      for (LoopParts::State& state : again.states) state.has_history = true;
      source = Loop::make(std::move(again));
    }
    const auto& op = dynamic_cast<const Loop&>(source.op());
    std::vector<Variable> result;
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      result.push_back(source.output(*op.history_output(k)));
    }
    return result;
  }

  // Takes as many steps as there were. If only running tells, the rows that came out do.
  void set_number_of_steps(const Apply& apply, const std::vector<Variable>& histories) {
    std::vector<Extents> extents;
    for (const Variable& v : apply.inputs()) extents.push_back(v.type().shape);
    const std::optional<index_t> n = op_.n_steps(extents);
    if (!forward_.is_open() && n) {
      parts_.steps = ExtentProgram(*n);
    } else if (!forward_.is_open()) {
      parts_.steps = forward_.steps;
      parts_.step_arrays = forward_.step_arrays;
    } else if (!histories.empty()) {
      parts_.step_arrays = {histories[0]};
      parts_.steps = ExtentProgram::of_input(0, 0);
      parts_.steps.number(-forward_.states[0].rows);
      parts_.steps.apply(ExtentProgram::Code::add);
    } else {
      parts_.step_arrays = {apply.output(op_.mapped_output(0))};
      parts_.steps = ExtentProgram::of_input(0, 0);
    }
  }

  void read_forward_values(const std::vector<Variable>& histories) {
    for (LoopParts::Read read : forward_.reads) {
      read.reversed = !read.reversed;
      if (forward_.is_open()) read.tail = kUnknown;
      parts_.reads.push_back(std::move(read));
    }
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      const LoopParts::State& state = forward_.states[k];
      for (std::size_t i = 0; i < state.lags.size(); ++i) {
        parts_.reads.push_back(
            {histories[k], state.rows - state.lags[i], true, state.lags[i], state.inner[i]});
      }
    }
    parts_.captured = forward_.captured;
  }

  Variable cotangent_of_history(std::size_t k) const {
    const auto output = op_.history_output(k);
    return output ? cotangents_[*output] : Variable();
  }

  void carry_states() {
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      const LoopParts::State& state = forward_.states[k];
      first_carried_.emplace_back();
      of_next_.emplace_back();
      if (!is_inexact(state.inner[0].dtype())) continue;
      first_carried_[k] = parts_.states.size();
      const Variable value = state.rows > 1 ? index(state.init, {0}) : state.init;
      for (index_t i = 0; i < state.rows; ++i) {
        Variable init;
        if (const auto output = op_.last_output(k); i == 0 && output) init = cotangents_[*output];
        add_carried(init.defined() ? init : zeros_like(value), state.inner[0]);
      }
      of_next_[k] = parts_.states[*first_carried_[k]].inner[0];
      const Variable w = cotangent_of_history(k);
      if (!w.defined()) continue;
      parts_.reads.push_back({w, state.rows, true, 0, input_like(state.inner[0])});
      of_next_[k] = add(of_next_[k], parts_.reads.back().inner);
    }
    for (const LoopParts::Captured& value : forward_.captured) {
      state_of_captured_.emplace_back();
      if (!is_inexact(value.inner.dtype())) continue;
      state_of_captured_.back() = parts_.states.size();
      add_carried(zeros_like(value.outer), value.inner);
    }
  }

  void add_carried(const Variable& init, const Variable& like) {
    LoopParts::State state;
    state.init = init;
    state.lags = {1};
    state.inner = {input_like(like)};
    state.has_history = true;  // for derivatives of this loop in turn
    parts_.states.push_back(std::move(state));
  }

  void read_mapped_cotangents() {
    for (std::size_t m = 0; m < forward_.mapped.size(); ++m) {
      const Variable& w = cotangents_[op_.mapped_output(m)];
      const bool counts = w.defined() && is_inexact(forward_.mapped[m].dtype());
      of_mapped_.push_back(counts ? input_like(forward_.mapped[m]) : Variable());
      if (counts) parts_.reads.push_back({w, 0, true, 0, of_mapped_.back()});
    }
  }

  void differentiate_body() {
    std::vector<Variable> outs, above, wrt;
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      if (!of_next_[k].defined()) continue;
      outs.push_back(forward_.states[k].next);
      above.push_back(of_next_[k]);
    }
    for (std::size_t m = 0; m < of_mapped_.size(); ++m) {
      if (!of_mapped_[m].defined()) continue;
      outs.push_back(forward_.mapped[m]);
      above.push_back(of_mapped_[m]);
    }
    for (const Variable& v : forward_.inner_inputs()) {
      if (is_inexact(v.dtype())) wrt.push_back(v);
    }
    const std::vector<Variable> below = palimpsest::pullback(outs, wrt, above);
    std::size_t next = 0;
    for (const LoopParts::Read& read : forward_.reads) {
      mapped_of_read_.emplace_back();
      if (!is_inexact(read.inner.dtype())) continue;
      mapped_of_read_.back() = parts_.mapped.size();
      parts_.mapped.push_back(below[next++]);
    }
    for (std::size_t k = 0; k < forward_.states.size(); ++k) {
      if (first_carried_[k]) next = set_carried(k, below, next);
    }
    for (const auto& position : state_of_captured_) {
      if (!position) continue;
      LoopParts::State& state = parts_.states[*position];
      state.next = add(state.inner[0], below[next++]);
    }
  }

  // A value that was i steps back is i - 1 steps back from the step that is undone next.
  std::size_t set_carried(std::size_t k, const std::vector<Variable>& below, std::size_t next) {
    const LoopParts::State& state = forward_.states[k];
    std::vector<Variable> sums(static_cast<std::size_t>(state.rows));
    for (std::size_t i = 0; i + 1 < sums.size(); ++i) {
      sums[i] = parts_.states[*first_carried_[k] + i + 1].inner[0];
    }
    for (index_t lag : state.lags) {
      Variable& sum = sums[static_cast<std::size_t>(lag - 1)];
      sum = sum_of(sum, below[next++]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      LoopParts::State& carried = parts_.states[*first_carried_[k] + i];
      carried.next = sums[i].defined() ? sums[i] : zeros_like(carried.inner[0]);
    }
    return next;
  }

  Variable last(std::size_t state) const {
    return node_.output(*dynamic_cast<const Loop&>(node_.op()).last_output(state));
  }

  // The mapped values are rows in the order in which steps were undone.
  Variable of_read(std::size_t i) const {
    const LoopParts::Read& read = forward_.reads[i];
    const auto& op = dynamic_cast<const Loop&>(node_.op());
    Variable rows = node_.output(op.mapped_output(*mapped_of_read_[i]));
    if (!read.reversed) rows = flip(rows, {0});
    const index_t n = rows.type().shape[0];
    std::optional<index_t> stop;
    if (n != kUnknown) {
      stop = read.offset + n;
    } else if (read.tail == kUnknown || forward_.is_open()) {
      return amid_zeros(rows, read);
    } else if (read.tail > 0) {
      stop = -read.tail;
    }
    return inc_subtensor(zeros_like(read.array), {slice(read.offset, stop)}, rows);
  }

  // Rows that were not read, because there were fewer steps, have no cotangent.
  Variable amid_zeros(const Variable& rows, const LoopParts::Read& read) const {
    const auto zero_rows = [&](const Operand& n) {
      std::vector<Operand> extents{n};
      for (std::size_t k = 1; k < rows.rank(); ++k) {
        extents.push_back(shape(rows, static_cast<index_t>(k)));
      }
      return zeros(extents, rows.dtype(), rows.type().device);
    };
    const Variable n_after = shape(read.array, 0) - shape(rows, 0) - read.offset;
    return join(0, {zero_rows(read.offset), rows, zero_rows(n_after)});
  }

  Variable of_init(std::size_t k) const {
    const LoopParts::State& state = forward_.states[k];
    const Variable w = cotangent_of_history(k);
    if (state.rows == 1) {
      return sum_of(last(*first_carried_[k]), w.defined() ? index(w, {0}) : Variable());
    }
    std::vector<Variable> rows;
    for (index_t i = state.rows; i-- > 0;) {
      rows.push_back(last(*first_carried_[k] + static_cast<std::size_t>(i)));
    }
    return sum_of(stack(rows), w.defined() ? index(w, {slice(0, state.rows)}) : Variable());
  }

  const Loop& op_;
  const LoopParts forward_;
  std::span<const Variable> cotangents_;
  LoopParts parts_;
  std::vector<std::optional<std::size_t>> first_carried_;      // per state: among those of parts_
  std::vector<std::optional<std::size_t>> state_of_captured_;  // per captured value: likewise
  std::vector<std::optional<std::size_t>> mapped_of_read_;
  std::vector<Variable> of_next_, of_mapped_;  // cotangents in the body
  Apply node_;
};

// Tangents are computed beside the values: for each part that has one there is a second part.
class ForwardLoop {
 public:
  ForwardLoop(const Loop& op, const Apply& apply, std::span<const Variable> tangents)
      : op_(op), parts_(op.parts(apply)) {
    const LoopParts original = parts_;
    for (LoopParts::State& state : parts_.states) state.has_last = false;
    for (std::size_t i = 0; i < original.reads.size(); ++i) {
      if (!tangents[i].defined()) continue;
      LoopParts::Read read = original.reads[i];
      read.array = tangents[i];
      read.inner = add_tangent(original.reads[i].inner);
      parts_.reads.push_back(std::move(read));
    }
    for (std::size_t k = 0; k < original.states.size(); ++k) {
      tangent_state_.emplace_back();
      if (!is_inexact(original.states[k].inner[0].dtype())) continue;
      tangent_state_.back() = parts_.states.size();
      LoopParts::State state = original.states[k];
      const Variable& given = tangents[op.init_input(k)];
      state.init = given.defined() ? given : zeros_like(state.init);
      for (Variable& v : state.inner) v = add_tangent(v);
      parts_.states.push_back(std::move(state));
    }
    for (std::size_t j = 0; j < original.captured.size(); ++j) {
      const Variable& given = tangents[op.captured_input(j)];
      if (!given.defined()) continue;
      parts_.captured.push_back({given, add_tangent(original.captured[j].inner)});
    }
    differentiate_body(original);
    node_ = Loop::make(std::move(parts_));
  }

  std::vector<Variable> tangents_of_outputs(const Apply& apply) const {
    const auto& op = dynamic_cast<const Loop&>(node_.op());
    std::vector<Variable> result(apply.output_count());
    for (std::size_t k = 0; k < tangent_state_.size(); ++k) {
      if (!tangent_state_[k]) continue;
      if (const auto to = op_.history_output(k)) {
        result[*to] = node_.output(*op.history_output(*tangent_state_[k]));
      }
      if (const auto to = op_.last_output(k)) {
        result[*to] = node_.output(*op.last_output(*tangent_state_[k]));
      }
    }
    for (std::size_t m = 0; m < tangent_mapped_.size(); ++m) {
      if (!tangent_mapped_[m]) continue;
      result[op_.mapped_output(m)] = node_.output(op.mapped_output(*tangent_mapped_[m]));
    }
    return result;
  }

 private:
  Variable add_tangent(const Variable& inner) {
    wrt_.push_back(inner);
    tangents_.push_back(input_like(inner));
    return tangents_.back();
  }

  void differentiate_body(const LoopParts& original) {
    std::vector<Variable> outs;
    for (std::size_t k = 0; k < original.states.size(); ++k) {
      if (tangent_state_[k]) outs.push_back(original.states[k].next);
    }
    for (const Variable& v : original.mapped) {
      if (is_inexact(v.dtype())) outs.push_back(v);
    }
    const std::vector<Variable> made = palimpsest::pushforward(outs, wrt_, tangents_);
    std::size_t next = 0;
    for (const auto& state : tangent_state_) {
      if (state) parts_.states[*state].next = made[next++];
    }
    for (const Variable& v : original.mapped) {
      tangent_mapped_.emplace_back();
      if (!is_inexact(v.dtype())) continue;
      tangent_mapped_.back() = parts_.mapped.size();
      parts_.mapped.push_back(made[next++]);
    }
  }

  const Loop& op_;
  LoopParts parts_;
  std::vector<Variable> wrt_, tangents_;  // of the body
  std::vector<std::optional<std::size_t>> tangent_state_, tangent_mapped_;
  Apply node_;
};

}  // namespace

std::vector<Variable> Loop::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return ReverseLoop(*this, apply, cotangents).cotangents_of_inputs(apply);
}

std::vector<Variable> Loop::pushforward(const Apply& apply,
                                        std::span<const Variable> tangents) const {
  return ForwardLoop(*this, apply, tangents).tangents_of_outputs(apply);
}

}  // namespace palimpsest::ops
