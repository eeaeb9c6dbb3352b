// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Properties of random inputs.
struct TestOptions {
  /// Sizes of dimensions that the operator does not know.
  DimMap sizes = {};
  /// Extents of the dimensions that an ellipsis stands for.
  Extents ellipsis = {};
  /// All extents of the input at once, in place of the above.
  std::optional<Extents> extents = {};
  /// Default: complex, of the precision of the operator's parameters, else double.
  std::optional<DType> dtype = {};
  std::uint64_t seed = 1;
};

struct DotTest {
  std::complex<double> lhs, rhs;  ///< <A x, y> and <x, A^H y>
  double error = 0;               ///< their difference relative to |A x| |y|
  bool ok = false;
};
/// <A x, y> = <x, A^H y> for random x and y. `ok`: the error is at most 30 units of rounding times
/// the square root of the number of elements of x and y. Of an operator that is linear over the
/// reals only, the real part counts. All ranks of a distributed operator call it together.
DotTest dot_test(const NamedLinop& A, const TestOptions& options = {});

struct NormalTest {
  double error = 0;  ///< |A.N x - A^H A x| relative to |A^H A x|
  bool ok = false;   ///< within rounding
};
NormalTest check_normal(const NamedLinop& A, const TestOptions& options = {});

struct GradientTest {
  /// Largest relative difference: of the gradient of Re sum(A x) to A^H(1), and, in double
  /// precision, of the gradient of |A x|^2 / 2 with respect to the parameters, its own and those of
  /// all parts, to finite differences.
  double error = 0;
  bool ok = false;
};
GradientTest check_gradient(const NamedLinop& A, const TestOptions& options = {});

struct InplaceTest {
  bool same_bits =
      false;  ///< with in-place steps, and with an argument that is used up, as without
  bool untouched = false;  ///< x is unchanged
  bool ok() const { return same_bits && untouched; }
};
InplaceTest check_inplace(const NamedLinop& A, const TestOptions& options = {});

struct SplitTest {
  /// Largest relative difference between the assembled tiles of a partition and the whole.
  double error = 0;
  bool ok = false;
  /// Dimensions that cannot be cut.
  Dims refused = {};
  /// Names of the violated laws; empty if all hold.
  std::string failure = {};
};
/// Cuts every dimension into random and degenerate partitions, and several at once. The assembled
/// tiles are A, or some tiles are refused with a SplitError. Dimensions that can be cut can be cut
/// together.
SplitTest check_split(const NamedLinop& A, const TestOptions& options = {});

/// The matrix, rows x columns, row-major, in the dtype of the results.
/// Errors   ValueError "too large": above config().to_dense_limit
Tensor to_dense(const NamedLinop& A, const TestOptions& options = {});

struct ContractReport {
  /// A line per law that does not hold.
  std::vector<std::string> failures;
  bool ok() const { return failures.empty(); }
  std::string str() const;
};
/// Checks the laws that every operator obeys, of A, its adjoint and its normal operator. Throws
/// nothing.
ContractReport check_contract(const NamedLinop& A, const TestOptions& options = {});

}  // namespace palimpsest
