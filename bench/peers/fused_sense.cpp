// SPDX-License-Identifier: Apache-2.0
// CG-SENSE beside a loop that is fused by hand: for one coil after the other multiply by its map,
// transform with FFTW, apply the mask, transform back, and add the product with the conjugate map.
//
//   peer_fused_sense both SIDE COILS [PLANES=1] [THREADS=1]    times of both by turns, and of the
//       transforms of an iteration alone
//   peer_fused_sense ours|fused SIDE COILS [PLANES] [THREADS]  one of them, for its peak of memory
//   peer_fused_sense files KSPACE.npy MAPS.npy IMAGE.npy ITERATIONS [THREADS]  the loop, from
//       files; plans of FFTW are measured once and kept in fused_sense.wisdom
//
// Images have PLANES x SIDE x SIDE elements, even numbers; a third of the points is measured, in
// both axes that a transform could leave out. An iteration is the difference of solves of 12 and of
// 2 iterations, by 10. The loop knows more than reconstruct(): the transforms are centred by signs
// in maps and data that it changes, and nothing is checked.
#include <fftw3.h>
#include <sys/resource.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

struct Free {
  void operator()(void* p) const { fftwf_free(p); }
};
template <class T>
using Array = std::unique_ptr<T[], Free>;
template <class T>
Array<T> array(index_t n) {
  return Array<T>(static_cast<T*>(fftwf_malloc(static_cast<std::size_t>(n) * sizeof(T))));
}

// The hand-written side. Changes the signs of maps and data once.
class FusedLoop {
 public:
  FusedLoop(Tensor& maps, Tensor& kspace, const Tensor& mask, int threads)
      : maps_(maps.mutable_data<Sample>()),
        data_(kspace.mutable_data<Sample>()),
        threads_(threads),
        coils_(maps.shape()[0]),
        n_(mask.numel()) {
    int sizes[3];
    const int rank = static_cast<int>(mask.rank());
    for (int d = 0; d < rank; ++d) {
      extents_[3 - rank + d] = mask.shape()[static_cast<std::size_t>(d)];
      sizes[d] = static_cast<int>(mask.shape()[static_cast<std::size_t>(d)]);
    }
    weights_ = array<float>(n_);
    const bool* const is_measured = mask.data<bool>();
    const float scale = 1 / static_cast<float>(n_);
    for (index_t i = 0; i < n_; ++i) weights_[i] = is_measured[i] ? scale : 0;
    for (int t = 0; t < threads; ++t) {
      buffers_.push_back(array<Sample>(n_));
      sums_.push_back(array<Sample>(n_));
    }
    auto* const at = reinterpret_cast<fftwf_complex*>(buffers_[0].get());
    forward_ = fftwf_plan_dft(rank, sizes, at, at, FFTW_FORWARD, FFTW_MEASURE);
    backward_ = fftwf_plan_dft(rank, sizes, at, at, FFTW_BACKWARD, FFTW_MEASURE);
    for (index_t c = 0; c < coils_; ++c) {
      change_signs(maps_ + c * n_);
      change_signs(data_ + c * n_);
    }
  }
  ~FusedLoop() {
    fftwf_destroy_plan(forward_);
    fftwf_destroy_plan(backward_);
  }
  FusedLoop(const FusedLoop&) = delete;
  FusedLoop& operator=(const FusedLoop&) = delete;

