// SPDX-License-Identifier: Apache-2.0
// Batched transforms compared with direct calls of FFTW on the same data and threads: one plan for
// the whole batch of a thread, measured on that data's layout.
//
//     peer_fft [--processor-time] [--without-avx512]
#include <fftw3.h>
#include <hwy/highway.h>
#include <tbb/parallel_for.h>

#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../kernels/pairs.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest::bench {
namespace {

using c64 = std::complex<float>;

struct Case {
  const char* name;
  Extents extents;
  Axes axes;
  bool in_place;
};

// Direct calls of FFTW: the axes of one array of the batch; one plan for all arrays of a thread.
class Bare {
 public:
  Bare(const Case& c, int threads, c64* in, c64* out) {
    const Strides strides = contiguous_strides(c.extents);
    std::vector<fftwf_iodim64> dims, others;
    for (std::size_t i = 0; i < c.extents.size(); ++i) {
      const fftwf_iodim64 dim{c.extents[i], strides[i], strides[i]};
      bool transformed = false;
      for (const index_t axis : c.axes)
        transformed = transformed || axis == static_cast<index_t>(i);
      (transformed ? dims : others).push_back(dim);
    }
    const fftwf_iodim64 whole = others.empty() ? fftwf_iodim64{1, 0, 0} : others[0];
    const index_t pieces = others.empty() ? 1 : std::min<index_t>(threads, whole.n);
    for (index_t p = 0; p < pieces; ++p) {
      const index_t begin = whole.n * p / pieces, end = whole.n * (p + 1) / pieces;
      if (!others.empty()) others[0].n = end - begin;
      auto* x = reinterpret_cast<fftwf_complex*>(in + begin * whole.is);
      auto* y = reinterpret_cast<fftwf_complex*>(out + begin * whole.is);
      plans_.push_back(fftwf_plan_guru64_dft(static_cast<int>(dims.size()), dims.data(),
                                             static_cast<int>(others.size()), others.data(), x, y,
                                             FFTW_FORWARD, FFTW_MEASURE));
    }
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;
  ~Bare() {
    for (fftwf_plan plan : plans_) fftwf_destroy_plan(plan);
  }
  void run() {
    tbb::parallel_for(std::size_t{0}, plans_.size(),
                      [&](std::size_t i) { fftwf_execute(plans_[i]); });
  }

 private:
  std::vector<fftwf_plan> plans_;
};

void report_case(const Case& c, int threads) {
  const auto n = static_cast<std::size_t>(element_count(c.extents));
  Block<c64> x(n), y(n), u(n), v(n);
  FftSpec spec;
  spec.extents = c.extents;
  spec.in_strides = spec.out_strides = contiguous_strides(c.extents);
  spec.axes = c.axes;
  spec.in_place = c.in_place;
  const FftPlan plan = fft_plan(spec);
  Block<std::byte> rooms(fft_workspace_bytes(spec, threads));
  const FftOperands operands{.workspace = {rooms.data(), fft_workspace_bytes(spec, threads)}};
  Bare bare(c, threads, u.data(), c.in_place ? u.data() : v.data());
  // Planning writes to the arrays; zeros stay finite in repeated transforms in place.
  for (Block<c64>* block : {&x, &y, &u, &v}) std::fill_n(block->data(), n, c64(0));
  PairTimes t;
  run_with_threads(threads, [&] {
    t = time_pair([&] { execute(plan, x.data(), c.in_place ? x.data() : y.data(), operands); },
                  [&] { bare.run(); }, 0.5);
  });
  std::printf("%-34s %2d %10.3f %10.3f %7.2f %7.2f\n", c.name, threads, t.ours.best * 1e3,
              t.theirs.best * 1e3, 1 / t.best_ratio, 1 / t.median_ratio);
  std::fflush(stdout);
}

}  // namespace

void report_fft() {
  std::printf(
      "\nTransforms of complex64. Milliseconds; time relative to bare FFTW: of best times and "
      "median\n");
  std::printf("%-34s %2s %10s %10s %7s %7s\n", "", "th", "ours", "bare", "best", "median");
  const Case cases[] = {{"rows 4096x256", {4096, 256}, {1}, false},
                        {"rows 2000x1000", {2000, 1000}, {1}, false},
                        {"rows 1024x1024 in place", {1024, 1024}, {1}, true},
                        {"columns 1024x1024", {1024, 1024}, {0}, false},
                        {"planes 8x256x256", {8, 256, 256}, {1, 2}, false},
                        {"planes 8x320x320", {8, 320, 320}, {1, 2}, false},
                        {"planes 8x320x320 in place", {8, 320, 320}, {1, 2}, true},
                        {"planes 16x512x512", {16, 512, 512}, {1, 2}, false},
                        {"planes 8x180x210", {8, 180, 210}, {1, 2}, false},
                        {"volumes 4x128x128x128", {4, 128, 128, 128}, {1, 2, 3}, false},
                        {"rows 546x120", {546, 120}, {1}, false},
                        {"rows 327x200", {327, 200}, {1}, false},
                        {"rows 256x256", {256, 256}, {1}, false},
                        {"rows 218x300", {218, 300}, {1}, false},
                        {"rows 109x600", {109, 600}, {1}, false},
                        {"rows 300x218", {300, 218}, {1}, false},
                        {"rows 32x2048", {32, 2048}, {1}, false},
                        {"rows 16x4096", {16, 4096}, {1}, false},
                        {"columns 120x546", {120, 546}, {0}, false},
                        {"columns 256x256", {256, 256}, {0}, false},
                        {"columns 300x218", {300, 218}, {0}, false},
                        {"columns 2048x32", {2048, 32}, {0}, false},
                        {"line 300", {300}, {0}, false},
                        {"line 1000", {1000}, {0}, false},
                        {"line 65536", {65536}, {0}, false},
                        {"line 1048576", {1048576}, {0}, false}};
  for (const Case& c : cases) {
    for (int threads = 1; threads <= (use_processor_time ? 1 : 2); ++threads)
      report_case(c, threads);
  }
}

}  // namespace palimpsest::bench

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--processor-time") == 0) palimpsest::bench::use_processor_time = true;
    if (std::strcmp(argv[i], "--without-avx512") == 0) {
      hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
    }
  }
  palimpsest::bench::report_fft();
}
