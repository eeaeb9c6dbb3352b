// SPDX-License-Identifier: Apache-2.0
// Locks, a choice of kernels and a check of them, which OpenBLAS lacks. The linker sends its calls
// of two functions here (--wrap, in cmake/PalimpsestDependencies.cmake).
//
// 1. Without threads it chooses the buffer of a call without a lock. Two concurrent calls may get
//    the same buffer, and both results are wrong (0.3 % of products 8 x 8 on 4 threads). Giving a
//    buffer back is one store and needs no lock.
// 2. It chooses kernels by the model of the processor. Version 0.3.21 takes Intel's models since
//    2022 for a Pentium 4: products take 4 to 7 times as long. So the first caller compares the
//    choice with the processor's instructions. A better one is made as a user makes it, by the
//    variable OPENBLAS_CORETYPE, which only this copy of OpenBLAS sees.
// 3. The kernels for AVX-512 of some versions are wrong on some processors. So the first caller
//    checks them.
//
// Another library (PALIMPSEST_HAS_OPENBLAS 0) is shared with the host program: its kernels are its
// own choice.
#include <strings.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/matrices/blas_caller.hpp"

namespace {
constinit palimpsest::Mutex mutex;
constinit std::atomic<bool> locks_buffers{false};
constinit std::atomic<const char*> core_type{nullptr};
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
extern "C" {
[[gnu::weak]] void* __real_blas_memory_alloc(int procpos);
void* __wrap_blas_memory_alloc(int procpos);
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);
// Absent in other libraries.
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
// Absent if OpenBLAS is built for one processor.
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();

void* __wrap_blas_memory_alloc(int procpos) {
  locks_buffers.store(true, std::memory_order_relaxed);
  const std::lock_guard guard(mutex);
  return __real_blas_memory_alloc(procpos);
}

char* __wrap_getenv(const char* name) {
  const char* const core = core_type.load(std::memory_order_relaxed);
  if (core != nullptr && std::strcmp(name, "OPENBLAS_CORETYPE") == 0) {
    return const_cast<char*>(core);
  }
  return __real_getenv(name);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace palimpsest {
namespace {

// Vector instructions: 2 with AVX-512, 1 with AVX2 and FMA, else 0.
int processor_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? 2 : 1;
#else
  return 0;
#endif
}

// The level that kernels use, by their name in OpenBLAS. Names that are not listed belong to newer
// versions, whose choice stays.
int kernel_level(std::string_view core) {
  constexpr std::array<std::string_view, 18> kOlder = {
      "Unknown", "Katmai",  "Coppermine", "Northwood", "Prescott", "Banias",
      "Core2",   "Penryn",  "Dunnington", "Nehalem",   "Atom",     "Sandybridge",
      "Athlon",  "Opteron", "Barcelona",  "Bobcat",    "Nano",     "Opteron_SSE3"};
  if (std::find(kOlder.begin(), kOlder.end(), core) != kOlder.end()) return 0;
  return core == "Haswell" || core == "Zen" ? 1 : 2;
}

std::string core_name() { return openblas_get_corename != nullptr ? openblas_get_corename() : ""; }

// A product of whole numbers so small that every sum of it is exact.
template <class T>
class ExactProduct {
 public:
  ExactProduct(DType dtype, index_t m, index_t n, index_t k)
      : dtype_(dtype), m_(m), n_(n), k_(k), a_(numbers(m * k)), b_(numbers(k * n)) {}

  // True if out = a b takes some numbers to what b and then a make of them. Modes 0 to 3: plain,
  // transposed, conjugated, both.
  bool is_right(decltype(gemm_unguarded)* multiply, int a_mode, int b_mode) const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    std::vector<T> out(static_cast<std::size_t>(m_ * n_), T(static_cast<Real>(kNaN)));
    const bool a_turned = a_mode % 2 == 1, b_turned = b_mode % 2 == 1;
    multiply(dtype_, m_, n_, k_, {a_.data(), a_turned ? m_ : k_, a_turned, a_mode > 1},
             {b_.data(), b_turned ? k_ : n_, b_turned, b_mode > 1}, out.data(), n_, {});
    std::vector<Wide> x(static_cast<std::size_t>(n_));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(1 + 37 * i % 101);
    return times(out, m_, n_, 0, x) == times(a_, m_, k_, a_mode, times(b_, k_, n_, b_mode, x));
  }

 private:
  static constexpr bool kIsComplex = !std::is_floating_point_v<T>;
  using Wide = std::conditional_t<kIsComplex, std::complex<double>, double>;
  using Real =
      std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>>, float,
                         double>;

  // From -4 to 4.
  static std::vector<T> numbers(index_t count) {
    std::vector<T> result(static_cast<std::size_t>(count));
    unsigned state = 1;
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<Real>(static_cast<int>(state >> 16) % 9 - 4);
    };
    for (T& v : result) {
      if constexpr (kIsComplex) {
        const Real re = next();
        v = {re, next()};
      } else {
        v = next();
      }
    }
    return result;
  }

  static std::vector<Wide> times(const std::vector<T>& matrix, index_t rows, index_t columns,
                                 int mode, const std::vector<Wide>& x) {
    std::vector<Wide> y(static_cast<std::size_t>(rows));
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < columns; ++j) {
        Wide v(matrix[static_cast<std::size_t>(mode % 2 == 1 ? j * rows + i : i * columns + j)]);
        if constexpr (kIsComplex) {
          if (mode > 1) v = std::conj(v);
        }
        y[static_cast<std::size_t>(i)] += v * x[static_cast<std::size_t>(j)];
      }
    }
    return y;
  }

  DType dtype_;
  index_t m_, n_, k_;
  std::vector<T> a_, b_;
};

