// SPDX-License-Identifier: Apache-2.0
// Products that are added to an array.

#include "palimpsest/ops/create/shared_memory.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/contract_op.hpp"

namespace palimpsest::ops {
namespace {

using Labels = SmallVector<int, 8>;

bool is_zero(const ConstView& number) {
  return visit_inexact(number.dtype, "gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    return *static_cast<const T*>(number.data) == T{};
  });
}

// An operand with the axes of the result: strides 0 where it has no such label.
ConstView along_result(const ConstView& x, const Labels& labels, const Labels& out,
                       std::span<const index_t> extents, std::span<index_t> strides) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto at = std::find(labels.begin(), labels.end(), out[k]);
    strides[k] = at == labels.end() ? 0 : x.strides[static_cast<std::size_t>(at - labels.begin())];
  }
  return {x.data, x.dtype, extents, strides};
}

ConstView everywhere(const ConstView& number, std::span<const index_t> extents,
                     std::span<const index_t> zeros) {
  return {number.data, number.dtype, extents, zeros};
}

// z, alpha, x, y and beta in the dtype that they are promoted to.
std::vector<Variable> promoted(const Variable& z, const Operand& alpha, const Variable& x,
                               const Variable& y, const Operand& beta) {
  const Operand operands[] = {z, alpha, x, y, beta};
  std::vector<Variable> inputs = resolved(operands);
  DType dtype = inputs[0].dtype();
  for (const Variable& v : inputs) dtype = promote(dtype, v.dtype());
  if (!is_inexact(dtype)) dtype = DType::float64;
  for (Variable& v : inputs) v = astype(v, dtype);
  return inputs;
}

void check_ranks(std::span<const Variable> inputs, std::size_t z, std::size_t x, std::size_t y,
                 std::string_view who) {
  const std::size_t expected[] = {z, 0, x, y, 0};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].rank() != expected[i]) {
      throw ShapeError("[" + std::string(who) + "] operand " + std::to_string(i) + ": got " +
                       inputs[i].type().str() + ", expected " + std::to_string(expected[i]) +
                       " axes");
    }
  }
}

// True if a factor or a number shows memory of the accumulator.
bool is_factor(std::span<const Variable> inputs) {
  return std::any_of(inputs.begin() + 1, inputs.end(),
                     [&](const Variable& v) { return shows_common_memory(inputs[0], v); });
}

Variable built(Contraction contraction, std::span<const Variable> inputs) {
  return std::make_shared<AddContract>(std::move(contraction), inputs[0].dtype())
      ->make_node(inputs)
      .output(0);
}

}  // namespace

// sum: alpha t + beta z for a product t that is there. scaled: alpha t, where beta is 0.
// sum_of_products: alpha x y + beta z, where nothing is summed.
AddContract::AddContract(Contraction contraction, DType dtype, bool in_place)
    : InPlaceTwin(in_place), contraction_(std::move(contraction)), dtype_(dtype) {
  const int z = sum_.input(dtype), alpha = sum_.input(dtype), t = sum_.input(dtype),
            beta = sum_.input(dtype);
  sum_.output(sum_.apply(ScalarOp::add, {sum_.apply(ScalarOp::mul, {alpha, t}),
                                         sum_.apply(ScalarOp::mul, {beta, z})}));
  const DType operands[] = {dtype, dtype};
  scaled_ = ElementwiseProgram(ScalarOp::mul, operands);
  ElementwiseProgram& p = sum_of_products_;
  const int pz = p.input(dtype), pa = p.input(dtype), x = p.input(dtype), y = p.input(dtype),
            pb = p.input(dtype);
  const auto conj_if = [&](bool conj, int r) { return conj ? p.apply(ScalarOp::conj, {r}) : r; };
  const int xy =
      p.apply(ScalarOp::mul, {conj_if(contraction_.conj_a, x), conj_if(contraction_.conj_b, y)});
  p.output(
      p.apply(ScalarOp::add, {p.apply(ScalarOp::mul, {pa, xy}), p.apply(ScalarOp::mul, {pb, pz})}));
}

bool AddContract::is_outer() const {
  const auto is_kept = [&](int label) { return has(contraction_.out, label); };
  return std::all_of(contraction_.a.begin(), contraction_.a.end(), is_kept) &&
         std::all_of(contraction_.b.begin(), contraction_.b.end(), is_kept);
}

std::string AddContract::name() const {
  const std::string result = is_outer() ? "Ger" : contraction_.out.size() == 1 ? "Gemv" : "Gemm";
  return in_place_ ? result + "InPlace" : result;
}

std::string AddContract::parameters() const {
  return written(contraction_) + ", " + written(dtype_);
}

std::vector<std::string> AddContract::names() {
  return {"Gemm", "Gemv", "Ger", "GemmInPlace", "GemvInPlace", "GerInPlace"};
}

OpPtr AddContract::restored(std::string_view name, ParameterText& text) {
  auto contraction = read_value<Contraction>(text);
  text.expect(", ");
  const DType dtype = text.dtype();
  return std::make_shared<AddContract>(std::move(contraction), dtype, name.ends_with("InPlace"));
}

Extents AddContract::agreed_extents(std::span<const index_t> z, std::span<const index_t> x,
                                    std::span<const index_t> y) const {
  const Extents product = Contract(contraction_).result_extents(x, y);
  if (product.size() != z.size()) {
    throw ShapeError("[" + name() + "] numbers of axes differ: got " + to_string(z) +
                     " for a product of " + to_string(product));
  }
  Extents result;
  for (std::size_t k = 0; k < z.size(); ++k) {
    result.push_back(agreed_extent(z, product, k, name()));
  }
  return result;
}

