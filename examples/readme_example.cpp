// SPDX-License-Identifier: Apache-2.0
// Removes a blur from a picture: the blur is an operator, its peak memory is known before it runs.
#include <iostream>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

int main() {
  const Tensor otf = Tensor::random_uniform({256, 256}, DType::float32, {1});
  const NamedLinop F = Fft(2), A = F.H() * Diagonal(otf, "KxKy") * F;
  std::cout << A << "\ndot test: " << (dot_test(A, {.extents = {{256, 256}}}).ok ? "ok" : "failed");

  const Tensor picture = Tensor::random_normal({256, 256}, DType::complex64, {2});
  const NamedLinop normal = A.N() + 1e-3 * Identity("NxNy");
  const Tensor b = A.H()(A(picture));
  const SolvePlan plan = plan_conjugate_gradients(normal, {b.dtype(), b.shape(), b.device()});
  const MemoryScope memory;
  const SolveResult result = conjugate_gradients(normal, b, {.tolerance = 1e-4});
  const auto measured = static_cast<index_t>(memory.peak_bytes());
  std::cout << "\n"
            << name_of(result.status) << " after " << result.iterations << " iterations"
            << "\nannounced " << plan.peak_bytes << " bytes, measured " << measured << " bytes\n";
  return plan.peak_bytes == measured && result.status == Status::converged ? 0 : 1;
}
