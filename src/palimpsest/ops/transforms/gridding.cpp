// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/transforms/gridding_op.hpp"

namespace palimpsest::ops {
namespace {

// The number of points that an int32 can number.
constexpr index_t kNarrowPoints = std::numeric_limits<std::int32_t>::max();

template <class T>
std::string list(std::string_view key, const std::array<T, 3>& values, int n) {
  std::string text = std::string(key) + "=(";
  for (int d = 0; d < n; ++d) {
    const T value = values[static_cast<std::size_t>(d)];
    text += (d == 0 ? "" : ", ") + written(static_cast<double>(value));
  }
  return text + ")";
}

std::string described(const GriddingSpec& s) {
  std::string text = list("grid", s.grid, s.ndim) + ", " + list("width", s.width, s.ndim);
  text += s.kernel == GriddingKernel::spline ? ", " + parameter("spline", s.order)
                                             : ", " + list("beta", s.beta, s.ndim);
  return text + ", " + parameter("norm", s.norm) + ", " +
         parameter("circular", s.circular ? 1 : 0) + ", " + list("scale", s.scale, s.ndim) + ", " +
         list("shift", s.shift, s.ndim) + ", " + list("factor", s.factor, s.ndim);
}

template <class T>
int read_list(ParameterText& text, std::string_view key, std::array<T, 3>& values) {
  text.expect(key);
  text.expect("=(");
  int n = 0;
  do {
    if (n == 3) throw FormatError("more than three axes");
    if constexpr (std::is_same_v<T, double>) {
      values[static_cast<std::size_t>(n++)] = text.number();
    } else {
      values[static_cast<std::size_t>(n++)] = text.integer();
    }
  } while (text.take(", "));
  text.expect(")");
  return n;
}

Extents grid_of(const GriddingSpec& spec) {
  return Extents(spec.grid.begin(), spec.grid.begin() + spec.ndim);
}

void check_locs(const TensorType& locs, int ndim, std::string_view who) {
  if (!is_floating(locs.dtype)) {
    throw DTypeError("[" + std::string(who) + "] locs: got " + locs.str() +
                     ", expected float32 or float64");
  }
  const index_t last = locs.rank() == 0 ? 0 : locs.shape[locs.rank() - 1];
  if (last == ndim || last == kUnknown) return;
  throw ValueError("[" + std::string(who) + "] locs: got " + locs.str() + ", expected " +
                   std::to_string(ndim) + " coordinates along the last axis, one per grid axis");
}

Extents point_extents(std::span<const index_t> locs) { return locs.first(locs.size() - 1); }

// Extents that differ, where both are known.
bool differ(std::span<const index_t> a, std::span<const index_t> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != kUnknown && b[i] != kUnknown) return true;
  }
  return false;
}

}  // namespace

// -- texts --------------------------------------------------------------------------------------

std::string written(const GriddingPlan& value) { return described(value.spec()); }

template <>
GriddingPlan read_value<GriddingPlan>(ParameterText& text) {
  GriddingSpec spec;
  spec.ndim = read_list(text, "grid", spec.grid);
  read_list(text, ", width", spec.width);
  if (text.take(", spline=")) {
    spec.kernel = GriddingKernel::spline;
    spec.order = static_cast<int>(text.integer());
  } else {
    read_list(text, ", beta", spec.beta);
  }
  text.expect(", norm=");
  spec.norm = static_cast<int>(text.integer());
  text.expect(", circular=");
  spec.circular = text.flag();
  read_list(text, ", scale", spec.scale);
  read_list(text, ", shift", spec.shift);
  read_list(text, ", factor", spec.factor);
  return GriddingPlan(spec, "restore_op");
}
// -- the order of points -------------------------------------------------------------------------

Apply PointOrder::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& locs = inputs[0].type();
  check_locs(locs, plan_.spec().ndim, "interpolate");
  index_t size = kUnknown;
  if (locs.is_fully_known()) size = plan_.order_size(element_count(point_extents(locs.shape)));
  const bool wide = size > kNarrowPoints;
  return node(inputs, {{wide ? DType::int64 : DType::int32, {size}, locs.device}});
}

