// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::testing {

inline Tensor vector_of(std::vector<double> values) { return Tensor::from(std::move(values)); }
inline std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }

}  // namespace palimpsest::testing
