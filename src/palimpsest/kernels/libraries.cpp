// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/libraries.hpp"

#include "palimpsest/kernels/blas.hpp"
#include "palimpsest/kernels/fft.hpp"
#include "palimpsest/kernels/parallel.hpp"

namespace palimpsest {

ComputeLibraries compute_libraries() {
  return {fft_library_version(), blas_library_version(), pool_threads()};
}

}  // namespace palimpsest