  // Conjugate gradients for A^H A x = A^H y.
  Tensor solve(int iterations) {
    Tensor result = Tensor::zeros(shape(), DType::complex64);
    auto* const x = result.mutable_data<Sample>();
    const Array<Sample> r = array<Sample>(n_), p = array<Sample>(n_), q = array<Sample>(n_);
    over_coils(r.get(), [&](index_t c, Sample* buffer) {
      const Sample* const y = data_ + c * n_;
      const float root = std::sqrt(static_cast<float>(n_));
      for (index_t i = 0; i < n_; ++i) buffer[i] = y[i] * (weights_[i] * root);
      transform(backward_, buffer);
    });
    double rr = 0;
    for (index_t i = 0; i < n_; ++i) {
      p[i] = r[i];
      rr += std::norm(r[i]);
    }
    for (int k = 0; k < iterations && rr > 0; ++k) {
      over_coils(q.get(), [&](index_t c, Sample* buffer) {
        const Sample* const map = maps_ + c * n_;
        for (index_t i = 0; i < n_; ++i) buffer[i] = map[i] * p[i];
        transform(forward_, buffer);
        for (index_t i = 0; i < n_; ++i) buffer[i] *= weights_[i];
        transform(backward_, buffer);
      });
      double pq = 0;
      for (index_t i = 0; i < n_; ++i) pq += p[i].real() * q[i].real() + p[i].imag() * q[i].imag();
      const auto alpha = static_cast<float>(rr / pq);
      double next = 0;
      for (index_t i = 0; i < n_; ++i) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        next += std::norm(r[i]);
      }
      const auto beta = static_cast<float>(next / rr);
      for (index_t i = 0; i < n_; ++i) p[i] = r[i] + beta * p[i];
      rr = next;
    }
    return result;
  }

  // The transforms of an iteration, of one buffer for each thread, and nothing else.
  void only_transform() {
    const auto part = [&](int t) {
      for (index_t c = t; c < coils_; c += threads_) {
        transform(forward_, buffers_[static_cast<std::size_t>(t)].get());
        transform(backward_, buffers_[static_cast<std::size_t>(t)].get());
      }
    };
    threads_ == 1 ? part(0) : tbb::parallel_for(0, threads_, part, tbb::static_partitioner());
  }

 private:
  Extents shape() const {
    if (extents_[0] == 1) return {extents_[1], extents_[2]};
    return {extents_[0], extents_[1], extents_[2]};
  }
  void change_signs(Sample* values) const {
    for (index_t z = 0; z < extents_[0]; ++z) {
      for (index_t y = 0; y < extents_[1]; ++y, values += extents_[2]) {
        const index_t odd = (z * (extents_[0] > 1) + y + 1) % 2;
        for (index_t i = odd; i < extents_[2]; i += 2) values[i] = -values[i];
      }
    }
  }
  static void transform(fftwf_plan plan, Sample* values) {
    auto* const at = reinterpret_cast<fftwf_complex*>(values);
    fftwf_execute_dft(plan, at, at);
  }
  // to = sum of conj(map) times what `make` puts into the buffer; each thread takes some coils.
  template <class Make>
  void over_coils(Sample* to, const Make& make) {
    const auto part = [&](int t) {
      Sample* const sum = t == 0 ? to : sums_[static_cast<std::size_t>(t)].get();
      Sample* const buffer = buffers_[static_cast<std::size_t>(t)].get();
      std::fill_n(sum, n_, Sample(0));
      for (index_t c = t; c < coils_; c += threads_) {
        make(c, buffer);
        const Sample* const map = maps_ + c * n_;
        for (index_t i = 0; i < n_; ++i) sum[i] += std::conj(map[i]) * buffer[i];
      }
    };
    if (threads_ == 1) return part(0);
    tbb::parallel_for(0, threads_, part, tbb::static_partitioner());
    for (int t = 1; t < threads_; ++t) {
      const Sample* const sum = sums_[static_cast<std::size_t>(t)].get();
      for (index_t i = 0; i < n_; ++i) to[i] += sum[i];
    }
  }

  Sample *maps_, *data_;
  int threads_;
  index_t coils_, n_;
  index_t extents_[3] = {1, 1, 1};
  Array<float> weights_;
  std::vector<Array<Sample>> buffers_, sums_;
  fftwf_plan forward_, backward_;
};

struct Problem {
  Tensor maps, mask, kspace;
};

Problem problem(index_t side, index_t coils, index_t planes) {
  Extents image{side, side}, all{coils, side, side};
  if (planes > 1) image = {planes, side, side}, all = {coils, planes, side, side};
  Problem made;
  made.maps = Tensor::random_normal(all, DType::complex64, {1});
  made.mask = Tensor::zeros(image, DType::bool_);
  const Tensor draws = Tensor::random_uniform(image, DType::float32, {2});
  for (index_t i = 0; i < made.mask.numel(); ++i) {
    made.mask.mutable_data<bool>()[i] = draws.data<float>()[i] < 1.0F / 3;
  }
  const Tensor truth = Tensor::random_normal(image, DType::complex64, {3});
  made.kspace = sense_model(made.maps, {.mask = made.mask})(truth).contiguous();
  return made;
}

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double difference(const Tensor& a, const Tensor& b) {
  double apart = 0, all = 0;
  for (index_t i = 0; i < a.numel(); ++i) {
    apart += std::norm(a.data<Sample>()[i] - b.data<Sample>()[i]);
    all += std::norm(b.data<Sample>()[i]);
  }
  return std::sqrt(apart / all);
}

