// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/stages/staged.hpp"

#include <algorithm>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/stages/staged_run.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/graph/origin.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/plan/notes.hpp"

namespace palimpsest {

StagedProgram::StagedProgram(const Program& program)
    : config_(program.config),
      mode_(program.inspection ? Mode(program.mode, program.inspection) : program.mode),
      budget_(program.budget) {
  std::unordered_map<const VariableNode*, Variable> twins;
  const auto twin = [&](const Variable& v, const Variable& of) {
    v.node()->name = of.name();
    v.node()->tags = of.tags();
    twins.emplace(of.node(), v);
  };
  for (const Variable& v : program.graph.inputs()) {
    inputs_.push_back(make_input(v.type(), v.name()));
    twin(inputs_.back(), v);
  }
  const auto twin_of = [&](const Variable& v) { return v.is_constant() ? v : twins.at(v.node()); };
  for (const Apply& node : program.graph.toposort()) {
    std::vector<Variable> inputs;
    for (const Variable& v : node.inputs()) inputs.push_back(twin_of(v));
    Apply made = node.op().pure()->make_node(inputs);
    if (dynamic_cast<const ops::Loop*>(&made.op())) made = ops::with_pure_body(made);
    made.node()->built_at = node.node()->built_at;
    copy_origin(node, made);
    for (std::size_t k = 0; k < node.output_count(); ++k) twin(made.output(k), node.output(k));
  }
  for (const Variable& v : program.graph.outputs()) outputs_.push_back(twin_of(v));
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

Function StagedProgram::compiled(std::vector<In> inputs,
                                 const std::vector<Variable>& outputs) const {
  const ConfigScope scope(config_);
  FunctionOptions options;
  options.mode = mode_;
  options.profile = false;
  options.on_unused_input = Reaction::ignore;
  options.no_default_updates = true;
  options.trust_input = true;
  return function(std::move(inputs), std::vector<Out>(outputs.begin(), outputs.end()),
                  std::move(options));
}

// -- pending work ------------------------------------------------------------------------------

StagedRun::StagedRun(const StagedProgram& program, std::span<const Tensor* const> inputs)
    : program_(program) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values_[program.inputs_[i].node()] = *inputs[i];
  }
}

StagedProgram::Result StagedRun::run() {
  for (;;) {
    survey();
    const std::vector<Apply> decisions = next_decisions();
    if (decisions.empty()) return {finish(), peak_bytes_};
    advance(decisions);
  }
}

// The variable that stands for v after the branches decided so far.
Variable StagedRun::resolved(Variable v) const {
  for (auto it = stands_for_.find(v.node()); it != stands_for_.end();) {
    v = it->second;
    it = stands_for_.find(v.node());
  }
  return v;
}

