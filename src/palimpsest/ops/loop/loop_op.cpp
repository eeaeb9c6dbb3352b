// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/loop/loop_op.hpp"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// A graph as text: equal for graphs that are built alike. Constants are told apart by identity, but
// for small ones.
std::string text_of_graph(std::span<const Variable> inputs, std::span<const Variable> outputs,
                          std::span<const Apply> nodes) {
  constexpr index_t kLongestShownBytes = 64;
  std::unordered_map<const VariableNode*, std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names[inputs[i].node()] = "%" + std::to_string(i) + ":" + inputs[i].type().str();
  }
  const auto name = [&](const Variable& v) {
    const auto it = names.find(v.node());
    if (it != names.end()) return it->second;
    const Tensor& value = v.node()->value;
    if (value.nbytes() > kLongestShownBytes) {
      return "constant@" + std::to_string(reinterpret_cast<std::uintptr_t>(v.node()));
    }
    std::string text = v.type().str() + "=";
    const Tensor dense = value.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(dense.raw_data());
    for (index_t i = 0; i < dense.nbytes(); ++i) text += std::to_string(bytes[i]) + ".";
    return text;
  };
  std::string text;
  for (const Variable& v : inputs) text += name(v) + " ";
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    text += "$" + std::to_string(n) + "=" + nodes[n].op().str() + "(";
    for (const Variable& v : nodes[n].inputs()) text += name(v) + " ";
    text += ") ";
    for (const Variable& v : nodes[n].outputs()) {
      names[v.node()] = "$" + std::to_string(n) + "." + std::to_string(v.index());
    }
  }
  text += "->";
  for (const Variable& v : outputs) text += " " + name(v);
  return text;
}

std::string text_of_structure(const LoopParts& parts) {
  std::string text = "reads=(";
  for (const LoopParts::Read& read : parts.reads) {
    text +=
        std::to_string(read.offset) + (read.reversed ? "r" : "f") + std::to_string(read.tail) + " ";
  }
  text += "), states=(";
  for (const LoopParts::State& state : parts.states) {
    text += std::to_string(state.rows) + ":";
    for (index_t lag : state.lags) text += std::to_string(lag) + ".";
    text += std::string(state.has_history ? "h" : "") + (state.has_last ? "l" : "") +
            (state.overwrites_init ? "o " : " ");
  }
  return text + "), captured=" + std::to_string(parts.captured.size()) +
         ", steps=" + (parts.count.defined() ? "value" : parts.steps.str()) +
         (parts.until.defined() ? ", until" : "") + (parts.keeps_room ? ", keeps_room" : "");
}

bool can_overwrite_init(const LoopParts::State& state) {
  return state.rows == 1 && state.has_last && !state.has_history;
}

// Decides anew, for every form of a loop, whether its initial values can be overwritten.
LoopParts checked(LoopParts parts) {
  for (LoopParts::State& state : parts.states) {
    state.overwrites_init = state.overwrites_init && can_overwrite_init(state);
  }
  return parts;
}

// Checks that a value has the type of the body's inner variable that it is given to.
void check_inner(const Variable& inner, const TensorType& type, std::string_view what,
                 std::size_t k) {
  const TensorType& expected = inner.type();
  const bool same = type.dtype == expected.dtype && type.rank() == expected.rank();
  if (!same) {
    throw TypeError("[loop] " + std::string(what) + " " + std::to_string(k) + ": got " +
                    type.str() + ", expected " + expected.str());
  }
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    agreed_extent(type.shape, expected.shape, axis, "loop");
  }
}

TensorType row_of(const TensorType& type) {
  return {type.dtype, Extents(type.shape.begin() + 1, type.shape.end()), type.device};
}
TensorType rows_of(index_t n, const TensorType& row) {
  TensorType type{row.dtype, {n}, row.device};
  for (index_t extent : row.shape) type.shape.push_back(extent);
  return type;
}
Extents rows_of(index_t n, const Extents& row) {
  Extents result{n};
  for (index_t extent : row) result.push_back(extent);
  return result;
}

void check_rows(const Variable& v, std::string_view what, std::size_t k) {
  if (v.rank() > 0) return;
  throw ShapeError("[loop] " + std::string(what) + " " + std::to_string(k) + ": got " +
                   v.type().str() + ", expected a leading axis");
}

}  // namespace

