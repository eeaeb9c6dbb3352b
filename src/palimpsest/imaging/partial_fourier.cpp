// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/partial_fourier.hpp"

#include <fmt/ranges.h>

#include <numeric>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/transforms.hpp"

namespace palimpsest {
namespace {

struct Weights {
  std::vector<float> low, homodyne;
  std::vector<bool> measured;
};

Weights weights_of_lines(const PartialLines& lines, bool ramp) {
  Weights result;
  const index_t c = lines.extent / 2, w = lines.beyond_middle();
  for (index_t k = 0; k < lines.extent; ++k) {
    const index_t d = lines.from_end ? k - c : c - k;
    const bool is_low = std::abs(d) <= w;
    const double slope = ramp ? static_cast<double>(d) / static_cast<double>(w) : 0;
    result.low.push_back(is_low ? 1.0F : 0.0F);
    // The first line of an even number of them is its own mirror image.
    const float far = k == 0 && lines.extent % 2 == 0 ? 1.0F : 2.0F;
    result.homodyne.push_back(is_low ? static_cast<float>(1 + slope) : d > w ? far : 0.0F);
    result.measured.push_back(d >= -w);
  }
  return result;
}

// Multiplies the lines of an axis.
void weight_lines(Tensor& kspace, index_t axis, const std::vector<float>& weights) {
  index_t inner = 1;
  for (index_t k = axis + 1; k < static_cast<index_t>(kspace.rank()); ++k) inner *= kspace.shape(k);
  auto* v = kspace.mutable_data<Sample>();
  for (index_t i = 0, end = kspace.numel(); i < end; ++i) {
    v[i] *= weights[static_cast<std::size_t>(i / inner) % weights.size()];
  }
}

Sample phase_of(Sample v) {
  const float size = std::abs(v);
  return size > 0 ? v / size : Sample(1);
}

void take_phase_out(Tensor& image, const Tensor& low) {
  auto* v = image.mutable_data<Sample>();
  const auto* p = low.data<Sample>();
  for (index_t i = 0, end = image.numel(); i < end; ++i)
    v[i] = (v[i] * std::conj(phase_of(p[i]))).real();
}

void put_phase_in(Tensor& image, const Tensor& low) {
  auto* v = image.mutable_data<Sample>();
  const auto* p = low.data<Sample>();
  for (index_t i = 0, end = image.numel(); i < end; ++i) v[i] = std::abs(v[i]) * phase_of(p[i]);
}

// Between k-space and images, along some axes; dense.
struct Transforms {
  std::vector<index_t> axes;

