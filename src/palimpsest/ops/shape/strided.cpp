// SPDX-License-Identifier: Apache-2.0
// Views at any strides, with which parts of one buffer that overlap are told apart.
#include "palimpsest/ops/shape/strided.hpp"

#include <array>
#include <cstring>
#include <type_traits>

#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"

namespace palimpsest::ops {
namespace {

index_t item(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

// Complex numbers as pairs and pairs as complex numbers have derivatives; other bytes have none.
Linearity linearity_between(DType a, DType b) {
  if (!is_inexact(a) || !is_inexact(b)) return Linearity::no;
  if (a == b) return Linearity::complex;
  return real_of(a) == real_of(b) ? Linearity::real : Linearity::no;
}

// Calls f(a, b) with the positions of every element in two arrangements, in order.
struct Arrangement {
  Strides strides;
  index_t offset = 0;
};
template <class F>
void for_each_element(const Extents& extents, const Arrangement& first, const Arrangement& second,
                      F&& f) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  Extents index(extents.size(), 0);
  index_t a = first.offset, b = second.offset;
  for (;;) {
    f(a, b);
    std::size_t k = extents.size();
    for (;; --k) {
      if (k == 0) return;
      a += first.strides[k - 1];
      b += second.strides[k - 1];
      if (++index[k - 1] < extents[k - 1]) break;
      a -= extents[k - 1] * first.strides[k - 1];
      b -= extents[k - 1] * second.strides[k - 1];
      index[k - 1] = 0;
    }
  }
}

// Strides and offset counted in pieces; an item has `n` pieces.
Arrangement in_pieces(Strides strides, index_t offset, index_t n) {
  for (index_t& stride : strides) stride *= n;
  strides.push_back(1);
  return {std::move(strides), offset * n};
}

}  // namespace

std::string Strided::misfit(DType, const Extents& extents, const Strides& strides, index_t) {
  if (extents.size() != strides.size()) return "numbers of axes that differ";
  for (const index_t extent : extents) {
    if (extent < 0) return "a negative extent";
  }
  return {};
}

std::pair<index_t, index_t> Strided::reach() const {
  index_t lo = offset_, hi = offset_;
  for (std::size_t k = 0; k < extents_.size(); ++k) {
    if (extents_[k] == 0) return {0, 0};
    (strides_[k] < 0 ? lo : hi) += (extents_[k] - 1) * strides_[k];
  }
  return {lo * item(dtype_), (hi + 1) * item(dtype_)};
}

bool Strided::overlaps_itself() const {
  std::vector<std::pair<index_t, index_t>> axes;
  for (std::size_t k = 0; k < extents_.size(); ++k) {
    if (extents_[k] > 1) axes.emplace_back(std::abs(strides_[k]), extents_[k]);
  }
  std::sort(axes.begin(), axes.end());
  // Each axis steps over all that the smaller ones reach.
  index_t reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

Apply Strided::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& x = inputs[0].type();
  if (x.rank() != 1 || x.shape[0] == kUnknown) {
    throw ShapeError("[as_strided] got " + x.str() +
                     ", expected one axis of known extent. Try specify_shape");
  }
  const auto [lo, hi] = reach();
  if (lo < 0 || hi > x.shape[0] * item(x.dtype)) {
    throw ShapeError("[as_strided] it reaches outside: got bytes " + std::to_string(lo) + " .. " +
                     std::to_string(hi) + ", expected 0 .. " +
                     std::to_string(x.shape[0] * item(x.dtype)));
  }
  return ViewOp::make_node(inputs);
}

std::optional<Layout> Strided::layout_of(const Layout& in) const {
  const index_t step = in.extents[0] > 1 ? in.strides[0] : 1;
  if (in.dtype != dtype_ && (step != 1 || in.byte_offset % item(dtype_) != 0)) return {};
  Layout result{dtype_, extents_, strides_, in.byte_offset};
  for (index_t& stride : result.strides) stride *= step;
  result.byte_offset += offset_ * step * item(dtype_);
  return result;
}

Linearity Strided::linear_in(const Apply& apply, int) const {
  return linearity_between(apply.input(0).dtype(), dtype_);
}

std::vector<Variable> Strided::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const TensorType& x = apply.input(0).type();
  if (linearity_between(x.dtype, dtype_) == Linearity::no) return {Variable()};
  return {std::make_shared<StridedAdjoint>(x.dtype, x.shape[0], strides_, offset_)
              ->make_node(cotangents.first(1))
              .output(0)};
}

