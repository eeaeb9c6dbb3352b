// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/products/products.hpp"

#include "palimpsest/kernels/reduce/reduce.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::ops {
namespace {

using Labels = SmallVector<int, 8>;

std::size_t position(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// `ab,bc->ac`; labels beyond the alphabet as numbers in brackets.
std::string formula_of(const Contraction& c) {
  const auto one = [](const Labels& labels) {
    std::string text;
    for (int label : labels) {
      text += label < 26 ? std::string(1, static_cast<char>('a' + label))
                         : "[" + std::to_string(label) + "]";
    }
    return text;
  };
  return one(c.a) + "," + one(c.b) + "->" + one(c.out);
}

Labels named_labels(ParameterText& text) {
  Labels labels;
  for (;;) {
    if (text.take("[")) {
      labels.push_back(static_cast<int>(text.integer()));
      text.expect("]");
      continue;
    }
    bool found = false;
    for (char c = 'a'; c <= 'z' && !found; ++c) {
      found = text.take(std::string_view(&c, 1));
      if (found) labels.push_back(c - 'a');
    }
    if (!found) return labels;
    if (labels.size() > 2 * kMaxRank) throw FormatError("too many labels");
  }
}

void check_labels(const Labels& labels, std::size_t rank, std::string_view what) {
  if (labels.size() != rank) {
    throw ShapeError("[einsum] " + std::string(what) + ": got " + std::to_string(labels.size()) +
                     " labels, expected " + std::to_string(rank) + ", one per axis");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) {
      throw ValueError("[einsum] " + std::string(what) + ": got label " +
                       std::to_string(labels[i]) + ", expected none negative");
    }
    if (position(labels, labels[i]) != i) {
      throw ValueError("[einsum] repeated label in the " + std::string(what) +
                       ". Try a diagonal view first");
    }
  }
}

void check_contraction(const Contraction& c, std::size_t rank_a, std::size_t rank_b) {
  check_labels(c.a, rank_a, "first operand");
  check_labels(c.b, rank_b, "second operand");
  check_labels(c.out, c.out.size(), "result");
  for (int label : c.out) {
    if (!has(c.a, label) && !has(c.b, label)) {
      throw ValueError("[einsum] a label of the result is in no operand: got " + formula_of(c));
    }
  }
}

// The dtype in which a contraction of operands of these dtypes is computed.
DType working_dtype(DType a, DType b) {
  const DType dtype = promote(a, b);
  return is_inexact(dtype) ? dtype : DType::int64;
}

}  // namespace

std::string written(const Contraction& value) {
  return formula_of(value) + (value.conj_a ? ", conj_a" : "") + (value.conj_b ? ", conj_b" : "");
}

void read(ParameterText& text, Contraction& value) {
  value.a = named_labels(text);
  text.expect(",");
  value.b = named_labels(text);
  text.expect("->");
  value.out = named_labels(text);
  value.conj_a = text.take(", conj_a");
  value.conj_b = text.take(", conj_b");
}

Extents Contract::result_extents(std::span<const index_t> a, std::span<const index_t> b) const {
  const Contraction& c = contraction_;
  const auto extent = [&](int label) {
    const std::size_t i = position(c.a, label), j = position(c.b, label);
    if (i == c.a.size()) return b[j];
    if (j == c.b.size() || b[j] == kUnknown) return a[i];
    if (a[i] != kUnknown && a[i] != b[j]) {
      throw ShapeError("[product] axis " + std::to_string(i) + " of the first and axis " +
                       std::to_string(j) + " of the second operand: got the extents " +
                       std::to_string(a[i]) + " and " + std::to_string(b[j]) + " of " +
                       extents_text(a) + " and " + extents_text(b) + ", expected equal ones in " +
                       formula_of(c));
    }
    return b[j];
  };
  for (int label : c.a) extent(label);
  Extents result;
  for (int label : c.out) result.push_back(extent(label));
  return result;
}

