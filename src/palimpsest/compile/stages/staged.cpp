// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/stages/staged.hpp"

#include <algorithm>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/stages/staged_run.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/plan/notes.hpp"
#include "palimpsest/plan/part_places.hpp"

namespace palimpsest {
namespace {

// A loaded program knows what its mode decided, not the selection of rewrites.
FunctionOptions options_of_stages(const Program& program) {
  Mode mode = program.mode;
  if (program.keeps_bits) mode = mode.exact();
  if (!program.places_joins) mode = mode.excluding({place_joins().name});
  FunctionOptions options;
  options.mode = Mode(mode, program.inspection);
  options.budget_bytes = program.budget;
  options.profile = false;
  options.on_unused_input = Reaction::ignore;
  options.no_default_updates = true;
  options.rebuild_strict = false;  // a chosen value knows more of its extents
  options.trust_input = true;      // values of the program's own
  return options;
}

// Of a decision: the choices among them are open, even if the decision before has told the extents.
const ops::IfElse* as_choice(const Apply& node) {
  return dynamic_cast<const ops::IfElse*>(&node.op());
}

}  // namespace

StagedProgram::StagedProgram(const Program& program)
    : config_(program.config), options_(options_of_stages(program)) {
  for (const Variable& v : program.graph.inputs()) {
    copy_marks(v, inputs_.emplace_back(make_input(v.type())));
  }
  outputs_ = map_graph(program.graph.outputs(), program.graph.inputs(), inputs_, ops::pure_twin);
}

std::shared_ptr<const Stages> StagedProgram::make(const Program& program) {
  return std::make_shared<StagedProgram>(program);
}

StagedProgram::Result StagedProgram::run(std::span<const Tensor* const> inputs) const {
  return StagedRun(*this, inputs).run();
}

const Function& StagedProgram::piece(const Key& key, const std::function<Function()>& make) const {
  const std::lock_guard guard(lock_);
  if (const auto found = pieces_.find(key); found != pieces_.end()) return found->second;
  Function made = make();
  const ForkSection whole;
  return pieces_.emplace(key, std::move(made)).first->second;
}

Function StagedProgram::compiled(std::vector<In> inputs, const std::vector<Variable>& outputs,
                                 const Givens& choices) const {
  const ConfigScope scope(config_);
  FunctionOptions options = options_;
  options.givens = choices;
  return function(std::move(inputs), std::vector<Out>(outputs.begin(), outputs.end()), options);
}

// -- values ------------------------------------------------------------------------------------

StagedRun::StagedRun(const StagedProgram& program, std::span<const Tensor* const> inputs)
    : program_(program), pending_(program.inputs_, program.outputs_) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values_[program.inputs_[i].node()] = *inputs[i];
    pending_.know(program.inputs_[i], inputs[i]->shape());
  }
  pending_.need(program.outputs_);
}

StagedProgram::Result StagedRun::run() {
  for (;;) {
    const std::vector<Apply> decisions = pending_.next_decisions();
    if (decisions.empty()) return {finish(), peak_bytes_};
    advance(decisions);
  }
}

bool StagedRun::is_known(const Variable& v) const {
  return v.is_constant() || values_.contains(v.node());
}

const Tensor& StagedRun::value_of(const Variable& raw) const {
  const Variable v = pending_.resolved(raw);
  return v.is_constant() ? v.node()->value : values_.at(v.node());
}

void StagedRun::hold(const Variable& v, Tensor value) {
  pending_.know(v, value.shape());
  if (pending_.read_count(v) == 0) return;
  Block& block = blocks_[value.storage().data()];
  if (block.n_values++ == 0) {
    block.bytes = static_cast<index_t>(value.storage().nbytes());
    held_bytes_ += block.bytes;
  }
  values_[v.node()] = std::move(value);
}

void StagedRun::drop(const Variable& v) {
  const auto found = values_.find(v.node());
  if (found == values_.end()) return;
  if (v.owner().defined()) {
    const auto block = blocks_.find(found->second.storage().data());
    if (--block->second.n_values == 0) {
      held_bytes_ -= block->second.bytes;
      blocks_.erase(block);
    }
  }
  values_.erase(found);
}

// -- doing it ----------------------------------------------------------------------------------

std::vector<Tensor> StagedRun::call(const Function& f, std::vector<Tensor> arguments) {
  const index_t held = held_bytes_;
  if (const std::optional<index_t> budget = program_.options_.budget_bytes) {
    const Plan& plan = f.plan(arguments);
    if (held + plan.peak_bytes > *budget) {
      throw BudgetError("[function] a stage exceeds the budget: got a peak of " +
                        std::to_string(held + plan.peak_bytes) + " bytes, of which " +
                        std::to_string(held) + " are values of earlier stages, expected at most " +
                        std::to_string(*budget) + ". Try smaller parts");
    }
  }
  std::vector<Tensor> results(f.output_count());
  CallReport report;
  f.call(arguments, results, &report);
  peak_bytes_ = std::max(peak_bytes_, held + report.peak_bytes);
  return results;
}