void Strided::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const MutableView& out = context.output(0);
  if (layout_of({in.dtype, in.extents, in.strides, 0})) return ViewOp::run(context);
  // The bytes of an element do not lie side by side: they are copied in pieces that both dtypes
  // consist of.
  const index_t from = item(in.dtype), to = item(dtype_), piece = std::min(from, to);
  const auto* x = static_cast<const std::byte*>(in.data);
  auto* y = static_cast<std::byte*>(out.data);
  Extents pieces = out.extents;
  pieces.push_back(to / piece);
  for_each_element(pieces, in_pieces(strides_, offset_, to / piece),
                   in_pieces(out.strides, 0, to / piece), [&](index_t source, index_t target) {
                     const index_t byte = source * piece;
                     std::memcpy(y + target * piece,
                                 x + byte / from * in.strides[0] * from + byte % from,
                                 static_cast<std::size_t>(piece));
                   });
}

Apply StridedAdjoint::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& w = inputs[0].type();
  if (w.rank() != strides_.size() || !w.is_fully_known()) {
    throw ShapeError("[as_strided] adjoint: got " + w.str() + ", expected " +
                     std::to_string(strides_.size()) + " axes of known extents. Try specify_shape");
  }
  const auto [lo, hi] = Strided(w.dtype, w.shape, strides_, offset_).reach();
  if (lo < 0 || hi > n_ * item(dtype_)) {
    throw ShapeError("[as_strided] adjoint: it reaches outside: got " + w.str());
  }
  return node(inputs, {{dtype_, {n_}, w.device}});
}

Linearity StridedAdjoint::linear_in(const Apply& apply, int) const {
  return linearity_between(apply.input(0).dtype(), dtype_);
}

std::vector<Variable> StridedAdjoint::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const TensorType& w = apply.input(0).type();
  return {std::make_shared<Strided>(w.dtype, w.shape, strides_, offset_)
              ->make_node(cotangents.first(1))
              .output(0)};
}

void StridedAdjoint::run(RunContext& context) const {
  const ConstView& w = context.input(0);
  const MutableView& out = context.output(0);
  constexpr std::array<std::byte, 16> kZero{};
  strided_fill(kZero.data(), out);
  // Complex numbers are added as pairs: one of the two dtypes may be real.
  const DType real = real_of(dtype_);
  const index_t parts = item(w.dtype) / item(real), per_item = item(dtype_) / item(real);
  Extents pieces = w.extents;
  pieces.push_back(parts);
  visit_inexact(real, "as_strided", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      for_each_element(pieces, in_pieces(w.strides, 0, parts), in_pieces(strides_, offset_, parts),
                       [&](index_t source, index_t at) {
                         const index_t target = at / per_item * out.strides[0] * per_item;
                         static_cast<T*>(out.data)[target + at % per_item] +=
                             static_cast<const T*>(w.data)[source];
                       });
    }
  });
}

Variable as_strided(const Variable& x, Extents extents, Strides strides, index_t offset,
                    std::optional<DType> dtype) {
  if (extents.size() != strides.size()) {
    throw ShapeError("[as_strided] got " + std::to_string(extents.size()) + " extents and " +
                     std::to_string(strides.size()) + " strides, expected as many");
  }
  if (std::any_of(extents.begin(), extents.end(), [](index_t extent) { return extent < 0; })) {
    throw ShapeError("[as_strided] got extents " + to_string(extents) +
                     ", expected extents from 0 on");
  }
  const Variable flat = x.rank() == 1 ? x : ravel(x);
  return std::make_shared<Strided>(dtype.value_or(x.dtype()), std::move(extents),
                                   std::move(strides), offset)
      ->make_node({&flat, 1})
      .output(0);
}

void register_ops_of_strided() {
  register_type<Strided>();
  register_type<StridedAdjoint>();
}

}  // namespace palimpsest::ops
