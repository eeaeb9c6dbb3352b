// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/inputs.hpp"

#include <fmt/format.h>

#include <cmath>

namespace palimpsest::cli {

void check_finite(const std::string& path, const Tensor& data, const std::string& what) {
  const index_t parts = is_complex(data.dtype()) ? 2 : 1;
  const auto* values = static_cast<const float*>(data.raw_data());
  index_t bad = 0, first = 0;
  for (index_t i = data.numel() * parts; i-- > 0;) {
    if (std::isfinite(values[i])) continue;
    ++bad;
    first = i / parts;
  }
  if (bad == 0) return;
  Extents index = data.shape();
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = first % data.shape(static_cast<index_t>(axis));
    first /= data.shape(static_cast<index_t>(axis));
  }
  throw UsageError(fmt::format(
      "[{}] {} holds values that are NaN or infinite: got {} of them, the first at {}. Try to set "
      "them to 0, which counts as not measured",
      path, what, bad, to_string(index)));
}

}  // namespace palimpsest::cli