// Inputs before users.
std::vector<Apply> StagedRun::nodes_for(std::span<const Variable> wanted) const {
  struct Visit {
    Apply node;
    std::size_t next = 0;
  };
  std::vector<Apply> order;
  Nodes seen;
  std::vector<Visit> stack;
  const auto enter = [&](const Variable& raw) {
    const Variable v = pending_.resolved(raw);
    if (is_known(v) || !seen.insert(v.owner().node()).second) return;
    stack.push_back({v.owner()});
  };
  for (const Variable& v : wanted) {
    enter(v);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next < top.node.input_count()) {
        enter(top.node.input(top.next++));
      } else {
        order.push_back(top.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

StagedRun::Piece StagedRun::piece_for(const std::vector<Variable>& wanted) const {
  Piece piece{.nodes = nodes_for(wanted), .outputs = wanted};
  std::unordered_map<const VariableNode*, int> reads_inside;
  for (const Apply& node : piece.nodes) {
    for (const Variable& v : node.inputs()) ++reads_inside[pending_.resolved(v).node()];
  }
  // Values that something else needs too stay.
  const auto is_needed_later = [&](const Variable& v) {
    const auto inside = reads_inside.find(v.node());
    return pending_.read_count(v) > (inside == reads_inside.end() ? 0 : inside->second);
  };
  std::unordered_set<const VariableNode*> seen, chosen;
  const auto note_input = [&](const Variable& v) {
    if (v.is_constant() || !values_.contains(v.node()) || !seen.insert(v.node()).second) return;
    piece.inputs.push_back(v);
    piece.is_lent.push_back(v.owner().defined() && !is_needed_later(v));
  };
  const std::unordered_set<Variable> is_wanted(wanted.begin(), wanted.end());
  for (const Apply& node : piece.nodes) {
    for (const Variable& v : node.inputs()) {
      const Variable by = pending_.resolved(v);
      if (by != v && chosen.insert(v.node()).second) piece.choices.emplace_back(v, by);
      note_input(by);
    }
    for (const Variable& v : node.outputs()) {
      if (is_needed_later(v) && !is_wanted.contains(v)) piece.outputs.push_back(v);
    }
  }
  return piece;
}

// Equal for pieces that compile to the same function.
StagedProgram::Key StagedRun::key_of(const Piece& piece) const {
  const auto number = [](const Variable& v) { return reinterpret_cast<std::uintptr_t>(v.node()); };
  StagedProgram::Key key;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    key.push_back(number(piece.inputs[i]) + (piece.is_lent[i] ? 1 : 0));
  }
  key.push_back(0);
  for (const Variable& v : piece.outputs) key.push_back(number(v));
  key.push_back(0);
  for (const auto& [choice, by] : piece.choices) {
    key.insert(key.end(), {number(choice), number(by.variable())});
  }
  return key;
}

Function StagedRun::compiled(const Piece& piece) const {
  std::vector<In> inputs;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    const bool is_lent = piece.is_lent[i];
    inputs.emplace_back(piece.inputs[i], InOptions{.is_mutable = is_lent, .borrow = is_lent});
  }
  return program_.compiled(std::move(inputs), piece.outputs, piece.choices);
}

void StagedRun::compute(const std::vector<Variable>& wanted) {
  const Piece piece = piece_for(wanted);
  const Function& f = program_.piece(key_of(piece), [&] { return compiled(piece); });
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    arguments.push_back(values_.at(piece.inputs[i].node()));
    if (piece.is_lent[i]) drop(piece.inputs[i]);
  }
  std::vector<Tensor> results = call(f, std::move(arguments));
  for (std::size_t i = 0; i < piece.outputs.size(); ++i) {
    hold(piece.outputs[i], std::move(results[i]));
  }
  for (const Variable& v : pending_.finish(piece.nodes)) drop(v);
}

void StagedRun::advance(const std::vector<Apply>& decisions) {
  std::vector<Variable> wanted;
  std::unordered_set<Variable> seen;
  for (const Apply& node : decisions) {
    const std::size_t n = as_choice(node) ? 1 : node.input_count();
    for (std::size_t i = 0; i < n; ++i) {
      const Variable v = pending_.resolved(node.input(i));
      if (!is_known(v) && seen.insert(v).second) wanted.push_back(v);
    }
  }
  if (!wanted.empty()) compute(wanted);
  for (const Apply& node : decisions) decide(node);
}

