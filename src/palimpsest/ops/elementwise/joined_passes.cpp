// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise/joined_passes.hpp"

#include <utility>

#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// Views of a step's inputs with the extents of all, without an allocation for up to 4 axes.
struct StepViews {
  SmallVector<ConstView, ElementwiseProgram::kMaxInputs> inputs;
  SmallVector<index_t, 4 * ElementwiseProgram::kMaxInputs> strides;
};

ElementwisePass pass_of(const ElementwiseSums& step, std::span<const ConstView> inputs,
                        std::span<const MutableView> arrays = {},
                        std::span<const MutableView> results = {}) {
  return {step.program(), step.sums(), inputs, arrays, results, step.filtered()};
}

// Views with the given extents and no elements.
std::vector<ConstView> shapes_only(const ElementwiseSums& step, const Extents& shape) {
  const auto n = static_cast<std::size_t>(step.program().n_inputs());
  return std::vector<ConstView>(n, ConstView{nullptr, DType::float32, shape, {}});
}

bool is_handed(const std::vector<HandedOn>& handed, index_t input) {
  return std::any_of(handed.begin(), handed.end(),
                     [&](const HandedOn& link) { return link.input == input; });
}

bool is_input_filtered(const ElementwiseSums& step, index_t input) {
  return std::any_of(step.filtered().begin(), step.filtered().end(),
                     [&](const FilteredInput& f) { return f.input == input; });
}

}  // namespace

bool JoinedPasses::can_join(const ElementwiseSums& first, const ElementwiseSums& second,
                            const std::vector<HandedOn>& handed, const Extents& shape) {
  const auto n_outputs = static_cast<int>(first.program().outputs().size());
  for (const HandedOn& link : handed) {
    if (link.output < static_cast<int>(first.n_arrays()) || link.output >= n_outputs) return false;
    if (link.input < 0 || !is_input_filtered(second, link.input)) return false;
    const auto dtype = [](const ElementwiseProgram& program, int r) {
      return program.dtype_of_register(r);
    };
    const int made = first.program().outputs()[static_cast<std::size_t>(link.output)];
    const int read = second.program().inputs()[static_cast<std::size_t>(link.input)];
    if (dtype(first.program(), made) != dtype(second.program(), read)) return false;
    const auto same = [&](const HandedOn& other) { return other.input == link.input; };
    if (std::count_if(handed.begin(), handed.end(), same) != 1) return false;
  }
  if (handed.empty() || first.n_arrays() == 0 || second.n_arrays() == 0) return false;
  if (std::count(shape.begin(), shape.end(), kUnknown) > 0) return false;
  const std::vector<ConstView> one = shapes_only(first, shape), two = shapes_only(second, shape);
  return can_join_passes(pass_of(first, one), pass_of(second, two), handed);
}

JoinedPasses::JoinedPasses(Step first, Step second, std::vector<HandedOn> handed, Extents shape)
    : first_(std::move(first)),
      second_(std::move(second)),
      handed_(std::move(handed)),
      shape_(std::move(shape)) {
  if (can_join(*first_, *second_, handed_, shape_)) return;
  throw ValueError("[JoinedPasses] got passes of " + to_string(shape_) + " and " +
                   std::to_string(handed_.size()) +
                   " links, expected filters that do not wrap around nor reach far, each of an "
                   "output that is not an array");
}

JoinedPasses::Positions JoinedPasses::inputs_of(bool second) const {
  const int n_first = first_->program().n_inputs(), n_second = second_->program().n_inputs();
  Positions inputs;
  for (int i = 0; i < (second ? n_second : n_first); ++i) {
    const bool is_link = second && is_handed(handed_, i);
    const auto linked = std::count_if(handed_.begin(), handed_.end(),
                                      [&](const HandedOn& link) { return link.input < i; });
    inputs.push_back(is_link ? -1 : second ? n_first + i - static_cast<int>(linked) : i);
  }
  return inputs;
}

Apply JoinedPasses::step(std::span<const Variable> given, bool second) const {
  const ElementwiseSums& op = second ? *second_ : *first_;
  std::vector<Variable> read;
  const Positions inputs = inputs_of(second);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int r = op.program().inputs()[i];
    read.push_back(inputs[i] >= 0 ? given[static_cast<std::size_t>(inputs[i])]
                                  : make_input({op.program().dtype_of_register(r), shape_,
                                                given[0].type().device}));
  }
  return op.make_node(read);
}

