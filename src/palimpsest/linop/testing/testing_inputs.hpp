// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "palimpsest/linop/testing/testing.hpp"

// Common parts of the testing kit's sources.
namespace palimpsest {

Extents test_extents(const NamedLinop& A, const TestOptions& options);
DType test_dtype(const NamedLinop& A, const TestOptions& options);
Tensor test_input(const NamedLinop& A, const TestOptions& options, std::uint64_t stream);
/// The operator with the sizes of its input recorded, as its adjoint may need them.
NamedLinop with_sizes_of(const NamedLinop& A, const Tensor& x);

std::vector<std::complex<double>> wide(const Tensor& t);
double norm_of(const Tensor& t);
/// |a - b| / |b|.
double relative_difference(const Tensor& a, const Tensor& b);
/// 30 units of rounding times the square root of the number of terms.
double test_tolerance(DType dtype, index_t terms);
/// The stated error of A.N beyond rounding; a test allows it in addition.
double normal_allowance(const NamedLinop& A);

}  // namespace palimpsest