// OpenBLAS multiplies up to 10^6 terms without copies of the factors, by other kernels.
template <class T>
bool multiplies(decltype(gemm_unguarded)* multiply, DType dtype) {
  for (const ExactProduct<T>& product :
       {ExactProduct<T>(dtype, 19, 23, 29), ExactProduct<T>(dtype, 71, 61, 239)}) {
    for (int mode = 0; mode < 4; ++mode) {
      if (!product.is_right(multiply, mode, (mode + 1) % 4)) return false;
    }
  }
  return true;
}

std::string described(const BlasKernels& kernels) {
  std::string text = blas_is_openblas() ? openblas_get_config() : "BLAS";
  if (!kernels.core.empty()) text += ", kernels for " + kernels.core;
  text += ", " + kernels.reason;
  return text + (kernels.are_right ? ", products checked" : ", products wrong");
}

// Written by the first caller.
BlasKernels& chosen() {
  return immortal([] { return BlasKernels(); });
}

}  // namespace

std::string blas_library_version() {
  try {
    const BlasCaller caller;
  } catch (const InternalError&) {  // said by the description
  }
  return described(chosen());
}

bool blas_multiplies(decltype(gemm_unguarded)* multiply) {
  return multiplies<float>(multiply, DType::float32) &&
         multiplies<double>(multiply, DType::float64) &&
         multiplies<std::complex<float>>(multiply, DType::complex64) &&
         multiplies<std::complex<double>>(multiply, DType::complex128);
}

bool blas_is_openblas() { return openblas_get_config != nullptr; }

std::string use_blas_kernels(const char* core) {
  if (PALIMPSEST_HAS_OPENBLAS && gotoblas_dynamic_init != nullptr) {
    core_type.store(core, std::memory_order_relaxed);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    core_type.store(nullptr, std::memory_order_relaxed);
  }
  return core_name();
}

BlasKernels choose_blas_kernels(const char* wanted, bool (*check)()) {
  const std::string own = core_name();
  if (wanted != nullptr && strcasecmp(wanted, own.c_str()) == 0) {
    return {own, "chosen by OPENBLAS_CORETYPE", check()};
  }
  const int level = processor_level();
  const bool is_slow = !own.empty() && kernel_level(own) < level;
  if (!is_slow && check()) return {own, "the library's own choice", true};
  if (PALIMPSEST_HAS_OPENBLAS && gotoblas_dynamic_init != nullptr) {
    const std::string reason =
        is_slow ? "chosen by the instructions of the processor instead of those for " + own
                : "chosen because those for " + own + " multiply wrongly";
    for (const char* const core : {"SkylakeX", "Haswell"}) {
      if (core == own || kernel_level(core) > level) continue;
      if (use_blas_kernels(core) == core && check()) return {core, reason, true};
    }
    use_blas_kernels(nullptr);
  }
  return {core_name(), "the library's own choice", check()};
}

void BlasCaller::admit() {
  try {
    const std::lock_guard guard(mutex);
    const int now = present.load(std::memory_order_relaxed), before = most.load();
    if (now <= before) return;
    // A buffer per new caller, and a page that OpenBLAS adds
    const std::size_t bytes = static_cast<std::size_t>(now - before) * (kBlasBufferBytes + 4096);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw OutOfMemory("[blas] OpenBLAS needs a buffer that the system does not give: asked " +
                        std::to_string(bytes) +
                        " bytes of address space. Try a higher limit (ulimit -v)");
    }
    munmap(memory, bytes);
    // The others wait for the first caller, so none is in the library.
    if (before == 0) {
      BlasKernels& kernels = chosen();
      if (!kernels.are_right) {
        kernels =
            choose_blas_kernels(std::getenv("OPENBLAS_CORETYPE"), [] { return blas_multiplies(); });
      }
      if (!kernels.are_right) {
        throw InternalError("[blas] the library multiplies wrongly on this processor: got " +
                            described(kernels) +
                            ". Try the environment variable OPENBLAS_CORETYPE=Haswell");
      }
      take_turns.store(openblas_get_parallel != nullptr && openblas_get_parallel() == 0 &&
                       !locks_buffers.load());
    }
    most.store(now);
  } catch (...) {
    present.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
}

}  // namespace palimpsest
