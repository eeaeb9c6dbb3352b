// SPDX-License-Identifier: Apache-2.0
// The calls of call_bench.py in C++. Prints lines of a name and microseconds.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>

#include "palimpsest/palimpsest.hpp"

using namespace palimpsest;

namespace {

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Best of 7 runs of 20,000 calls, in thread time, which other work does not lengthen.
template <class Call>
void report(const char* name, Call call) {
  constexpr int kCalls = 20000;
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 7; ++run) {
    const double start = seconds();
    for (int i = 0; i < kCalls; ++i) call();
    best = std::min(best, seconds() - start);
  }
  std::printf("%s\t%.4f\n", name, best / kCalls * 1e6);
}

}  // namespace

int main() {
  const Variable x = dvector("x"), y = dvector("y");
  const Function f = function({x, y}, ops::add(x, y));
  const Function lent = function({x, y}, Out(ops::add(x, y), {.borrow = true}));
  const NamedLinop A = Diagonal(Tensor::ones({1}), "N");
  const Tensor a = Tensor::ones({1}), b = Tensor::ones({1});
  Tensor out = Tensor::ones({1});
  report("f(x, y)", [&] { f(a, b); });
  report("f(x, y), borrowed", [&] { lent(a, b); });
  report("f.call_into(out, x, y)", [&] { f.call_into(out, a, b); });
  report("A(x)", [&] { A(a); });
}
