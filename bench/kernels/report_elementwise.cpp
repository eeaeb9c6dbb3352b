// SPDX-License-Identifier: Apache-2.0
// Fused expressions of 10^4 to 10^8 elements compared with loops written by hand, NumPy and
// numexpr, all on the same arrays.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "hand_loops.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "report.hpp"

namespace palimpsest::bench {
namespace {

// Consecutive arrays in memory that another process can open by its path.
class SharedArrays {
 public:
  SharedArrays(std::size_t count, std::size_t bytes) : bytes_(count * bytes), one_(bytes) {
    file_ = memfd_create("palimpsest_bench", 0);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) fail();
    data_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, 0));
    if (data_ == MAP_FAILED) fail();
    auto* numbers = reinterpret_cast<float*>(data_);
    for (std::size_t i = 0; i < bytes_ / sizeof(float); ++i) {
      numbers[i] = static_cast<float>(i % 1021) * 0.001F - 0.5F;
    }
  }
  SharedArrays(const SharedArrays&) = delete;
  SharedArrays& operator=(const SharedArrays&) = delete;
  ~SharedArrays() {
    munmap(data_, bytes_);
    close(file_);
  }
  template <class T>
  T* array(std::size_t i) {
    return reinterpret_cast<T*>(data_ + i * one_);
  }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("no memory for the arrays"); }
  std::size_t bytes_, one_;
  int file_ = -1;
  std::byte* data_ = nullptr;
};

constexpr c64 kScale(0.5F, -0.25F);

struct Expression {
  const char* name;
  DType dtype;
  std::size_t operands;
  ElementwiseProgram (*program)();
  void (*by_hand)(SharedArrays&, std::size_t begin, std::size_t end, bool streamed);
};

ElementwiseProgram product_sum_program() {
  ElementwiseProgram p;
  const int a = p.input(DType::float32), b = p.input(DType::float32), c = p.input(DType::float32);
  p.output(p.apply(ScalarOp::add, {p.apply(ScalarOp::mul, {a, b}), c}));
  return p;
}

ElementwiseProgram conj_program() {
  ElementwiseProgram p;
  const int a = p.input(DType::complex64), b = p.input(DType::complex64),
            c = p.input(DType::complex64), s = p.input(DType::complex64);
  const int left = p.apply(ScalarOp::mul, {a, p.apply(ScalarOp::conj, {b})});
  p.output(p.apply(ScalarOp::add, {left, p.apply(ScalarOp::mul, {s, c})}));
  return p;
}

ElementwiseProgram chain_program() {
  ElementwiseProgram p;
  const int a = p.input(DType::float32), b = p.input(DType::float32), c = p.input(DType::float32),
            d = p.input(DType::float32);
  const auto mul = [&](int x, int y) { return p.apply(ScalarOp::mul, {x, y}); };
  const auto add = [&](int x, int y) { return p.apply(ScalarOp::add, {x, y}); };
  const auto sub = [&](int x, int y) { return p.apply(ScalarOp::sub, {x, y}); };
  p.output(add(mul(sub(mul(add(mul(sub(mul(add(mul(a, b), c), d), a), b), d), c), b), a), c));
  return p;
}

const std::array kExpressions{
    Expression{"product_sum", DType::float32, 3, product_sum_program,
               [](SharedArrays& x, std::size_t i, std::size_t e, bool streamed) {
                 product_sum(x.array<float>(0) + i, x.array<float>(1) + i, x.array<float>(2) + i,
                             x.array<float>(3) + i, e - i, streamed);
               }},
    Expression{"conj_product_sum", DType::complex64, 3, conj_program,
               [](SharedArrays& x, std::size_t i, std::size_t e, bool streamed) {
                 conj_product_sum(x.array<c64>(0) + i, x.array<c64>(1) + i, kScale,
                                  x.array<c64>(2) + i, x.array<c64>(3) + i, e - i, streamed);
               }},
    Expression{"chain", DType::float32, 4, chain_program,
               [](SharedArrays& x, std::size_t i, std::size_t e, bool streamed) {
                 chain(x.array<float>(0) + i, x.array<float>(1) + i, x.array<float>(2) + i,
                       x.array<float>(3) + i, x.array<float>(4) + i, e - i, streamed);
               }}};

