// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"

#include <array>

#include "palimpsest/kernels/elementwise/computed_rows.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"

namespace palimpsest::ops {
namespace {

// The program with its first outputs only.
ElementwiseProgram of_arrays(const ElementwiseProgram& program, std::size_t n) {
  ElementwiseProgram result;
  std::vector<int> registers;
  for (const int r : program.inputs()) {
    registers.push_back(result.input(program.dtype_of_register(r)));
  }
  const std::vector<int> outputs = result.append(program, registers);
  for (std::size_t k = 0; k < n; ++k) result.output(outputs[k]);
  return result;
}

bool is_product(const SumOfOutputs& sum) { return sum.kind >= SumOfOutputs::Kind::product; }

// `(1 Stencil axis=0, ...; 2 StencilAdjoint axis=1, ...)`.
std::string written_filters(const std::vector<FilteredInput>& filtered) {
  std::string text = "(";
  for (const FilteredInput& f : filtered) {
    if (text.size() > 1) text += "; ";
    text += std::to_string(f.input) + (f.is_adjoint ? " StencilAdjoint " : " Stencil ") +
            written(f.stencil);
  }
  return text + ")";
}

std::vector<FilteredInput> read_filters(ParameterText& text) {
  std::vector<FilteredInput> filtered;
  do {
    FilteredInput f;
    f.input = static_cast<int>(text.integer());
    text.expect(" Stencil");
    f.is_adjoint = text.take("Adjoint");
    text.expect(" ");
    read(text, f.stencil);
    filtered.push_back(std::move(f));
  } while (text.take("; "));
  return filtered;
}

}  // namespace

std::string_view name_of(SumOfOutputs::Kind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"sum", "norm2", "product",
                                                          "conj_product"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const SumOfOutputs& sum) {
  std::string text = std::string(name_of(sum.kind)) + " " + std::to_string(sum.a);
  return is_product(sum) ? text + " " + std::to_string(sum.b) : text;
}

ElementwiseSums::ElementwiseSums(ElementwiseProgram program, std::size_t n_arrays,
                                 std::vector<SumOfOutputs> sums, Elementwise::Overwrites overwrites,
                                 std::vector<FilteredInput> filtered)
    : whole_(std::make_shared<Elementwise>(std::move(program))),
      n_arrays_(n_arrays),
      sums_(std::move(sums)),
      filtered_(std::move(filtered)) {
  const auto n = static_cast<int>(whole_->program().outputs().size());
  bool is_right = n_arrays <= static_cast<std::size_t>(n) && !sums_.empty() &&
                  whole_->program().n_inputs() > 0 &&
                  whole_->program().n_registers() <= ComputedRows::kMostStoring &&
                  sums_.size() <= static_cast<std::size_t>(ElementwiseProgram::kMaxOutputs);
  for (const SumOfOutputs& sum : sums_) {
    is_right = is_right && sum.a >= 0 && sum.a < n && sum.b >= 0 && sum.b < n;
  }
  if (!is_right) {
    throw ValueError("[ElementwiseSums] got " + std::to_string(n_arrays) + " arrays and " +
                     std::to_string(sums_.size()) + " sums of " + std::to_string(n) +
                     " outputs and " + std::to_string(whole_->program().n_registers()) +
                     " registers, expected inputs, outputs that are there, and at most " +
                     std::to_string(ComputedRows::kMostStoring) + " registers");
  }
  for (const SumOfOutputs& sum : sums_) sum_dtype(sum, whole_->program());
  if (n_arrays > 0) {
    arrays_ = std::make_shared<Elementwise>(of_arrays(whole_->program(), n_arrays),
                                            std::move(overwrites));
  } else if (!overwrites.empty()) {
    throw ValueError("[ElementwiseSums] inputs to overwrite: got " + to_string(overwrites) +
                     ", expected none without arrays");
  }
  check_filtered();
}

bool ElementwiseSums::is_filtered(index_t input) const {
  return std::any_of(filtered_.begin(), filtered_.end(),
                     [&](const FilteredInput& f) { return f.input == input; });
}

void ElementwiseSums::check_filtered() const {
  bool is_right = filtered_.size() <= ComputedRows::kMostFiltered;
  const auto n_inputs = program().n_inputs();
  for (auto f = filtered_.begin(); f != filtered_.end(); ++f) {
    is_right = is_right && f->stencil.step == 1 && !f->stencil.taps.empty() && f->input >= 0 &&
               f->input < n_inputs &&
               std::none_of(filtered_.begin(), f,
                            [&](const FilteredInput& other) { return other.input == f->input; });
  }
  if (is_in_place()) {
    for (const index_t i : arrays_->overwrites()) is_right = is_right && !is_filtered(i);
  }
  if (!is_right) {
    throw ValueError("[ElementwiseSums] filters: got " + written_filters(filtered_) +
                     ", expected up to " + std::to_string(ComputedRows::kMostFiltered) +
                     " inputs, each once and not overwritten, with stencils of step 1");
  }
}

std::string ElementwiseSums::parameters() const {
  std::string text = describe(program()) + "; " +
                     parameter("arrays", static_cast<index_t>(n_arrays_)) + ", sums=(";
  for (std::size_t s = 0; s < sums_.size(); ++s) {
    text += (s > 0 ? ", " : "") + describe(sums_[s]);
  }
  text += ")";
  if (!filtered_.empty()) text += ", filters=" + written_filters(filtered_);
  return is_in_place() ? text + ", " + parameter("overwrites", arrays_->overwrites()) : text;
}

OpPtr ElementwiseSums::restored(std::string_view name, ParameterText& text) {
  auto program = read_value<ElementwiseProgram>(text);
  text.expect("; arrays=");
  const index_t n_arrays = text.integer();
  text.expect(", sums=(");
  std::vector<SumOfOutputs> sums;
  do {
    SumOfOutputs sum;
    const std::string_view kind = text.word();
    while (name_of(sum.kind) != kind) {
      if (sum.kind == SumOfOutputs::Kind::conj_product) throw FormatError("no such sum");
      sum.kind = static_cast<SumOfOutputs::Kind>(static_cast<int>(sum.kind) + 1);
    }
    text.expect(" ");
    sum.a = static_cast<int>(text.integer());
    if (text.take(" ")) sum.b = static_cast<int>(text.integer());
    sums.push_back(sum);
  } while (text.take(", "));
  text.expect(")");
  std::vector<FilteredInput> filtered;
  if (text.take(", filters=(")) {
    filtered = read_filters(text);
    text.expect(")");
  }
  Elementwise::Overwrites overwrites;
  if (text.take(", overwrites=")) {
    for (const index_t i : text.integers()) overwrites.push_back(i);
  }
  const auto op = std::make_shared<ElementwiseSums>(
      std::move(program), static_cast<std::size_t>(n_arrays), std::move(sums),
      std::move(overwrites), std::move(filtered));
  if (op->name() != name) throw FormatError("in place in its name or its parameters only");
  return op;
}

Apply ElementwiseSums::make_node(std::span<const Variable> inputs) const {
  const Apply computed = whole_->make_node(inputs);
  std::vector<TensorType> types;
  for (std::size_t k = 0; k < n_arrays_; ++k) types.push_back(computed.output(k).type());
  for (const SumOfOutputs& sum : sums_) {
    types.push_back({sum_dtype(sum, program()), Extents(), inputs[0].type().device});
  }
  if (is_in_place()) arrays_->make_node(inputs);  // checks the overwritten inputs
  for (const FilteredInput& f : filtered_) {
    const TensorType &x = inputs[static_cast<std::size_t>(f.input)].type(),
                     &whole = computed.output(0).type();
    const int r = program().inputs()[static_cast<std::size_t>(f.input)];
    if (x.shape == whole.shape && x.dtype == program().dtype_of_register(r) &&
        is_inexact(x.dtype) && f.stencil.axis < x.rank()) {
      continue;
    }
    throw ShapeError("[ElementwiseSums] filtered input " + std::to_string(f.input) + ": got " +
                     x.str() + ", expected floating or complex numbers of the shape " +
                     to_string(whole.shape) + ", with an axis " + std::to_string(f.stencil.axis));
  }
  return node(inputs, std::move(types));
}

AliasMap ElementwiseSums::destroy_map(const Apply& apply) const {
  return arrays_ ? arrays_->destroy_map(apply) : AliasMap();
}

IndexPairs ElementwiseSums::tolerate_same(const Apply& apply) const {
  if (!arrays_) return {};
  IndexPairs pairs = arrays_->tolerate_same(apply);
  std::erase_if(
      pairs, [&](const auto& pair) { return is_filtered(pair.first) || is_filtered(pair.second); });
  return pairs;
}

OpPtr ElementwiseSums::inplace_on_inputs(const Apply& apply, const std::set<int>& allowed,
                                         const Elementwise::Overwrites& preferred) const {
  if (!arrays_) return nullptr;
  const auto plain = std::make_shared<Elementwise>(*arrays_, Elementwise::Overwrites());
  const Apply alone = plain->make_node(apply.inputs());
  std::set<int> possible = allowed;
  for (const FilteredInput& f : filtered_) possible.erase(f.input);
  const OpPtr chosen = plain->inplace_on_inputs(alone, possible, preferred);
  if (!chosen) return nullptr;
  const auto& overwrites = static_cast<const Elementwise&>(*chosen).overwrites();
  return std::make_shared<ElementwiseSums>(program(), n_arrays_, sums_, overwrites, filtered_);
}

OpPtr ElementwiseSums::pure() const {
  if (!is_in_place()) return shared_from_this();
  return std::make_shared<ElementwiseSums>(program(), n_arrays_, sums_, Elementwise::Overwrites(),
                                           filtered_);
}

std::vector<Extents> ElementwiseSums::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  std::vector<Extents> result = whole_->infer_shapes(apply, inputs);
  result.resize(n_arrays_);
  result.resize(n_arrays_ + sums_.size());
  return result;
}

