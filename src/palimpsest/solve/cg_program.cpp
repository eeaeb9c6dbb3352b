// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/cg_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "palimpsest/compile/streaming.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/scaling.hpp"

namespace palimpsest {
namespace {

// A value of a type without memory of its own: planning reads extents and strides only, and start()
// puts the real state in its place before anything runs.
Tensor placeholder(const TensorType& type) {
  alignas(64) static std::byte anchor[64];
  return Tensor::from_blob(anchor, type.dtype, type.shape, contiguous_strides(type.shape), {},
                           /*writable=*/true, type.device);
}

SharedVariable state(const char* name, const TensorType& type) {
  return SharedVariable(type, placeholder(type), {.name = name, .borrow = true, .shape = {}});
}

// An imaginary part of <p, A p> up to this multiple of the real part counts as rounding. Not a few
// units: along directions that A almost removes, both parts are small differences.
double imaginary_bound(DType dtype) {
  return 30 * std::sqrt(real_of(dtype) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                                         : std::numeric_limits<double>::epsilon());
}

Variable both(const Variable& a, const Variable& b) {
  return ops::elementwise(ScalarOp::logical_and, {a, b});
}
Variable is_finite(const Variable& x) { return ops::elementwise(ScalarOp::isfinite, {x}); }
Variable fma(const Variable& a, const Variable& b, const Variable& c) {
  return ops::elementwise(ScalarOp::fma, {a, b, c});
}
// Not as a view: a number that is kept must not keep a complex one.
Variable real_number(const Variable& z) {
  return is_complex(z.dtype()) ? ops::elementwise(ScalarOp::real, {z}) : z;
}
Variable zero_of(DType dtype) { return constant(Tensor::zeros({}, dtype)); }
// `value` where the condition holds, else 0, whatever the value.
Variable value_if(const Variable& condition, const Variable& value) {
  return ops::where(condition, value, zero_of(value.dtype()));
}

// The graph of CgProgram::is_positive.
Variable positive(const Variable& pq) {
  const Variable re = ops::real(pq);
  const Variable is_above = ops::elementwise(ScalarOp::gt, {re, zero_of(re.dtype())});
  const Variable condition = both(is_above, is_finite(pq));
  if (!is_complex(pq.dtype())) return condition;
  const Variable size = ops::abs(ops::imag(pq)), bound = re * imaginary_bound(pq.dtype());
  return both(condition, ops::elementwise(ScalarOp::le, {size, bound}));
}

// The type of the iterates: complex where A or M are.
TensorType state_type(const NamedLinop& A, const TensorType& b, const CgOptions& options) {
  TensorType type = b;
  const auto visit = [&](const NamedLinop& linop) {
    if (is_complex(linop(make_input(type, "x")).dtype())) type.dtype = complex_of(type.dtype);
  };
  visit(A);
  if (options.M) visit(*options.M);
  return type;
}

// Bytes of the constants that compiled functions keep; one that two of them share counts once.
index_t constant_bytes(std::initializer_list<const Function*> functions) {
  std::vector<Variable> seen;
  index_t bytes = 0;
  const auto visit = [&](const Variable& v) {
    if (!v.is_constant() || std::find(seen.begin(), seen.end(), v) != seen.end()) return;
    seen.push_back(v);
    bytes += static_cast<index_t>(v.node()->value.storage().nbytes());
  };
  for (const Function* f : functions) {
    if (!f->defined()) continue;
    for (const Apply& node : f->graph().toposort()) {
      for (const Variable& v : node.inputs()) visit(v);
    }
    for (const Variable& v : f->graph().outputs()) visit(v);
  }
  return bytes;
}

// Numbers as one array, so that a step gives a single result.
Variable packed(const std::vector<Variable>& numbers) {
  std::vector<Variable> parts;
  for (const Variable& v : numbers) parts.push_back(ops::expand_dims(v, {0}));
  return ops::join(0, parts);
}

const Plan& plan_of(const Function& f, const std::vector<TensorType>& arguments) {
  return f.plan(std::span<const TensorType>(arguments));
}

}  // namespace

CgProgram::CgProgram(const NamedLinop& A, const TensorType& b, const CgOptions& options)
    : type_(state_type(A, b, options)),
      has_refresh_(options.refresh > 0),
      converts_b_(type_.dtype != b.dtype),
      x_(state("x", type_)),
      r_(state("r", type_)),
      p_(state("p", type_)),
      rho_(state("rho", {real_of(type_.dtype), {}, type_.device})) {
  compile_setup(A, options);
  step_ = compile_step(A, options, false);
  if (has_refresh_) refresh_ = compile_step(A, options, true);
}

void CgProgram::compile_setup(const NamedLinop& A, const CgOptions& options) {
  const Variable &x = x_.var(), &b = r_.var();
  const Variable r = options.x0 ? b - A(x) : b;
  const Variable bb = ops::norm2(b), rr = options.x0 ? ops::norm2(r) : bb;
  // <x, A x> / 2 - Re <b, x> = -Re <x, b + r> / 2.
  const Variable objective =
      options.x0 ? (ops::real(ops::vdot(x, b)) + ops::real(ops::vdot(x, r))) * -0.5 : rr * 0.0;
  // With a preconditioner a step makes its direction itself, the first from p = 0.
  Updates updates{{rho_, rr}};
  if (!options.M) updates.emplace_back(p_, r + p_.var());
  if (options.x0) updates.emplace_back(r_, r);
  setup_ = function({}, {Out(packed({bb, rr, objective}), {.borrow = true})},
                    {.updates = std::move(updates), .name = "cg setup"});
}

Function CgProgram::compile_step(const NamedLinop& A, const CgOptions& options,
                                 bool refresh) const {
  const Variable &x = x_.var(), &before = rho_.var();
  const Variable b = make_input(type_, "b"), scale = make_input(scale_type(), "scale");
  // z = M r, rho = <r, z> and the direction, p := z + rho / rho_before p: at the start of a step
  // with a preconditioner, so that M is not applied to a last residual; at the end of one without,
  // where rho is the norm of that residual.
  const auto ratio = [&](const Variable& rho) {
    const Variable is_divisor = ops::elementwise(ScalarOp::ne, {before, zero_of(before.dtype())});
    return value_if(is_divisor, rho / before);
  };
  Variable p = p_.var(), rho = before;
  if (options.M) {
    const Variable z = (*options.M)(r_.var());
    rho = real_number(ops::vdot(r_.var(), z));
    p = fma(ratio(rho), p, z);
  }
  const Variable is_downhill = ops::elementwise(ScalarOp::gt, {rho, zero_of(rho.dtype())});
  const Variable q = A(p);
  const Variable pq = ops::vdot(p, q);
  const Variable can_move = both(both(positive(pq), is_finite(rho)), is_downhill);
  const Variable alpha = value_if(can_move, rho / ops::real(pq));
  const Variable moved = fma(alpha, p, x);
  const Variable r = refresh ? b * scale - A(moved) : fma(-alpha, q, r_.var());
  const Variable rr = ops::norm2(r);
  const Variable new_x = refresh ? moved : fma(value_if(is_finite(rr), alpha), p, x);
  std::vector<In> inputs;
  if (refresh) {
    inputs.emplace_back(b);
    inputs.emplace_back(scale);
  }
  const Variable numbers = packed({ops::real(pq), ops::imag(pq), rr, rho});
  const Variable new_p = options.M ? p : fma(ratio(rr), p, r);
  return function(std::move(inputs), {Out(numbers, {.borrow = true})},
                  {.updates = {{x_, new_x}, {r_, r}, {p_, new_p}, {rho_, options.M ? rho : rr}},
                   .name = refresh ? "cg step with a new residual" : "cg step"});
}

SolvePlan CgProgram::plan() const {
  SolvePlan result;
  const index_t n = byte_count(type_.shape, type_.dtype);
  result.state_bytes = 3 * n + static_cast<index_t>(item_size(real_of(type_.dtype)));
  if (has_refresh_ && converts_b_) result.state_bytes += n;
  if (has_refresh_) result.state_bytes += static_cast<index_t>(item_size(real_of(type_.dtype)));
  result.setup_bytes =
      plan_of(setup_, {}).peak_bytes + constant_bytes({&setup_, &step_, &refresh_});
  result.step = plan_of(step_, {});
  result.step_bytes = result.step.peak_bytes + constant_bytes({&setup_, &step_, &refresh_});
  if (has_refresh_) result.step_bytes += plan_of(refresh_, {type_, scale_type()}).peak_bytes;
  result.peak_bytes = result.state_bytes + std::max(result.setup_bytes, result.step_bytes);
  result.streamed_bytes = std::max(streamed_bytes(setup_, plan_of(setup_, {})),
                                   streamed_bytes(step_, plan_of(step_, {})));
  return result;
}

double CgProgram::work() const { return work_of(plan_of(step_, {})); }

CgProgram::Start CgProgram::start(const Tensor& b, const std::optional<Tensor>& x0) {
  const auto dense = [&](const Tensor& t) {
    Tensor made = Tensor::empty(type_.shape, type_.dtype, type_.device, "cg state");
    made.copy_from(t);
    return made;
  };
  Tensor r = dense(b);
  std::optional<Tensor> x;
  if (x0) x = dense(*x0);
  exponent_ = scale_exponent(r, x);
  if (has_refresh_) {
    b_[0] = converts_b_ ? dense(b) : b;
    b_[1] = Tensor::empty({}, scale_type().dtype, type_.device, "cg scale");
    b_[1].fill(std::ldexp(1.0, exponent_));
  }
  multiply_by_power_of_two(r, exponent_);
  if (x) multiply_by_power_of_two(*x, exponent_);
  const bool is_zero = largest_part(r) == 0;
  const double norm_b = exponent_ == 0 ? 0 : safe_norm(r);
  x_.exchange(x ? std::move(*x) : Tensor::zeros(type_.shape, type_.dtype, type_.device));
  r_.exchange(std::move(r));
  p_.exchange(Tensor::zeros(type_.shape, type_.dtype, type_.device));
  rho_.exchange(Tensor::zeros({}, real_of(type_.dtype), type_.device));
  setup_.call({}, numbers_);
  const Start start{.is_zero = is_zero,
                    .norm_b = exponent_ == 0 ? std::sqrt(number(0)) : norm_b,
                    .bb = number(0),
                    .rr = number(1),
                    .objective = number(2)};
  numbers_[0] = Tensor();
  setup_.free();  // its workspace goes before that of the iterations comes
  return start;
}

void CgProgram::finish() {
  numbers_[0] = Tensor();
  b_ = {};
  is_prepared_ = false;
  for (const Function* f : {&setup_, &step_, &refresh_}) {
    if (f->defined()) f->free();
  }
  for (SharedVariable* s : {&x_, &r_, &p_}) s->exchange(placeholder(type_));
  rho_.exchange(placeholder(rho_.type()));
}

double CgProgram::number(std::size_t i) const {
  const Tensor& numbers = numbers_[0];
  return numbers.dtype() == DType::float32 ? static_cast<double>(numbers.data<float>()[i])
                                           : numbers.data<double>()[i];
}

CgProgram::Step CgProgram::step(bool refresh) {
  const std::span<const Tensor> b(b_);
  if (has_refresh_ && !is_prepared_) refresh_.prepare(b);
  is_prepared_ = true;
  if (refresh) {
    refresh_.call(b, numbers_);
  } else {
    step_.call({}, numbers_);
  }
  return {{number(0), number(1)}, number(2), number(3)};
}

bool CgProgram::is_positive(std::complex<double> pq) const {
  return pq.real() > 0 && std::abs(pq.imag()) <= imaginary_bound(type_.dtype) * pq.real();
}

}  // namespace palimpsest
