// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/value_checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "palimpsest/base/config.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {
namespace {

template <class Body>
void run_with_threads_of_config(const Body& body) {
  run_with_threads(static_cast<int>(config().threads.value_or(0)), body);
}

bool is_empty(const ConstView& x) { return std::count(x.extents.begin(), x.extents.end(), 0) > 0; }

// Reduces f of all values, which are converted to `dtype` first.
template <class Result>
Result reduced(const ConstView& x, ReduceOp op, ScalarOp f, DType dtype) {
  const ElementwiseProgram program(f, std::array{dtype});
  SmallVector<index_t, 8> axes(x.rank(), 0);
  std::iota(axes.begin(), axes.end(), index_t{0});
  Result result{};
  run_with_threads_of_config([&] {
    run_fused_reduce(op, program, std::array{x}, axes, {&result, dtype_of<Result>, {}, {}});
  });
  return result;
}

}  // namespace

// The largest magnitude is NaN or infinite if a value is: it is found in vectors, which isfinite is
// not.
bool all_finite(const ConstView& x) {
  if (is_empty(x)) return true;
  Extents extents(x.extents.begin(), x.extents.end());
  Strides strides(x.strides.begin(), x.strides.end());
  if (is_complex(x.dtype)) {
    for (index_t& step : strides) step *= 2;
    extents.push_back(2);
    strides.push_back(1);
  }
  const ConstView parts{x.data, real_of(x.dtype), extents, strides};
  if (parts.dtype == DType::float32) {
    return std::isfinite(reduced<float>(parts, ReduceOp::max, ScalarOp::abs, parts.dtype));
  }
  return std::isfinite(reduced<double>(parts, ReduceOp::max, ScalarOp::abs, parts.dtype));
}

double largest_square(const ConstView& x) {
  if (is_empty(x)) return 0;
  return reduced<double>(x, ReduceOp::max, ScalarOp::abs2, DType::complex128);
}

void add_nonzero(const ConstView& x, Tensor& found) {
  ElementwiseProgram program;
  const int old = program.input(DType::bool_), value = program.input(x.dtype);
  program.output(program.apply(ScalarOp::logical_or, {old, program.cast(value, DType::bool_)}));
  const MutableView to{found.raw_mutable_data(), DType::bool_, found.shape(), found.strides()};
  run_with_threads_of_config([&] {
    run_elementwise(program, std::array<ConstView, 2>{to, x}, std::array{to});
  });
}

}  // namespace palimpsest
