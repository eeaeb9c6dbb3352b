// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms: the only place that calls FFTW.
//
// 1. With e(t) = exp(-+ 2 pi i t / N) and c = floor(N/2), (k-c)(j-c) = kj - cj - ck + c^2. So a
//    centered transform multiplies x by e(-cj) while it is copied to y, transforms y in place, and
//    multiplies by e(c^2 - ck) and the scale. For even N these are signs: (-1)^j and
//    (-1)^(k + N/2).
// 2. FFTW's algorithms depend on the alignment modulo 16 of the pointers; there is one FFTW plan
//    for each that occurs, made when it is first needed.
// 3. FFTW's planner is not safe for threads: one mutex guards it. Execution is.
// 4. The outermost axes that are not transformed are cut into tasks, by the shape alone.
#include "palimpsest/kernels/fft.hpp"

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <list>
#include <mutex>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/kernels/parallel.hpp"
#include "palimpsest/kernels/phase_pass.hpp"

namespace palimpsest {
namespace {

constinit std::mutex planner_mutex;

// Elements per task: enough to hide the cost of starting one.
constexpr index_t kTaskElements = 16384, kEnoughTasks = 64;
constexpr std::size_t kCachedPlans = 64;

template <class T>
struct Fftw;
#define PALIMPSEST_FFTW(T, prefix)                                                                 \
  template <>                                                                                      \
  struct Fftw<T> {                                                                                 \
    using Plan = prefix##_plan;                                                                    \
    using Dim = prefix##_iodim64;                                                                  \
    using Complex = prefix##_complex;                                                              \
    static Plan make(const std::vector<Dim>& dims, const std::vector<Dim>& batch, Complex* in,     \
                     Complex* out, int sign, unsigned flags) {                                     \
      return prefix##_plan_guru64_dft(static_cast<int>(dims.size()), dims.data(),                  \
                                      static_cast<int>(batch.size()), batch.data(), in, out, sign, \
                                      flags);                                                      \
    }                                                                                              \
    static void execute(Plan plan, Complex* in, Complex* out) {                                    \
      prefix##_execute_dft(plan, in, out);                                                         \
    }                                                                                              \
    static void destroy(Plan plan) { prefix##_destroy_plan(plan); }                                \
    static void* allocate(std::size_t bytes) { return prefix##_malloc(bytes); }                    \
    static void release(void* memory) { prefix##_free(memory); }                                   \
  };
PALIMPSEST_FFTW(float, fftwf)
PALIMPSEST_FFTW(double, fftw)
#undef PALIMPSEST_FFTW

// 0 and 1 for pointers that are 0 and 8 modulo 16; 2 for any other.
std::size_t alignment_class(const void* pointer) {
  const auto rest = reinterpret_cast<std::uintptr_t>(pointer) % 16;
  return rest == 0 ? 0 : rest == 8 ? 1 : 2;
}

// Memory as large as a plan reaches, with the first element where the strides want it.
template <class T>
class PlanningMemory {
 public:
  using Complex = typename Fftw<T>::Complex;
  using Dim = typename Fftw<T>::Dim;
  PlanningMemory(const std::vector<Dim>& dims, const std::vector<Dim>& batch, bool of_output,
                 std::size_t shift) {
    Extents extents;
    Strides strides;
    for (const auto* list : {&dims, &batch}) {
      for (const Dim& d : *list) {
        extents.push_back(d.n);
        strides.push_back(of_output ? d.os : d.is);
      }
    }
    const ReachedRange range = reached_range(extents, strides);
    // An even number of elements in front keeps the alignment.
    const index_t front = (-range.low + 1) / 2 * 2;
    const auto bytes = static_cast<std::size_t>(front + range.high) * sizeof(Complex) + shift;
    memory_ = Fftw<T>::allocate(bytes);
    if (memory_ == nullptr) {
      throw OutOfMemory("[fft_plan] no memory to measure in: got none of " + std::to_string(bytes) +
                        " bytes. Try FftEffort::estimate");
    }
    std::fill_n(static_cast<char*>(memory_), bytes, '\0');
    first_ = reinterpret_cast<Complex*>(static_cast<char*>(memory_) + shift) + front;
  }
  PlanningMemory(const PlanningMemory&) = delete;
  PlanningMemory& operator=(const PlanningMemory&) = delete;
  ~PlanningMemory() { Fftw<T>::release(memory_); }
  Complex* first() const { return first_; }

 private:
  void* memory_;
  Complex* first_;
};

// FFTW plans of one geometry, by alignment of their pointers.
template <class T>
class PlanFamily {
 public:
  using Plan = typename Fftw<T>::Plan;
  using Dim = typename Fftw<T>::Dim;
  using Complex = typename Fftw<T>::Complex;

  PlanFamily(std::vector<Dim> dims, std::vector<Dim> batch, const FftSpec& spec, bool in_place)
      : dims_(std::move(dims)),
        batch_(std::move(batch)),
        in_place_(in_place),
        sign_(spec.forward ? FFTW_FORWARD : FFTW_BACKWARD),
        effort_(spec.effort) {
    plan(0);
  }
  PlanFamily(const PlanFamily&) = delete;
  PlanFamily& operator=(const PlanFamily&) = delete;
  ~PlanFamily() {
    const std::lock_guard lock(planner_mutex);
    for (const auto& p : plans_) {
      if (p.load() != nullptr) Fftw<T>::destroy(p.load());
    }
  }

  void execute(const std::complex<T>* in, std::complex<T>* out) const {
    // FFTW does not write to `in` unless it is `out`.
    auto* from = reinterpret_cast<Complex*>(const_cast<std::complex<T>*>(in));
    const std::size_t a = alignment_class(in), b = alignment_class(out);
    Fftw<T>::execute(plan(a == 2 || b == 2 ? kUnaligned : 2 * a + b), from,
                     reinterpret_cast<Complex*>(out));
  }

 private:
  static constexpr std::size_t kUnaligned = 4;

  Plan plan(std::size_t variant) const {
    std::atomic<Plan>& slot = plans_[variant];
    if (Plan found = slot.load(std::memory_order_acquire)) return found;
    const std::lock_guard lock(planner_mutex);
    if (Plan found = slot.load(std::memory_order_relaxed)) return found;
    Plan made = effort_ == FftEffort::measure ? measured(variant) : estimated(variant);
    if (made == nullptr) throw InternalError("[fft_plan] FFTW refuses a plan");
    slot.store(made, std::memory_order_release);
    return made;
  }
  unsigned flags(std::size_t variant) const {
    return (effort_ == FftEffort::measure ? FFTW_MEASURE : FFTW_ESTIMATE) |
           (in_place_ ? 0U : FFTW_PRESERVE_INPUT) | (variant == kUnaligned ? FFTW_UNALIGNED : 0U);
  }
  // Addresses tell FFTW their alignment and whether they differ; an estimate reads nothing there.
  Plan estimated(std::size_t variant) const {
    alignas(64) static std::array<std::byte, 128> memory;
    auto* in = reinterpret_cast<Complex*>(memory.data() + in_shift(variant));
    auto* out =
        in_place_ ? in : reinterpret_cast<Complex*>(memory.data() + 64 + out_shift(variant));
    return Fftw<T>::make(dims_, batch_, in, out, sign_, flags(variant));
  }
  Plan measured(std::size_t variant) const {
    const PlanningMemory<T> in(dims_, batch_, false, in_shift(variant));
    if (in_place_) {
      return Fftw<T>::make(dims_, batch_, in.first(), in.first(), sign_, flags(variant));
    }
    const PlanningMemory<T> out(dims_, batch_, true, out_shift(variant));
    return Fftw<T>::make(dims_, batch_, in.first(), out.first(), sign_, flags(variant));
  }
  static std::size_t in_shift(std::size_t variant) { return variant / 2 % 2 * 8; }
  static std::size_t out_shift(std::size_t variant) { return variant % 2 * 8; }

  std::vector<Dim> dims_, batch_;
  bool in_place_;
  int sign_;
  FftEffort effort_;
  mutable std::array<std::atomic<Plan>, 5> plans_{};
};

// exp(-+ 2 pi i numerator / n), from the reduced fraction.
std::complex<double> unit(index_t numerator, index_t n, bool forward) {
  const double angle =
      2 * std::numbers::pi * static_cast<double>(numerator % n) / static_cast<double>(n);
  return {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
}

}  // namespace

class FftPlan::Impl {
 public:
  explicit Impl(FftSpec s) : spec(std::move(s)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual ~Impl() = default;
  virtual void run(const void* in, void* out) const = 0;
  virtual std::size_t table_bytes() const = 0;

  const FftSpec spec;
};

namespace {

template <class T>
class Transform final : public FftPlan::Impl {
 public:
  explicit Transform(const FftSpec& s) : Impl(s) {
    if (std::find(s.extents.begin(), s.extents.end(), 0) != s.extents.end()) return;
    is_empty_ = false;
    make_passes();
    runs_before_ = !before_.is_identity();
    runs_after_ = !after_.is_identity();
    make_families();
  }

  void run(const void* in, void* out) const override {
    if (is_empty_) return;
    const auto* x = static_cast<const std::complex<T>*>(in);
    auto* y = static_cast<std::complex<T>*>(out);
    if (runs_before_) before_.run(x, y);
    if (main_) transform(runs_before_ ? y : x, y);
    if (runs_after_) after_.run(y, y);
  }

  std::size_t table_bytes() const override { return before_.table_bytes() + after_.table_bytes(); }

 private:
  using Dim = typename Fftw<T>::Dim;

  bool is_transformed(std::size_t axis) const {
    return std::find(spec.axes.begin(), spec.axes.end(), static_cast<index_t>(axis)) !=
           spec.axes.end();
  }

  void make_passes() {
    const bool odd = spec.centered && std::any_of(spec.axes.begin(), spec.axes.end(), [&](auto a) {
                       return spec.extents[static_cast<std::size_t>(a)] % 2 != 0;
                     });
    before_.is_real = after_.is_real = !odd;
    double constant = spec.scale;
    for (std::size_t i = 0; i < spec.extents.size(); ++i) {
      const index_t n = spec.extents[i];
      typename PhasePass<T>::Axis before{n, spec.in_strides[i], spec.out_strides[i]};
      typename PhasePass<T>::Axis after{n, spec.out_strides[i], spec.out_strides[i]};
      if (spec.centered && is_transformed(i) && n > 1) {
        add_phases(before, after, odd);
        if (n % 4 == 2) constant = -constant;
      }
      before_.axes.push_back(std::move(before));
      after_.axes.push_back(std::move(after));
    }
    after_.constant = static_cast<T>(constant);
    before_.prepare();
    after_.prepare();
  }

  // Point 1 of the top of the file; the sign (-1)^(N/2) of even N is left to the constant.
  void add_phases(typename PhasePass<T>::Axis& before, typename PhasePass<T>::Axis& after,
                  bool as_complex) const {
    const index_t n = before.extent, c = n / 2;
    for (index_t j = 0; j < n; ++j) {
      if (n % 2 == 0) {
        const T sign = j % 2 == 0 ? T{1} : T{-1};
        before.signs.push_back(sign);
        before.phases.emplace_back(sign);
      } else {
        before.phases.emplace_back(unit(c * (n - j) % n, n, spec.forward));
        after.phases.emplace_back(unit(c * (c + n - j) % n, n, spec.forward));
      }
    }
    if (n % 2 == 0) {
      after.signs = before.signs;
      after.phases = before.phases;
    }
    for (auto* axis : {&before, &after}) {
      if (as_complex) {
        axis->signs.clear();
      } else {
        axis->phases.clear();
      }
    }
  }

  // Splits the axes into FFTW's and the tasks, point 4.
  void make_families() {
    std::vector<Dim> dims, batch;
    index_t widest = 0, elements = 1;
    const bool in_place = spec.in_place || runs_before_;
    for (std::size_t i = 0; i < spec.extents.size(); ++i) {
      const index_t n = spec.extents[i];
      elements *= n;
      if (n == 1) continue;
      const Dim dim{n, in_place ? spec.out_strides[i] : spec.in_strides[i], spec.out_strides[i]};
      if (is_transformed(i)) {
        dims.push_back(dim);
        widest = std::max(widest, std::abs(dim.os));
      } else {
        batch.push_back(dim);
      }
    }
    if (dims.empty()) {  // a copy with a scale: one pass does both
      std::swap(before_.constant, after_.constant);
      runs_before_ = !spec.in_place || runs_after_;
      runs_after_ = false;
      return;
    }
    std::stable_sort(batch.begin(), batch.end(),
                     [](const Dim& a, const Dim& b) { return std::abs(a.os) > std::abs(b.os); });
    while (!batch.empty() && std::abs(batch.front().os) >= widest &&
           elements >= 2 * kTaskElements && n_tasks_ < kEnoughTasks) {
      const Dim outer = batch.front();
      batch.erase(batch.begin());
      elements /= outer.n;
      const index_t block = std::min((kTaskElements + elements - 1) / elements, outer.n);
      add_task_axis(outer, block);
      if (block == 1) continue;
      if (const index_t rest = outer.n % block; rest != 0) {
        std::vector<Dim> last = batch;
        last.push_back({rest, outer.is, outer.os});
        tail_.emplace(dims, std::move(last), spec, in_place);
      }
      batch.push_back({block, outer.is, outer.os});
      break;
    }
    main_.emplace(std::move(dims), std::move(batch), spec, in_place);
  }

  void add_task_axis(const Dim& dim, index_t block) {
    const index_t n = (dim.n + block - 1) / block;
    tasks_.push_back({n, dim.is * block, dim.os * block});
    n_tasks_ *= n;
  }

  void transform(const std::complex<T>* x, std::complex<T>* y) const {
    parallel_ranges(n_tasks_, 1, [&](index_t begin, index_t end) {
      for (index_t task = begin; task < end; ++task) {
        index_t in = 0, out = 0, rest = task;
        bool is_last = false;
        for (std::size_t i = tasks_.size(); i-- > 0;) {
          const index_t position = rest % tasks_[i].n;
          rest /= tasks_[i].n;
          in += position * tasks_[i].is;
          out += position * tasks_[i].os;
          if (i + 1 == tasks_.size()) is_last = position + 1 == tasks_[i].n;
        }
        (is_last && tail_ ? *tail_ : *main_).execute(x + in, y + out);
      }
    });
  }

  PhasePass<T> before_, after_;
  bool is_empty_ = true, runs_before_ = false, runs_after_ = false;
  std::vector<Dim> tasks_;  // the last one counts blocks
  index_t n_tasks_ = 1;
  std::optional<PlanFamily<T>> main_, tail_;
};

void check(const FftSpec& spec) {
  if (!is_complex(spec.dtype)) {
    throw DTypeError("[fft_plan] got " + std::string(name_of(spec.dtype)) +
                     ", expected complex64 or complex128. Try a cast");
  }
  const std::size_t rank = spec.extents.size();
  if (spec.in_strides.size() != rank || spec.out_strides.size() != rank) {
    throw ShapeError("[fft_plan] ranks differ: got strides " + to_string(spec.in_strides) +
                     " and " + to_string(spec.out_strides) + ", expected one per axis of " +
                     to_string(spec.extents));
  }
  if (spec.in_place && spec.in_strides != spec.out_strides) {
    throw ShapeError("[fft_plan] in place: got strides " + to_string(spec.in_strides) + " and " +
                     to_string(spec.out_strides) + ", expected the same");
  }
  normalize_axes(spec.axes, rank, "fft_plan");
}

// The last plans used, the latest first.
class Cache {
 public:
  FftPlan find_or_make(const FftSpec& spec) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(),
                                    [&](const FftPlan& p) { return p.spec() == spec; });
    if (found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return plans_.front();
    }
    std::shared_ptr<const FftPlan::Impl> made;
    if (spec.dtype == DType::complex64) {
      made = std::make_shared<Transform<float>>(spec);
    } else {
      made = std::make_shared<Transform<double>>(spec);
    }
    plans_.emplace_front(std::move(made));
    if (plans_.size() > kCachedPlans) plans_.pop_back();
    return plans_.front();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    plans_.clear();
  }

 private:
  std::mutex mutex_;
  std::list<FftPlan> plans_;
};

Cache& cache() {
  static Cache instance;
  return instance;
}

}  // namespace

const FftSpec& FftPlan::spec() const { return impl_->spec; }
std::size_t FftPlan::table_bytes() const { return impl_->table_bytes(); }

FftPlan fft_plan(const FftSpec& spec) {
  check(spec);
  return cache().find_or_make(spec);
}

void execute(const FftPlan& plan, const void* in, void* out) { plan.impl().run(in, out); }

std::string fft_library_version() { return fftwf_version; }

void clear_fft_cache() { cache().clear(); }

}  // namespace palimpsest
