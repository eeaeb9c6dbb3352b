// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fftw.hpp"

#include <dlfcn.h>
#include <fftw3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/chirp_line.hpp"
#include "palimpsest/kernels/fft/fft_wisdom.hpp"

namespace palimpsest {
namespace {

// FFTW's planner is not thread-safe; execution is.
constinit Mutex planner_mutex;

constexpr std::size_t kAlignment = 64;
// Shorter lines are one straight-line codelet, which an estimate finds.
constexpr index_t kShortestMeasured = 64;
// Limit per plan. Most plans need a tenth of it; FFTW then takes the best found so far.
constexpr double kMeasureSeconds = 0.25;

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
    static void limit(double seconds) { prefix##_set_timelimit(seconds); }                   \
    static int alignment(const void* p) {                                                    \
      return prefix##_alignment_of(static_cast<T*>(const_cast<void*>(p)));                   \
    }                                                                                        \
    static std::string wisdom() {                                                            \
      char* const text = prefix##_export_wisdom_to_string();                                 \
      if (text == nullptr) return {};                                                        \
      std::string copy(text);                                                                \
      prefix##_free(text);                                                                   \
      return copy;                                                                           \
    }                                                                                        \
    static constexpr const char* kSetThreads = #prefix "_plan_with_nthreads";                \
    static constexpr const char* kGetThreads = #prefix "_planner_nthreads";                  \
    static constexpr const char* kLibraries[] = {"lib" #prefix "3_threads.so.3",             \
                                                 "lib" #prefix "3_omp.so.3"};                \
    static bool learn(const std::string& path) {                                             \
      return prefix##_import_wisdom_from_filename(path.c_str()) != 0;                        \
    }                                                                                        \
  };
PALIMPSEST_FFTW(float, fftwf)
PALIMPSEST_FFTW(double, fftw)
#undef PALIMPSEST_FFTW

// Sets FFTW's number of threads to 1 while it lives. The host may have set another number, which
// applies to the whole process: our plans of single lines would take a hundred times as long. The
// functions are in separate libraries, which the host may load at any time or never. The first call
// that sets the number discards all plans, so a number is changed only if one was set. FFTW reports
// it since 3.3.9.
template <class T>
class OneThread {
 public:
  OneThread() {
    find(RTLD_DEFAULT);
    for (std::size_t i = 0; i < libraries_.size(); ++i) {
      libraries_[i] = dlopen(Fftw<T>::kLibraries[i], RTLD_LAZY | RTLD_NOLOAD);
      if (libraries_[i] != nullptr) find(libraries_[i]);
    }
    if (set_ != nullptr) set_(1);
  }
  ~OneThread() {
    if (set_ != nullptr) set_(before_);
    for (void* const library : libraries_) {
      if (library != nullptr) dlclose(library);
    }
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  void find(void* library) {
    const auto set = reinterpret_cast<void (*)(int)>(dlsym(library, Fftw<T>::kSetThreads));
    const auto get = reinterpret_cast<int (*)()>(dlsym(library, Fftw<T>::kGetThreads));
    if (set_ != nullptr || set == nullptr || get == nullptr || get() <= 1) return;
    set_ = set;
    before_ = get();
  }

  std::array<void*, std::size(Fftw<T>::kLibraries)> libraries_{};
  void (*set_)(int) = nullptr;
  int before_ = 1;
};

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
    if (lines == 1 && ChirpLine<T>::is_better(n)) {
      chirp_ = std::make_unique<const ChirpLine<T>>(n, forward, effort);
      return;
    }
    const typename Fftw<T>::Dim line{n, 1, 1}, batch{lines, distance, distance};
    const int sign = forward ? FFTW_FORWARD : FFTW_BACKWARD;
    if (effort == FftEffort::measure && n >= kShortestMeasured && wisdom_place().measures) {
      static std::once_flag loaded;
      std::call_once(loaded, [] {
        if (const std::string path = kept_path(); !path.empty()) load_wisdom<T>(path);
      });
      const auto bytes = static_cast<std::size_t>(lines * distance) * sizeof(Complex);
      const FftMemory in(bytes), out(bytes);
      std::fill_n(in.data(), bytes, std::byte{0});
      measure(line, batch, in.data(), out.data(), sign);
    } else {
      // An estimate reads no data. FFTW uses the addresses for their alignment and to see that they
      // differ.
      alignas(kAlignment) static std::array<std::byte, 2 * kAlignment> memory;
      make(line, batch, memory.data(), memory.data() + kAlignment, sign, FFTW_ESTIMATE);
    }
    if (plan_ == nullptr) throw InternalError("[fft_plan] FFTW refuses a plan");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (plan_ == nullptr) return;
    const std::lock_guard lock(planner_mutex);
    Fftw<T>::destroy(plan_);
  }
  void execute(std::complex<T>* in, std::complex<T>* out) const {
    if (chirp_) return chirp_->execute(in, out);
    Fftw<T>::execute(plan_, reinterpret_cast<Complex*>(in), reinterpret_cast<Complex*>(out));
  }

 private:
  void make(const typename Fftw<T>::Dim& line, const typename Fftw<T>::Dim& batch, std::byte* in,
            std::byte* out, int sign, unsigned flags) {
    const std::lock_guard lock(planner_mutex);
    const OneThread<T> one;
    plan_ = Fftw<T>::make(line, batch, reinterpret_cast<Complex*>(in),
                          reinterpret_cast<Complex*>(out), sign, flags | FFTW_PRESERVE_INPUT);
  }

  // The file of this precision; empty: none.
  static std::string kept_path() {
    const std::string& path = wisdom_place().path;
    return path.empty() || std::is_same_v<T, double> ? path : path + "f";
  }

  // Plans from wisdom if available; otherwise measures, and saves the result.
  void measure(const typename Fftw<T>::Dim& line, const typename Fftw<T>::Dim& batch, std::byte* in,
               std::byte* out, int sign) {
    make(line, batch, in, out, sign, FFTW_MEASURE | FFTW_WISDOM_ONLY);
    if (plan_ != nullptr) return;
    {
      const std::lock_guard lock(planner_mutex);
      Fftw<T>::limit(kMeasureSeconds);
    }
    make(line, batch, in, out, sign, FFTW_MEASURE);
    {
      const std::lock_guard lock(planner_mutex);
      Fftw<T>::limit(FFTW_NO_TIMELIMIT);
    }
    const std::string path = kept_path();
    if (path.empty()) return;
    load_wisdom<T>(path);  // another process may have written the file meanwhile
    save_wisdom<T>(path);
  }

  typename Fftw<T>::Plan plan_ = nullptr;
  std::unique_ptr<const ChirpLine<T>> chirp_;  // replaces the plan of FFTW
};

template <class T>
bool load_wisdom(const std::string& path) {
  const std::lock_guard lock(planner_mutex);
  return Fftw<T>::learn(path);
}

template <class T>
bool save_wisdom(const std::string& path) {
  try {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    AtomicFile file(path);
    {
      const std::lock_guard lock(planner_mutex);
      file.write(Fftw<T>::wisdom());
    }
    file.commit();
    return true;
  } catch (const IoError&) {
    return false;
  }
}

template <class T>
LinePlan<T>::LinePlan(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort)
    : impl_(std::make_unique<Impl>(n, lines, distance, forward, effort)) {}
template <class T>
LinePlan<T>::~LinePlan() = default;
template <class T>
std::shared_ptr<const LinePlan<T>> LinePlan<T>::find_or_make(index_t n, index_t lines,
                                                             index_t distance, bool forward,
                                                             FftEffort effort) {
  using Key = std::tuple<index_t, index_t, index_t, bool, FftEffort>;
  struct Made {
    Mutex mutex;
    std::map<Key, std::shared_ptr<const LinePlan>> plans;  // guarded by mutex
  };
  Made& made = immortal([] { return Made(); });
  const std::lock_guard lock(made.mutex);
  auto& plan = made.plans[{n, lines, distance, forward, effort}];
  if (!plan) plan = std::make_shared<LinePlan>(n, lines, distance, forward, effort);
  return plan;
}
template <class T>
bool LinePlan<T>::fits(const std::complex<T>* line) {
  return Fftw<T>::alignment(line) == 0;
}
template <class T>
void LinePlan<T>::execute(const std::complex<T>* in, std::complex<T>* out) const {
  impl_->execute(const_cast<std::complex<T>*>(in), out);  // FFTW preserves the input
}

template class LinePlan<float>;
template class LinePlan<double>;
template bool load_wisdom<float>(const std::string& path);
template bool load_wisdom<double>(const std::string& path);
template bool save_wisdom<float>(const std::string& path);
template bool save_wisdom<double>(const std::string& path);

std::string fft_library_version() { return fftwf_version; }

}  // namespace palimpsest
