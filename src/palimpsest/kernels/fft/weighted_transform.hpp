// SPDX-License-Identifier: Apache-2.0
// Internal: a transform, weights of the spectrum, and the transform back: see execute(), fft.hpp.
#pragma once

#include <memory>

#include "palimpsest/kernels/fft/array_transform.hpp"

namespace palimpsest {

/// The plan for a spec with weights. T: float or double, as its dtype says.
template <class T>
std::shared_ptr<const FftPlan::Impl> make_weighted_transform(const FftSpec& spec);

/// fft_workspace_bytes() of a spec with weights.
std::size_t weighted_workspace_bytes(const FftSpec& spec, int threads);

}  // namespace palimpsest
