// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/subspace.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/linop/operators/dense.hpp"

namespace palimpsest {
namespace {

// (B) -> one column of K's outer product with itself, of a frame.
void add_frame(const Sample* row, index_t n, const Tensor& weights, Tensor& into) {
  const Tensor dense = weights.to(DType::float32).contiguous();
  const auto* w = dense.data<float>();
  const index_t points = dense.numel();
  auto* to = into.mutable_data<Sample>();
  for (index_t a = 0; a < n; ++a) {
    for (index_t b = 0; b < n; ++b, to += points) {
      const Sample factor = std::conj(row[a]) * row[b];
      for (index_t k = 0; k < points; ++k) to[k] += factor * w[k];
    }
  }
}

}  // namespace

Tensor checked_basis(const std::string& who, const Tensor& basis, index_t frames) {
  const auto refuse = [&](const std::string& what) {
    throw ValueError(fmt::format("{} {}", who, what));
  };
  if (basis.rank() != 2 || basis.dtype() == DType::bool_) {
    refuse(fmt::format("got {} {}, expected numbers (frames, coefficients)", name_of(basis.dtype()),
                       to_string(basis.shape())));
  }
  const index_t rows = basis.shape(0), columns = basis.shape(1);
  if (rows != frames) {
    refuse(fmt::format("got the shape {}, expected {} rows, one for each frame",
                       to_string(basis.shape()), frames));
  }
  if (columns < 1 || columns > rows) {
    refuse(fmt::format("got the shape {}, expected 1 to {} columns: at most as many as frames",
                       to_string(basis.shape()), rows));
  }
  const Tensor values = basis.to(DType::complex64).contiguous();
  const auto* v = values.data<Sample>();
  // Squares of them, and products with data, have to stay in the range of single precision.
  constexpr double kSmallest = 1e-10, kLargest = 1e10;
  for (index_t b = 0; b < columns; ++b) {
    double largest = 0;
    for (index_t t = 0; t < rows; ++t) {
      const Sample value = v[t * columns + b];
      if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) {
        refuse(fmt::format("NaN or infinite value in single precision at row {}, column {}", t, b));
      }
      largest = std::max(largest, double{std::abs(value)});
    }
    if (largest == 0) refuse(fmt::format("column {} is 0 everywhere. Try without it", b));
    if (largest >= kSmallest && largest <= kLargest) continue;
    refuse(
        fmt::format("the largest magnitude of column {} is {:g}, expected {:g} to {:g}. Try to "
                    "scale it",
                    b, largest, kSmallest, kLargest));
  }
  return values;
}

NamedLinop frame_of_coefficients(const Tensor& basis, index_t frame, const Dims& image) {
  return Dense(basis.select(0, frame), "B", Dims("B") + image, image);
}

NamedLinop frames_of_coefficients(const Tensor& basis, const Dims& others) {
  return Dense(basis, "T B", Dims("B") + others, Dims("T") + others);
}

Tensor subspace_weights(const Tensor& basis, const Extents& grid,
                        const std::function<Tensor(index_t frame)>& weights_of) {
  const index_t n = basis.shape(1);
  Extents shape = grid;
  shape.insert(0, n);
  shape.insert(0, n);
  Tensor result = Tensor::zeros(shape, DType::complex64);
  for (index_t t = 0; t < basis.shape(0); ++t) {
    add_frame(basis.data<Sample>() + t * n, n, weights_of(t), result);
  }
  return result;
}

NamedLinop subspace_weighting(const Parameter& weights, const Dims& grid) {
  return Dense(weights, Dims("A B") + grid, Dims("B C") + grid, Dims("A C") + grid,
               {.output = Dims("B C") + grid});
}

}  // namespace palimpsest
