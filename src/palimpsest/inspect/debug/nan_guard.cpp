// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/nan_guard.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "palimpsest/base/log.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/inspect/debug/scan_values.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/frame.hpp"
#include "palimpsest/run/inspection.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {
namespace {

// A step of several scalar operations; null for any other.
const ElementwiseProgram* fused_program(const Apply& node) {
  const auto* const op = dynamic_cast<const ops::Elementwise*>(&node.op());
  if (!op) return nullptr;
  int operations = 0;
  for (const auto& instruction : op->program().instructions()) {
    operations += instruction.op != ScalarOp::identity ? 1 : 0;
  }
  return operations > 1 ? &op->program() : nullptr;
}

// An element of any dtype.
struct Element {
  alignas(16) std::array<std::byte, 16> bytes{};
  DType dtype = DType::float64;
  ConstView view() const { return {bytes.data(), dtype, {}, {}}; }
};

Element element_at(const ConstView& view, const Extents& index) {
  index_t offset = 0;
  for (std::size_t k = 0; k < view.rank(); ++k) {
    if (view.extents[k] > 1) offset += view.strides[k] * index[k];
  }
  Element element;
  element.dtype = view.dtype;
  const std::size_t size = item_size(view.dtype);
  std::memcpy(element.bytes.data(),
              static_cast<const std::byte*>(view.data) + offset * static_cast<index_t>(size), size);
  return element;
}

Element run_one(const ElementwiseProgram::Instruction& instruction,
                const std::vector<Element>& registers) {
  ElementwiseProgram single;
  std::vector<int> sources;
  std::vector<ConstView> inputs;
  for (const std::int16_t source : instruction.sources) {
    if (source < 0) continue;
    const Element& operand = registers[at(source)];
    sources.push_back(single.input(operand.dtype));
    inputs.push_back(operand.view());
  }
  const bool is_cast = instruction.op == ScalarOp::identity;
  single.output(is_cast ? single.cast(sources[0], instruction.dtype)
                        : single.apply(instruction.op, sources));
  Element result;
  result.dtype = instruction.dtype;
  const MutableView outputs[] = {{result.bytes.data(), result.dtype, {}, {}}};
  run_elementwise(single, inputs, outputs);
  return result;
}

// Runs a fused step unfused on the operands of one element: the first operation in it with a bad
// result.
std::string inner_op_of(const ElementwiseProgram& program, std::span<const Element> operands,
                        const NumberLimits& limits) {
  std::vector<Element> registers(at(program.n_registers()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    registers[at(program.inputs()[i])] = operands[i];
  }
  for (const auto& instruction : program.instructions()) {
    Element& result = registers[at(instruction.destination)];
    result = run_one(instruction, registers);
    if (scan_numbers(result.view(), limits)) return std::string(name_of(instruction.op));
  }
  return {};
}

std::string quoted(const Variable& v) {
  return v.name().empty() ? v.type().str() : "'" + v.name() + "'";
}

class NanGuardWatch final : public CallWatch {
 public:
  NanGuardWatch(const NanGuardOptions& options, const NumberLimits& limits, const CallAccess& call)
      : options_(options), limits_(limits), program_(call.program) {
    const auto& inputs = program_.graph.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_argument = i < program_.arguments.size();
      examine(inputs[i], call.inputs[i]->view_of(),
              is_argument ? "argument " + std::to_string(i) : "shared variable");
    }
    for (const Variable& v : call.plan.constants) {
      examine(v, v.node()->value.view_of(), "constant");
    }
  }

  // Examines the inputs before the step, which may overwrite them. Inputs can be affected only if a
  // value was exempt or let pass before.
  void before_step(const StepAccess& access) override {
    affected_.clear();
    const bool copies = fused_program(access.node) && !overwritten_inputs(access.node).empty();
    if (!copies) saved_.clear();
    for (std::size_t i = 0; i < access.inputs.size(); ++i) {
      if (may_be_affected_) {
        if (NumberScan scan = scan_numbers(access.inputs[i], limits_)) {
          affected_[static_cast<int>(i)] = std::move(scan);
        }
      }
    }
    if (copies) save(access);
  }

  void after_step(const StepAccess& access) override {
    for (std::size_t k = 0; k < access.outputs.size(); ++k) {
      const Variable v = access.node.output(k);
      if (is_exempt(v)) continue;
      if (const NumberScan scan = scan_numbers(access.outputs[k], limits_)) {
        may_be_affected_ = true;
        options_.action(report_of(access, k, scan));
      }
    }
  }

 private:
  bool is_exempt(const Variable& v) {
    if (v.tags().nan_guard) return false;
    may_be_affected_ = true;
    return true;
  }

  void examine(const Variable& v, const ConstView& view, const std::string& role) {
    if (is_exempt(v)) return;
    const NumberScan scan = scan_numbers(view, limits_);
    if (!scan) return;
    may_be_affected_ = true;
    NanGuardReport report = started_report(scan);
    report.variable = v;
    report.text =
        fmt::format("[NanGuardMode] {} in {} {}: {}", report.kind, role, quoted(v), numbers(scan));
    options_.action(std::move(report));
  }

  static NanGuardReport started_report(const NumberScan& scan) {
    NanGuardReport report;
    report.kind = std::string(name_of(scan.kind));
    report.index = scan.index;
    report.value = scan.value;
    report.bad_elements = scan.bad;
    report.elements = scan.elements;
    return report;
  }

  std::string numbers(const NumberScan& scan) const {
    return fmt::format("got {} at {}, {} of {} elements, expected {}", scan.value,
                       to_string(scan.index), scan.bad, scan.elements,
                       limits_.big ? fmt::format("numbers up to {:g}", limits_.largest)
                                   : std::string("finite numbers"));
  }

  NanGuardReport report_of(const StepAccess& access, std::size_t k, const NumberScan& scan) const {
    NanGuardReport report = started_report(scan);
    report.variable = access.node.output(k);
    report.node = access.node;
    report.step = static_cast<int>(access.step);
    const std::string step = fmt::format("{} (step {})", access.node.op().name(), access.step);
    if (const ElementwiseProgram* const program = fused_program(access.node)) {
      report.inner_op = inner_op_of(*program, operands_at(access, scan.index), limits_);
    }
    report.text = fmt::format("[NanGuardMode] {} in the result {} of {}: {}", report.kind,
                              quoted(report.variable), step, numbers(scan));
    for (const auto& [input, found] : affected_) report.affected_inputs.push_back(input);
    if (!affected_.empty()) {
      const auto& [input, found] = *affected_.begin();
      report.kind = std::string(name_of(found.kind));
      report.variable = access.node.input(at(input));
      report.text = fmt::format(
          "[NanGuardMode] {} in {}, input {} of {}, passes on to the result {}: {}", report.kind,
          quoted(report.variable), input, step, quoted(access.node.output(k)), numbers(found));
    } else if (!report.inner_op.empty()) {
      report.text += ". The first operation of the fused step that gives one is " + report.inner_op;
    }
    std::string list;
    for (int input : report.affected_inputs) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", input);
    }
    report.text += ". Inputs affected before the step: " + (list.empty() ? "none" : list);
    return report;
  }

