// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/inputs.hpp"

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/imaging/weights.hpp"
#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest {

const Values& kspace_values() {
  return immortal([] {
    return Values{"k-space", "Try to set them to 0, which counts as not measured"};
  });
}

const Values& coil_map_values() {
  return immortal([] {
    return Values{"the coil maps", "Try to set them to 0, which means no signal there"};
  });
}

const Values& image_values() {
  return immortal([] { return Values{"the image", "Try to set them to 0"}; });
}

ValueError not_finite(const std::string& path, const Values& what, index_t count,
                      const Extents& index) {
  return ValueError(
      fmt::format("[{}] NaN or infinite values in {}: got {} of them, the first at {}. {}", path,
                  what.name, count, to_string(index), what.advice));
}

void check_finite(const std::string& path, const Tensor& data, const Values& what) {
  const index_t parts = is_complex(data.dtype()) ? 2 : 1;
  const auto* values = static_cast<const float*>(data.raw_data());
  index_t bad = 0, first = 0;
  // Mapped pages are released piece by piece: a check holds 1 MiB of them.
  constexpr index_t kPiece = index_t{1} << 18;
  for (index_t begin = 0, end = data.numel() * parts; end > 0; end = begin) {
    begin = std::max<index_t>(end - kPiece, 0);
    for (index_t i = end; i-- > begin;) {
      if (std::isfinite(values[i])) continue;
      ++bad;
      first = i / parts;
    }
    release_file_pages(values + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  }
  if (bad == 0) return;
  throw not_finite(path, what, bad, index_of(first, data.shape()));
}

void check_weights(const std::string& who, const Tensor& weights) {
  check_finite(who, weights, {"the weights", "Try to set them to 0"});
  const auto* const w = weights.data<float>();
  const auto* const end = w + weights.numel();
  const auto* const negative = std::find_if(w, end, [](float v) { return v < 0; });
  if (negative != end) {
    throw ValueError(fmt::format("[{}] the weights: got {} at {}, expected numbers >= 0", who,
                                 *negative, to_string(index_of(negative - w, weights.shape()))));
  }
  if (std::any_of(w, end, [](float v) { return v > 0; })) return;
  throw ValueError(fmt::format("[{}] the weights: all are 0, expected some above 0", who));
}

}  // namespace palimpsest