// Times of a side: a solve of 12 iterations, and one of them.
struct Times {
  std::vector<double> solve, iteration;
  void add(const auto& run) {
    const double few = seconds_of([&] { run(2); }), many = seconds_of([&] { run(12); });
    solve.push_back(many);
    iteration.push_back((many - few) / 10);
  }
};

int compare(const std::string& who, index_t side, index_t coils, index_t planes, int threads) {
  constexpr int kRounds = 5;
  Problem p = problem(side, coils, planes);
  const auto ours = [&](int iterations) {
    return reconstruct(p.kspace, p.maps, {.mask = p.mask},
                       {.iterations = iterations, .tolerance = 0})
        .image;
  };
  if (who == "ours") {
    ours(12);
    std::printf("ours: peak %.0f MiB\n", peak_mib());
    return 0;
  }
  const bool is_alone = who == "fused";
  Tensor maps = is_alone ? p.maps : p.maps.clone(), data = is_alone ? p.kspace : p.kspace.clone();
  FusedLoop loop(maps, data, p.mask, threads);
  if (is_alone) {
    loop.solve(12);
    std::printf("fused: peak %.0f MiB\n", peak_mib());
    return 0;
  }
  std::printf("relative difference of the images %.1e\n", difference(ours(5), loop.solve(5)));
  Times mine, theirs;
  std::vector<double> transforms;
  for (int round = 0; round < kRounds; ++round) {
    loop.only_transform();
    transforms.push_back(seconds_of([&] { loop.only_transform(); }));
    mine.add(ours);
    theirs.add([&](int iterations) { loop.solve(iterations); });
  }
  std::printf("iteration: ours %.3f ms, fused %.3f ms, ratio %.2f\n", median(mine.iteration) * 1e3,
              median(theirs.iteration) * 1e3, median(mine.iteration) / median(theirs.iteration));
  std::printf("transforms alone: %.3f ms\n", median(transforms) * 1e3);
  std::printf("12 iterations: ours %.1f ms, fused %.1f ms, ratio %.2f\n", median(mine.solve) * 1e3,
              median(theirs.solve) * 1e3, median(mine.solve) / median(theirs.solve));
  return 0;
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i, int otherwise) {
    return i < words.size() ? std::atoi(words[i].c_str()) : otherwise;
  };
  if (words.size() < 3) {
    std::puts("usage: see the beginning of bench/peers/fused_sense.cpp");
    return 2;
  }
  const bool from_files = words[0] == "files";
  const int threads = number(from_files ? 5 : 4, 1);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  const ConfigScope scope({.threads = threads});
  if (!from_files) return compare(words[0], number(1, 320), number(2, 8), number(3, 1), threads);
  Tensor kspace = read_npy(words[1]), maps = read_npy(words[2]);
  const index_t n = kspace.numel() / kspace.shape()[0];
  Extents image(kspace.shape().begin() + 1, kspace.shape().end());
  Tensor mask = Tensor::zeros(image, DType::bool_);
  for (index_t i = 0; i < kspace.numel(); ++i) {
    if (kspace.data<Sample>()[i] != Sample(0)) mask.mutable_data<bool>()[i % n] = true;
  }
  constexpr const char* kWisdom = "fused_sense.wisdom";
  fftwf_import_wisdom_from_filename(kWisdom);
  FusedLoop loop(maps, kspace, mask, threads);
  fftwf_export_wisdom_to_filename(kWisdom);
  write_npy(words[3], loop.solve(number(4, 10)));
  return 0;
}

}  // namespace
}  // namespace palimpsest

int main(int count, char** words) { return palimpsest::run({words + 1, words + count}); }
