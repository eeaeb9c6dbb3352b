// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fftw.hpp"

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <string>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

// FFTW's planner is not safe for threads; execution is.
constinit std::mutex planner_mutex;

constexpr std::size_t kAlignment = 64;

template <class T>
struct Fftw;
#define PALIMPSEST_FFTW(T, prefix)                                                           \
  template <>                                                                                \
  struct Fftw<T> {                                                                           \
    using Plan = prefix##_plan;                                                              \
    using Dim = prefix##_iodim64;                                                            \
    using Complex = prefix##_complex;                                                        \
    static Plan make(const Dim& line, const Dim& batch, Complex* in, Complex* out, int sign, \
                     unsigned flags) {                                                       \
      return prefix##_plan_guru64_dft(1, &line, 1, &batch, in, out, sign, flags);            \
    }                                                                                        \
    static void execute(Plan plan, Complex* in, Complex* out) {                              \
      prefix##_execute_dft(plan, in, out);                                                   \
    }                                                                                        \
    static void destroy(Plan plan) { prefix##_destroy_plan(plan); }                          \
  };
PALIMPSEST_FFTW(float, fftwf)
PALIMPSEST_FFTW(double, fftw)
#undef PALIMPSEST_FFTW

}  // namespace

FftMemory::FftMemory(std::size_t bytes)
    : data_(static_cast<std::byte*>(
          ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment}))) {}
FftMemory::~FftMemory() { ::operator delete (data_, std::align_val_t{kAlignment}); }

template <class T>
class LinePlan<T>::Impl {
 public:
  using Complex = typename Fftw<T>::Complex;

  Impl(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort) {
    const typename Fftw<T>::Dim line{n, 1, 1}, batch{lines, distance, distance};
    const int sign = forward ? FFTW_FORWARD : FFTW_BACKWARD;
    if (effort == FftEffort::measure) {
      const auto bytes = static_cast<std::size_t>(lines * distance) * sizeof(Complex);
      const FftMemory in(bytes), out(bytes);
      std::fill_n(in.data(), bytes, std::byte{0});
      make(line, batch, in.data(), out.data(), sign, FFTW_MEASURE);
    } else {
      // An estimate reads nothing: the addresses tell FFTW their alignment and that they differ.
      alignas(kAlignment) static std::array<std::byte, 2 * kAlignment> memory;
      make(line, batch, memory.data(), memory.data() + kAlignment, sign, FFTW_ESTIMATE);
    }
    if (plan_ == nullptr) throw InternalError("[fft_plan] FFTW refuses a plan");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    const std::lock_guard lock(planner_mutex);
    Fftw<T>::destroy(plan_);
  }
  void execute(std::complex<T>* in, std::complex<T>* out) const {
    Fftw<T>::execute(plan_, reinterpret_cast<Complex*>(in), reinterpret_cast<Complex*>(out));
  }

 private:
  void make(const typename Fftw<T>::Dim& line, const typename Fftw<T>::Dim& batch, std::byte* in,
            std::byte* out, int sign, unsigned flags) {
    const std::lock_guard lock(planner_mutex);
    plan_ = Fftw<T>::make(line, batch, reinterpret_cast<Complex*>(in),
                          reinterpret_cast<Complex*>(out), sign, flags | FFTW_DESTROY_INPUT);
  }

  typename Fftw<T>::Plan plan_ = nullptr;
};

template <class T>
LinePlan<T>::LinePlan(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort)
    : impl_(std::make_unique<Impl>(n, lines, distance, forward, effort)) {}
template <class T>
LinePlan<T>::~LinePlan() = default;
template <class T>
void LinePlan<T>::execute(std::complex<T>* in, std::complex<T>* out) const {
  impl_->execute(in, out);
}

template class LinePlan<float>;
template class LinePlan<double>;

std::string fft_library_version() { return fftwf_version; }

}  // namespace palimpsest
