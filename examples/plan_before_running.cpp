// SPDX-License-Identifier: Apache-2.0
// A parallel MRI reconstruction that knows its memory before it runs.
#include <iostream>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

int main() {
  const Tensor maps = Tensor::random_normal({8, 128, 128}, DType::complex64, {1});
  const Tensor mask = Tensor::zeros({128, 128}, DType::bool_);
  mask(slice({}, {}, 4)).fill(true);  // every fourth line of k-space

  const NamedLinop A = Chain(Dense(maps, "CNxNy,NxNy->CNxNy"), Fft(2, {.batch = "C"}),
                             SamplingFromMask(mask, {.batch = "C"}));
  const Tensor y = A(Tensor::ones({128, 128}, DType::complex64));
  const Tensor b = A.H()(y);

  const SolvePlan plan = plan_conjugate_gradients(A.N(), {b.dtype(), b.shape(), b.device()});
  const MemoryScope memory;
  const SolveResult result = conjugate_gradients(A.N(), b);
  const auto measured = static_cast<index_t>(memory.peak_bytes());

  std::cout << "announced " << plan.peak_bytes << " bytes, measured " << measured << " bytes, "
            << name_of(result.status) << "\n";
  return plan.peak_bytes == measured && result.status == Status::converged ? 0 : 1;
}
