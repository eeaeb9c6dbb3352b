// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/libraries.hpp"

#include <hwy/highway.h>

#include <cstdint>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/fft/fft_wisdom.hpp"
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

std::string planning() {
  const WisdomPlace& place = wisdom_place();
  if (!place.measures) return "estimated";
  return place.path.empty() ? "measured, kept in this process" : "measured, kept in " + place.path;
}

}  // namespace

ComputeLibraries compute_libraries() {
  return {
      fft_library_version(), blas_library_version(), pool_threads(), vector_target(), planning(),
      core_cache_bytes(),    streaming_bytes()};
}

}  // namespace palimpsest