std::vector<Variable> LoopParts::inner_inputs() const {
  std::vector<Variable> result;
  for (const Read& read : reads) result.push_back(read.inner);
  for (const State& state : states) {
    result.insert(result.end(), state.inner.begin(), state.inner.end());
  }
  for (const Captured& value : captured) result.push_back(value.inner);
  return result;
}

std::vector<Variable> LoopParts::inner_outputs() const {
  std::vector<Variable> result;
  for (const State& state : states) result.push_back(state.next);
  result.insert(result.end(), mapped.begin(), mapped.end());
  if (until.defined()) result.push_back(until);
  return result;
}

namespace {

// A state has at most two outputs, its history and its last value.
std::vector<std::size_t> first_outputs(const LoopParts& parts) {
  std::vector<std::size_t> first{0};
  for (const LoopParts::State& state : parts.states) {
    first.push_back(first.back() + (state.has_history ? 1U : 0U) + (state.has_last ? 1U : 0U));
  }
  return first;
}

}  // namespace

Loop::Loop(LoopParts parts)
    : parts_(checked(std::move(parts))),
      body_inputs_(parts_.inner_inputs()),
      body_outputs_(parts_.inner_outputs()),
      body_nodes_(applications_of(body_outputs_, body_inputs_)),
      first_output_(first_outputs(parts_)),
      text_(text_of_structure(parts_) +
            ", body: " + text_of_graph(body_inputs_, body_outputs_, body_nodes_)),
      can_fail_(std::any_of(body_nodes_.begin(), body_nodes_.end(),
                            [](const Apply& node) { return node.op().can_fail(); })) {}

Apply Loop::make(LoopParts parts) {
  std::vector<Variable> inputs;
  for (LoopParts::Read& read : parts.reads) inputs.push_back(std::exchange(read.array, {}));
  for (LoopParts::State& state : parts.states) inputs.push_back(std::exchange(state.init, {}));
  for (LoopParts::Captured& value : parts.captured) {
    inputs.push_back(std::exchange(value.outer, {}));
  }
  for (Variable& array : parts.step_arrays) inputs.push_back(std::exchange(array, {}));
  if (parts.count.defined()) {
    inputs.push_back(parts.count);
    parts.count = make_input({DType::int64, {}, parts.count.type().device});
  }
  return std::shared_ptr<const Loop>(new Loop(std::move(parts)))->make_node(inputs);
}

LoopParts Loop::parts(const Apply& apply) const {
  LoopParts result = parts_;
  std::size_t next = 0;
  for (LoopParts::Read& read : result.reads) read.array = apply.input(next++);
  for (LoopParts::State& state : result.states) state.init = apply.input(next++);
  for (LoopParts::Captured& value : result.captured) value.outer = apply.input(next++);
  for (Variable& array : result.step_arrays) array = apply.input(next++);
  if (result.count.defined()) result.count = apply.input(next);
  return result;
}

std::optional<std::size_t> Loop::history_output(std::size_t k) const {
  if (!parts_.states[k].has_history) return {};
  return first_output_[k];
}

std::optional<std::size_t> Loop::last_output(std::size_t k) const {
  if (!parts_.states[k].has_last) return {};
  return first_output_[k] + (parts_.states[k].has_history ? 1U : 0U);
}

std::size_t Loop::mapped_output(std::size_t m) const { return first_output_.back() + m; }

std::optional<index_t> Loop::n_steps(std::span<const Extents> inputs) const {
  if (parts_.count.defined()) return {};
  const auto arrays = inputs.subspan(captured_input(parts_.captured.size()));
  const std::optional<index_t> n = parts_.steps.evaluate(arrays);
  return n ? std::max<index_t>(*n, 0) : n;
}

void Loop::check_lengths(std::span<const Extents> inputs, std::optional<index_t> n) const {
  for (std::size_t i = 0; i < parts_.reads.size(); ++i) {
    const LoopParts::Read& read = parts_.reads[i];
    const index_t length = inputs[i][0];
    if (!n || length == kUnknown) continue;
    const bool fits = read.tail == kUnknown ? read.offset + *n <= length || *n == 0
                                            : read.offset + *n + read.tail == length;
    if (fits) continue;
    throw ShapeError(
        "[loop] number of steps " + std::to_string(*n) + ": got a sequence of extents " +
        to_string(inputs[i]) + ", expected " + (read.tail == kUnknown ? "at least " : "") +
        std::to_string(read.offset + *n + std::max<index_t>(read.tail, 0)) + " rows for its taps");
  }
}