  // Operands of the fused step as they were before it.
  std::vector<Element> operands_at(const StepAccess& access, const Extents& index) const {
    std::vector<Element> operands;
    for (std::size_t i = 0; i < access.inputs.size(); ++i) {
      ConstView view = access.inputs[i];
      if (i < saved_.size() && saved_[i]) {
        view.data = saved_[i]->bytes.data();
        view.strides = saved_[i]->strides;
      }
      operands.push_back(element_at(view, index));
    }
    return operands;
  }

  void save(const StepAccess& access) {
    saved_.assign(access.inputs.size(), std::nullopt);
    const std::set<int> overwritten = overwritten_inputs(access.node);
    for (std::size_t i = 0; i < access.inputs.size(); ++i) {
      // An overwritten input may be another input too.
      const bool same = std::any_of(overwritten.begin(), overwritten.end(), [&](int d) {
        return access.inputs[at(d)].data == access.inputs[i].data;
      });
      if (same) saved_[i] = copy_of(access.inputs[i]);
    }
  }

  // A dense copy, in memory that no plan knows of.
  struct Saved {
    std::vector<std::byte> bytes;
    Strides strides;
  };
  static Saved copy_of(const ConstView& view) {
    const Extents extents(view.extents.begin(), view.extents.end());
    Saved saved{std::vector<std::byte>(static_cast<std::size_t>(byte_count(extents, view.dtype))),
                contiguous_strides(extents)};
    strided_copy(view, {saved.bytes.data(), view.dtype, view.extents, saved.strides});
    return saved;
  }

  const NanGuardOptions& options_;
  const NumberLimits& limits_;
  const Program& program_;
  bool may_be_affected_ = false;
  std::map<int, NumberScan> affected_;       // inputs of the present step
  std::vector<std::optional<Saved>> saved_;  // inputs of the present step that it overwrites
};

class NanGuardInspection final : public Inspection {
 public:
  explicit NanGuardInspection(NanGuardOptions options)
      : options_(std::move(options)),
        limits_{options_.nan_is_error, options_.inf_is_error, options_.big_is_error, options_.big} {
  }
  std::string_view name() const override { return "NanGuardMode"; }
  std::unique_ptr<CallWatch> watch(const CallAccess& call) const override {
    return std::make_unique<NanGuardWatch>(options_, limits_, call);
  }

 private:
  NanGuardOptions options_;
  NumberLimits limits_;
};

}  // namespace

void NanGuardAction::operator()(NanGuardReport report) const {
  if (callback_) {
    callback_(report);
  } else if (reaction_ == Reaction::raise) {
    throw NanGuardError(std::move(report));
  } else if (reaction_ == Reaction::warn) {
    log(LogLevel::warn, report.text);
  }
}

Mode NanGuardMode(NanGuardOptions options) {
  if (!(options.big >= 0)) {
    throw ValueError(
        fmt::format("[NanGuardMode] big: got {}, expected a bound of at least 0", options.big));
  }
  const Mode base = options.base;
  return {base, std::make_shared<const NanGuardInspection>(std::move(options))};
}

}  // namespace palimpsest
