// SPDX-License-Identifier: Apache-2.0
// Internal: the step sizes of the primal-dual methods, from norms of operators.
#pragma once

#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::proximal {

/// sigma_i = balance L / (I |K_i|^2), tau = 0.99 / (L / 2 + sum of sigma_i |K_i|^2).
Preparation prepare_condat_vu(const Problem& p, std::uint64_t seed);
index_t prepare_condat_vu_bytes(const Problem& p);

/// tau sigma |(A, K)|^2 = 0.99, with sigma = ratio tau.
Preparation prepare_pdhg(const Problem& p, std::uint64_t seed);
index_t prepare_pdhg_bytes(const Problem& p);

}  // namespace palimpsest::proximal
