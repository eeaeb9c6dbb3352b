// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/finite_difference.hpp"

#include <fmt/format.h>

#include <cmath>

#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"

namespace palimpsest {
namespace {

bool is_backward(const NamedLinop& A) { return A.attr("direction").as_string() == "backward"; }

Stencil difference(const NamedLinop& A, std::size_t rank) {
  const std::string& boundary = A.attr("boundary").as_string();
  const double step = 1 / A.attr("spacing").as_real();
  const Axes axis{A.attr("axis").as_integer()};
  return {.axis = static_cast<std::size_t>(from_front(axis, rank)[0]),
          .taps = {-step, step},
          .offset = is_backward(A) ? -1 : 0,
          .step = 1,
          .edge = boundary == "periodic"  ? StencilEdge::periodic
                  : boundary == "neumann" ? StencilEdge::nearest
                                          : StencilEdge::zero};
}

Variable difference_fn(const NamedLinop& A, const Variable& x) {
  return ops::stencil(x, difference(A, x.rank()));
}
Variable difference_adj_fn(const NamedLinop& A, const Variable& y) {
  return ops::stencil_adjoint(y, difference(A, y.rank()));
}

// The second difference in one pass instead of two. With neumann the last difference is 0, so both
// ends are mirrors. With zero the last difference is not 0: zeros lie beyond that end, and the
// other end is a mirror.
Variable difference_normal_fn(const NamedLinop& A, const Variable& x) {
  Stencil second = difference(A, x.rank());
  const double weight = second.taps[1] * second.taps[1];
  second.taps = {-weight, 2 * weight, -weight};
  second.offset = -1;
  if (second.edge == StencilEdge::zero) {
    second.edge = is_backward(A) ? StencilEdge::zero_then_nearest : StencilEdge::nearest_then_zero;
  }
  return ops::stencil(x, second);
}

NamedLinop difference_split(const NamedLinop& A, const Tile& tile) {
  const Axes axis{A.attr("axis").as_integer()};
  return split_besides(A, tile, axis, axis, "neighbours along it are subtracted");
}

void check_difference(const NamedLinop& A) {
  const double spacing = A.attr("spacing").as_real();
  if (!std::isfinite(spacing) || spacing == 0) {
    throw ValueError(who(A) + "spacing: got " + fmt::format("{}", spacing) +
                     ", expected a finite number that is not 0");
  }
  const std::string& direction = A.attr("direction").as_string();
  if (direction != "forward" && direction != "backward") {
    throw ValueError(who(A) + "direction: got '" + direction + "', expected forward or backward");
  }
  const std::string& boundary = A.attr("boundary").as_string();
  if (boundary == "periodic" || boundary == "neumann" || boundary == "zero") return;
  throw ValueError(who(A) + "boundary: got '" + boundary + "', expected periodic, neumann or zero");
}

const char* name_of_boundary(DifferenceBoundary boundary) {
  if (boundary == DifferenceBoundary::periodic) return "periodic";
  return boundary == DifferenceBoundary::neumann ? "neumann" : "zero";
}

}  // namespace

const LinopType& linop_types::finite_difference() {
  return PALIMPSEST_LINOP_TYPE(.name = "FiniteDifference",
                               .functions = {.fn = difference_fn,
                                             .adj_fn = difference_adj_fn,
                                             .normal_fn = difference_normal_fn,
                                             .split = difference_split},
                               .check = check_difference, .one_shape = true);
}

NamedLinop FiniteDifference(Dims dims, ND d, FiniteDifferenceOptions options) {
  const index_t axis = axis_of(dims, d, "FiniteDifference");
  return make_linop(
      linop_types::finite_difference(), NamedShape(std::move(dims)), {},
      {{"axis", axis},
       {"boundary", name_of_boundary(options.boundary)},
       {"spacing", options.spacing},
       {"direction", options.direction == DifferenceDirection::backward ? "backward" : "forward"}});
}

NamedLinop Gradient(Dims dims, Dims over, GradientOptions options) {
  std::vector<NamedLinop> parts;
  for (const ND& d : over) {
    if (over.count(d) > 1) {
      throw ValueError("[Gradient] over: got " + over.str() + ", expected no dimension twice");
    }
    parts.push_back(FiniteDifference(dims, d,
                                     {.boundary = options.boundary,
                                      .spacing = options.spacing,
                                      .direction = options.direction}));
  }
  if (parts.empty()) throw ValueError("[Gradient] over: got none, expected at least one dimension");
  return Stack(std::move(parts), {.out = {options.out, 0}}).named("Gradient");
}

}  // namespace palimpsest
