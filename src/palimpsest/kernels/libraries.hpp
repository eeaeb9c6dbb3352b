// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Libraries and instruction sets that the kernels use at run time.
struct ComputeLibraries {
  /// Name and version, as the libraries report them.
  std::string fft, blas;
  /// Threads of the thread pool.
  int threads = 1;
};
ComputeLibraries compute_libraries();

}  // namespace palimpsest
