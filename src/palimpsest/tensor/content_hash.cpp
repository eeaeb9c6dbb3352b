// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/content_hash.hpp"

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

void ContentHasher::add(const Tensor& t) {
  if (t.numel() == 0) return;
  if (!t.device().is_host()) return add(on_host(t));
  if (t.is_contiguous()) {
    add(t.raw_data(), static_cast<std::size_t>(t.nbytes()));
    return;
  }
  for (index_t i = 0; i < t.shape()[0]; ++i) add(t.select(0, i));
}

}  // namespace palimpsest
