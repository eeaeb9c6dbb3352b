// SPDX-License-Identifier: Apache-2.0
// Copy-on-write compared with a lock-based design and memcpy. For medians:
//   bench_memory --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
//     --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "locked_storage.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

using bench::LockedStorage;

constexpr std::int64_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;

// -- lazy clone and drop ------------------------------------------------------------------------

void lazy_clone_and_drop(benchmark::State& state) {
  const Storage storage = Storage::allocate(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const Storage clone = storage.lazy_clone();
    benchmark::DoNotOptimize(clone.data());
  }
}
BENCHMARK(lazy_clone_and_drop)->Arg(kKiB)->Arg(kGiB);

void tensor_lazy_clone_and_drop(benchmark::State& state) {
  const Tensor t = Tensor::empty({16, state.range(0) / 16}, DType::uint8);
  for (auto _ : state) {
    const Tensor clone = t.lazy_clone();
    benchmark::DoNotOptimize(clone.raw_data());
  }
}
BENCHMARK(tensor_lazy_clone_and_drop)->Arg(kKiB)->Arg(kGiB);

void locked_lazy_clone_and_drop(benchmark::State& state) {
  LockedStorage storage(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const LockedStorage clone = storage.lazy_clone();
    benchmark::DoNotOptimize(&clone);
  }
}
BENCHMARK(locked_lazy_clone_and_drop)->Arg(kKiB)->Arg(kGiB);

// -- mutable access to owned data ---------------------------------------------------------------

void mutable_access(benchmark::State& state) {
  Storage storage = Storage::allocate(1024);
  for (auto _ : state) benchmark::DoNotOptimize(storage.mutable_data());
}
BENCHMARK(mutable_access);

void tensor_mutable_access(benchmark::State& state) {
  Tensor t = Tensor::zeros({16, 16}, DType::float32);
  for (auto _ : state) benchmark::DoNotOptimize(t.mutable_data<float>());
}
BENCHMARK(tensor_mutable_access);

void locked_mutable_access(benchmark::State& state) {
  LockedStorage storage(1024);
  for (auto _ : state) benchmark::DoNotOptimize(storage.mutable_data());
}
BENCHMARK(locked_mutable_access);

// -- the last owner takes over ------------------------------------------------------------------

// A turn: a lazy clone, the end of the original, and the write that takes over the data.
void clone_and_steal(benchmark::State& state) {
  Storage storage = Storage::allocate(kMiB);
  for (auto _ : state) {
    storage = storage.lazy_clone();
    benchmark::DoNotOptimize(storage.mutable_data());
  }
}
BENCHMARK(clone_and_steal);

void locked_clone_and_steal(benchmark::State& state) {
  LockedStorage storage(kMiB);
  for (auto _ : state) {
    storage = storage.lazy_clone();
    benchmark::DoNotOptimize(storage.mutable_data());
  }
}
BENCHMARK(locked_clone_and_steal);

