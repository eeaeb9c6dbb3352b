// SPDX-License-Identifier: Apache-2.0
// Kernels compared with loops written by hand, with the limits of this machine, and with peers.
//
//     bench_kernels_report [--processor-time] [--smallest N] [--largest N]
//                          [--python PROGRAM SCRIPT] [SECTION]
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "hand_loops.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "report.hpp"

namespace palimpsest::bench {

void with_threads(int threads, const std::function<void()>& f) { run_with_threads(threads, f); }

void on_threads(int threads, std::size_t n, std::size_t grain,
                const std::function<void(std::size_t, std::size_t)>& body) {
  if (threads == 1 || n <= grain) {
    body(0, n);
    return;
  }
  const auto pieces = static_cast<std::size_t>(threads);
  tbb::parallel_for(std::size_t{0}, pieces,
                    [&](std::size_t i) { body(n * i / pieces, n * (i + 1) / pieces); });
}

void report_limits(const Options&) {
  constexpr std::size_t n = std::size_t{1} << 25;  // 128 MiB each
  Block<float> a(n), b(n), z(n);
  std::printf("\nLimits of this machine, 128 MiB arrays, GB/s: best (median)\n");
  std::printf("%-8s %18s %18s %18s %18s\n", "threads", "read", "memcpy", "copy past cache",
              "triad");
  for (int threads = 1; threads <= most_threads(); ++threads) {
    volatile float sink = 0;
    Times t[4];
    with_threads(threads, [&] {
      const auto read = [&] {
        on_threads(threads, n, 4096,
                   [&](std::size_t i, std::size_t e) { sink = read_all(a.data() + i, e - i); });
      };
      const auto copy = [&] {
        on_threads(threads, n, 4096, [&](std::size_t i, std::size_t e) {
          copy_all(a.data() + i, z.data() + i, e - i);
        });
      };
      const auto stream = [&] {
        on_threads(threads, n, 4096, [&](std::size_t i, std::size_t e) {
          copy_streamed(a.data() + i, z.data() + i, e - i);
        });
      };
      const auto three = [&] {
        on_threads(threads, n, 4096, [&](std::size_t i, std::size_t e) {
          triad(a.data() + i, b.data() + i, z.data() + i, e - i);
        });
      };
      const PairTimes first = time_pair(read, copy, 1.5), second = time_pair(stream, three, 1.5);
      t[0] = first.ours;
      t[1] = first.theirs;
      t[2] = second.ours;
      t[3] = second.theirs;
    });
    const double moved[4] = {1, 2, 2, 3};
    std::printf("%-8d", threads);
    for (int k = 0; k < 4; ++k) {
      const double gigabytes = moved[k] * 4 * static_cast<double>(n) * 1e-9;
      std::printf(" %9.1f (%5.1f)", gigabytes / t[k].best, gigabytes / t[k].median);
    }
    std::printf("\n");
  }
}

// The times of some access orders without work: limits for kernels that need them.
void report_orders(const Options&) {
  std::printf("\nLimits of orders: speed relative to the plain one, median\n");
  const auto print = [](const char* name, const PairTimes& t) {
    std::printf("%-62s %5.2f\n", name, t.median_ratio);
    std::fflush(stdout);
  };
  with_threads(1, [&] {
    volatile float sink = 0;
    Block<float> x(std::size_t{1} << 25), y(std::size_t{1} << 20);
    print("reads 8192 x 4096 float32, 8 rows side by side",
          time_pair([&] { sink = read_rows(x.data(), 8192, 4096); },
                    [&] { sink = read_all(x.data(), x.size()); }, 1.5));
    print("reads 16 x 2M float32, 8 rows side by side",
          time_pair([&] { sink = read_rows(x.data(), 16, std::size_t{1} << 21); },
                    [&] { sink = read_all(x.data(), x.size()); }, 1.5));
    print("copies 1024 x 1024 float32 in cache, columns of a line",
          time_pair([&] { copy_columns(x.data(), y.data(), 1024, 1024); },
                    [&] { copy_all(x.data(), y.data(), y.size()); }, 1.5));
    print("copies 992 x 992 float32 in cache, columns of a line",
          time_pair([&] { copy_columns(x.data(), y.data(), 992, 992); },
                    [&] { copy_all(x.data(), y.data(), std::size_t{992} * 992); }, 1.5));
  });
}

}  // namespace palimpsest::bench

int main(int argc, char** argv) {
  using namespace palimpsest::bench;
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smallest") == 0 && i + 1 < argc) {
      options.smallest = std::stoul(argv[++i]);
    } else if (std::strcmp(argv[i], "--largest") == 0 && i + 1 < argc) {
      options.largest = std::stoul(argv[++i]);
    } else if (std::strcmp(argv[i], "--python") == 0 && i + 2 < argc) {
      options.python = argv[++i];
      options.script = argv[++i];
    } else if (std::strcmp(argv[i], "--processor-time") == 0) {
      use_processor_time = true;
    } else {
      options.filter = argv[i];
    }
  }
  const std::pair<const char*, void (*)(const Options&)> sections[] = {
      {"limits", report_limits},
      {"limits of orders", report_orders},
      {"elementwise", report_elementwise},
      {"copies", report_copies},
      {"sums", report_sums},
      {"fused sums", report_fused_sums},
      {"transforms", report_transforms}};
  for (const auto& [name, section] : sections) {
    if (std::string(name).find(options.filter) != std::string::npos) section(options);
    std::fflush(stdout);
  }
}
