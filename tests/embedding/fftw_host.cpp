// SPDX-License-Identifier: Apache-2.0
// A host that has set FFTW to make plans with several threads. Plans of the library are for single
// lines: with two threads they would start threads, which this program detects.
#include <fftw3.h>

#include <cstdio>
#include <filesystem>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

namespace {

int n_threads() {
  int n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

bool fails(bool is_wrong, const char* what) {
  if (is_wrong) std::puts(what);
  return is_wrong;
}

}  // namespace

int main() {
  const ConfigScope scope({.threads = 1});
  const Tensor x = Tensor::ones({16, 1024}, DType::complex64);
  Fft(1, {.batch = "B"})(x);
  if (fails(fftwf_planner_nthreads() != 1, "the host's number was changed")) return 1;
  fftw_init_threads();
  fftwf_init_threads();
  fftw_plan_with_nthreads(2);
  fftwf_plan_with_nthreads(2);
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    for (const index_t n : {320, 1000, 4096}) {
      functional::fft(Tensor::ones({16, n}, dtype));
      functional::fft(Tensor::ones({n, 16}, dtype));
    }
  }
  if (fails(n_threads() != 1, "plans have threads of their own")) return 1;
  if (fails(fftw_planner_nthreads() != 2 || fftwf_planner_nthreads() != 2,
            "the host's number is lost"))
    return 1;
  // The program can detect threads of FFTW.
  auto* const data = static_cast<fftw_complex*>(fftw_malloc(sizeof(fftw_complex) << 16));
  const fftw_plan plan = fftw_plan_dft_2d(256, 256, data, data, FFTW_FORWARD, FFTW_ESTIMATE);
  fftw_execute(plan);
  return fails(n_threads() == 1, "FFTW starts no threads here") ? 1 : 0;
}
