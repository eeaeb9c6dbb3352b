// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/index/index.hpp"

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/create/shared_memory.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

Variable update(UpdateSubtensor::Kind kind, const Variable& x, std::vector<Index> entries,
                const Variable& value) {
  const char* who = kind == UpdateSubtensor::Kind::set ? "set_subtensor" : "inc_subtensor";
  BasicIndex index(std::move(entries), x.rank());
  const Extents region = index.extents(x.type().shape);
  if (value.rank() > region.size()) {
    throw ShapeError("[" + std::string(who) + "] number of axes of the value: got " +
                     value.type().str() + ", expected at most " + std::to_string(region.size()));
  }
  const Variable inputs[] = {x, with_rank(astype(value, x.dtype()), region.size())};
  return std::make_shared<UpdateSubtensor>(kind, std::move(index), x.dtype())
      ->make_node(inputs)
      .output(0);
}

}  // namespace

void check_value(std::span<const index_t> value, std::span<const index_t> declared,
                 std::span<const index_t> region, const std::string& who) {
  for (std::size_t k = 0; k < region.size(); ++k) {
    if (declared[k] != 1) agreed_extent(value, region, k, who);
  }
}

void check_update(std::span<const Variable> inputs, DType dtype, std::span<const index_t> region,
                  bool in_place, const std::string& who) {
  const TensorType &x = inputs[0].type(), &value = inputs[1].type();
  if (x.dtype != dtype || value.dtype != dtype) {
    throw DTypeError("[" + who + "] got " + x.str() + " and " + value.str() + ", expected " +
                     std::string(name_of(dtype)));
  }
  if (value.rank() != region.size()) {
    throw ShapeError("[" + who + "] number of axes of the value: got " + value.str() +
                     ", expected " + std::to_string(region.size()));
  }
  check_value(value.shape, value.shape, region, who);
  if (in_place) expect_own_elements(inputs[0], who);
}

// The adjoint puts the block back among zeros: one pass where it is a block, else two.
std::vector<Variable> Subtensor::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &x = apply.input(0), &w = cotangents[0];
  if (auto widths = index_.widths(x.type().shape)) {
    const Variable block = expand_dims(squeeze(w, index_.new_axes()), index_.dropped_axes());
    return {pad(block, std::move(*widths))};
  }
  return {set_subtensor(zeros_like(x), index_.entries(), w)};
}

Variable index(const Variable& x, std::vector<Index> entries) {
  BasicIndex index(std::move(entries), x.rank());
  if (index.is_whole()) return x;
  return std::make_shared<Subtensor>(std::move(index))->make_node({&x, 1}).output(0);
}

UpdateSubtensor::UpdateSubtensor(Kind kind, BasicIndex index, DType dtype, bool in_place,
                                 bool buffered)
    : InPlaceTwin(in_place),
      kind_(kind),
      index_(std::move(index)),
      dtype_(dtype),
      buffered_(buffered) {
  const DType operands[] = {dtype, dtype};
  if (kind == Kind::increase) sum_ = ElementwiseProgram(ScalarOp::add, operands);
}

std::string UpdateSubtensor::name() const {
  const std::string result = kind_ == Kind::set ? "SetSubtensor" : "IncSubtensor";
  return in_place_ ? result + "InPlace" : result;
}

std::string UpdateSubtensor::parameters() const {
  return index_.str() + "; " + std::string(name_of(dtype_)) + (buffered_ ? ", buffered" : "");
}

std::vector<std::string> UpdateSubtensor::names() {
  return {"SetSubtensor", "IncSubtensor", "SetSubtensorInPlace", "IncSubtensorInPlace"};
}

OpPtr UpdateSubtensor::restored(std::string_view name, ParameterText& text) {
  auto index = read_value<BasicIndex>(text);
  text.expect("; ");
  const Kind kind = name.starts_with("Set") ? Kind::set : Kind::increase;
  const DType dtype = text.dtype();
  const bool buffered = text.take(", buffered");
  return std::make_shared<UpdateSubtensor>(kind, std::move(index), dtype, name.ends_with("InPlace"),
                                           buffered);
}

Apply UpdateSubtensor::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 2, name());
  const TensorType& x = inputs[0].type();
  common_device(inputs, name());
  check_update(inputs, dtype_, index_.extents(x.shape), in_place_, name());
  return node(inputs, {x});
}

void UpdateSubtensor::adapt(const Apply* a) {
  buffered_ = a && shows_common_memory(a->input(0), a->input(1), write_region(*a, 0));
}

IndexPairs UpdateSubtensor::tolerate_aliased(const Apply&) const {
  if (buffered_) return {{0, 1}};
  return {};
}

std::size_t UpdateSubtensor::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return buffered_ ? static_cast<std::size_t>(byte_count(inputs[1].extents, dtype_)) : 0;
}

std::vector<Extents> UpdateSubtensor::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  check_value(inputs[1], apply.input(1).type().shape, index_.extents(inputs[0]), name());
  return {inputs[0]};
}

Linearity UpdateSubtensor::linear_in(const Apply&, int) const {
  return is_inexact(dtype_) ? Linearity::complex : Linearity::no;
}

std::vector<Variable> UpdateSubtensor::pullback(const Apply& apply,
                                                CotangentSpan cotangents) const {
  const Variable& w = cotangents[0];
  const Variable value = as_cotangent_of(apply.input(1), ops::index(w, index_.entries()));
  if (kind_ == Kind::increase) return {w, value};
  const Variable zero = constant(Tensor::zeros({}, w.dtype(), w.type().device));
  return {set_subtensor(w, index_.entries(), zero), value};
}

void UpdateSubtensor::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  if (!in_place_) run_copy(context.input(0), out);
  const Layout region = index_.layout({out.dtype, out.extents, out.strides, 0});
  const MutableView target{static_cast<std::byte*>(out.data) + region.byte_offset, out.dtype,
                           region.extents, region.strides};
  SmallVector<index_t, 8> strides(target.rank());
  ConstView given = context.input(1);
  const Strides dense = contiguous_strides(given.extents);
  if (buffered_) {
    const MutableView copy{context.scratch().data(), dtype_, given.extents, dense};
    strided_copy(given, copy);
    given = copy;
  }
  const ConstView value = stretched(given, target.extents, {strides.data(), strides.size()});
  if (kind_ == Kind::set) {
    strided_copy(value, target);
  } else {
    const ConstView operands[] = {target, value};
    run_elementwise(sum_, operands, {&target, 1});
  }
}

Variable set_subtensor(const Variable& x, std::vector<Index> entries, const Variable& value) {
  return update(UpdateSubtensor::Kind::set, x, std::move(entries), value);
}
Variable inc_subtensor(const Variable& x, std::vector<Index> entries, const Variable& value) {
  return update(UpdateSubtensor::Kind::increase, x, std::move(entries), value);
}

void register_ops_of_index() {
  register_type<Subtensor>();
  register_type<UpdateSubtensor>();
}

}  // namespace palimpsest::ops