Apply Loop::make_node(std::span<const Variable> inputs) const {
  const std::size_t n_inputs = count_input() + (parts_.count.defined() ? 1U : 0U);
  expect_inputs(inputs, n_inputs, "loop");
  common_device(inputs, "loop");
  std::vector<Extents> extents;
  for (const Variable& v : inputs) extents.push_back(v.type().shape);
  for (std::size_t i = 0; i < parts_.reads.size(); ++i) {
    check_rows(inputs[i], "sequence", i);
    check_inner(parts_.reads[i].inner, row_of(inputs[i].type()), "sequence", i);
  }
  const std::optional<index_t> n = n_steps(extents);
  const auto rows = [&](index_t more) { return n && !parts_.is_open() ? *n + more : kUnknown; };
  check_lengths(extents, n);
  std::vector<TensorType> types;
  for (std::size_t k = 0; k < parts_.states.size(); ++k) {
    const LoopParts::State& state = parts_.states[k];
    const Variable& init = inputs[init_input(k)];
    if (state.overwrites_init && may_overlap_itself(init)) {
      throw ValueError("[loop] init of state " + std::to_string(k) + ": got " + init.str() +
                       ", a broadcast view, expected an array that can be overwritten");
    }
    if (state.rows > 1) check_rows(init, "init of state", k);
    const TensorType type = state.rows > 1 ? row_of(init.type()) : init.type();
    check_inner(state.inner[0], type, "init of state", k);
    check_inner(state.inner[0], state.next.type(), "new value of state", k);
    if (state.rows > 1 && extents[init_input(k)][0] != kUnknown &&
        extents[init_input(k)][0] != state.rows) {
      throw ShapeError("[loop] init of state " + std::to_string(k) + ": got " + init.type().str() +
                       ", expected " + std::to_string(state.rows) + " rows for its taps");
    }
    if (state.has_history) types.push_back(rows_of(rows(state.rows), type));
    if (state.has_last) types.push_back(type);
  }
  for (std::size_t j = 0; j < parts_.captured.size(); ++j) {
    check_inner(parts_.captured[j].inner, inputs[captured_input(j)].type(), "value", j);
  }
  for (const Variable& v : parts_.mapped) types.push_back(rows_of(rows(0), v.type()));
  if (parts_.until.defined()) types.push_back({DType::int64, {}, parts_.until.type().device});
  return node(inputs, std::move(types));
}

// -- in place ----------------------------------------------------------------------------------

bool Loop::overwrites_any() const {
  return std::any_of(parts_.states.begin(), parts_.states.end(),
                     [](const LoopParts::State& state) { return state.overwrites_init; });
}

AliasMap Loop::destroy_map(const Apply&) const {
  AliasMap map;
  for (std::size_t k = 0; k < parts_.states.size(); ++k) {
    if (!parts_.states[k].overwrites_init) continue;
    map[static_cast<int>(*last_output(k))] = {static_cast<int>(init_input(k))};
  }
  return map;
}

// The default would make the whole map for each output.
Region Loop::view_region(const Apply&, int out, int in) const {
  const auto k = static_cast<std::size_t>(in) - parts_.reads.size();
  const bool is_state =
      static_cast<std::size_t>(in) >= parts_.reads.size() && k < parts_.states.size();
  const bool is_destroyed = is_state && parts_.states[k].overwrites_init &&
                            last_output(k) == static_cast<std::size_t>(out);
  return is_destroyed ? Region::whole() : Region::unknown();
}

// Arrays that are used for their extents only.
IndexPairs Loop::tolerate_aliased(const Apply&) const {
  IndexPairs result;
  const std::size_t first = captured_input(parts_.captured.size());
  for (std::size_t k = 0; k < parts_.states.size(); ++k) {
    if (!parts_.states[k].overwrites_init) continue;
    for (std::size_t j = first; j < first + parts_.step_arrays.size(); ++j) {
      result.insert({static_cast<int>(init_input(k)), static_cast<int>(j)});
    }
  }
  return result;
}

