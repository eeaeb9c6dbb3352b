// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace palimpsest {

/// What stands behind the kernels at run time.
struct ComputeLibraries {
  /// Name and version, as the libraries tell them.
  std::string fft, blas;
  /// Of the thread pool.
  int threads = 1;
};
ComputeLibraries compute_libraries();

}  // namespace palimpsest
