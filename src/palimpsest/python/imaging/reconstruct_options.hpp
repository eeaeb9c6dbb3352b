// SPDX-License-Identifier: Apache-2.0
// Internal: regularizers and methods of reconstructions as arguments.
#pragma once

#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/python/options.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(ReconstructMethod, "method", "automatic", "adjoint", "cg", "fista", "pogm",
                 "primal_dual", "admm", "pocs")

/// A text such as `l1wav:0.01` or a proximal function, or a list of them.
template <>
struct From<std::vector<Regularizer>> {
  static constexpr auto name = nb::detail::const_name("str | Prox | Sequence[str | Prox]");
  static std::vector<Regularizer> from(nb::handle object);
};

}  // namespace palimpsest::python
