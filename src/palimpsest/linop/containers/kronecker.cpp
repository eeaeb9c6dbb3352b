// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/kronecker.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/along.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/dense_roles.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"

namespace palimpsest {
namespace {

// The dimensions of a factor without the ellipsis that stands for its batch.
Dims own_dims(const Dims& dims) {
  return !dims.empty() && dims[0].is_ellipsis() ? dims.slice(1, dims.size()) : dims;
}

bool takes_batches(const NamedLinop& F) {
  return F.ishape().has_ellipsis() && F.oshape().has_ellipsis();
}

// F over the last axes of x, for all that stand before them.
Variable over_last(const NamedLinop& F, const Variable& x) {
  if (takes_batches(F)) return F(x);
  const std::size_t n = F.ishape().size();
  const Extents& shape = x.type().shape;
  const Extents batch(std::span<const index_t>(shape).first(shape.size() - n));
  if (batch.empty()) return F(x);
  // For different precisions F(x) below raises the operator's own error.
  const bool is_dense = &F.type() == &linop_types::dense() &&
                        real_of(F.params().front().second.dtype()) == real_of(x.dtype());
  if (is_dense) return dense_over_batch(F, x);
  Extents flat{element_count(batch)};
  for (std::size_t k = batch.size(); k < shape.size(); ++k) flat.push_back(shape[k]);
  const Variable slices = ops::reshape(x, flat);
  std::vector<Variable> results;
  for (index_t i = 0; i < flat[0]; ++i) {
    results.push_back(ops::expand_dims(F(ops::index(slices, {Index(i)})), {0}));
  }
  const Variable joined = ops::join(0, results);
  Extents extents = batch;
  const Extents& result = joined.type().shape;
  for (std::size_t k = 1; k < result.size(); ++k) extents.push_back(result[k]);
  return ops::reshape(joined, std::move(extents));
}

// The first n axes behind the others.
Variable rotated(const Variable& x, std::size_t n) {
  Axes order;
  for (std::size_t k = n; k < x.rank(); ++k) order.push_back(static_cast<index_t>(k));
  for (std::size_t k = 0; k < n; ++k) order.push_back(static_cast<index_t>(k));
  return ops::transpose(x, std::move(order));
}

// F over the first n axes of x.
Variable over_first(const NamedLinop& F, std::size_t n, const Variable& x) {
  const Variable y = over_last(F, rotated(x, n));
  return rotated(y, x.rank() - n);
}

std::optional<double> known_count(const NamedLinop& F, const Dims& dims) {
  double count = 1;
  for (const ND& d : dims) {
    const auto n = F.size(d);
    if (!n) return std::nullopt;
    count *= static_cast<double>(*n);
  }
  return count;
}

// True if the intermediate result is smaller when the second factor goes first.
bool second_first(const NamedLinop& A, const NamedLinop& B) {
  const auto a_in = known_count(A, own_dims(A.ishape())),
             a_out = known_count(A, own_dims(A.oshape()));
  const auto b_in = known_count(B, own_dims(B.ishape())),
             b_out = known_count(B, own_dims(B.oshape()));
  if (!a_in || !a_out || !b_in || !b_out) return true;
  return *a_in * *b_out <= *a_out * *b_in;
}

Variable both(const NamedLinop& K, const NamedLinop& A, const NamedLinop& B, const Variable& x) {
  const std::size_t n_in = own_dims(A.ishape()).size();
  const auto first = [&](const Variable& v) {
    const PathScope path(K, 0);
    return over_first(A, n_in, v);
  };
  const auto second = [&](const Variable& v) {
    const PathScope path(K, 1);
    return over_last(B, v);
  };
  return second_first(A, B) ? first(second(x)) : second(first(x));
}

Variable kronecker_fn(const NamedLinop& K, const Variable& x) { return both(K, K[0], K[1], x); }
Variable kronecker_adj_fn(const NamedLinop& K, const Variable& y) {
  return both(K, K[0].H(), K[1].H(), y);
}

NamedLinop kronecker_adjoint(const NamedLinop& K) {
  return with_records_of(K, Kronecker(K[0].H(), K[1].H()));
}

NamedLinop kronecker_normal(const NamedLinop& K, const NamedLinop* inner) {
  return inner ? NamedLinop() : Kronecker(K[0].N(), K[1].N());
}

std::optional<index_t> kronecker_size(const NamedLinop& K, const ND& d) {
  return common_size(K.linops(), d);
}

// Factor by factor.
NamedLinop kronecker_split(const NamedLinop& K, const Tile& tile) {
  const Dims first = K[0].dims(), second = K[1].dims();
  for (const auto& [d, range] : tile) {
    if (first.contains(d) && second.contains(d)) refuse_split(K, d, "it is hidden in both factors");
  }
  std::vector<NamedLinop> factors;
  for (std::size_t i = 0; i < 2; ++i) {
    const PathScope path(K, i);
    factors.push_back(K[i].split(tile_within(tile, i == 0 ? first : second)));
  }
  return with_recorded(Kronecker(factors[0], factors[1]), K, tile);
}

// True if a weight lies on axes without a name. Then these are no batch axes.
bool weighs_unnamed_axes(const NamedLinop& A) {
  if (&A.type() == &linop_types::diagonal() && A.ishape().has_ellipsis()) {
    const auto names = static_cast<index_t>(own_dims(A.ishape()).size());
    for (const DiagonalFactor& factor : diagonal_factors(A)) {
      for (const index_t axis : factor.axes) {
        if (axis < -names) return true;
      }
    }
  }
  return std::any_of(A.linops().begin(), A.linops().end(), weighs_unnamed_axes);
}

void check_factors(const std::vector<NamedLinop>& factors) {
  const Dims second = unite(own_dims(factors[1].ishape()), own_dims(factors[1].oshape()));
  for (const ND& d : unite(own_dims(factors[0].ishape()), own_dims(factors[0].oshape()))) {
    if (!second.contains(d)) continue;
    throw ShapeError("[Kronecker] dim '" + d.str() + "' collides: got it in " +
                     factors[0].shape().str() + " and " + factors[1].shape().str() +
                     ", expected different names. Try renamed");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_real_linear(factors[i])) {
      // Then it matters which factor goes first, and the adjoint would take the other one.
      throw ValueError("[Kronecker[" + std::to_string(i) + "]/" + factors[i].name() +
                       "] got a factor that is linear over the reals only, expected one that is "
                       "linear over the complex numbers. Try Chain");
    }
    if (weighs_unnamed_axes(factors[i])) {
      throw ShapeError("[Kronecker[" + std::to_string(i) + "]/" + factors[i].name() +
                       "] weight: got one on axes under '...' of " + factors[i].shape().str() +
                       ", which are a batch, expected it on named dimensions. Try Diagonal(weight, "
                       "dims)");
    }
    for (const Dims& dims : {factors[i].ishape(), factors[i].oshape()}) {
      const bool both_sides =
          factors[i].ishape().has_ellipsis() == factors[i].oshape().has_ellipsis();
      if (!own_dims(dims).has_ellipsis() && both_sides) continue;
      throw ShapeError("[Kronecker[" + std::to_string(i) + "]/" + factors[i].name() +
                       "] ellipsis: got " + factors[i].shape().str() +
                       ", expected none, or one in front on both sides");
    }
  }
}

// The factor with the names of its part of the shape of the whole.
void give_names(NamedLinop& factor, const Dims& in, const Dims& out) {
  const auto with_batch = [](const Dims& before, const Dims& own) {
    return before.has_ellipsis() ? Dims("...") + own : own;
  };
  const Dims ishape = with_batch(factor.ishape(), in), oshape = with_batch(factor.oshape(), out);
  if (factor.ishape() != ishape) factor.set_ishape(ishape);
  if (factor.oshape() != oshape) factor.set_oshape(oshape);
}

NamedShape assemble_kronecker(std::vector<NamedLinop>& factors, const Assembly& how) {
  if (factors.size() != 2) {
    throw ValueError("[Kronecker] got " + std::to_string(factors.size()) +
                     " operators, expected two");
  }
  for (NamedLinop& factor : factors) factor = factor.copy();
  if (how.wanted) {
    const Dims &in = how.wanted->ishape(), &out = how.wanted->oshape();
    const std::size_t n_in = own_dims(factors[0].ishape()).size(),
                      n_out = own_dims(factors[0].oshape()).size();
    give_names(factors[0], in.slice(0, n_in), out.slice(0, n_out));
    give_names(factors[1], in.slice(n_in, in.size()), out.slice(n_out, out.size()));
  }
  check_factors(factors);
  check_sizes("Kronecker", factors);
  return NamedShape(own_dims(factors[0].ishape()) + own_dims(factors[1].ishape()),
                    own_dims(factors[0].oshape()) + own_dims(factors[1].oshape()));
}

}  // namespace

const LinopType& linop_types::kronecker() {
  return PALIMPSEST_LINOP_TYPE(.name = "Kronecker",
                               .functions = {.fn = kronecker_fn,
                                             .adj_fn = kronecker_adj_fn,
                                             .split = kronecker_split,
                                             .size = kronecker_size},
                               .adjoint = kronecker_adjoint, .normal = kronecker_normal,
                               .assemble = assemble_kronecker);
}

NamedLinop Kronecker(const NamedLinop& A, const NamedLinop& B) {
  return make_container(linop_types::kronecker(), {A, B});
}

}  // namespace palimpsest
