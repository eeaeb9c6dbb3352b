// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/libraries.hpp"

#include <hwy/highway.h>

#include <cstdint>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/kernels/matrices/blas.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {

namespace {

// Highway takes the best of the instruction sets that are compiled and that the processor has: the
// lowest bit.
std::string vector_target() {
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);
}

}  // namespace

ComputeLibraries compute_libraries() {
  return {blas_library_version(), pool_threads(), vector_target(), core_cache_bytes(),
          streaming_bytes()};
}

}  // namespace palimpsest