OpPtr Loop::inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const {
  std::vector<std::size_t> overwritten;
  for (auto it = allowed.lower_bound(static_cast<int>(init_input(0))); it != allowed.end(); ++it) {
    const std::size_t k = static_cast<std::size_t>(*it) - init_input(0);
    if (k >= parts_.states.size()) break;
    if (can_overwrite_init(parts_.states[k]) && !may_overlap_itself(apply.input(init_input(k)))) {
      overwritten.push_back(k);
    }
  }
  if (overwritten.empty()) return nullptr;
  LoopParts parts = parts_;
  for (LoopParts::State& state : parts.states) state.overwrites_init = false;
  for (const std::size_t k : overwritten) parts.states[k].overwrites_init = true;
  return std::shared_ptr<const Loop>(new Loop(std::move(parts)));
}

OpPtr Loop::pure() const {
  if (!overwrites_any()) return shared_from_this();
  LoopParts parts = parts_;
  for (LoopParts::State& state : parts.states) state.overwrites_init = false;
  return std::shared_ptr<const Loop>(new Loop(std::move(parts)));
}

// The extents of the body's results, by way of those of all its values.
Loop::BodyExtents Loop::body_extents(std::span<const Extents> inputs) const {
  BodyExtents found;
  std::unordered_map<const VariableNode*, Extents> known;
  std::size_t next = 0;
  const auto set = [&](std::span<const index_t> extents) {
    known[body_inputs_[next++].node()] = Extents(extents.begin(), extents.end());
  };
  for (std::size_t i = 0; i < parts_.reads.size(); ++i) {
    set(std::span<const index_t>(inputs[i]).subspan(1));
  }
  for (std::size_t k = 0; k < parts_.states.size(); ++k) {
    const Extents& init = inputs[init_input(k)];
    const LoopParts::State& state = parts_.states[k];
    if (state.rows > 1 && init[0] != state.rows) {
      throw ShapeError("[loop] init of state " + std::to_string(k) + ": got extents " +
                       to_string(init) + ", expected " + std::to_string(state.rows) + " rows");
    }
    for (std::size_t i = 0; i < state.inner.size(); ++i) {
      set(std::span<const index_t>(init).subspan(state.rows > 1 ? 1 : 0));
    }
  }
  for (std::size_t j = 0; j < parts_.captured.size(); ++j) set(inputs[captured_input(j)]);
  const auto extents_of = [&](const Variable& v) {
    return v.is_constant() ? v.node()->value.shape() : known.at(v.node());
  };
  for (const Apply& node : body_nodes_) {
    std::vector<Extents> given;
    for (const Variable& v : node.inputs()) given.push_back(extents_of(v));
    std::vector<Extents> result;
    if (std::all_of(given.begin(), given.end(), is_known)) {
      bool are_known = true;
      if (const auto* const loop = dynamic_cast<const Loop*>(&node.op())) {
        auto inner = loop->infer(given);
        result = std::move(inner.first);
        are_known = inner.second;
      } else {
        result = inferred_shapes(node, given);
        are_known = std::all_of(result.begin(), result.end(), is_known);
      }
      found.are_known = found.are_known && are_known;
    } else {
      for (const Variable& v : node.outputs()) result.push_back(v.type().shape);
    }
    for (std::size_t k = 0; k < result.size(); ++k) known[node.output(k).node()] = result[k];
  }
  for (const Variable& v : body_outputs_) {
    found.of_results.push_back(extents_of(v));
    found.are_known = found.are_known && is_known(found.of_results.back());
  }
  return found;
}

bool Loop::has_known_body(std::span<const Extents> inputs) const {
  return body_extents(inputs).are_known;
}

bool Loop::has_open_rows() const {
  const auto has_history = [](const LoopParts::State& state) { return state.has_history; };
  return parts_.is_open() && (!parts_.mapped.empty() ||
                              std::any_of(parts_.states.begin(), parts_.states.end(), has_history));
}

bool Loop::may_decide_extents() const {
  return has_open_rows() ||
         std::any_of(body_nodes_.begin(), body_nodes_.end(), ops::may_decide_extents);
}

std::vector<Extents> Loop::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return infer(inputs).first;
}