std::vector<Extents> PointOrder::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  const index_t size = plan_.order_size(element_count(point_extents(inputs[0])));
  if (size > kNarrowPoints && apply.output(0).dtype() == DType::int32) {
    throw OverflowError("[interpolate] locs: got " + to_string(inputs[0]) +
                        ", expected fewer points where extents are not known beforehand. Try "
                        "specify_shape");
  }
  return {{size}};
}

std::size_t PointOrder::scratch_bytes(const Apply&, std::span<const Layout>) const {
  return plan_.sort_scratch_bytes();
}

void PointOrder::run(RunContext& context) const {
  sort_points(plan_, context.input(0), context.output(0), context.scratch().data(), "interpolate");
}

// -- interpolation -------------------------------------------------------------------------------

Apply Interpolation::make_node(std::span<const Variable> inputs) const {
  const std::string who = adjoint_ ? "interpolate_adjoint" : "interpolate";
  expect_inputs(inputs, 3, who);
  const GriddingSpec& spec = plan_.spec();
  const TensorType &x = inputs[0].type(), &locs = inputs[1].type(), &order = inputs[2].type();
  if (!is_inexact(x.dtype)) {
    throw DTypeError("[" + who + "] got " + x.str() + ", expected floating or complex data");
  }
  check_locs(locs, spec.ndim, who);
  if (locs.dtype != real_of(x.dtype)) {
    throw DTypeError("[" + who + "] precision: got locs " + locs.str() + " and data " + x.str() +
                     ", expected one precision. Try astype");
  }
  if ((order.dtype != DType::int32 && order.dtype != DType::int64) || order.rank() != 1) {
    throw DTypeError("[" + who + "] order: got " + order.str() + ", expected that of point_order");
  }
  const Device device = common_device(inputs, who);
  const Extents shapes[] = {x.shape, locs.shape, order.shape};
  return node(inputs, {{x.dtype, infer_shapes({}, shapes)[0], device}});
}

std::vector<Extents> Interpolation::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  const std::string who = adjoint_ ? "interpolate_adjoint" : "interpolate";
  const Extents points = point_extents(inputs[1]), grid = grid_of(plan_.spec());
  const Extents &from = adjoint_ ? points : grid, &to = adjoint_ ? grid : points;
  const std::span<const index_t> data = inputs[0];
  if (data.size() < from.size() || differ(data.last(from.size()), from)) {
    throw ShapeError("[" + who + "] data: got " + to_string(data) +
                     ", expected the last axes to be " + to_string(from));
  }
  bool known = inputs[2][0] != kUnknown;
  for (index_t n : points) known = known && n != kUnknown;
  if (known && inputs[2][0] != plan_.order_size(element_count(points))) {
    throw ShapeError("[" + who + "] order: got " + to_string(inputs[2]) + ", expected " +
                     std::to_string(plan_.order_size(element_count(points))) + " elements");
  }
  Extents result = data.first(data.size() - from.size());
  for (index_t n : to) result.push_back(n);
  return {std::move(result)};
}

Linearity Interpolation::linear_in(const Apply&, int in) const {
  return in == 0 ? Linearity::complex : Linearity::no;
}

std::vector<Variable> Interpolation::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable inputs[] = {cotangents[0], apply.input(1), apply.input(2)};
  const auto transposed = std::make_shared<Interpolation>(plan_, !adjoint_);
  return {transposed->make_node(inputs).output(0),
          refused_cotangent(cotangents[0], apply.input(1),
                            "[interpolate] locs: got a derivative with respect to the locations, "
                            "expected one with respect to the data only"),
          {}};
}

std::size_t Interpolation::scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const {
  const Extents& locs = inputs[1].extents;
  const index_t n_points = element_count(std::span<const index_t>(locs).first(locs.size() - 1));
  return gridding_scratch_bytes(plan_, apply.input(0).dtype(), n_points);
}