bool StagedRun::is_known(const Variable& v) const {
  return v.is_constant() || values_.contains(v.node());
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
    const Variable v = resolved(raw);
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

std::optional<Extents> StagedRun::extents_of(const Variable& raw) const {
  const Variable v = resolved(raw);
  if (v.is_constant()) return v.node()->value.shape();
  const auto value = values_.find(v.node());
  return value != values_.end() ? value->second.shape() : extents_.at(v.node());
}

void StagedRun::find_extents(const Apply& node) {
  std::vector<Extents> inputs;
  bool are_known = true;
  for (const Variable& v : node.inputs()) {
    const std::optional<Extents> extents = extents_of(v);
    are_known = are_known && extents;
    inputs.push_back(extents.value_or(Extents()));
  }
  std::vector<Extents> outputs;
  if (are_known) {
    try {
      if (ops::has_run_time_extents(node, inputs)) {
        undecided_.insert(node.node());
      } else {
        outputs = inferred_shapes(node, inputs);
      }
    } catch (Error& error) {
      error.add_note(describe_node(node, inputs));
      if (!dynamic_cast<const ShapeError*>(&error)) throw;
      misfits_.emplace(node.node(), std::current_exception());
    }
  }
  for (std::size_t k = 0; k < node.output_count(); ++k) {
    auto& extents = extents_[node.output(k).node()];
    extents = outputs.empty() ? std::optional<Extents>() : std::move(outputs[k]);
  }
}

void StagedRun::survey() {
  order_ = nodes_for(program_.outputs_);
  extents_.clear();
  undecided_.clear();
  misfits_.clear();
  drop_unneeded();
  for (const Apply& node : order_) find_extents(node);
}

void StagedRun::drop_unneeded() {
  std::unordered_set<const VariableNode*> needed;
  for (const Variable& v : program_.outputs_) needed.insert(resolved(v).node());
  for (const Apply& node : order_) {
    for (const Variable& v : node.inputs()) needed.insert(resolved(v).node());
  }
  std::erase_if(values_, [&](const auto& entry) { return !needed.contains(entry.first); });
}

// True for an ifelse whose branches have unknown extents or extents that differ.
bool StagedRun::is_open_choice(const Apply& node) const {
  return dynamic_cast<const ops::IfElse*>(&node.op()) && !extents_.at(node.output(0).node());
}

bool StagedRun::is_ready(const Apply& node) const {
  if (is_open_choice(node)) return extents_of(node.input(0)).has_value();
  return undecided_.contains(node.node());
}

// Decisions that are needed now. A node that only an undecided branch needs waits for that branch;
// a misfit in it is no error before the branch is taken.
std::vector<Apply> StagedRun::next_decisions() const {
  std::vector<Apply> decisions;
  Nodes seen;
  std::vector<Variable> stack(program_.outputs_.rbegin(), program_.outputs_.rend());
  while (!stack.empty()) {
    const Variable v = resolved(stack.back());
    stack.pop_back();
    if (is_known(v) || !seen.insert(v.owner().node()).second) continue;
    const Apply node = v.owner();
    const auto misfit = misfits_.find(node.node());
    if (misfit != misfits_.end()) std::rethrow_exception(misfit->second);
    if (is_ready(node)) decisions.push_back(node);
    const auto inputs = node.inputs();
    const std::size_t n = is_open_choice(node) ? 1 : inputs.size();
    for (std::size_t i = n; i-- > 0;) stack.push_back(inputs[i]);
  }
  return decisions;
}

// -- doing it ----------------------------------------------------------------------------------

index_t StagedRun::held_bytes() const {
  std::unordered_set<const void*> seen;
  index_t total = 0;
  for (const auto& [v, value] : values_) {
    if (std::any_of(program_.inputs_.begin(), program_.inputs_.end(),
                    [&node = v](const Variable& input) { return input.node() == node; })) {
      continue;
    }
    if (seen.insert(value.storage().data()).second) {
      total += static_cast<index_t>(value.storage().nbytes());
    }
  }
  return total;
}

std::vector<Tensor> StagedRun::call(const Function& f, std::vector<Tensor> arguments) {
  const index_t held = held_bytes();
  if (program_.budget_) {
    const Plan& plan = f.plan(arguments);
    if (held + plan.peak_bytes > *program_.budget_) {
      throw BudgetError("[function] a stage exceeds the budget: got a peak of " +
                        std::to_string(held + plan.peak_bytes) + " bytes, of which " +
                        std::to_string(held) + " are values of earlier stages, expected at most " +
                        std::to_string(*program_.budget_) + ". Try smaller parts");
    }
  }
  std::vector<Tensor> results(f.output_count());
  CallReport report;
  f.call(arguments, results, &report);
  peak_bytes_ = std::max(peak_bytes_, held + report.peak_bytes);
  return results;
}

StagedRun::Piece StagedRun::piece_for(const std::vector<Variable>& wanted) const {
  Piece piece{.nodes = nodes_for(wanted), .outputs = wanted};
  Nodes inside;
  for (const Apply& node : piece.nodes) inside.insert(node.node());
  // Values that something else needs too stay.
  std::unordered_set<const VariableNode*> needed_later;
  for (const Variable& v : program_.outputs_) needed_later.insert(resolved(v).node());
  for (const Apply& node : order_) {
    if (inside.contains(node.node())) continue;
    for (const Variable& v : node.inputs()) needed_later.insert(resolved(v).node());
  }
  std::unordered_set<const VariableNode*> seen;
  const auto note_input = [&](const Variable& v) {
    if (v.is_constant() || !values_.contains(v.node()) || !seen.insert(v.node()).second) return;
    piece.inputs.push_back(v);
    piece.is_lent.push_back(v.owner().defined() && !needed_later.contains(v.node()));
  };
  for (const Apply& node : piece.nodes) {
    for (const Variable& v : node.inputs()) note_input(resolved(v));
    for (const Variable& v : node.outputs()) {
      const bool is_wanted = std::find(wanted.begin(), wanted.end(), v) != wanted.end();
      if (needed_later.contains(v.node()) && !is_wanted) piece.outputs.push_back(v);
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
  for (const Apply& node : piece.nodes) {
    for (const Variable& v : node.inputs()) {
      if (resolved(v) != v) key.insert(key.end(), {number(v), number(resolved(v))});
    }
  }
  return key;
}

Function StagedRun::compiled(const Piece& piece) const {
  std::unordered_map<const VariableNode*, Variable> copies;
  std::vector<In> ins;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    const Variable& v = piece.inputs[i];
    const Variable copy = make_input(v.type(), v.name());
    copies.emplace(v.node(), copy);
    const bool is_lent = piece.is_lent[i];
    ins.emplace_back(copy, InOptions{.is_mutable = is_lent, .borrow = is_lent});
  }
  const auto copy_of = [&](const Variable& raw) {
    const Variable v = resolved(raw);
    return v.is_constant() ? v : copies.at(v.node());
  };
  for (const Apply& node : piece.nodes) {
    std::vector<Variable> from;
    for (const Variable& v : node.inputs()) from.push_back(copy_of(v));
    const Apply made = node.op().make_node(from);
    made.node()->built_at = node.node()->built_at;
    copy_origin(node, made);
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      made.output(k).node()->name = node.output(k).name();
      made.output(k).node()->tags = node.output(k).tags();
      copies.emplace(node.output(k).node(), made.output(k));
    }
  }
  std::vector<Variable> outs;
  for (const Variable& v : piece.outputs) outs.push_back(copy_of(v));
  return program_.compiled(std::move(ins), outs);
}

void StagedRun::compute(const std::vector<Variable>& wanted) {
  const Piece piece = piece_for(wanted);
  const Function& f = program_.piece(key_of(piece), [&] { return compiled(piece); });
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    const auto value = values_.find(piece.inputs[i].node());
    arguments.push_back(value->second);
    if (piece.is_lent[i]) values_.erase(value);
  }
  std::vector<Tensor> results = call(f, std::move(arguments));
  for (std::size_t i = 0; i < piece.outputs.size(); ++i) {
    values_[piece.outputs[i].node()] = std::move(results[i]);
  }
}

