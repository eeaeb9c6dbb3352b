// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/libraries.hpp"

#include "palimpsest/kernels/arrays/blas.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {

ComputeLibraries compute_libraries() {
  return {fft_library_version(), blas_library_version(), pool_threads()};
}

}  // namespace palimpsest