std::pair<std::vector<Extents>, bool> Loop::infer(std::span<const Extents> inputs) const {
  const std::optional<index_t> n = n_steps(inputs);
  check_lengths(inputs, n);
  const BodyExtents body = body_extents(inputs);
  const std::vector<Extents>& of_body = body.of_results;
  const auto rows = [&](index_t more) { return n && !parts_.is_open() ? *n + more : kUnknown; };
  std::vector<Extents> result;
  for (std::size_t k = 0; k < parts_.states.size(); ++k) {
    const LoopParts::State& state = parts_.states[k];
    const Extents& init = inputs[init_input(k)];
    const Extents extents(init.begin() + (state.rows > 1 ? 1 : 0), init.end());
    if (of_body[k] != extents && is_known(of_body[k])) {
      throw ShapeError("[loop] new value of state " + std::to_string(k) + ": got extents " +
                       to_string(of_body[k]) + ", expected those of its init, " +
                       to_string(extents));
    }
    if (state.has_history) result.push_back(rows_of(rows(state.rows), extents));
    if (state.has_last) result.push_back(extents);
  }
  for (std::size_t m = 0; m < parts_.mapped.size(); ++m) {
    result.push_back(rows_of(rows(0), of_body[parts_.states.size() + m]));
  }
  if (parts_.until.defined()) result.emplace_back();
  return {std::move(result), !has_open_rows() && body.are_known};
}

bool Loop::uses_elements(const Apply&, int in) const {
  const auto i = static_cast<std::size_t>(in);
  return i < captured_input(parts_.captured.size()) || i >= count_input();
}

void Loop::run(RunContext&) const {
  throw InternalError("[loop] only the executor of functions runs a loop");
}

// -- other forms of the same loop --------------------------------------------------------------

namespace {

// The states that are wanted, and those that the recurrence of wanted results needs.
std::vector<bool> needed_states(const LoopParts& parts, const std::vector<bool>& is_mapped_used) {
  std::vector<bool> needed;
  for (const LoopParts::State& state : parts.states) {
    needed.push_back(state.has_history || state.has_last);
  }
  for (bool grows = true; grows;) {
    grows = false;
    std::vector<Variable> outputs;
    for (std::size_t k = 0; k < needed.size(); ++k) {
      if (needed[k]) outputs.push_back(parts.states[k].next);
    }
    for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
      if (is_mapped_used[m]) outputs.push_back(parts.mapped[m]);
    }
    if (parts.until.defined()) outputs.push_back(parts.until);
    std::unordered_set<const VariableNode*> read;
    for (const Variable& v : values_of(outputs)) read.insert(v.node());
    for (std::size_t k = 0; k < needed.size(); ++k) {
      const auto& inner = parts.states[k].inner;
      if (needed[k] || std::none_of(inner.begin(), inner.end(),
                                    [&](const Variable& v) { return read.contains(v.node()); })) {
        continue;
      }
      needed[k] = true;
      grows = true;
    }
  }
  return needed;
}

}  // namespace

void drop_unread(LoopParts& parts) {
  std::unordered_set<const VariableNode*> read;
  for (const Variable& v : values_of(parts.inner_outputs())) read.insert(v.node());
  std::erase_if(parts.reads, [&](const auto& r) { return !read.contains(r.inner.node()); });
  std::erase_if(parts.captured, [&](const auto& c) { return !read.contains(c.inner.node()); });
}

std::vector<Variable> without_unused(const Apply& apply, const std::vector<bool>& is_used) {
  const auto& op = dynamic_cast<const Loop&>(apply.op());
  LoopParts parts = op.parts(apply);
  std::vector<Variable> result(apply.output_count());
  std::vector<bool> is_mapped_used;
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    is_mapped_used.push_back(is_used[op.mapped_output(m)]);
  }
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    LoopParts::State& state = parts.states[k];
    state.has_history = state.has_history && is_used[*op.history_output(k)];
    state.has_last = state.has_last && is_used[*op.last_output(k)];
  }
  const std::vector<bool> needed = needed_states(parts, is_mapped_used);
  LoopParts kept = parts;
  kept.states.clear();
  kept.mapped.clear();
  for (std::size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) kept.states.push_back(parts.states[k]);
  }
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    if (is_mapped_used[m]) kept.mapped.push_back(parts.mapped[m]);
  }
  // The last value is the last row of a history that is there anyway.
  std::vector<bool> is_last_in_history;
  for (LoopParts::State& state : kept.states) {
    is_last_in_history.push_back(state.has_history && state.has_last && !kept.keeps_room);
    if (is_last_in_history.back()) state.has_last = false;
  }
  drop_unread(kept);
  const Apply made = Loop::make(std::move(kept));
  const auto& new_op = dynamic_cast<const Loop&>(made.op());
  for (std::size_t k = 0, i = 0; k < needed.size(); ++k) {
    if (!needed[k]) continue;
    if (parts.states[k].has_history) {
      result[*op.history_output(k)] = made.output(*new_op.history_output(i));
    }
    if (parts.states[k].has_last) {
      result[*op.last_output(k)] = is_last_in_history[i]
                                       ? index(made.output(*new_op.history_output(i)), {-1})
                                       : made.output(*new_op.last_output(i));
    }
    ++i;
  }
  for (std::size_t m = 0, i = 0; m < is_mapped_used.size(); ++m) {
    if (is_mapped_used[m]) result[op.mapped_output(m)] = made.output(new_op.mapped_output(i++));
  }
  if (parts.until.defined() && is_used[op.count_output()]) {
    result[op.count_output()] = made.output(new_op.count_output());
  }
  return result;
}

