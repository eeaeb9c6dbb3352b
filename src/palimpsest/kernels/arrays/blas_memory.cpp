// SPDX-License-Identifier: Apache-2.0
// OpenBLAS built without threads chooses the buffer of a call without a lock. Two concurrent calls
// may get the same buffer, and both results are wrong (0.3 % of products 8 x 8 on 4 threads). The
// linker sends its calls of blas_memory_alloc here (--wrap, in cmake/PalimpsestDependencies.cmake).
// Giving a buffer back is one store and needs no lock.
#include <mutex>

#include "palimpsest/base/fork.hpp"

namespace {
constinit palimpsest::Mutex mutex;
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
extern "C" {
void* __real_blas_memory_alloc(int procpos);
void* __wrap_blas_memory_alloc(int procpos);

void* __wrap_blas_memory_alloc(int procpos) {
  const std::lock_guard guard(mutex);
  return __real_blas_memory_alloc(procpos);
}
}
// NOLINTEND(bugprone-reserved-identifier)
