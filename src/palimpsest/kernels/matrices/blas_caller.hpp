// SPDX-License-Identifier: Apache-2.0
// Internal: the guard around every call of OpenBLAS, and its choice of kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/kernels/matrices/blas.hpp"

namespace palimpsest {

// OpenBLAS maps a buffer whenever more callers are active than ever before, and retries for ever if
// the system has no memory. So the memory is requested here first. The lock of OpenBLAS does not
// survive fork(), hence the section.
inline constexpr std::size_t kBlasBufferBytes = 32U << 22;

/// Errors  OutOfMemory: no room for a buffer. InternalError: the library multiplies wrongly
class BlasCaller {
 public:
  BlasCaller() {
    if (present.fetch_add(1, std::memory_order_relaxed) + 1 > most.load()) admit();
    if (take_turns.load(std::memory_order_relaxed)) turn_ = std::unique_lock(turns);
  }
  ~BlasCaller() { present.fetch_sub(1, std::memory_order_relaxed); }
  BlasCaller(const BlasCaller&) = delete;
  BlasCaller& operator=(const BlasCaller&) = delete;

 private:
  static void admit();

  const ForkSection whole_;
  std::unique_lock<Mutex> turn_;
  static constinit std::atomic<int> present, most;
  static constinit std::atomic<bool> take_turns;
  static constinit Mutex mutex, turns;
};
inline constinit std::atomic<int> BlasCaller::present{0}, BlasCaller::most{0};
inline constinit std::atomic<bool> BlasCaller::take_turns{false};
inline constinit Mutex BlasCaller::mutex, BlasCaller::turns;

/// Kernels of the library that multiplies.
struct BlasKernels {
  /// The processor that they are for, in the library's words; empty if it does not say.
  std::string core;
  /// Who chose them and why.
  std::string reason;
  /// True if products of whole numbers were exact.
  bool are_right = false;
};

/// Chooses the kernels of OpenBLAS and checks them. No other thread may be in the library.
///
/// `wanted` is the value of OPENBLAS_CORETYPE, null if unset. The kernels that it names stay.
/// Others without the vector instructions of this processor are exchanged, and so are those that
/// fail `check`.
BlasKernels choose_blas_kernels(const char* wanted, bool (*check)());

/// Lets OpenBLAS choose as if OPENBLAS_CORETYPE were `core`; null: as if it were unset. Returns the
/// name of the kernels. Other libraries keep theirs.
std::string use_blas_kernels(const char* core);

/// True if the library is an OpenBLAS, which has more modes than CBLAS.
bool blas_is_openblas();

/// gemm() without the guard.
void gemm_unguarded(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a,
                    const GemmFactor& b, void* out, index_t leading, const GemmScale& scale);

/// True if products of whole numbers are exact, for all dtypes and modes and for sizes that take
/// different paths through OpenBLAS. Call it with a BlasCaller, or where no other thread is in the
/// library.
///
/// Cost  1 ms with AVX-512
bool blas_multiplies(decltype(gemm_unguarded)* multiply = gemm_unguarded);

}  // namespace palimpsest
