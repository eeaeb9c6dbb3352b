// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace PALIMPSEST_API palimpsest {

// Functions made of others; each costs a pass or two more than its part.

/// w g.
Prox weighted(const Prox& g, double w);
/// g(a x). ValueError "scale": a is 0 or not finite
Prox scaled(const Prox& g, double a);
/// g(x - c); c broadcasts against x.
Prox translated(const Prox& g, const Tensor& c);
/// g + mu / 2 |x - c|^2; without c zero. ValueError "mu": negative
Prox plus_quadratic(const Prox& g, double mu, const std::optional<Tensor>& c = {});
/// g(W x) for a unitary W: W^H prox(W v). ValueError "unitary": W.N() is not the identity
Prox with_unitary(const Prox& g, const NamedLinop& W);
/// The convex conjugate g*(u) = sup Re <u, x> - g(x). It has no value().
Prox conjugate(const Prox& g);
/// min over y of g(y) + |x - y|^2 / (2 mu): smooth. ValueError "mu": not positive
Prox moreau_envelope(const Prox& g, double mu);

}  // namespace palimpsest