namespace {

// True if the loop computes an unused output, or a last value beside a history.
bool has_unused(const Loop& op, const std::vector<bool>& is_used) {
  const auto& states = op.structure().states;
  for (std::size_t k = 0; k < states.size(); ++k) {
    const auto history = op.history_output(k), last = op.last_output(k);
    if (history && !is_used[*history]) return true;
    if (history && last && !op.structure().keeps_room) return true;
    if (last && !is_used[*last]) return true;
  }
  for (std::size_t m = 0; m < op.structure().mapped.size(); ++m) {
    if (!is_used[op.mapped_output(m)]) return true;
  }
  return false;
}

}  // namespace

// Users come first: without a loop's unused outputs, another one may lose its last use.
int drop_unused_of_loops(FunctionGraph& graph) {
  int dropped = 0;
  std::vector<Apply> order = graph.toposort();
  std::reverse(order.begin(), order.end());
  for (const Apply& node : order) {
    const auto* const loop = dynamic_cast<const Loop*>(&node.op());
    if (!loop || !graph.contains(node)) continue;
    std::vector<bool> is_used;
    for (const Variable& v : node.outputs()) is_used.push_back(!graph.uses(v).empty());
    if (!has_unused(*loop, is_used)) continue;
    const std::vector<Variable> with = without_unused(node, is_used);
    std::vector<std::pair<Variable, Variable>> pairs;
    for (std::size_t k = 0; k < with.size(); ++k) {
      if (with[k].defined()) pairs.emplace_back(node.output(k), with[k]);
    }
    graph.replace_all(pairs, "drop_unused_of_loops");
    ++dropped;
  }
  return dropped;
}

Variable without_unused_of_loops(const Variable& v) {
  const std::vector<Apply> nodes = applications_of({&v, 1});
  const bool has_loop = std::any_of(nodes.begin(), nodes.end(), [](const Apply& node) {
    return dynamic_cast<const Loop*>(&node.op()) != nullptr;
  });
  if (!has_loop) return v;
  std::vector<Variable> roots = values_of({&v, 1});
  std::erase_if(roots, [](const Variable& x) { return !x.is_root() || x.is_constant(); });
  FunctionGraph graph(roots, {v});
  drop_unused_of_loops(graph);
  return clone_graph(graph.outputs(), graph.inputs(), roots)[0];
}

Apply pure_twin(const Apply& node, std::span<const Variable> inputs) {
  const Apply made = node.op().pure()->make_node(inputs);
  const auto* const loop = dynamic_cast<const Loop*>(&made.op());
  if (!loop) return made;
  const std::vector<Variable>& roots = loop->body_inputs();
  return with_body(made, roots, map_graph(loop->body_outputs(), roots, roots, pure_twin));
}

Apply with_body(const Apply& apply, std::span<const Variable> inputs,
                std::span<const Variable> outputs) {
  LoopParts parts = dynamic_cast<const Loop&>(apply.op()).parts(apply);
  std::size_t in = 0, out = 0;
  for (LoopParts::Read& read : parts.reads) read.inner = inputs[in++];
  for (LoopParts::State& state : parts.states) {
    for (Variable& v : state.inner) v = inputs[in++];
    state.next = outputs[out++];
  }
  for (LoopParts::Captured& value : parts.captured) value.inner = inputs[in++];
  for (Variable& v : parts.mapped) v = outputs[out++];
  if (parts.until.defined()) parts.until = outputs[out++];
  return Loop::make(std::move(parts));
}

}  // namespace palimpsest::ops