std::string JoinedPasses::parameters() const {
  std::string text = first_->parameters() + "; then " + second_->parameters() + "; handed=(";
  for (const HandedOn& link : handed_) {
    text += (link == handed_.front() ? "" : ", ") + std::to_string(link.output) + " " +
            std::to_string(link.input);
  }
  return text + "), " + parameter("shape", shape_);
}

OpPtr JoinedPasses::restored(std::string_view name, ParameterText& text) {
  Step first = ElementwiseSums::restored_part(text);
  text.expect("; then ");
  Step second = ElementwiseSums::restored_part(text);
  text.expect("; handed=(");
  std::vector<HandedOn> handed;
  do {
    HandedOn link;
    link.output = static_cast<int>(text.integer());
    text.expect(" ");
    link.input = static_cast<int>(text.integer());
    handed.push_back(link);
  } while (text.take(", "));
  text.expect("), shape=");
  const auto op = std::make_shared<const JoinedPasses>(std::move(first), std::move(second),
                                                       std::move(handed), text.integers());
  if (op->name() != name) throw FormatError("in place in its name or its steps only");
  return op;
}

Apply JoinedPasses::make_node(std::span<const Variable> inputs) const {
  const auto n = static_cast<std::size_t>(first_->program().n_inputs()) +
                 static_cast<std::size_t>(second_->program().n_inputs()) - handed_.size();
  expect_inputs(inputs, n, name());
  const Apply one = step(inputs, false), two = step(inputs, true);
  index_t elements = 1;
  for (const index_t extent : shape_) elements *= extent;
  std::vector<TensorType> arrays, sums;
  const auto add = [&](const Apply& part, const ElementwiseSums& op) {
    for (std::size_t k = 0; k < part.output_count(); ++k) {
      (k < op.n_arrays() ? arrays : sums).push_back(part.output(k).type());
    }
  };
  add(one, *first_);
  add(two, *second_);
  for (const TensorType& type : arrays) {
    index_t here = 1;
    for (const index_t extent : type.shape) here *= extent;
    if (here == elements) continue;
    throw ShapeError("[JoinedPasses] got an array of " + to_string(type.shape) + ", expected " +
                     std::to_string(elements) + " elements as in " + to_string(shape_) +
                     ". Try specify_shape");
  }
  arrays.insert(arrays.end(), sums.begin(), sums.end());
  return node(inputs, std::move(arrays));
}

AliasMap JoinedPasses::destroy_map(const Apply& apply) const {
  AliasMap map;
  for (const bool second : {false, true}) {
    const Positions inputs = inputs_of(second);
    const int before = second ? static_cast<int>(first_->n_arrays()) : 0;
    for (const auto& [output, read] :
         (second ? *second_ : *first_).destroy_map(step(apply.inputs(), second))) {
      for (const int i : read) map[before + output].insert(inputs[static_cast<std::size_t>(i)]);
    }
  }
  return map;
}

IndexPairs JoinedPasses::tolerate_same(const Apply& apply) const {
  IndexPairs pairs;
  for (const bool second : {false, true}) {
    const Positions inputs = inputs_of(second);
    for (const auto& [a, b] :
         (second ? *second_ : *first_).tolerate_same(step(apply.inputs(), second))) {
      const int i = inputs[static_cast<std::size_t>(a)], j = inputs[static_cast<std::size_t>(b)];
      if (i >= 0 && j >= 0) pairs.emplace(i, j);
    }
  }
  return pairs;
}

OpPtr JoinedPasses::inplace_on_inputs(const Apply& apply, const std::set<int>& allowed,
                                      const Elementwise::Overwrites& preferred) const {
  std::array<Step, 2> made{first_, second_};
  for (const bool second : {false, true}) {
    Step& op = made[second ? 1 : 0];
    const Positions inputs = inputs_of(second);
    std::set<int> here;
    Elementwise::Overwrites wanted;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (allowed.contains(inputs[i])) here.insert(static_cast<int>(i));
    }
    const std::size_t before = second ? first_->n_arrays() : 0;
    for (std::size_t k = 0; !preferred.empty() && k < op->n_arrays(); ++k) {
      const auto at = std::find(inputs.begin(), inputs.end(), preferred[before + k]);
      const bool is_there = at != inputs.end() && *at >= 0;
      wanted.push_back(is_there ? at - inputs.begin() : index_t{Elementwise::kNone});
    }
    const OpPtr chosen = op->inplace_on_inputs(step(apply.inputs(), second), here, wanted);
    if (chosen) op = std::static_pointer_cast<const ElementwiseSums>(chosen);
  }
  if (made[0] == first_ && made[1] == second_) return nullptr;
  return std::make_shared<JoinedPasses>(made[0], made[1], handed_, shape_);
}