// Results of a peer for one expression: the minimum and the median time, 0 if it is missing.
struct Peers {
  Times numpy, numexpr;
};

Peers ask_peers(const Options& options, const Expression& e, std::size_t n, int threads,
                const std::string& path) {
  Peers peers;
  if (options.python.empty()) return peers;
  const std::string command = options.python + " " + options.script + " " + e.name + " " +
                              std::to_string(n) + " " + std::to_string(threads) + " " + path +
                              (use_processor_time ? " processor" : "");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return peers;
  char name[32];
  double best = 0, median = 0;
  while (std::fscanf(pipe, "%31s %lf %lf", name, &best, &median) == 3) {
    (std::string(name) == "numpy" ? peers.numpy : peers.numexpr) = {median, best};
  }
  pclose(pipe);
  return peers;
}

void report_one(const Options& options, const Expression& e, std::size_t n, int threads) {
  const std::size_t item = item_size(e.dtype);
  SharedArrays arrays(e.operands + 1, n * item);
  const Extents extents{static_cast<index_t>(n)};
  const Strides dense{1}, still{0};
  const ElementwiseProgram program = e.program();
  std::vector<ConstView> inputs;
  for (std::size_t k = 0; k < e.operands; ++k) {
    inputs.push_back({arrays.array<std::byte>(k), e.dtype, extents, dense});
  }
  if (program.n_inputs() > static_cast<int>(e.operands)) {
    inputs.push_back({&kScale, e.dtype, extents, still});
  }
  const std::array outputs{
      MutableView{arrays.array<std::byte>(e.operands), e.dtype, extents, dense}};
  PairTimes plain, past;
  with_threads(threads, [&] {
    const auto ours = [&] { run_elementwise(program, inputs, outputs); };
    const auto hand = [&](bool streamed) {
      on_threads(threads, n, 16384, [&](std::size_t begin, std::size_t end) {
        e.by_hand(arrays, begin, end, streamed);
      });
    };
    plain = time_pair(ours, [&] { hand(false); });
    if (n * item > (std::size_t{8} << 20)) past = time_pair(ours, [&] { hand(true); });
  });
  // Compares with the faster of the two.
  const bool streamed = past.theirs.best > 0 && past.theirs.best < plain.theirs.best;
  const PairTimes& best = streamed ? past : plain;
  const Peers peers = ask_peers(options, e, n, threads, arrays.path());
  const double gigabytes = static_cast<double>((e.operands + 1) * n * item) * 1e-9;
  std::printf("%-17s %11zu %2d %8.1f %8.1f%s %7.2f %7.2f", e.name, n, threads,
              gigabytes / best.ours.best, gigabytes / best.theirs.best, streamed ? "*" : " ",
              best.best_ratio, best.median_ratio);
  const auto times_faster = [&](const Times& peer) {
    if (peer.median > 0) {
      std::printf(" %8.1f", peer.median / best.ours.median);
    } else {
      std::printf(" %8s", "-");
    }
  };
  times_faster(peers.numpy);
  times_faster(peers.numexpr);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

void report_elementwise(const Options& options) {
  std::printf(
      "\nFused expressions. GB/s of operands and result; speed relative to the loop written "
      "by hand\n(*: past the caches, if faster): of best times and median of rounds; how many "
      "times NumPy's\nand numexpr's median time\n");
  std::printf("%-17s %11s %2s %8s %8s  %7s %7s %8s %8s\n", "", "elements", "th", "ours", "hand",
              "best", "median", "numpy", "numexpr");
  for (const Expression& e : kExpressions) {
    for (std::size_t n = options.smallest; n <= options.largest; n *= 10) {
      for (int threads = 1; threads <= most_threads(); ++threads)
        report_one(options, e, n, threads);
    }
  }
}

}  // namespace palimpsest::bench
