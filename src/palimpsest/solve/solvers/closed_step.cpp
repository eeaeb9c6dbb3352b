// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/closed_step.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"

namespace palimpsest::proximal {
namespace {

bool is_a(const NamedLinop& A, const LinopType& type) { return &A.type() == &type; }

bool is_multiple(const NamedLinop& A) {
  return is_a(A, linop_types::identity()) || is_a(A, linop_types::scalar());
}

bool is_diagonal(const NamedLinop& A) {
  if (is_multiple(A) || is_a(A, linop_types::diagonal())) return true;
  const bool has_parts = is_a(A, linop_types::add()) || is_a(A, linop_types::chain());
  return has_parts && std::all_of(A.linops().begin(), A.linops().end(), is_diagonal);
}

void add_axes(Axes& along, const Axes& axes) {
  for (const index_t axis : axes) {
    if (std::find(along.begin(), along.end(), axis) == along.end()) along.push_back(axis);
  }
}

// F, multiplications, and the adjoint of F.
bool multiplies_spectra(const NamedLinop& A) {
  const std::vector<NamedLinop>& parts = A.linops();
  return parts.size() > 2 && is_a(parts.front(), linop_types::fft()) &&
         identical(parts.back(), parts.front().H()) &&
         std::all_of(parts.begin() + 1, parts.end() - 1, is_diagonal);
}

// True if shifted vectors give shifted results. Adds the axes of the shifts.
bool is_shift_invariant(const NamedLinop& A, std::size_t rank, Axes& along) {
  if (is_multiple(A)) return true;
  if (is_a(A, linop_types::finite_difference())) {
    add_axes(along, from_front(Axes{A.attr("axis").as_integer()}, rank));
    return A.attr("boundary").as_string() == "periodic";
  }
  if (is_a(A, linop_types::chain()) && multiplies_spectra(A)) {
    add_axes(along, from_front(A.linops().front().attr("axes").as_integers(), rank));
    return true;
  }
  const bool has_parts = is_a(A, linop_types::add()) || is_a(A, linop_types::chain()) ||
                         is_a(A, linop_types::normal());
  return has_parts && std::all_of(A.linops().begin(), A.linops().end(), [&](const NamedLinop& B) {
           return is_shift_invariant(B, rank, along);
         });
}

std::vector<NamedLinop> normals(const Problem& p) {
  std::vector<NamedLinop> list{p.op("N")};
  for (index_t i = 0; i < term_count(p); ++i) {
    list.push_back(p.op(of_term("K", i)).N());
  }
  return list;
}

// The vector that A maps to its eigenvalues, if A is diagonal, or to its first column, if A is
// circulant. Its 1 is a number of the state: a value made of constants alone would be kept as a
// constant beside the state.
Variable probe(const Problem& p, Scope& s, const Axes& axes) {
  const TensorType& x = p.x().type();
  const Variable one = p.x().spread(s["outer"]).astype(x.dtype);
  if (axes.empty()) return ops::broadcast_to(one, x.shape);
  std::vector<Index> first(x.rank(), all);
  for (const index_t axis : axes) first[static_cast<std::size_t>(axis)] = Index(slice(0, 1));
  return ops::set_subtensor(ops::broadcast_to(one * 0.0, x.shape), first, one);
}

Variable eigenvalues(const Variable& image, const Axes& axes) {
  // The eigenvalues of a circulant matrix: the Fourier transform of its first column.
  const Variable values =
      axes.empty() ? image : ops::fft(image.astype(complex_of(image.dtype())), axes);
  // Not as a view: the state would keep the complex values.
  return is_complex(values.dtype()) ? ops::elementwise(ScalarOp::real, {values}) : values;
}

Space basis_space(const Problem& p) {
  TensorType type = p.x().type();
  type.dtype = real_of(type.dtype);
  return Space(type, p.x().dims(), p.batch());
}

}  // namespace

namespace {

// The axes of the Fourier transforms that make N and all K_i^H K_i diagonal; no axes if they are
// diagonal already. Nothing if the types of the operators tell no such basis.
std::optional<Axes> common_basis(const Problem& p) {
  if (element_count(p.x().type().shape) == 0) return std::nullopt;
  const std::vector<NamedLinop> all = normals(p);
  if (std::all_of(all.begin(), all.end(), is_diagonal)) return Axes{};
  Axes along;
  const std::size_t rank = p.x().type().rank();
  for (const NamedLinop& A : all) {
    if (!is_shift_invariant(A, rank, along)) return std::nullopt;
  }
  return along;
}

}  // namespace

void declare_basis(const Problem& p, StateList& state) {
  if (!common_basis(p)) return;
  state.add("N in basis", basis_space(p));
  state.add("K in basis", basis_space(p));
}

void set_up_basis(const Problem& p, Scope& s) {
  const auto axes = common_basis(p);
  if (!axes) return;
  const Variable at = probe(p, s, *axes);
  s.set("N in basis", eigenvalues(s.apply("N", at).astype(p.x().type().dtype), *axes));
  Variable sum;
  for (index_t i = 0; i < term_count(p); ++i) {
    sum = sum_of(sum, p.op(of_term("K", i)).N()(at));
  }
  s.set("K in basis", eigenvalues(sum.astype(p.x().type().dtype), *axes));
}

namespace {

// 0 in directions that both remove.
Variable solve_in_basis(const Problem& p, Scope& s, const Axes& axes, const Variable& rho,
                        const Variable& right) {
  const Space space = basis_space(p);
  const Variable values = ops::fma(space.spread(rho), s["K in basis"], s["N in basis"]);
  const double rounding = rounding_of(right.dtype());
  const Axes others = other_axes(space.batch_axes(), right.rank());
  const Variable least = values.max(others, /*keepdims=*/true) * (100 * rounding);
  const auto divided = [&](const Variable& v) {
    return ops::where(ops::gt(values, least), v / values, ops::zeros_like(v));
  };
  if (axes.empty()) return divided(right);
  const Variable x =
      ops::ifft(divided(ops::fft(right.astype(complex_of(right.dtype())), axes)), axes);
  return is_complex(right.dtype()) ? x : ops::real(x);
}

// A^H b + rho sum of K_i^H (z_i - u_i + d_i).
Variable right_hand_side(const Problem& p, Scope& s, const Variable& rho) {
  Variable pull = s["kz"] - s["ku"];
  for (index_t i = 0; i < term_count(p); ++i) {
    const Variable& z = s[of_term("z", i)];
    const Variable shift = shift_of(p, of_term("d", i), z);
    if (!shift.defined()) continue;
    pull = pull + s.adjoint(of_term("K", i), ops::broadcast_to(shift, z.type().shape));
  }
  return ops::fma(p.x().spread(rho), pull, s["rhs"]);
}

}  // namespace

Variable solve_for_x(const Problem& p, Scope& s, const Variable& rho) {
  const Variable right = right_hand_side(p, s, rho);
  const auto axes = common_basis(p);
  return axes ? solve_in_basis(p, s, *axes, rho, right) : solve_by_cg(p, s, rho, right);
}

}  // namespace palimpsest::proximal
