// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function.hpp"

#include <algorithm>

#include "palimpsest/compile/compile.hpp"
#include "palimpsest/run/call.hpp"
#include "palimpsest/run/function_state.hpp"

namespace palimpsest {
namespace {

const FunctionState& checked(const std::shared_ptr<const FunctionState>& impl) {
  if (!impl) throw ValueError("[Function] undefined: expected one that function() made");
  return *impl;
}

// For errors: the cells that can be asked for by name.
std::string names_of_cells(const FunctionState& impl) {
  std::string text;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) text += (text.empty() ? "'" : ", '") + name + "'";
  };
  std::vector<bool> has_input(impl.containers.size());
  const auto add_inputs = [&](const auto& specs) {
    for (const auto& spec : specs) {
      if (spec.container < 0) continue;
      has_input[static_cast<std::size_t>(spec.container)] = true;
      add(spec.name);
    }
  };
  add_inputs(impl.program->arguments);
  add_inputs(impl.program->implicit);
  for (std::size_t c = 0; c < impl.containers.size(); ++c) {
    if (!has_input[c]) add(impl.containers[c]->name());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Function function(std::vector<In> inputs, Outputs outputs, FunctionOptions options) {
  std::string name = options.name;
  const bool is_profiled = options.profile.value_or(config().profile);
  Compiled made = compile(std::move(inputs), std::move(outputs), std::move(options));
  return Function(std::make_shared<FunctionState>(
      std::move(made.program), std::move(made.containers), std::move(name), is_profiled));
}

Results Function::call(std::span<const Argument> arguments) const {
  const std::size_t count = output_count();
  Results results(count, count == 1 ? nullptr : impl_->title);
  call_with(arguments, {results.begin(), results.end()}, {});
  return results;
}

void Function::call_into(std::span<Tensor> outs, std::span<const Argument> arguments) const {
  call_with(arguments, {}, outs);
}

void Function::call_with(std::span<const Argument> arguments, std::span<Tensor> results,
                         std::span<Tensor> outs) const {
  const FunctionState& impl = checked(impl_);
  if (results.empty() && outs.size() != output_count()) {
    throw TypeError("[call_into] got " + std::to_string(outs.size()) + " destinations, expected " +
                    std::to_string(output_count()));
  }
  Call call(impl);
  call.bind(arguments);
  call.run(results, outs, nullptr);
}

void Function::call(std::span<const Tensor> arguments, std::span<Tensor> results,
                    CallReport* report) const {
  const FunctionState& impl = checked(impl_);
  if (results.size() != output_count()) {
    throw TypeError("[call] room for " + std::to_string(results.size()) + " results, expected " +
                    std::to_string(output_count()));
  }
  Call call(impl);
  call.bind(arguments);
  call.run(results, {}, report);
}

const Plan& Function::plan(std::span<const Tensor> arguments) const {
  Call call(checked(impl_));
  call.bind(arguments);
  return call.plan();
}

const Plan& Function::plan(std::span<const TensorType> arguments) const {
  const Program& program = *checked(impl_).program;
  if (arguments.size() != program.arguments.size()) {
    throw TypeError("[plan] got " + std::to_string(arguments.size()) + " types, expected " +
                    std::to_string(program.arguments.size()));
  }
  std::vector<Layout> signature;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& type = arguments[i];
    if (!type.is_fully_known() || !program.arguments[i].type.is_super(type)) {
      throw ShapeError("[" + impl_->who(i) + "] got " + type.str() + ", expected a fully known " +
                       program.arguments[i].type.str());
    }
    signature.push_back(Layout::dense(type.dtype, type.shape));
  }
  for (std::size_t c = 0; c < program.n_container_inputs; ++c) {
    const Tensor value = impl_->containers[c]->value();
    signature.push_back({value.dtype(), value.shape(), value.strides(), 0});
  }
  const auto& entry =
      program.plans->find_or_make([&](const auto& other) { return other == signature; },
                                  [&] { return program.make_plan_for(signature); });
  return entry.plan;
}

Plan Function::plan_of_call(std::span<const Argument> arguments) const {
  Call call(checked(impl_));
  call.bind(arguments);
  return call.plan_with_copies();
}

const Plan* Function::latest_plan() const { return checked(impl_).program->plans->latest(); }

void Function::prepare(std::span<const Tensor> arguments) const {
  Call call(checked(impl_));
  call.bind(arguments);
  call.prepare();
}

void Function::free() const { checked(impl_).pool->clear(); }
void Function::allow_gc(bool value) const { checked(impl_).pool->set_allow_gc(value); }
std::size_t Function::idle_frame_count() const { return checked(impl_).pool->size(); }

std::size_t Function::output_count() const { return checked(impl_).program->outputs.size(); }
bool Function::is_single() const { return checked(impl_).program->is_single; }
const FunctionState& Function::impl() const { return checked(impl_); }
const FunctionGraph& Function::graph() const { return checked(impl_).program->graph; }
std::vector<Apply> Function::steps() const { return graph().toposort(); }
const std::vector<InplaceRefusal>& Function::inplace_report() const {
  return impl().program->refusals;
}

Mode Function::mode() const { return checked(impl_).program->mode; }
Profile Function::profile() const {
  const FunctionState& impl = checked(impl_);
  if (!impl.profiler) {
    throw ValueError("[" + impl.who() +
                     "] is not profiled. Try FunctionOptions::profile = true, or the config's");
  }
  Profile profile;
  profile.function = impl.name;
  profile.compile_seconds = impl.program->compile_seconds;
  profile.rewrites = impl.program->rewrites;
  profile.refusals = impl.program->refusals;
  profile.plans = impl.profiler->plans();
  for (const PlanProfile& plan : profile.plans) {
    profile.calls += plan.calls;
    profile.call_seconds += plan.seconds;
    profile.check_seconds += plan.check_seconds;
    for (const StepProfile& step : plan.steps) profile.step_seconds += step.seconds;
  }
  return profile;
}

const std::string& Function::name() const { return checked(impl_).name; }

std::vector<Variable> Function::inputs() const {
  const Program& program = *checked(impl_).program;
  std::vector<Variable> result;
  for (const ArgumentSpec& spec : program.arguments) result.push_back(spec.variable);
  for (const ImplicitSpec& spec : program.implicit) result.push_back(spec.variable);
  return result;
}

Container& Function::container(const Variable& input) const {
  const FunctionState& impl = checked(impl_);
  const auto cell = [&](int c) -> Container& {
    return *impl.containers[static_cast<std::size_t>(c)];
  };
  for (const ArgumentSpec& spec : impl.program->arguments) {
    if (spec.variable == input && spec.container >= 0) return cell(spec.container);
  }
  for (const ImplicitSpec& spec : impl.program->implicit) {
    if (spec.variable == input) return cell(spec.container);
  }
  for (std::size_t c = 0; c < impl.containers.size(); ++c) {
    const auto& variables = impl.program->containers[c].variables;
    if (std::find(variables.begin(), variables.end(), input) != variables.end()) {
      return cell(static_cast<int>(c));
    }
  }
  throw ValueError("[container] " + input.str() +
                   " has none: expected an input with a value or a "
                   "shared variable that the function uses");
}

Container& Function::container(std::string_view name) const {
  const FunctionState& impl = checked(impl_);
  const auto find = [&](const auto& specs) -> Container* {
    for (const auto& spec : specs) {
      if (spec.name != name || spec.container < 0) continue;
      return impl.containers[static_cast<std::size_t>(spec.container)].get();
    }
    return nullptr;
  };
  if (Container* const cell = find(impl.program->arguments)) return *cell;
  if (Container* const cell = find(impl.program->implicit)) return *cell;
  Container* found = nullptr;
  for (const auto& cell : impl.containers) {
    if (name.empty() || cell->name() != name) continue;
    if (found) {
      throw ValueError("[" + impl.who() + ".container] several shared variables are called '" +
                       std::string(name) + "'. Try container(variable) or shared_variables()");
    }
    found = cell.get();
  }
  if (found) return *found;
  throw ValueError("[" + impl.who() + ".container] '" + std::string(name) +
                   "': got the name of no input with a value and of no shared variable, expected "
                   "one of " +
                   names_of_cells(impl));
}

std::vector<std::shared_ptr<Container>> Function::shared_variables() const {
  return checked(impl_).containers;
}

std::string debugprint(const Function& f, const DebugPrintOptions& options) {
  return debugprint(f.graph(), options, f.latest_plan());
}

std::string to_dot(const Function& f, const DebugPrintOptions& options) {
  return to_dot(f.graph(), options, f.latest_plan());
}

std::string Function::dprint(const DebugPrintOptions& options) const {
  return debugprint(*this, options);
}

}  // namespace palimpsest
