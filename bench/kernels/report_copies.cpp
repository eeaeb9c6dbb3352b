// SPDX-License-Identifier: Apache-2.0
// Transpositions and strided copies compared with memcpy of as many bytes, sums with loops that
// only read.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "hand_loops.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"
#include "report.hpp"

namespace palimpsest::bench {
namespace {

struct Case {
  const char* name;
  DType dtype;
  Extents extents;
  Strides from, to;
};

// Images with this number of channels, from one order of axes to the other.
Case channels_last(const char* name, DType dtype, index_t n, index_t side) {
  return {name, dtype, {side, side, n}, {side, 1, side * side}, {side * n, n, 1}};
}
Case channels_first(const char* name, DType dtype, index_t n, index_t side) {
  return {name, dtype, {n, side, side}, {1, side * n, n}, {side * side, side, 1}};
}

void report_copy(const Case& c, int threads) {
  const auto n = static_cast<std::size_t>(element_count(c.extents));
  const std::size_t bytes = n * item_size(c.dtype);
  // Steps of two need twice the memory.
  Block<float> x(2 * bytes / sizeof(float)), y(2 * bytes / sizeof(float));
  const auto first = [](std::byte* data, const Case& k, const Strides& strides) {
    return data - reached_range(k.extents, strides).low * static_cast<index_t>(item_size(k.dtype));
  };
  const ConstView from{first(reinterpret_cast<std::byte*>(x.data()), c, c.from), c.dtype, c.extents,
                       c.from};
  const MutableView to{first(reinterpret_cast<std::byte*>(y.data()), c, c.to), c.dtype, c.extents,
                       c.to};
  PairTimes t;
  with_threads(threads, [&] {
    t = time_pair([&] { run_copy(from, to); },
                  [&] {
                    on_threads(threads, bytes, 65536, [&](std::size_t i, std::size_t e) {
                      std::memcpy(reinterpret_cast<std::byte*>(y.data()) + i,
                                  reinterpret_cast<std::byte*>(x.data()) + i, e - i);
                    });
                  },
                  1.0);
  });
  const double gigabytes = 2e-9 * static_cast<double>(bytes);
  std::printf("%-34s %2d %8.1f %8.1f %7.2f %7.2f\n", c.name, threads, gigabytes / t.ours.best,
              gigabytes / t.theirs.best, t.best_ratio, t.median_ratio);
  std::fflush(stdout);
}

}  // namespace

void report_copies(const Options&) {
  std::printf(
      "\nCopies. GB/s read and written; speed relative to memcpy: of best times and median\n");
  std::printf("%-34s %2s %8s %8s %7s %7s\n", "", "th", "ours", "memcpy", "best", "median");
  const Case cases[] = {
      {"transpose float32 4096x4096", DType::float32, {4096, 4096}, {1, 4096}, {4096, 1}},
      {"transpose complex64 3000x3000", DType::complex64, {3000, 3000}, {1, 3000}, {3000, 1}},
      {"transpose complex64 4096x4096", DType::complex64, {4096, 4096}, {1, 4096}, {4096, 1}},
      {"transpose complex128 2048x2048", DType::complex128, {2048, 2048}, {1, 2048}, {2048, 1}},
      {"transpose float32 1024x1024", DType::float32, {1024, 1024}, {1, 1024}, {1024, 1}},
      {"transpose float32 3001x3001", DType::float32, {3001, 3001}, {1, 3001}, {3001, 1}},
      {"transpose complex64 2003x2003", DType::complex64, {2003, 2003}, {1, 2003}, {2003, 1}},
      {"transpose complex128 1501x1501", DType::complex128, {1501, 1501}, {1, 1501}, {1501, 1}},
      channels_last("cyx->yxc complex64 16x512x512", DType::complex64, 16, 512),
      channels_first("yxc->cyx complex64 512x512x16", DType::complex64, 16, 512),
      channels_last("cyx->yxc complex64 12x512x512", DType::complex64, 12, 512),
      channels_first("yxc->cyx complex64 512x512x12", DType::complex64, 12, 512),
      channels_last("cyx->yxc complex64 5x1024x1024", DType::complex64, 5, 1024),
      channels_first("yxc->cyx complex64 1024x1024x5", DType::complex64, 5, 1024),
      channels_last("cyx->yxc float32 3x2048x2048", DType::float32, 3, 2048),
      channels_first("yxc->cyx float32 2048x2048x3", DType::float32, 3, 2048),
      {"rows backwards float32 16M", DType::float32, {1 << 24}, {-1}, {1}},
      {"both axes backwards complex64", DType::complex64, {2000, 3000}, {-3000, -1}, {3000, 1}},
      {"crop of rows complex64", DType::complex64, {3000, 2000}, {3000, 1}, {2000, 1}},
  };
  for (const Case& c : cases) {
    for (int threads = 1; threads <= most_threads(); ++threads) report_copy(c, threads);
  }
}

void report_sums(const Options&) {
  std::printf(
      "\nSums. GB/s read; speed relative to a loop that only reads: of best times and median\n");
  std::printf("%-34s %2s %8s %8s %7s %7s\n", "", "th", "ours", "read", "best", "median");
  struct Sum {
    const char* name;
    DType dtype;
    Extents extents;
    Axes axes;
  };
  const Sum sums[] = {{"all float32 32M", DType::float32, {1 << 25}, {0}},
                      {"all complex64 16M", DType::complex64, {1 << 24}, {0}},
                      {"rows float32 4096x8192", DType::float32, {4096, 8192}, {1}},
                      {"columns float32 8192x4096", DType::float32, {8192, 4096}, {0}},
                      {"coils complex64 16x1024x1024", DType::complex64, {16, 1024, 1024}, {0}},
                      {"all float32 64K", DType::float32, {1 << 16}, {0}}};
  for (const Sum& s : sums) {
    const auto n = static_cast<std::size_t>(element_count(s.extents)) * item_size(s.dtype) / 4;
    Block<float> x(n), out(n);
    const Strides strides = contiguous_strides(s.extents);
    Extents kept;
    for (std::size_t i = 0; i < s.extents.size(); ++i) {
      if (static_cast<index_t>(i) != s.axes[0]) kept.push_back(s.extents[i]);
    }
    const Strides kept_strides = contiguous_strides(kept);
    for (int threads = 1; threads <= most_threads(); ++threads) {
      volatile float sink = 0;
      PairTimes t;
      with_threads(threads, [&] {
        t = time_pair(
            [&] {
              run_reduce(ReduceOp::sum, {x.data(), s.dtype, s.extents, strides}, s.axes,
                         {out.data(), s.dtype, kept, kept_strides});
            },
            [&] {
              on_threads(threads, n, 16384, [&](std::size_t i, std::size_t e) {
                sink = read_all(x.data() + i, e - i);
              });
            },
            1.0);
      });
      const double gigabytes = 4e-9 * static_cast<double>(n);
      std::printf("%-34s %2d %8.1f %8.1f %7.2f %7.2f\n", s.name, threads, gigabytes / t.ours.best,
                  gigabytes / t.theirs.best, t.best_ratio, t.median_ratio);
      std::fflush(stdout);
    }
  }
}

// Sums of a computed operand, and of its result in memory: sum of a (x - y)^2, float32.
void report_fused_sums(const Options&) {
  std::printf("\nSums of a (x - y)^2, computed on the way. Speed relative to two steps\n");
  std::printf("%-34s %2s %8s %8s %7s %7s\n", "", "th", "ms", "2 steps", "best", "median");
  ElementwiseProgram program;
  const int a = program.input(DType::float32), x = program.input(DType::float32),
            y = program.input(DType::float32);
  const int difference = program.apply(ScalarOp::sub, {x, y});
  program.output(program.apply(ScalarOp::mul, {a, program.apply(ScalarOp::square, {difference})}));
  struct Sum {
    const char* name;
    Extents extents;
    Axes axes;
    bool one_row;  // a is the same for all rows
  };
  const Sum cases[] = {{"all 16M", {1 << 12, 1 << 12}, {0, 1}, false},
                       {"all 16M, a one row", {1 << 12, 1 << 12}, {0, 1}, true},
                       {"rows 4096x4096", {1 << 12, 1 << 12}, {1}, false},
                       {"columns 4096x4096", {1 << 12, 1 << 12}, {0}, false},
                       {"all 64K", {1 << 8, 1 << 8}, {0, 1}, false}};
  for (const Sum& c : cases) {
    const auto n = static_cast<std::size_t>(element_count(c.extents));
    Block<float> u(n), v(n), w(n), made(n), out(n);
    const Strides strides = contiguous_strides(c.extents), row{0, 1};
    Extents kept;
    for (std::size_t k = 0; k < 2; ++k) {
      const auto axis = static_cast<index_t>(k);
      if (std::find(c.axes.begin(), c.axes.end(), axis) == c.axes.end()) {
        kept.push_back(c.extents[k]);
      }
    }
    const Strides kept_strides = contiguous_strides(kept);
    const ConstView inputs[] = {{u.data(), DType::float32, c.extents, c.one_row ? row : strides},
                                {v.data(), DType::float32, c.extents, strides},
                                {w.data(), DType::float32, c.extents, strides}};
    const MutableView between{made.data(), DType::float32, c.extents, strides};
    const MutableView result{out.data(), DType::float32, kept, kept_strides};
    for (int threads = 1; threads <= most_threads(); ++threads) {
      PairTimes t;
      with_threads(threads, [&] {
        t = time_pair([&] { run_fused_reduce(ReduceOp::sum, program, inputs, c.axes, result); },
                      [&] {
                        run_elementwise(program, inputs, std::array{between});
                        run_reduce(ReduceOp::sum, between, c.axes, result);
                      },
                      1.0);
      });
      std::printf("%-34s %2d %8.2f %8.2f %7.2f %7.2f\n", c.name, threads, 1e3 * t.ours.best,
                  1e3 * t.theirs.best, t.best_ratio, t.median_ratio);
      std::fflush(stdout);
    }
  }
}

}  // namespace palimpsest::bench