// -- the copy -----------------------------------------------------------------------------------

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The memory of the copy was used before, like the destination of memcpy below.
void materialize(benchmark::State& state) {
  Storage storage = Storage::allocate(static_cast<std::size_t>(state.range(0)));
  std::memset(storage.mutable_data(), 1, storage.nbytes());
  const auto write = [&] {
    Storage clone = storage.lazy_clone();
    return seconds([&] { benchmark::DoNotOptimize(clone.mutable_data()); });
  };
  write();
  for (auto _ : state) state.SetIterationTime(write());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(materialize)->Arg(64 * kKiB)->Arg(4 * kMiB)->Arg(256 * kMiB)->UseManualTime();

void copy_by_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Storage source = Storage::allocate(bytes), target = Storage::allocate(bytes);
  std::memset(source.mutable_data(), 1, bytes);
  std::memset(target.mutable_data(), 2, bytes);
  for (auto _ : state) {
    state.SetIterationTime(seconds([&] {
      std::memcpy(target.mutable_data(), source.data(), bytes);
      benchmark::ClobberMemory();
    }));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(copy_by_memcpy)->Arg(64 * kKiB)->Arg(4 * kMiB)->Arg(256 * kMiB)->UseManualTime();

void locked_materialize(benchmark::State& state) {
  LockedStorage storage(static_cast<std::size_t>(state.range(0)));
  std::memset(storage.mutable_data(), 1, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    LockedStorage clone = storage.lazy_clone();
    state.SetIterationTime(seconds([&] { benchmark::DoNotOptimize(clone.mutable_data()); }));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(locked_materialize)->Arg(64 * kKiB)->Arg(4 * kMiB)->Arg(256 * kMiB)->UseManualTime();

// -- several threads, one block -----------------------------------------------------------------

void shared_counter(benchmark::State& state) {
  alignas(64) static std::atomic<std::uint64_t> counter{1};
  for (auto _ : state) {
    counter.fetch_add(1, std::memory_order_relaxed);
    benchmark::DoNotOptimize(counter.fetch_sub(1, std::memory_order_acq_rel));
  }
}
BENCHMARK(shared_counter)->Threads(1)->Threads(2);

// The same with as much additional work per turn as a lazy clone has. Between two turns the cache
// line of the counter moves to the other core; without work a thread would mostly keep it.
void shared_counter_and_work(benchmark::State& state) {
  alignas(64) static std::atomic<std::uint64_t> counter{1};
  std::uint64_t x = 1;
  for (auto _ : state) {
    for (int k = 0; k < 9; ++k) benchmark::DoNotOptimize(x *= 3);
    counter.fetch_add(1, std::memory_order_relaxed);
    benchmark::DoNotOptimize(x *= 3);
    benchmark::DoNotOptimize(counter.fetch_sub(1, std::memory_order_acq_rel));
  }
}
BENCHMARK(shared_counter_and_work)->Threads(1)->Threads(2);

void lazy_clone_and_drop_by_threads(benchmark::State& state) {
  static const Storage storage = Storage::allocate(kMiB);
  for (auto _ : state) {
    const Storage clone = storage.lazy_clone();
    benchmark::DoNotOptimize(clone.data());
  }
}
BENCHMARK(lazy_clone_and_drop_by_threads)->Threads(1)->Threads(2);

// -- maps of sharing ----------------------------------------------------------------------------

std::vector<Tensor> views_of(std::int64_t n_storages, std::int64_t n) {
  std::vector<Tensor> storages, views;
  for (std::int64_t k = 0; k < n_storages; ++k) storages.push_back(Tensor::empty({63, 17}));
  for (std::int64_t k = 0; k < n; ++k) {
    const Tensor& t = storages[static_cast<std::size_t>(k % n_storages)];
    views.push_back(t(slice(k / n_storages % 60, {})));
  }
  return views;
}

void memory_map_lazy_copy(benchmark::State& state) {
  const std::vector<Tensor> views = views_of(state.range(0), state.range(1));
  for (auto _ : state) {
    MemoryMap copier;
    for (const Tensor& t : views) add(copier, t);
    state.SetIterationTime(seconds([&] { copier.lazy_copy(); }));
  }
}
BENCHMARK(memory_map_lazy_copy)
    ->Args({10'000, 10'000})
    ->Args({200, 10'000})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// All steps: registering, cloning, looking up the counterparts, destroying the map and the old
// tensors.
void memory_map_lazy_copy_whole(benchmark::State& state) {
  const std::vector<Tensor> views = views_of(state.range(0), state.range(1));
  std::vector<Tensor> copies;
  for (auto _ : state) {
    copies.clear();
    MemoryMap copier;
    for (const Tensor& t : views) add(copier, t);
    copier.lazy_copy();
    for (const Tensor& t : views) copies.push_back(map(copier, t));
    benchmark::DoNotOptimize(copies.data());
  }
}
BENCHMARK(memory_map_lazy_copy_whole)
    ->Args({10'000, 10'000})
    ->Args({200, 10'000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace palimpsest
