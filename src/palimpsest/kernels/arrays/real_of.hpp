// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>

namespace palimpsest {

/// The type of the parts of a complex number; a real number's own type.
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};

}  // namespace palimpsest
