// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/interpolate.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/transforms/point_axes.hpp"
#include "palimpsest/ops/transforms/gridding_op.hpp"

namespace palimpsest {
namespace {

GriddingPlan plan_of(const NamedLinop& A) {
  InterpolateOptions options;
  options.width = per_axis(A.attr("width"));
  options.norm = static_cast<int>(A.attr("norm").as_integer());
  const std::string &kernel = A.attr("kernel").as_string(), &mode = A.attr("pad_mode").as_string();
  if (kernel == "kaiser_bessel") {
    options.kernel = KaiserBessel{.beta = per_axis(A.attr("beta"))};
  } else if (kernel == "spline") {
    options.kernel = Spline{.order = static_cast<int>(A.attr("order").as_integer())};
  } else {
    throw ValueError(who(A) + "kernel: got '" + kernel + "', expected kaiser_bessel or spline");
  }
  if (mode != "circular" && mode != "zero") {
    throw ValueError(who(A) + "pad_mode: got '" + mode + "', expected circular or zero");
  }
  options.pad_mode = mode == "zero" ? PadMode::zero : PadMode::circular;
  const std::string path = path_of(A);
  return GriddingPlan(ops::gridding_spec(A.attr("grid_size").as_integers(), options, path), path);
}

Variable interpolate_fn(const NamedLinop& A, const Variable& x) {
  return ops::interpolate(plan_of(A), x, A.param("locs").var(), A.param("order").var());
}

Variable interpolate_adj_fn(const NamedLinop& A, const Variable& y) {
  return ops::interpolate_adjoint(plan_of(A), y, A.param("locs").var(), A.param("order").var());
}

void check_interpolate(const NamedLinop& A) {
  check_locs(A);
  plan_of(A);
}

Parameters derive_interpolate(const NamedLinop& A) {
  return {{"order", Parameter::derived(ops::point_order(plan_of(A), A.param("locs").var()))}};
}

}  // namespace

const LinopType& linop_types::interpolate() {
  return PALIMPSEST_LINOP_TYPE(.name = "Interpolate",
                               .functions = {.fn = interpolate_fn,
                                             .adj_fn = interpolate_adj_fn,
                                             .split = grid_to_points_split,
                                             .size = grid_to_points_size},
                               .check = check_interpolate, .derive = derive_interpolate);
}

NamedLinop Interpolate(Parameter locs, Extents grid_size, InterpolateLinopOptions options) {
  const Dims grid = grid_names(options.grid, grid_size.size(), "Interpolate");
  const Dims points = point_names(options.locs_batch, locs.type(), "Interpolate");
  const auto* bessel = std::get_if<KaiserBessel>(&options.kernel);
  Attributes attrs{{"grid_size", Attribute(grid_size)},
                   {"width", number_list(options.width)},
                   {"kernel", bessel ? "kaiser_bessel" : "spline"},
                   {"norm", options.norm},
                   {"pad_mode", options.pad_mode == PadMode::zero ? "zero" : "circular"}};
  if (bessel) {
    attrs.emplace_back("beta", number_list(bessel->beta));
  } else {
    attrs.emplace_back("order", std::get<Spline>(options.kernel).order);
  }
  return make_linop(linop_types::interpolate(),
                    NamedShape(options.batch + grid, options.batch + points),
                    {{"locs", std::move(locs)}}, std::move(attrs));
}

}  // namespace palimpsest