// The arrays and the sums as steps of their own.
std::vector<Variable> ElementwiseSums::as_steps(std::span<const Variable> inputs) const {
  // The summed arrays have the broadcast extents of all inputs.
  const Variable like = whole_->make_node(inputs).output(0);
  std::vector<Variable> read(inputs.begin(), inputs.end());
  for (const FilteredInput& f : filtered_) {
    Variable& x = read[static_cast<std::size_t>(f.input)];
    x = f.is_adjoint ? stencil_adjoint(x, f.stencil) : stencil(x, f.stencil);
  }
  std::vector<Variable> made = unrolled(program(), read);
  for (Variable& v : made) v = broadcast_like(v, like);
  std::vector<Variable> outputs(made.begin(),
                                made.begin() + static_cast<std::ptrdiff_t>(n_arrays_));
  for (const SumOfOutputs& sum : sums_) {
    const Variable &a = made[static_cast<std::size_t>(sum.a)],
                   &b = made[static_cast<std::size_t>(sum.b)];
    switch (sum.kind) {
      case SumOfOutputs::Kind::plain:
        outputs.push_back(ops::sum(a));
        break;
      case SumOfOutputs::Kind::norm2:
        outputs.push_back(norm2(a));
        break;
      case SumOfOutputs::Kind::product:
        outputs.push_back(ops::sum(a * b));
        break;
      case SumOfOutputs::Kind::conj_product:
        outputs.push_back(vdot(a, b));
        break;
    }
  }
  return outputs;
}