void StagedRun::advance(const std::vector<Apply>& decisions) {
  std::vector<Variable> wanted;
  for (const Apply& node : decisions) {
    const std::size_t n = is_open_choice(node) ? 1 : node.input_count();
    for (std::size_t i = 0; i < n; ++i) {
      const Variable v = resolved(node.input(i));
      if (is_known(v) || std::find(wanted.begin(), wanted.end(), v) != wanted.end()) continue;
      wanted.push_back(v);
    }
  }
  if (!wanted.empty()) compute(wanted);
  for (const Apply& node : decisions) decide(node);
}

void StagedRun::decide(const Apply& node) {
  const auto value_of = [&](const Variable& raw) {
    const Variable v = resolved(raw);
    return v.is_constant() ? v.node()->value : values_.at(v.node());
  };
  if (is_open_choice(node)) {
    const auto& choice = dynamic_cast<const ops::IfElse&>(node.op());
    const bool holds = value_of(node.input(0)).item<bool>();
    for (std::size_t k = 0; k < choice.count(); ++k) {
      stands_for_[node.output(k).node()] =
          node.input(holds ? choice.then_input(k) : choice.else_input(k));
    }
    return;
  }
  std::vector<Tensor> inputs;
  for (const Variable& v : node.inputs()) inputs.push_back(value_of(v));
  const bool is_loop = dynamic_cast<const ops::Loop*>(&node.op()) != nullptr;
  std::vector<Tensor> results = is_loop ? run_loop(node, inputs) : run_op(node, inputs);
  for (std::size_t k = 0; k < results.size(); ++k) {
    values_[node.output(k).node()] = std::move(results[k]);
  }
  peak_bytes_ = std::max(peak_bytes_, held_bytes());
}

// One element that stands for all elements; they are never read.
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
    const bool is_known =
        std::find(extents[k].begin(), extents[k].end(), kUnknown) == extents[k].end();
    if (measured && !measured->has_values()) return {without_values(extents[k], type)};
    if (is_known) results[k] = Tensor::empty(extents[k], type.dtype, type.device);
    outputs.push_back(is_known ? results[k].mutable_view()
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
  for (const Variable& raw : program_.outputs_) {
    const Variable v = resolved(raw);
    if (is_known(v) || std::find(wanted.begin(), wanted.end(), v) != wanted.end()) continue;
    wanted.push_back(v);
  }
  if (!wanted.empty()) compute(wanted);
  std::vector<Tensor> outputs;
  for (const Variable& raw : program_.outputs_) {
    const Variable v = resolved(raw);
    const bool is_input =
        std::find(program_.inputs_.begin(), program_.inputs_.end(), v) != program_.inputs_.end();
    Tensor value = v.is_constant() ? v.node()->value : values_.at(v.node());
    const bool is_taken = std::any_of(outputs.begin(), outputs.end(), [&](const Tensor& other) {
      return shares_storage(other, value);
    });
    outputs.push_back(is_input || is_taken || v.is_constant() ? value.lazy_clone() : value);
  }
  return outputs;
}

}  // namespace palimpsest
