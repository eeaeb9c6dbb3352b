// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/value_checks.hpp"

#include <algorithm>
#include <array>

#include "palimpsest/kernels/reduce/reduce_all.hpp"

namespace palimpsest {

double largest_square(const ConstView& x) {
  if (std::count(x.extents.begin(), x.extents.end(), 0) > 0) return 0;
  return reduce_all<double>(x, ReduceOp::max, ScalarOp::abs2, DType::complex128);
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
