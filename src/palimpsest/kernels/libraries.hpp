// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// Libraries, instruction sets and sizes that the kernels use at run time.
struct ComputeLibraries {
  /// Name and version, as the library reports them, its kernels and who chose them.
  std::string blas;
  /// Threads of the thread pool.
  int threads = 1;
  /// The instruction set of the kernels, in the words of the library Highway.
  std::string vectors;
  /// Bytes taken for the cache of one core and for the last cache.
  index_t core_cache_bytes = 0, last_cache_bytes = 0;
};
ComputeLibraries compute_libraries();

}  // namespace palimpsest
