// SPDX-License-Identifier: Apache-2.0
// The runs of one step: layouts, execution, comparison. isolated_memory.cpp checks the memory after
// a run.
#include "palimpsest/inspect/debug/isolated_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "palimpsest/base/log.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/graph/inferred_shapes.hpp"
#include "palimpsest/inspect/debug/patterns.hpp"
#include "palimpsest/inspect/debug/scan_values.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/plan/loop_plan.hpp"

namespace palimpsest {
namespace {

// Not a number in any floating type; minus one, or the largest, in any integer.
constexpr std::byte kPoison{0xFF};
// Small positive numbers in all types.
constexpr std::byte kOtherPoison{0x3B};

double count(const Extents& extents) { return static_cast<double>(element_count(extents)); }

}  // namespace

IsolatedStep::IsolatedStep(const DebugOptions& options, const StepContext& context)
    : options_(options),
      context_(context),
      op_(context.node.op()),
      overwritten_(overwritten_inputs(context.node)),
      views_(op_.view_map(context.node)),
      destroys_(op_.destroy_map(context.node)) {
  infer();
}

void throw_wrong_shapes(const InferredShapesError& error, const StepContext& context) {
  const Apply& node = error.node();
  const int output = error.output();
  Variable v;
  std::string what =
      fmt::format("{} inferred shapes, {} outputs", error.got().size(), node.output_count());
  if (output >= 0) {
    v = node.output(static_cast<std::size_t>(output));
    what = fmt::format("output {}: inferred shape {}, type {}", output,
                       extents_text(error.got()[static_cast<std::size_t>(output)]), v.type().str());
  }
  // The op may be one of the body of a loop.
  StepContext own = context;
  if (own.node != node) {
    own.node = node;
    own.inputs.clear();
  }
  throw InvalidValueError(
      DebugMessage("InvalidValueError", own)
          .line(what)
          .finish(nullptr, "infer_shapes and the types that make_node gives must agree."),
      {context.reason, node, v, -1, output});
}

void IsolatedStep::infer() {
  std::vector<Extents> inputs;
  for (const DebugValue& v : context_.inputs) inputs.push_back(v.extents());
  try {
    extents_ = inferred_shapes(context_.node, inputs);
  } catch (const InferredShapesError& error) {
    throw_wrong_shapes(error, context_);
  }
  scratch_bytes_ = op_.scratch_bytes(context_.node, context_.layouts);
  if (dynamic_cast<const ops::Loop*>(&op_)) {
    loop_ = make_loop_plan(context_.node, context_.layouts);
    scratch_bytes_ = static_cast<std::size_t>(loop_->scratch_bytes.on_device);
  }
  for (std::size_t k = 0; k < context_.node.output_count(); ++k) {
    const Variable v = context_.node.output(k);
    out_layouts_.push_back(Layout::dense(v.dtype(), extents_[k]));
    overwrites_.push_back(-1);
    const auto destroyed = destroys_.find(static_cast<int>(k));
    if (destroyed == destroys_.end()) continue;
    overwrites_[k] = *destroyed->second.begin();
    out_layouts_[k] = context_.layouts[static_cast<std::size_t>(overwrites_[k])];
    out_layouts_[k].dtype = v.dtype();
    out_layouts_[k].byte_offset = 0;
  }
}

Tolerance IsolatedStep::tolerance() const {
  double elements = 1, results = 1, scale = 0, product = 1;
  for (std::size_t k = 0; k < context_.inputs.size(); ++k) {
    const DebugValue& v = context_.inputs[k];
    elements = std::max(elements, count(v.extents()));
    if (!is_inexact(v.dtype())) continue;
    scale = std::max(scale, scale_of(v));
    if (op_.linear_in(context_.node, static_cast<int>(k)) != Linearity::no) product *= scale_of(v);
  }
  // The terms of a product may cancel; each has been rounded at its own size.
  if (!op_.is_linear_sum(context_.node)) scale = std::max(scale, product);
  for (const Extents& extents : extents_) results = std::max(results, count(extents));
  const double terms = std::max(1.0, elements / results);
  return {op_.tolerance(context_.node) * std::sqrt(terms), scale};
}

std::vector<DebugValue> IsolatedStep::check(bool with_patterns) {
  RunSetup setup;
  setup.poison = options_.poison ? kPoison : std::byte{};
  const RunOutcome first = run(setup);
  if (first.error) rethrow(first, setup);
  check_results(first, setup);

  const Tolerance bitwise{};
  setup.side = Side::upper;
  setup.poison = options_.poison ? kOtherPoison : std::byte{};
  setup.label.pattern = "first, at the upper end of its pages";
  compare_runs(first, run(setup), setup.label, bitwise,
               "results depend on the place, or on the old content, of destinations or scratch");
  for (const int threads : options_.threads) {
    if (threads == 1 || (threads == 0 && pool_threads() == 1)) continue;
    setup.label.threads = threads;
    compare_runs(first, run(setup), setup.label, bitwise,
                 "results depend on the number of threads");
  }
  // Several processes run it equally often, and which patterns there are depends on extents; their
  // results are dense in every plan.
  if (with_patterns && !as_collective(op_)) {
    check_patterns(first);
    if (options_.warn_not_reused) log_not_reused(first);
  }
  return first.outputs;
}

void IsolatedStep::check_patterns(const RunOutcome& first) const {
  // Destinations of another size are for ops that give all of their results memory of their own.
  const bool sets =
      std::find(first.is_set.begin(), first.is_set.end(), false) == first.is_set.end();
  const Tolerance rounded = tolerance();
  for (const Pattern& pattern : patterns_for(options_, out_layouts_)) {
    if (pattern.is_wrong_size && !sets) continue;
    // The rows of a loop's results are places of the body's plan, and dense in every plan.
    const auto is_strided = [](const Destination& d) { return !d.layout.is_dense(); };
    const auto& destinations = pattern.destinations;
    if (loop_ && std::any_of(destinations.begin(), destinations.end(), is_strided)) continue;
    RunSetup setup;
    setup.label.pattern = pattern.name;
    setup.poison = options_.poison && pattern.name != "initial" ? kPoison : std::byte{};
    setup.destinations = pattern.destinations;
    if (pattern.keeps_previous) setup.previous = first.outputs;
    compare_runs(first, run(setup), setup.label, rounded, "destination patterns disagree");
  }
}

void IsolatedStep::rethrow(const RunOutcome& outcome, const RunSetup& setup) const {
  const std::string where =
      fmt::format("in the {} pass of DebugMode: {}", context_.pass, call_text(context_.node));
  const std::string rewrite =
      context_.reason.empty() ? "" : ", introduced by the rewrite " + context_.reason;
  std::string text;
  try {
    std::rethrow_exception(outcome.error);
  } catch (const OutOfMemory&) {
    throw;
  } catch (Error& error) {
    if (op_.can_fail()) {
      error.add_note(where + rewrite);
      throw;
    }
    text = error.what();
  } catch (const std::exception& error) {
    if (op_.can_fail()) {
      std::throw_with_nested(
          OpError("[" + op_.name() + "] failed: " + error.what() + "\n  " + where + rewrite));
    }
    text = error.what();
  } catch (...) {
    if (op_.can_fail()) {
      std::throw_with_nested(OpError(
          "[" + op_.name() + "] threw an object that is not an exception\n  " + where + rewrite));
    }
    text = "an object that is not an exception";
  }
  throw BadNoFail(DebugMessage("BadNoFail", context_)
                      .line("can_fail() is false, but it threw: " + text)
                      .finish(&setup.label,
                              "Leave can_fail() true, or do not throw on inputs that "
                              "make_node and infer_shapes accept."),
                  {context_.reason, context_.node, {}, -1, -1});
}

void IsolatedStep::check_results(const RunOutcome& outcome, const RunSetup& setup) const {
  for (std::size_t k = 0; k < outcome.outputs.size(); ++k) {
    const DebugValue& value = outcome.outputs[k];
    const Variable v = context_.node.output(k);
    const auto fail = [&](const std::string& what, std::string_view hint) {
      throw InvalidValueError(DebugMessage("InvalidValueError", context_)
                                  .line(fmt::format("output {} {}: {}", k, v.str(), what))
                                  .line("type: " + v.type().str())
                                  .value("value", value)
                                  .line("producer: " + call_text(context_.node))
                                  .finish(&setup.label, hint),
                              {context_.reason, context_.node, v, -1, static_cast<int>(k)});
    };
    if (value.dtype() != v.dtype() || value.extents() != extents_[k]) {
      fail(fmt::format("got {} {}, expected {} {}", name_of(value.dtype()),
                       to_string(value.extents()), name_of(v.dtype()), to_string(extents_[k])),
           "infer_shapes must give the shapes that run() produces.");
    }
    if (is_bool(value.dtype()) && std::any_of(value.data(), value.data() + value.bytes(),
                                              [](std::byte b) { return b > std::byte{1}; })) {
      fail("a bool is neither 0 nor 1", "Write 0 or 1 into bool results.");
    }
    if (!options_.check_finite) continue;
    const NumberScan scan = scan_numbers(value.view(), {});
    if (!scan) continue;
    fail(fmt::format("{} at {}: {} of {} elements are not finite", scan.value,
                     to_string(scan.index), scan.bad, scan.elements),
         "Look at the producer, or set check_finite = false where such values are meant.");
  }
}

void IsolatedStep::compare_runs(const RunOutcome& first, const RunOutcome& other,
                                const RunLabel& label, const Tolerance& tolerance,
                                std::string_view what) const {
  const RunSetup setup{label, Side::lower, {}, {}, {}};
  if (other.error) {
    try {
      std::rethrow_exception(other.error);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const std::exception& error) {
      throw BadThunkOutput(DebugMessage("BadThunkOutput", context_)
                               .line(std::string(what) + ": one run works, another throws")
                               .line(error.what())
                               .finish(&label, "All runs of a step must do the same."),
                           {context_.reason, context_.node, {}, -1, -1});
    }
  }
  for (std::size_t k = 0; k < first.outputs.size(); ++k) {
    const Difference difference = compare(first.outputs[k], other.outputs[k], tolerance);
    if (difference.is_within) continue;
    const Variable v = context_.node.output(k);
    throw BadThunkOutput(
        DebugMessage("BadThunkOutput", context_)
            .line(fmt::format("output {} {}: {}", k, v.str(), what))
            .value("value of the first run", first.outputs[k])
            .value("value of " + label.str(), other.outputs[k])
            .line(difference.str())
            .line(fmt::format("tolerance: {} rounding errors of a scale of at least {}",
                              tolerance.roundings, tolerance.scale))
            .finish(&label,
                    "Set every element of a destination before reading it; read nothing "
                    "else; declare a tolerance() if rounding differs."),
        {context_.reason, context_.node, v, -1, static_cast<int>(k)});
  }
}

void IsolatedStep::log_not_reused(const RunOutcome& first) const {
  for (int input : overwritten_) {
    if (first.is_changed[static_cast<std::size_t>(input)]) continue;
    log(LogLevel::info, fmt::format("[DebugMode] {} (step {}) declares that it destroys input {}, "
                                    "and did not change it in this call",
                                    op_.name(), context_.step, input));
  }
}

}  // namespace palimpsest
