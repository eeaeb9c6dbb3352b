// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/sense.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/linop/linop.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest::cli {
namespace {

NamedLinop coil_transform(const Tensor& maps) {
  const NamedLinop coils = Dense(maps, "CNyNx,NyNx->CNyNx");
  const NamedLinop transform =
      Fft(2, {.batch = "C", .grid = {"NyNx", "KyKx"}, .norm = FftNorm::ortho, .centered = true});
  return Chain(coils, transform);
}

NamedLinop sampling(const Tensor& mask) {
  return SamplingFromMask(mask, {.output = "K", .input = "KyKx", .batch = "C"});
}

}  // namespace

NamedLinop sense_operator(const Tensor& maps, const Tensor& mask) {
  return Chain(coil_transform(maps), sampling(mask));
}

Tensor coil_kspace(const Tensor& image, const Tensor& maps) {
  return coil_transform(maps)(image).contiguous();
}

Tensor sampled(const Tensor& kspace, const Tensor& mask) { return sampling(mask)(kspace); }

}  // namespace palimpsest::cli
