// SPDX-License-Identifier: Apache-2.0
// Transforms of several axes into another array, compared with one axis after the other.
#include <complex>
#include <cstdio>
#include <vector>

#include "hand_loops.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "report.hpp"

namespace palimpsest::bench {
namespace {

using Sample = std::complex<float>;

FftSpec spec_of(const Extents& extents, const Axes& axes, bool in_place) {
  FftSpec spec;
  spec.dtype = DType::complex64;
  spec.extents = extents;
  spec.in_strides = spec.out_strides = contiguous_strides(extents);
  spec.axes = axes;
  spec.in_place = in_place;
  return spec;
}

// A transform with its own workspace.
class Transform {
 public:
  explicit Transform(const FftSpec& spec)
      : plan_(fft_plan(spec)), workspace_(static_cast<std::size_t>(fft_workspace_bytes(spec, 1))) {}
  void run(const Sample* x, Sample* y) { execute(plan_, x, y, {.workspace = workspace_}); }

 private:
  FftPlan plan_;
  std::vector<std::byte> workspace_;
};

}  // namespace

// Slices that go through a room in the cache to a result past the caches, or not, by the rule of
// array_transform.cpp; the other way is the last axis to the result, and the others in it.
void report_transforms(const Options& options) {
  std::printf("\nTransforms into another array, complex64, 1 thread. Speed relative to one axis\n");
  std::printf("after the other; in brackets with a loop that reads the result\n");
  std::printf("%-20s %10s %10s %16s\n", "", "ns", "axes, ns", "median");
  const std::pair<Extents, Axes> cases[] = {{{8, 320, 320}, {1, 2}},     {{16, 320, 320}, {1, 2}},
                                            {{32, 320, 320}, {1, 2}},    {{64, 320, 320}, {1, 2}},
                                            {{128, 320, 320}, {1, 2}},   {{512, 320, 320}, {1, 2}},
                                            {{256, 256, 256}, {0, 1, 2}}};
  for (const auto& [extents, axes] : cases) {
    const auto n = static_cast<std::size_t>(element_count(extents));
    if (n > options.largest) continue;
    Block<Sample> x(n), y(n);
    Transform whole(spec_of(extents, axes, false)), last(spec_of(extents, {2}, false)),
        others(spec_of(extents, {axes.begin(), axes.end() - 1}, true));
    const auto at_once = [&] { whole.run(x.data(), y.data()); };
    const auto in_turn = [&] {
      last.run(x.data(), y.data());
      others.run(y.data(), y.data());
    };
    volatile float sink = 0;
    const auto read = [&] { sink = read_all(reinterpret_cast<const float*>(y.data()), 2 * n); };
    PairTimes alone, with_reader;
    with_threads(1, [&] {
      alone = time_pair(at_once, in_turn, 1.0);
      with_reader = time_pair([&] { at_once(), read(); }, [&] { in_turn(), read(); }, 1.0);
    });
    const double per_element = 1e9 / static_cast<double>(n);
    std::printf("%-20s %10.2f %10.2f %7.2f (%6.2f)\n", to_string(extents).c_str(),
                per_element * alone.ours.best, per_element * alone.theirs.best, alone.median_ratio,
                with_reader.median_ratio);
    std::fflush(stdout);
  }
}

}  // namespace palimpsest::bench
