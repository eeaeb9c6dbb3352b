// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/value_checks.hpp"

#include <array>

#include "palimpsest/kernels/reduce/reduce_all.hpp"

namespace palimpsest {

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