Apply Contract::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType &a = inputs[0].type(), &b = inputs[1].type();
  const Device device = common_device(inputs, "einsum");
  check_contraction(contraction_, a.rank(), b.rank());
  if (a.dtype != b.dtype || a.dtype != working_dtype(a.dtype, b.dtype)) {
    throw DTypeError("[Contract] got " + a.str() + " and " + b.str() +
                     ", expected one dtype: floating, complex or int64");
  }
  return node(inputs, {{a.dtype, result_extents(a.shape, b.shape), device}});
}

std::vector<Extents> Contract::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {result_extents(inputs[0], inputs[1])};
}

std::size_t Contract::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Layout &a = inputs[0], &b = inputs[1];
  const Layout out = Layout::dense(a.dtype, result_extents(a.extents, b.extents));
  return contraction_scratch_bytes(contraction_, {nullptr, a.dtype, a.extents, a.strides},
                                   {nullptr, b.dtype, b.extents, b.strides},
                                   {nullptr, out.dtype, out.extents, out.strides});
}

Linearity Contract::linear_in(const Apply& apply, int in) const {
  const DType dtype = apply.input(0).dtype();
  if (!is_inexact(dtype)) return Linearity::no;
  const bool conjugated = in == 0 ? contraction_.conj_a : contraction_.conj_b;
  return conjugated && is_complex(dtype) ? Linearity::conjugate : Linearity::complex;
}

// For out = sum a b~ the adjoint in a is sum w conj(b~); for out = sum conj(a) b~ it is
// sum conj(w) b~. Labels that only this operand has were summed over: there the result is constant.
Variable Contract::cotangent_of(const Contraction& c, const Variable& x, const Variable& other,
                                const Variable& w, bool first) {
  const Labels &mine = first ? c.a : c.b, &others = first ? c.b : c.a;
  const bool conj_mine = first ? c.conj_a : c.conj_b, conj_other = first ? c.conj_b : c.conj_a;
  Labels found;
  Axes missing;
  for (std::size_t k = 0; k < mine.size(); ++k) {
    if (has(c.out, mine[k]) || has(others, mine[k])) {
      found.push_back(mine[k]);
    } else {
      missing.push_back(static_cast<index_t>(k));
    }
  }
  const EinsumOptions options{conj_mine, conj_mine ? conj_other : !conj_other};
  const Variable inner = contract(w, c.out, other, others, found, options);
  return missing.empty() ? inner : broadcast_like(expand_dims(inner, missing), x);
}

std::vector<Variable> Contract::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &a = apply.input(0), &b = apply.input(1), &w = cotangents[0];
  if (!is_inexact(a.dtype())) return {Variable(), Variable()};
  return {cotangent_of(contraction_, a, b, w, true), cotangent_of(contraction_, b, a, w, false)};
}

void Contract::run(RunContext& context) const {
  run_contraction(contraction_, context.input(0), context.input(1), context.output(0),
                  context.scratch());
}

Apply Norm2::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  const DType dtype = is_inexact(type.dtype) ? real_of(type.dtype) : DType::int64;
  return node(inputs, {{dtype, Extents(), type.device}});
}

std::vector<Variable> Norm2::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable& x = apply.input(0);
  if (!is_inexact(x.dtype())) return {Variable()};
  return {x * (cotangents[0] * 2)};
}

void Norm2::run(RunContext& context) const { run_norm2(context.input(0), context.output(0)); }

Variable contract(const Variable& a, std::span<const int> labels_a, const Variable& b,
                  std::span<const int> labels_b, std::span<const int> labels_out,
                  EinsumOptions options) {
  Contraction c{labels_a, labels_b, labels_out, options.conj_a, options.conj_b};
  const DType dtype = working_dtype(a.dtype(), b.dtype());
  // Conjugating a real operand says nothing: equal ops should be equal.
  c.conj_a = c.conj_a && is_complex(a.dtype());
  c.conj_b = c.conj_b && is_complex(b.dtype());
  const Variable inputs[] = {astype(a, dtype), astype(b, dtype)};
  return std::make_shared<Contract>(std::move(c))->make_node(inputs).output(0);
}

Variable norm2(const Variable& x) {
  return std::make_shared<Norm2>()->make_node({&x, 1}).output(0);
}

void register_ops_of_products() {
  register_type<Contract>();
  register_type<Norm2>();
}

}  // namespace palimpsest::ops