Apply AddContract::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 5, name());
  common_device(inputs, name());
  for (const Variable& v : inputs) {
    if (v.dtype() != dtype_) {
      throw DTypeError("[" + name() + "] got " + v.type().str() + ", expected " +
                       std::string(name_of(dtype_)));
    }
  }
  if (inputs[1].rank() != 0 || inputs[4].rank() != 0) {
    throw ShapeError("[" + name() + "] factors: got " + inputs[1].type().str() + " and " +
                     inputs[4].type().str() + ", expected numbers of no axes");
  }
  TensorType type = inputs[0].type();
  type.shape = agreed_extents(type.shape, inputs[2].type().shape, inputs[3].type().shape);
  if (in_place_ && is_factor(inputs)) {
    throw ValueError("[" + name() + "] " + inputs[0].str() +
                     " is overwritten while a factor shows its memory. Try a copy");
  }
  if (in_place_) expect_own_elements(inputs[0], name());
  return node(inputs, {type});
}

bool AddContract::can_overwrite(const Apply& apply) const { return !is_factor(apply.inputs()); }

std::vector<Extents> AddContract::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {agreed_extents(inputs[0], inputs[2], inputs[3])};
}

// In place the destination lies as z does, else it is dense: scratch must do for either.
std::size_t AddContract::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  if (is_outer()) return 0;
  const Layout &z = inputs[0], &x = inputs[2], &y = inputs[3];
  const ConstView a{nullptr, dtype_, x.extents, x.strides},
      b{nullptr, dtype_, y.extents, y.strides};
  std::size_t result = 0;
  for (const Strides& strides : {z.strides, contiguous_strides(z.extents)}) {
    const MutableView out{nullptr, dtype_, z.extents, strides};
    const auto bytes = scaled_product_scratch_bytes(contraction_, a, b, out);
    result =
        std::max(result, bytes ? *bytes : static_cast<std::size_t>(byte_count(z.extents, dtype_)));
  }
  return result;
}

std::vector<Variable> AddContract::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &z = apply.input(0), &alpha = apply.input(1), &x = apply.input(2),
                 &y = apply.input(3), &beta = apply.input(4), &w = cotangents[0];
  const Variable product =
      std::make_shared<Contract>(contraction_)->make_node(std::vector<Variable>{x, y}).output(0);
  const Variable scaled = w * conj(alpha);
  return {w * conj(beta), vdot(product, w),
          Contract::cotangent_of(contraction_, x, y, scaled, true),
          Contract::cotangent_of(contraction_, y, x, scaled, false), vdot(z, w)};
}

void AddContract::run(RunContext& context) const {
  const ConstView &z = context.input(0), &alpha = context.input(1), &x = context.input(2),
                  &y = context.input(3), &beta = context.input(4);
  const MutableView& out = context.output(0);
  const bool fresh = is_zero(beta);  // the accumulator may hold NaN
  SmallVector<index_t, 8> zeros(out.rank(), 0), of_x(out.rank()), of_y(out.rank());
  const std::span<const index_t> still{zeros.data(), zeros.size()};
  const ConstView a = everywhere(alpha, out.extents, still),
                  b = everywhere(beta, out.extents, still);
  if (is_outer() && !fresh) {
    const ConstView operands[] = {
        z, a,
        along_result(x, contraction_.a, contraction_.out, out.extents, {of_x.data(), of_x.size()}),
        along_result(y, contraction_.b, contraction_.out, out.extents, {of_y.data(), of_y.size()}),
        b};
    run_elementwise(sum_of_products_, operands, {&out, 1});
    return;
  }
  if (!is_outer()) {
    // A destination in another layout than scratch was made for may need more.
    const auto needed = scaled_product_scratch_bytes(contraction_, x, y, out);
    if (needed && *needed <= context.scratch().size()) {
      if (!fresh && !in_place_) strided_copy(z, out);
      run_scaled_product(contraction_, alpha.data, x, y, fresh ? nullptr : beta.data, out,
                         context.scratch());
      return;
    }
  }
  if (fresh) {
    run_contraction(contraction_, x, y, out);
    const ConstView operands[] = {a, out};
    run_elementwise(scaled_, operands, {&out, 1});
    return;
  }
  if (!in_place_) {
    run_contraction(contraction_, x, y, out);
    const ConstView operands[] = {z, a, out, b};
    run_elementwise(sum_, operands, {&out, 1});
    return;
  }
  const Strides dense = contiguous_strides(out.extents);
  const MutableView product{context.scratch().data(), dtype_, out.extents, dense};
  run_contraction(contraction_, x, y, product);
  const ConstView operands[] = {z, a, product, b};
  run_elementwise(sum_, operands, {&out, 1});
}

Variable gemm(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
              const Operand& beta) {
  const std::vector<Variable> inputs = promoted(z, alpha, x, y, beta);
  check_ranks(inputs, 2, 2, 2, "gemm");
  return built({{0, 1}, {1, 2}, {0, 2}}, inputs);
}
Variable gemv(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y,
              const Operand& beta) {
  const std::vector<Variable> inputs = promoted(z, alpha, x, y, beta);
  check_ranks(inputs, 1, 2, 1, "gemv");
  return built({{0, 1}, {1}, {0}}, inputs);
}
Variable ger(const Variable& z, const Operand& alpha, const Variable& x, const Variable& y) {
  const std::vector<Variable> inputs = promoted(z, alpha, x, y, 1);
  check_ranks(inputs, 2, 1, 1, "ger");
  return built({{0}, {1}, {0, 1}}, inputs);
}

void register_ops_of_add_contract() { register_type<AddContract>(); }

}  // namespace palimpsest::ops
