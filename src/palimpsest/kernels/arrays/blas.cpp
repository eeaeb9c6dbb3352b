// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/blas.hpp"

#include <cblas.h>
#include <sys/mman.h>

#include <atomic>
#include <cassert>
#include <complex>
#include <cstddef>
#include <mutex>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"

namespace palimpsest {
namespace {

CBLAS_TRANSPOSE mode(const GemmFactor& x) {
  if (x.conjugated) return x.transposed ? CblasConjTrans : CblasConjNoTrans;
  return x.transposed ? CblasTrans : CblasNoTrans;
}

// OpenBLAS maps a buffer for every caller beyond those that there were at one time before, and
// where the system has no memory for it tries again for ever. So the memory is asked for first. Its
// lock knows nothing of fork(), hence the section.
constexpr std::size_t kBufferBytes = 32U << 22;

class Caller {
 public:
  Caller() {
    if (present.fetch_add(1, std::memory_order_relaxed) + 1 <= most.load()) return;
    const std::lock_guard guard(mutex);
    const int now = present.load(std::memory_order_relaxed);
    if (now <= most.load()) return;
    // One for each that is new, and a page that OpenBLAS adds.
    const std::size_t bytes = static_cast<std::size_t>(now - most.load()) * (kBufferBytes + 4096);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      present.fetch_sub(1, std::memory_order_relaxed);
      throw OutOfMemory("[gemm] OpenBLAS needs a buffer that the system does not give: asked " +
                        std::to_string(bytes) +
                        " bytes of address space. Try a higher limit (ulimit -v)");
    }
    munmap(memory, bytes);
    most.store(now);
  }
  ~Caller() { present.fetch_sub(1, std::memory_order_relaxed); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  const ForkSection whole_;
  static constinit std::atomic<int> present, most;
  static constinit Mutex mutex;
};
constinit std::atomic<int> Caller::present{0}, Caller::most{0};
constinit Mutex Caller::mutex;

template <class T>
T number_at(const void* at, T otherwise) {
  return at ? *static_cast<const T*>(at) : otherwise;
}

template <class T, class Function>
void call_real(Function function, const int (&sizes)[3], const GemmFactor& a, const GemmFactor& b,
               void* out, int leading, const GemmScale& scale) {
  function(CblasRowMajor, mode({a.data, 1, a.transposed, false}),
           mode({b.data, 1, b.transposed, false}), sizes[0], sizes[1], sizes[2],
           number_at(scale.alpha, T{1}), static_cast<const T*>(a.data), static_cast<int>(a.leading),
           static_cast<const T*>(b.data), static_cast<int>(b.leading), number_at(scale.beta, T{0}),
           static_cast<T*>(out), leading);
}

template <class T, class Function>
void call_complex(Function function, const int (&sizes)[3], const GemmFactor& a,
                  const GemmFactor& b, void* out, int leading, const GemmScale& scale) {
  const auto alpha = number_at(scale.alpha, std::complex<T>(1));
  const auto beta = number_at(scale.beta, std::complex<T>(0));
  function(CblasRowMajor, mode(a), mode(b), sizes[0], sizes[1], sizes[2], &alpha, a.data,
           static_cast<int>(a.leading), b.data, static_cast<int>(b.leading), &beta, out, leading);
}

}  // namespace

void gemm(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a, const GemmFactor& b,
          void* out, index_t leading, const GemmScale& scale) {
  const Caller caller;
  const int sizes[3] = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
  const int rows = static_cast<int>(leading);
  switch (dtype) {
    case DType::float32:
      return call_real<float>(cblas_sgemm, sizes, a, b, out, rows, scale);
    case DType::float64:
      return call_real<double>(cblas_dgemm, sizes, a, b, out, rows, scale);
    case DType::complex64:
      return call_complex<float>(cblas_cgemm, sizes, a, b, out, rows, scale);
    default:
      assert(dtype == DType::complex128);
      return call_complex<double>(cblas_zgemm, sizes, a, b, out, rows, scale);
  }
}

std::string blas_library_version() {
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename();
}

}  // namespace palimpsest
