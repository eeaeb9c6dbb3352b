// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/stages/staged.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/stages/staged_run.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
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
  options.trust_input = true;  // values of the program's own
  return options;
}

// The program's graph, which overwrites nothing.
FunctionGraph pure_graph(const FunctionGraph& graph) {
  std::vector<Variable> inputs;
  for (const Variable& v : graph.inputs()) copy_marks(v, inputs.emplace_back(make_input(v.type())));
  std::vector<Variable> outputs =
      map_graph(graph.outputs(), graph.inputs(), inputs, ops::pure_twin);
  return {std::move(inputs), std::move(outputs), {.clone = false}};
}

// An element that stands for all elements; they are never read.
Tensor without_values(const TensorType& type) {
  const bool is_empty = element_count(type.shape) == 0;
  return is_empty ? Tensor::empty(type.shape, type.dtype, type.device)
                  : Tensor::zeros({}, type.dtype, type.device).expand(type.shape);
}

// Runs an op by itself, with memory of the extents that it measures. It runs on the host, like the
// steps of plans on accelerators.
std::vector<Tensor> run_measured(const Apply& node, const ops::MeasuredOp& op,
                                 const std::vector<Tensor>& given) {
  std::vector<Tensor> inputs;
  std::vector<ConstView> views;
  std::vector<Layout> layouts;
  for (const Tensor& t : given) inputs.push_back(on_host(t));
  for (const Tensor& t : inputs) {
    views.push_back(t.view_of());
    layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
  }
  const std::vector<Extents> extents = op.measured_shapes(node, views);
  std::vector<Tensor> results;
  std::vector<MutableView> outputs;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    const TensorType& type = node.output(k).type();
    const TensorType got{type.dtype, extents[k], type.device};
    if (!type.is_super(got)) {
      throw ShapeError("[" + op.name() + "] output " + std::to_string(k) + ": got " + got.str() +
                       ", expected " + type.str());
    }
    if (!op.has_values()) return {without_values(got)};
    results.push_back(Tensor::empty(got.shape, got.dtype, host_of(got.device)));
    outputs.push_back(results.back().mutable_view());
  }
  Storage scratch;
  std::span<std::byte> room;
  if (const std::size_t n = op.scratch_bytes(node, layouts)) {
    scratch = Storage::allocate(n, host_of(node.output(0).type().device), "scratch");
    room = {scratch.overwrite_data(), scratch.nbytes()};
  }
  RunContext context(views, outputs, room);
  try {
    op.run(context);
    context.take_set_outputs();
  } catch (...) {
    for (const Tensor& t : inputs) LentMemory::share(t.storage());
    for (const Tensor& t : results) LentMemory::share(t.storage());
    throw;
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Device device = node.output(k).type().device;
    if (!device.is_host()) results[k] = results[k].to(device);
  }
  return results;
}

}  // namespace

StagedProgram::StagedProgram(const Program& program)
    : config_(program.config),
      options_(options_of_stages(program)),
      graph_(pure_graph(program.graph)),
      cut_(graph_) {}

std::shared_ptr<const Stages> StagedProgram::make(const Program& program) {
  return std::make_shared<StagedProgram>(program);
}

StagedProgram::Result StagedProgram::run(std::span<const Tensor* const> inputs) const {
  return StagedRun(*this, inputs).run();
}

const Function& StagedProgram::compiled(const void* part, int number,
                                        const std::function<Signature()>& signature) const {
  const std::lock_guard guard(lock_);
  const std::pair key(part, number);
  if (const auto found = compiled_.find(key); found != compiled_.end()) return found->second;
  const ConfigScope scope(config_);
  Signature of = signature();
  std::vector<Out> outputs;
  for (const Variable& v : of.outputs)
    outputs.emplace_back(v, OutOptions{.return_internal_type = true});
  Function made = function(std::move(of.inputs), std::move(outputs), options_);
  const ForkSection whole;
  return compiled_.emplace(key, std::move(made)).first->second;
}

// -- values ------------------------------------------------------------------------------------

StagedRun::StagedRun(const StagedProgram& program, std::span<const Tensor* const> inputs)
    : program_(program), inputs_(inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values_[program.graph_.inputs()[i].node()] = *inputs[i];
    ++blocks_[inputs[i]->storage().data()].n_values;
  }
}

