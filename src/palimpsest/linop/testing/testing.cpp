// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/testing/testing.hpp"

#include <algorithm>
#include <cmath>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/total.hpp"
#include "palimpsest/linop/testing/testing_inputs.hpp"
#include "palimpsest/linop/transforms/nufft_detail.hpp"

namespace palimpsest {

Extents test_extents(const NamedLinop& A, const TestOptions& options) {
  if (options.extents) return *options.extents;
  DimSizes sizes;
  for (const ND& d : A.ishape()) {
    if (d.is_ellipsis()) {
      sizes.set_ellipsis(options.ellipsis);
      continue;
    }
    if (const auto n = A.size(d)) sizes.set(d, *n);
    const auto given = options.sizes.find(d);
    if (given != options.sizes.end() && !sizes.contains(d)) sizes.set(d, given->second);
  }
  return extents_of(A.ishape(), sizes, path_of(A));
}

DType test_dtype(const NamedLinop& A, const TestOptions& options) {
  return options.dtype.value_or(natural_dtype(A));
}

Tensor test_input(const NamedLinop& A, const TestOptions& options, std::uint64_t stream) {
  return Tensor::random_normal(test_extents(A, options), test_dtype(A, options),
                               {options.seed, stream});
}

std::vector<std::complex<double>> wide(const Tensor& t) {
  return t.to(DType::complex128).to_vector<std::complex<double>>();
}

double norm_of(const Tensor& t) {
  double sum = 0;
  for (const auto& z : wide(t)) sum += std::norm(z);
  return std::sqrt(sum);
}

double relative_difference(const Tensor& a, const Tensor& b) {
  const auto u = wide(a), v = wide(b);
  if (u.size() != v.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    difference += std::norm(u[i] - v[i]);
    size = std::max(size, std::norm(v[i]));
  }
  const double scale = norm_of(b);
  if (difference == 0) return 0;
  return scale == 0 ? std::sqrt(difference) : std::sqrt(difference) / scale;
}

double rounding(DType dtype) {
  return real_of(dtype) == DType::float32 ? 1.1920929e-7 : 2.220446049250313e-16;
}

double test_tolerance(DType dtype, index_t terms) {
  return 30 * rounding(dtype) * std::sqrt(static_cast<double>(std::max<index_t>(terms, 1)));
}

double normal_allowance(const NamedLinop& A) {
  // Relative to |A|^2 |x|, which may be several times |A.N x| for random x.
  double sum = &A.type() == &linop_types::nufft() ? 10 * nufft_normal_allowance(A) : 0;
  for (const NamedLinop& child : A.linops()) sum += normal_allowance(child);
  return sum;
}

namespace {

std::complex<double> inner_product(const Tensor& a, const Tensor& b) {
  const auto u = wide(a), v = wide(b);
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) sum += std::conj(u[i]) * v[i];
  return sum;
}

// The sum of `own` over the processes, if several of them hold parts of the vectors.
std::complex<double> total_of(const NamedLinop& A, VectorSide side, std::complex<double> own) {
  const Variable number = tensor(DType::complex128, {}, "number");
  const Variable sum = total(A, side, number);
  if (sum.node() == number.node()) return own;
  const Tensor result = function({number}, sum)(Tensor::full({}, own));
  return wide(result)[0];
}

}  // namespace

DotTest dot_test(const NamedLinop& A, const TestOptions& options) {
  const Tensor x = test_input(A, options, 0);
  const Tensor Ax = A(x);
  const Tensor y = Tensor::random_normal(Ax.shape(), Ax.dtype(), {options.seed, 1});
  const Tensor Ay = with_sizes_of(A, x).H()(y);
  DotTest result{total_of(A, VectorSide::output, inner_product(Ax, y)),
                 total_of(A, VectorSide::input, inner_product(x, Ay))};
  if (is_real_linear(A)) {
    result.lhs = result.lhs.real();
    result.rhs = result.rhs.real();
  }
  const double difference = std::abs(result.lhs - result.rhs);
  const auto norm2 = [&](const Tensor& v) {
    return total_of(A, VectorSide::output, std::pow(norm_of(v), 2)).real();
  };
  const double scale = std::sqrt(norm2(Ax) * norm2(y));
  result.error = difference == 0 ? 0 : difference / scale;
  result.ok = result.error <= test_tolerance(x.dtype(), x.numel() + y.numel());
  return result;
}

NormalTest check_normal(const NamedLinop& A, const TestOptions& options) {
  const Tensor x = test_input(A, options, 0);
  const NamedLinop sized = with_sizes_of(A, x);
  const Tensor folded = A.N()(x), composed = sized.H()(A(x));
  if (folded.shape() != composed.shape()) return {INFINITY, false};
  const double error = relative_difference(folded, composed);
  return {error, error <= test_tolerance(x.dtype(), x.numel()) + normal_allowance(A)};
}

Tensor to_dense(const NamedLinop& A, const TestOptions& options) {
  const Extents extents = test_extents(A, options);
  const DType dtype = test_dtype(A, options);
  const Plan plan = A.plan({dtype, extents, {}});
  const Layout& result = plan.slots[static_cast<std::size_t>(plan.outputs[0].slot)].layout;
  const index_t rows = element_count(result.extents), columns = element_count(extents);
  const index_t bytes = byte_count(Extents{rows, columns}, result.dtype);
  if (bytes > config().to_dense_limit) {
    throw ValueError(who(A) + "to_dense: the matrix is too large: got " + std::to_string(bytes) +
                     " bytes, expected at most " + std::to_string(config().to_dense_limit) +
                     ". Try ConfigScope({.to_dense_limit = ..})");
  }
  Tensor matrix = Tensor::empty({rows, columns}, result.dtype);
  Tensor x = Tensor::zeros(extents, dtype);
  Tensor flat = x.view({columns});
  for (index_t j = 0; j < columns; ++j) {
    flat.set<double>({j}, 1);
    Tensor column = A(x);
    matrix.select(1, j).copy_from(column.reshape({rows}));
    flat.set<double>({j}, 0);
  }
  return matrix;
}

NamedLinop with_sizes_of(const NamedLinop& A, const Tensor& x) {
  return sized_for(A, {x.dtype(), x.shape(), x.device()});
}

}  // namespace palimpsest