void StagedRun::decide(const Apply& node) {
  if (const ops::IfElse* const choice = as_choice(node)) {
    const bool holds = value_of(node.input(0)).item<bool>();
    std::vector<Variable> chosen;
    for (std::size_t k = 0; k < choice->count(); ++k) {
      chosen.push_back(node.input(holds ? choice->then_input(k) : choice->else_input(k)));
    }
    for (const Variable& v : pending_.choose(node, chosen)) drop(v);
    return;
  }
  std::vector<Tensor> inputs;
  for (const Variable& v : node.inputs()) inputs.push_back(value_of(v));
  const bool is_loop = dynamic_cast<const ops::Loop*>(&node.op()) != nullptr;
  std::vector<Tensor> results = is_loop ? run_loop(node, inputs) : run_op(node, inputs);
  for (std::size_t k = 0; k < results.size(); ++k) hold(node.output(k), std::move(results[k]));
  peak_bytes_ = std::max(peak_bytes_, held_bytes_);
  inputs.clear();
  for (const Variable& v : pending_.finish({&node, 1})) drop(v);
}

// An element that stands for all elements; they are never read.
Tensor without_values(const Extents& extents, const TensorType& type) {
  const bool is_empty = element_count(extents) == 0;
  return is_empty ? Tensor::empty(extents, type.dtype, type.device)
                  : Tensor::zeros({}, type.dtype, type.device).expand(extents);
}

// An op by itself: with memory of the extents that it measures, or with memory that it brings.
std::vector<Tensor> StagedRun::run_op(const Apply& node, const std::vector<Tensor>& inputs) const
    try {
  std::vector<ConstView> views;
  std::vector<Layout> layouts;
  std::vector<Extents> extents;
  for (const Tensor& t : inputs) {
    views.push_back(t.view_of());
    layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
    extents.push_back(t.shape());
  }
  const auto* measured = dynamic_cast<const ops::MeasuredOp*>(&node.op());
  extents = measured ? measured->measured_shapes(node, views) : inferred_shapes(node, extents);
  std::vector<Tensor> results(node.output_count());
  std::vector<MutableView> outputs;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const TensorType& type = node.output(k).type();
    const bool has_room = palimpsest::is_known(extents[k]);
    if (measured && !measured->has_values()) return {without_values(extents[k], type)};
    if (has_room) results[k] = Tensor::empty(extents[k], type.dtype, type.device);
    outputs.push_back(has_room ? results[k].mutable_view()
                               : MutableView{nullptr, type.dtype, {}, {}});
  }
  Storage scratch;
  if (const std::size_t n = node.op().scratch_bytes(node, layouts)) {
    scratch = Storage::allocate(n, node.output(0).type().device, "scratch");
  }
  const std::span<std::byte> room = scratch.defined()
                                        ? std::span(scratch.overwrite_data(), scratch.nbytes())
                                        : std::span<std::byte>();
  RunContext context(views, outputs, room);
  try {
    node.op().run(context);
  } catch (...) {
    for (const Tensor& t : inputs) LentMemory::share(t.storage());
    for (const Tensor& t : results) LentMemory::share(t.storage());
    throw;
  }
  for (const auto& [k, where] : context.set_outputs()) {
    const Tensor made = Tensor::empty(Extents(where.extents.begin(), where.extents.end()),
                                      where.dtype, node.output(k).type().device);
    Tensor target = made;
    strided_copy(where, target.mutable_view());
    results[k] = target;
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k].defined()) {
      throw InternalError("[" + node.op().name() + "] gave no value for output " +
                          std::to_string(k) + ", whose extents are known only at run time");
    }
    const TensorType got{results[k].dtype(), results[k].shape(), results[k].device()};
    if (node.output(k).type().is_super(got)) continue;
    throw ShapeError("[" + node.op().name() + "] output " + std::to_string(k) + ": got " +
                     got.str() + ", expected " + node.output(k).type().str());
  }
  return results;
} catch (Error& error) {
  std::vector<Extents> given;
  for (const Tensor& t : inputs) given.push_back(t.shape());
  error.add_note(describe_node(node, given));
  throw;
}

// Computes the remaining outputs. Every output gets a Storage without another owner.
std::vector<Tensor> StagedRun::finish() {
  std::vector<Variable> wanted;
  std::unordered_set<Variable> seen;
  for (const Variable& raw : program_.outputs_) {
    const Variable v = pending_.resolved(raw);
    if (!is_known(v) && seen.insert(v).second) wanted.push_back(v);
  }
  if (!wanted.empty()) compute(wanted);
  std::vector<Tensor> outputs;
  std::unordered_set<const void*> taken;
  for (const Variable& v : program_.outputs_) {
    const Tensor& value = value_of(v);
    const bool is_root = !pending_.resolved(v).owner().defined();
    const bool is_new = taken.insert(value.storage().data()).second;
    outputs.push_back(is_root || !is_new ? value.lazy_clone() : value);
  }
  return outputs;
}

}  // namespace palimpsest