OpPtr JoinedPasses::pure() const {
  if (!is_in_place()) return shared_from_this();
  const auto plain = [](const Step& op) {
    return std::static_pointer_cast<const ElementwiseSums>(op->pure());
  };
  return std::make_shared<JoinedPasses>(plain(first_), plain(second_), handed_, shape_);
}

std::vector<Extents> JoinedPasses::infer_shapes(const Apply& apply, ExtentsSpan) const {
  std::vector<Extents> shapes;
  for (const Variable& v : apply.outputs()) shapes.push_back(v.type().shape);
  return shapes;
}

std::size_t JoinedPasses::scratch_bytes(const Apply&, std::span<const Layout>) const {
  const std::vector<ConstView> one = shapes_only(*first_, shape_),
                               two = shapes_only(*second_, shape_);
  return static_cast<std::size_t>(
      joined_passes_scratch_bytes(pass_of(*first_, one), pass_of(*second_, two), handed_));
}

std::vector<Variable> JoinedPasses::pullback(const Apply& apply, CotangentSpan cotangents) const {
  return pullback_of_steps(apply, cotangents, [&](std::span<const Variable> inputs) {
    std::vector<Variable> read;
    for (const int i : inputs_of(false)) read.push_back(inputs[static_cast<std::size_t>(i)]);
    const std::vector<Variable> made = first_->outputs_of_program(read);
    std::vector<Variable> results = first_->results_of(made);
    read.clear();
    for (const int i : inputs_of(true)) {
      read.push_back(i >= 0 ? inputs[static_cast<std::size_t>(i)] : Variable());
    }
    for (const HandedOn& link : handed_) {
      read[static_cast<std::size_t>(link.input)] =
          reshape(made[static_cast<std::size_t>(link.output)], shape_);
    }
    const std::vector<Variable> then = second_->results_of(second_->outputs_of_program(read));
    const auto n_first = static_cast<std::ptrdiff_t>(first_->n_arrays()),
               n_second = static_cast<std::ptrdiff_t>(second_->n_arrays());
    results.insert(results.begin() + n_first, then.begin(), then.begin() + n_second);
    results.insert(results.end(), then.begin() + n_second, then.end());
    return results;
  });
}

void JoinedPasses::run(RunContext& context) const {
  const auto views_of = [&](bool second, std::span<const index_t> extents) {
    StepViews views;
    const Positions inputs = inputs_of(second);
    const std::size_t rank = extents.size();
    views.strides.resize(inputs.size() * rank);
    views.inputs.resize(inputs.size());
    const auto& program = (second ? *second_ : *first_).program();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::span<index_t> strides(views.strides.data() + i * rank, rank);
      if (inputs[i] >= 0) {
        const ConstView& view = context.input(static_cast<std::size_t>(inputs[i]));
        views.inputs[i] = stretched(view, extents, strides);
        continue;
      }
      index_t step = 1;
      for (std::size_t k = rank; k-- > 0; step *= extents[k]) strides[k] = step;
      views.inputs[i] = {nullptr, program.dtype_of_register(program.inputs()[i]), extents, strides};
    }
    return views;
  };
  const auto outputs = context.outputs();
  const StepViews one = views_of(false, outputs[0].extents), two = views_of(true, shape_);
  const std::size_t a = first_->n_arrays(), b = second_->n_arrays(), s = first_->sums().size();
  run_joined_passes(
      pass_of(*first_, one.inputs, outputs.first(a), outputs.subspan(a + b, s)),
      pass_of(*second_, two.inputs, outputs.subspan(a, b), outputs.subspan(a + b + s)), handed_,
      context.scratch());
}

void register_ops_of_joined_passes() { register_type<JoinedPasses>(); }

}  // namespace palimpsest::ops