std::vector<Variable> ElementwiseSums::pullback(const Apply& apply,
                                                CotangentSpan cotangents) const {
  return pullback_of_steps(apply, cotangents,
                           [&](std::span<const Variable> inputs) { return as_steps(inputs); });
}

namespace {

// Up to N inputs of up to 4 axes without an allocation.
template <std::size_t N>
void run_stretched_sums(const ElementwiseSums& op, RunContext& context) {
  const std::size_t n = context.inputs().size(), rank = context.input(0).rank();
  Extents extents(rank, 1);
  for (const ConstView& view : context.inputs()) {
    for (std::size_t k = 0; k < rank; ++k) {
      if (view.extents[k] != 1) extents[k] = view.extents[k];
    }
  }
  SmallVector<ConstView, N> views(n);
  SmallVector<index_t, 4 * N> strides(n * rank);
  for (std::size_t i = 0; i < n; ++i) {
    views[i] = stretched(context.input(i), extents, {strides.data() + i * rank, rank});
  }
  run_elementwise_sums(op.program(), op.sums(), views, context.outputs().first(op.n_arrays()),
                       context.outputs().subspan(op.n_arrays()), op.filtered());
}

}  // namespace

void ElementwiseSums::run(RunContext& context) const {
  if (context.inputs().size() <= 8) {
    run_stretched_sums<8>(*this, context);
  } else {
    run_stretched_sums<ElementwiseProgram::kMaxInputs>(*this, context);
  }
}

void register_ops_of_elementwise_sums() { register_type<ElementwiseSums>(); }

}  // namespace palimpsest::ops
