// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/norms.hpp"

namespace PALIMPSEST_API palimpsest {

// Functions made of others; each costs a pass or two more than its part.

/// w g.
Prox weighted(const Prox& g, double w);
/// g(a x) for a real a, or of complex numbers for an a of modulus 1.
/// Errors   ValueError "scale": a is 0 or not finite, or complex and not of modulus 1; DTypeError:
///          a complex a, but real numbers
Prox scaled(const Prox& g, std::complex<double> a);
/// g(x - c); c broadcasts against x.
Prox translated(const Prox& g, const Tensor& c);
/// g + mu / 2 |x - c|^2; without c zero. ValueError "mu": negative
Prox plus_quadratic(const Prox& g, double mu, const std::optional<Tensor>& c = {});
/// g(W x) for a unitary W: W^H prox(W v). ValueError "unitary": W.N() is not the identity
Prox with_unitary(const Prox& g, const NamedLinop& W);
/// The convex conjugate g*(u) = sup Re <u, x> - g(x). It has no value().
Prox conjugate(const Prox& g);
/// The sum of functions of parts that lie one after the other along a dimension: g_k of the k-th,
/// with these extents.
///
/// Errors   ValueError "parts": none, or another number of extents; ShapeError: the operand has
///          another extent along d
Prox stacked(const std::vector<Prox>& parts, const ND& d, const Extents& extents, const Dims& dims);
/// g of the elements start .. stop - 1 along a dimension; the others are free.
/// Errors   ValueError "range": not 0 <= start < stop
Prox on(const Prox& g, const ND& d, index_t start, index_t stop, const Dims& dims);
/// min over y of g(y) + |x - y|^2 / (2 mu): smooth. ValueError "mu": not positive
Prox moreau_envelope(const Prox& g, double mu);

}  // namespace palimpsest