const Tensor& StagedRun::value_of(const Variable& v) const {
  if (v.is_constant()) return v.node()->value;
  if (const auto error = errors_.find(v.node()); error != errors_.end()) {
    std::rethrow_exception(error->second);
  }
  return values_.at(v.node());
}

Tensor StagedRun::placed(const Variable& v) const {
  const Tensor& value = value_of(v);
  const Device device = v.type().device;
  return v.is_constant() && value.device() != device ? value.to(device) : value;
}

void StagedRun::hold(const Variable& v, Tensor value) {
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
  const auto block = blocks_.find(found->second.storage().data());
  if (--block->second.n_values == 0) {
    held_bytes_ -= block->second.bytes;
    blocks_.erase(block);
  }
  values_.erase(found);
}

// Every output gets a Storage without another owner.
std::vector<Tensor> StagedRun::outputs() const {
  std::unordered_set<const void*> taken;
  for (const Tensor* const input : inputs_) taken.insert(input->storage().data());
  std::vector<Tensor> outputs;
  for (const Variable& v : program_.graph_.outputs()) {
    const Tensor value = placed(v);
    const bool is_new = !v.is_constant() && taken.insert(value.storage().data()).second;
    outputs.push_back(is_new ? value : value.lazy_clone());
  }
  return outputs;
}

// -- stages ------------------------------------------------------------------------------------

StagedProgram::Result StagedRun::run() {
  for (const ProgramStage& stage : program_.cut_.stages) {
    if (is_taken(stage.branch)) try_to_run(stage);
    for (const Variable& v : stage.last) drop(v);
  }
  return {outputs(), peak_bytes_};
}

// The condition of a branch within one that is not taken may have no value.
bool StagedRun::is_taken(int branch) const {
  for (; branch >= 0; branch = program_.cut_.branches[branch].parent) {
    const Branch& at = program_.cut_.branches[branch];
    const bool has_value = at.condition.is_constant() || values_.contains(at.condition.node());
    if (!has_value || value_of(at.condition).item<bool>() != at.when) return false;
  }
  return true;
}

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

void StagedRun::try_to_run(const ProgramStage& stage) try { run(stage); } catch (const Error&) {
  if (stage.is_needed) throw;
  for (const Variable& v : stage.outputs) errors_[v.node()] = std::current_exception();
}

void StagedRun::run(const ProgramStage& stage) {
  std::vector<Tensor> results;
  if (stage.node.defined()) {
    if (const auto* const choice = dynamic_cast<const ops::IfElse*>(&stage.node.op())) {
      return choose(stage.node, *choice);
    }
    std::vector<Tensor> inputs;
    std::vector<Extents> extents;
    for (const Variable& v : stage.node.inputs()) {
      inputs.push_back(value_of(v));
      extents.push_back(inputs.back().shape());
    }
    if (const auto* const measured = dynamic_cast<const ops::MeasuredOp*>(&stage.node.op())) {
      results = with_note(stage.node, extents,
                          [&] { return run_measured(stage.node, *measured, inputs); });
    } else {
      results = run_loop(stage.node, inputs, extents);
    }
  } else {
    const Function& f = program_.compiled(&stage, 0, [&] {
      StagedProgram::Signature of{.outputs = stage.outputs};
      for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
        const bool is_lent = stage.is_lent[i];
        of.inputs.emplace_back(stage.inputs[i],
                               InOptions{.is_mutable = is_lent, .borrow = is_lent});
      }
      return of;
    });
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      arguments.push_back(value_of(stage.inputs[i]));
      if (stage.is_lent[i]) drop(stage.inputs[i]);
    }
    results = call(f, std::move(arguments));
  }
  for (std::size_t k = 0; k < results.size(); ++k) hold(stage.outputs[k], std::move(results[k]));
  peak_bytes_ = std::max(peak_bytes_, held_bytes_);
}

// A lazy clone, so that a stage that overwrites one of the two leaves the other.
void StagedRun::choose(const Apply& node, const ops::IfElse& choice) {
  const bool holds = value_of(node.input(0)).item<bool>();
  for (std::size_t k = 0; k < choice.count(); ++k) {
    const Variable& v = node.input(holds ? choice.then_input(k) : choice.else_input(k));
    Tensor value = placed(v).lazy_clone();
    const bool is_given = v.is_constant() && v.node()->value.device() == value.device();
    if (is_given) ++blocks_[value.storage().data()].n_values;
    hold(node.output(k), std::move(value));
  }
}

}  // namespace palimpsest