void Interpolation::run(RunContext& context) const {
  (adjoint_ ? run_spread : run_interpolate)(plan_, context.input(0), context.input(1),
                                            context.input(2), context.output(0), context.scratch());
}

// -- builders
// --------------------------------------------------------------------------------------

GriddingSpec gridding_spec(std::span<const index_t> grid, const InterpolateOptions& options,
                           std::string_view who) {
  GriddingSpec spec;
  spec.ndim = static_cast<int>(grid.size());
  spec.norm = options.norm;
  spec.circular = options.pad_mode == ::palimpsest::PadMode::circular;
  const auto* bessel = std::get_if<KaiserBessel>(&options.kernel);
  if (!bessel) {
    spec.kernel = GriddingKernel::spline;
    spec.order = std::get<Spline>(options.kernel).order;
  }
  const auto check_axes = [&](const PerAxis& values, const char* what) {
    if (values.fits(grid.size())) return;
    throw ValueError("[" + std::string(who) + "] " + what + ": got " +
                     std::to_string(values.values.size()) +
                     " numbers, expected one or one for each " + "of the " +
                     std::to_string(grid.size()) + " axes");
  };
  check_axes(options.width, "width");
  if (bessel) check_axes(bessel->beta, "kernel beta");
  for (std::size_t d = 0; d < std::min<std::size_t>(grid.size(), 3); ++d) {
    spec.grid[d] = grid[d];
    spec.width[d] = options.width[d];
    if (bessel) spec.beta[d] = bessel->beta[d];
  }
  return spec;
}

Variable point_order(const GriddingPlan& plan, const Variable& locs) {
  return std::make_shared<PointOrder>(plan)->make_node({&locs, 1}).output(0);
}

Variable interpolate(const GriddingPlan& plan, const Variable& x, const Variable& locs,
                     const Variable& order) {
  const Variable inputs[] = {x, locs, order};
  return std::make_shared<Interpolation>(plan, false)->make_node(inputs).output(0);
}
Variable interpolate_adjoint(const GriddingPlan& plan, const Variable& y, const Variable& locs,
                             const Variable& order) {
  const Variable inputs[] = {y, locs, order};
  return std::make_shared<Interpolation>(plan, true)->make_node(inputs).output(0);
}

namespace {

// The number of coordinates of a location.
std::size_t coordinates(const Variable& locs, std::string_view who) {
  const TensorType& type = locs.type();
  const index_t n = type.rank() == 0 ? 0 : type.shape[type.rank() - 1];
  if (n >= 1 && n <= 3) return static_cast<std::size_t>(n);
  throw ValueError("[" + std::string(who) + "] locs: got " + type.str() +
                   ", expected 1, 2 or 3 coordinates along the last axis");
}

}  // namespace

Variable interpolate(const Variable& x, const Variable& locs, InterpolateOptions options) {
  const std::size_t n = coordinates(locs, "interpolate");
  const std::span<const index_t> shape = x.type().shape;
  if (shape.size() < n) {
    throw ShapeError("[interpolate] data: got " + x.type().str() + ", expected at least " +
                     std::to_string(n) + " axes");
  }
  const GriddingPlan plan(gridding_spec(shape.last(n), options, "interpolate"), "interpolate");
  return interpolate(plan, x, locs, point_order(plan, locs));
}

Variable interpolate_adjoint(const Variable& y, const Variable& locs, const Extents& grid_size,
                             InterpolateOptions options) {
  coordinates(locs, "interpolate_adjoint");
  const GriddingPlan plan(gridding_spec(grid_size, options, "interpolate_adjoint"),
                          "interpolate_adjoint");
  return interpolate_adjoint(plan, y, locs, point_order(plan, locs));
}

void register_ops_of_gridding() {
  register_type<Interpolation>();
  register_type<PointOrder>();
}

}  // namespace palimpsest::ops