  Tensor image(const Tensor& kspace) const {
    return transform(kspace, axes, {.inverse = true}).contiguous();
  }
  Tensor kspace(const Tensor& image) const { return transform(image, axes).contiguous(); }
};

// k-space is dense, and its own.
Tensor homodyne_image(Tensor kspace, const PartialLines& lines, bool ramp, const Transforms& F) {
  const Weights weights = weights_of_lines(lines, ramp);
  Tensor low = kspace.clone();
  weight_lines(low, lines.axis, weights.low);
  low = F.image(low);
  weight_lines(kspace, lines.axis, weights.homodyne);
  Tensor image = F.image(kspace);
  take_phase_out(image, low);
  return image;
}

template <class IsMeasured>
Tensor pocs_image(const Tensor& kspace, const PartialLines& lines, int iterations,
                  const Transforms& F, const IsMeasured& is_measured) {
  Tensor low = kspace.clone();
  weight_lines(low, lines.axis, weights_of_lines(lines, false).low);
  low = F.image(low);
  Tensor image = F.image(kspace);
  const auto* given = kspace.data<Sample>();
  for (int i = 0; i < iterations; ++i) {
    put_phase_in(image, low);
    image = F.kspace(image);
    auto* v = image.mutable_data<Sample>();
    for (index_t k = 0, end = image.numel(); k < end; ++k) {
      if (is_measured(k)) v[k] = given[k];
    }
    image = F.image(image);
  }
  return image;
}

void check_dtype(const char* who, const Tensor& kspace) {
  if (kspace.dtype() == DType::complex64) return;
  throw DTypeError(
      fmt::format("[{}] k-space: got {}, expected complex64", who, name_of(kspace.dtype())));
}

std::vector<index_t> all_axes(std::size_t rank) {
  std::vector<index_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// The axis of the lines goes last: then it is the only one that is transformed, in place of memory.
std::vector<index_t> order_with_last(std::size_t rank, index_t axis) {
  std::vector<index_t> order = all_axes(rank);
  order.erase(order.begin() + axis);
  order.push_back(axis);
  return order;
}

// The first and the last measured line along an axis. Line 0 of an even extent has no counterpart
// on the other side.
struct Reach {
  index_t first = -1, last = -1;
};
Reach reach_of(const Tensor& measured, index_t axis) {
  Reach reach;
  const index_t n = measured.shape(axis);
  for (index_t k = 0; k < n; ++k) {
    const Tensor line = measured.narrow(axis, k, 1).contiguous();
    const bool* v = line.data<bool>();
    if (std::none_of(v, v + line.numel(), [](bool b) { return b; })) continue;
    if (reach.first < 0) reach.first = k;
    reach.last = k;
  }
  return reach;
}

}  // namespace

void set_phase_factors(Tensor factors, const Tensor& phase) {
  for (index_t i = 0; phase.rank() > 1 && i < phase.shape(0); ++i) {
    set_phase_factors(factors.select(0, i), phase.select(0, i));
  }
  if (phase.rank() > 1) return;
  const Tensor given = phase.to(DType::complex128).contiguous();
  const auto* from = given.data<std::complex<double>>();
  std::vector<Sample> line(static_cast<std::size_t>(phase.numel()));
  for (std::size_t i = 0; i < line.size(); ++i) {
    const double size = std::abs(from[i]);
    const std::complex<double> factor = !is_complex(phase.dtype()) ? std::polar(1.0, from[i].real())
                                        : size > 0                 ? from[i] / size
                                                                   : 1.0;
    line[i] = Sample(factor);
  }
  factors.copy_from(Tensor::from(line));
}

const char* name_of(PartialFourier method) {
  constexpr const char* kNames[] = {"none", "homodyne", "pocs"};
  return kNames[static_cast<std::size_t>(method)];
}

std::optional<PartialLines> partial_lines(const Tensor& measured) {
  if (measured.dtype() != DType::bool_ || measured.rank() < 2 || measured.rank() > 3) {
    throw ShapeError(fmt::format("[partial_lines] got {} {}, expected bool (y, x) or (z, y, x)",
                                 name_of(measured.dtype()), to_string(measured.shape())));
  }
  std::optional<PartialLines> found;
  for (index_t axis = 0; axis < static_cast<index_t>(measured.rank()); ++axis) {
    const index_t n = measured.shape(axis), c = n / 2;
    const Reach reach = reach_of(measured, axis);
    if (n < 4 || reach.first < 0) continue;
    const index_t below = c - reach.first, above = reach.last - c;
    const index_t shorter = std::min(below, above) + (n % 2 == 0 && above < below ? 1 : 0);
    if (8 * shorter > 7 * std::max(below, above)) continue;
    const bool from_end = above > below;
    if (found) {
      throw ValueError(fmt::format(
          "[partial] one side of k-space is missing along both axis {} and axis {}: expected one",
          found->axis, axis));
    }
    found = PartialLines{.axis = axis,
                         .extent = n,
                         .acquired = from_end ? n - reach.first : reach.last + 1,
                         .from_end = from_end};
    if (found->beyond_middle() < 1) {
      throw ValueError(fmt::format(
          "[partial] axis {}: got {} of {} lines, none beyond the middle: expected some", axis,
          found->acquired, n));
    }
  }
  return found;
}

Tensor homodyne(const Tensor& kspace, index_t axis, double fraction,
                const HomodyneOptions& options) {
  check_dtype("homodyne", kspace);
  const auto rank = static_cast<index_t>(kspace.rank());
  const std::vector<index_t> axes = options.axes.empty() ? all_axes(kspace.rank()) : options.axes;
  if (std::find(axes.begin(), axes.end(), axis) == axes.end() || axis < 0 || axis >= rank) {
    throw ValueError(
        fmt::format("[homodyne] axis: got {}, expected one of {}", axis, fmt::join(axes, ", ")));
  }
  if (!(fraction > 0.5 && fraction <= 1)) {
    throw ValueError(
        fmt::format("[homodyne] fraction: got {}, expected a number in (0.5, 1]", fraction));
  }
  const index_t n = kspace.shape(axis);
  const PartialLines lines{.axis = axis,
                           .extent = n,
                           .acquired = std::llround(fraction * static_cast<double>(n)),
                           .from_end = options.from_end};
  if (lines.beyond_middle() < 1) {
    throw ValueError(fmt::format(
        "[homodyne] fraction: got {} of {} lines, none beyond the middle: expected some",
        lines.acquired, n));
  }
  return homodyne_image(kspace.contiguous().clone(), lines, options.ramp, {axes});
}

Tensor pocs(const Tensor& kspace, const Tensor& mask, const PocsOptions& options) {
  check_dtype("pocs", kspace);
  if (kspace.shape() != mask.shape()) {
    throw ShapeError(fmt::format("[pocs] k-space {} and mask {} differ", to_string(kspace.shape()),
                                 to_string(mask.shape())));
  }
  if (options.iterations < 1) {
    throw ValueError(
        fmt::format("[pocs] iterations: got {}, expected at least 1", options.iterations));
  }
  const std::optional<PartialLines> lines = partial_lines(mask);
  if (!lines) throw ValueError("[pocs] mask: one side is missing along no axis, expected one");
  const Tensor dense = mask.contiguous();
  const bool* is_taken = dense.data<bool>();
  return pocs_image(kspace.contiguous(), *lines, options.iterations, {all_axes(kspace.rank())},
                    [is_taken](index_t i) { return is_taken[i]; });
}

Tensor with_missing_side(const Tensor& image, const PartialLines& lines, PartialFourier method,
                         int pocs_iterations) {
  const std::vector<index_t> order = order_with_last(image.rank(), lines.axis);
  const auto last = static_cast<index_t>(image.rank()) - 1;
  const Transforms F{{last}};
  PartialLines turned = lines;
  turned.axis = last;
  Tensor kspace = F.kspace(image.permute(order).contiguous());
  Tensor result;
  if (method == PartialFourier::homodyne) {
    result = homodyne_image(std::move(kspace), turned, true, F);
  } else {
    const std::vector<bool> measured = weights_of_lines(lines, false).measured;
    result = pocs_image(kspace, turned, pocs_iterations, F, [&measured](index_t i) {
      return measured[static_cast<std::size_t>(i) % measured.size()];
    });
  }
  std::vector<index_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<index_t>(i);
  }
  return result.permute(back);
}

index_t plan_missing_side(const Extents& image, const PartialLines& lines, PartialFourier method) {
  Extents shape = image;
  shape.erase(static_cast<std::size_t>(lines.axis));
  shape.push_back(lines.extent);
  const TensorType type{DType::complex64, shape, {}};
  const index_t one = byte_count(shape, DType::complex64);
  const index_t held = method == PartialFourier::homodyne ? 2 : 3;
  const index_t last = static_cast<index_t>(shape.size()) - 1;
  return held * one +
         std::max(plan_transform(type, {last}), plan_transform(type, {last}, {.inverse = true}));
}

}  // namespace palimpsest
