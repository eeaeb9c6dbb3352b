// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/value_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/reduce/reduce_all.hpp"

namespace palimpsest {

Extents index_of(index_t element, const Extents& shape) {
  Extents index = shape;
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

void expect_finite(const char* who, const char* what, const Tensor& x) {
  if (all_finite(x)) return;
  const std::vector<std::complex<double>> values =
      x.to(DType::complex128).to_vector<std::complex<double>>();
  const auto is_bad = [](std::complex<double> v) {
    return !std::isfinite(v.real()) || !std::isfinite(v.imag());
  };
  const auto first = std::find_if(values.begin(), values.end(), is_bad) - values.begin();
  throw ValueError(fmt::format(
      "[{}] {} holds NaN or infinite values: got {} of them, the first at {}", who, what,
      std::count_if(values.begin(), values.end(), is_bad), to_string(index_of(first, x.shape()))));
}

void add_nonzero(const ConstView& x, Tensor& found) {
  ElementwiseProgram program;
  const int old = program.input(DType::bool_), value = program.input(x.dtype);
  program.output(program.apply(ScalarOp::logical_or, {old, program.cast(value, DType::bool_)}));
  const MutableView to{found.raw_mutable_data(), DType::bool_, found.shape(), found.strides()};
  run_with_threads(static_cast<int>(config().threads.value_or(0)), [&] {
    run_elementwise(program, std::array<ConstView, 2>{to, x}, std::array{to});
  });
}

}  // namespace palimpsest
