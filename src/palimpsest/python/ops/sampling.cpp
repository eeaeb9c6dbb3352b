// SPDX-License-Identifier: Apache-2.0
// ops: points off and on a grid, filters, blocks as matrices, hooks.
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/operators/debugging.hpp"
#include "palimpsest/ops/control/debugging.hpp"
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/products/block_matrices.hpp"
#include "palimpsest/ops/shape/strided.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"
#include "palimpsest/ops/transforms/radon.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/transform_options.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(StencilEdge, "edge", "periodic", "nearest", "zero", "nearest_then_zero",
                 "zero_then_nearest")
PALIMPSEST_NAMES(PassDirection, "direction", "forward", "adjoint")

/// `kaiser_bessel`, or `spline0`, `spline1`, `spline2`: the shape of the former is the option beta.
template <>
struct From<InterpolationKernel> {
  static constexpr auto name = nb::detail::const_name("float | Sequence[float] | str");
  static InterpolationKernel from(nb::handle object) {
    if (!PyUnicode_Check(object.ptr())) return KaiserBessel{from_python<PerAxis>(object)};
    const std::string text = str_of(object);
    for (int order = 0; order < 3; ++order) {
      if (text == "spline" + std::to_string(order)) return Spline{order};
    }
    throw ValueError("[kernel] got '" + text +
                     "', expected beta of a Kaiser-Bessel kernel, or 'spline0', 'spline1', "
                     "'spline2'.");
  }
};
template <>
std::string literal(const InterpolationKernel& kernel) {
  return literal_of(std::get<KaiserBessel>(kernel).beta[0]);
}

PALIMPSEST_OPTIONS(NufftOptions)
PALIMPSEST_OPTIONS(InterpolateOptions)
PALIMPSEST_OPTIONS(RadonOptions)

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(StencilEdge)
PALIMPSEST_ARGUMENT(PassDirection)

namespace palimpsest::python {
namespace {

void bind_points(nb::module_& m) {
  def_with_options(m, "interpolate", &ops::interpolate, {"x", "locs"});
  def_with_options(m, "interpolate_adjoint", &ops::interpolate_adjoint, {"y", "locs", "grid_size"});
  def_with_options(m, "nufft", &ops::nufft, {"x", "locs"});
  def_with_options(m, "nufft_adjoint", &ops::nufft_adjoint, {"y", "locs", "image_size"});
  // Example of ops.radon:
  //   >>> x = np.ones((3, 3))
  //   >>> ps.function([], ps.ops.radon(x, np.array([0.0, np.pi / 2]), n_detectors=3))()
  //   array([[3., 3., 3.],
  //          [3., 3., 3.]])
  def_with_options(m, "radon", &ops::radon, {"x", "angles"});
  // Example of ops.radon_adjoint:
  //   >>> y = np.array([[1.0, 0.0, 2.0]])
  //   >>> ps.function([], ps.ops.radon_adjoint(y, np.array([0.0]), (2, 3)))()
  //   array([[1., 0., 2.],
  //          [1., 0., 2.]])
  def_with_options(m, "radon_adjoint", &ops::radon_adjoint, {"y", "angles", "image_size"});
  m.def("take", &ops::take, "x"_a, "indices"_a, "axis"_a.none() = nb::none());
  m.def(
      "gather", [](Variable x, std::vector<Variable> indices) { return ops::gather(x, indices); },
      "x"_a, "indices"_a);
  m.def(
      "scatter_add",
      [](Variable y, std::vector<Variable> indices, Extents sizes) {
        return ops::scatter_add(y, indices, sizes);
      },
      "y"_a, "indices"_a, "sizes"_a);
  m.def("nonzero", &ops::nonzero, "mask"_a);
  // A name in place of x: the input of a graph that PyTensor calls so.
  m.def(
      "row",
      [](nb::handle x, nb::handle position, std::optional<std::string> name,
         std::optional<DType> dtype) {
        if (x.is_none() || PyUnicode_Check(x.ptr())) {
          if (!position.is_none()) dtype = from_python<DType>(position);
          return row(x.is_none() ? name.value_or("") : str_of(x), dtype);
        }
        if (position.is_none()) {
          throw TypeError("[row] position: got None, expected that of a row of x.");
        }
        return ops::row(from_python<Variable>(x), from_python<Variable>(position));
      },
      "x"_a.none() = nb::none(), "position"_a.none() = nb::none(), nb::kw_only(),
      "name"_a.none() = nb::none(), "dtype"_a.none() = nb::none(),
      nb::sig("def row(x: VariableLike | str | None = None, position: VariableLike | DTypeLike | "
              "None = None, *, name: str | None = None, dtype: DTypeLike | None = None) -> "
              "Variable"));
  m.def("set_row", &ops::set_row, "x"_a, "position"_a, "value"_a);
  m.def(
      "as_strided",
      [](Variable x, Extents extents, Extents strides, index_t offset, std::optional<DType> dtype) {
        return ops::as_strided(x, extents, Strides(strides.begin(), strides.end()), offset, dtype);
      },
      "x"_a, "extents"_a, "strides"_a, "offset"_a = 0, "dtype"_a.none() = nb::none());
}

Stencil stencil_of(const Variable& x, nb::handle taps, index_t axis, index_t offset, index_t step,
                   StencilEdge edge) {
  if (!is_list(taps)) throw TypeError("[stencil] expected a list of numbers as taps.");
  Stencil stencil;
  stencil.axis = static_cast<std::size_t>(axis < 0 ? axis + static_cast<index_t>(x.rank()) : axis);
  stencil.offset = offset;
  stencil.step = step;
  stencil.edge = edge;
  if (stencil.axis >= x.rank()) {
    throw ShapeError("[stencil] got axis " + std::to_string(axis) + ", expected one of " +
                     std::to_string(x.rank()) + " axes.");
  }
  for (nb::handle tap : taps) stencil.taps.push_back(nb::cast<double>(nb::float_(nb::borrow(tap))));
  return stencil;
}

void bind_filters(nb::module_& m) {
  m.def(
      "stencil",
      [](Variable x, Shown<"Sequence[float]"> taps, index_t axis, index_t offset, index_t step,
         StencilEdge edge, std::optional<Variable> start) {
        return ops::stencil(x, stencil_of(x, taps, axis, offset, step, edge),
                            start.value_or(Variable()));
      },
      "x"_a, "taps"_a, "axis"_a = -1, nb::kw_only(), "offset"_a = 0, "step"_a = 1,
      "edge"_a = "periodic", "start"_a = nb::none());
  m.def(
      "stencil_adjoint",
      [](Variable y, Shown<"Sequence[float]"> taps, index_t axis, index_t offset, index_t step,
         StencilEdge edge, std::optional<Variable> start) {
        return ops::stencil_adjoint(y, stencil_of(y, taps, axis, offset, step, edge),
                                    start.value_or(Variable()));
      },
      "y"_a, "taps"_a, "axis"_a = -1, nb::kw_only(), "offset"_a = 0, "step"_a = 1,
      "edge"_a = "periodic", "start"_a = nb::none());
  m.def(
      "soften_singular_values",
      [](Variable x, Variable threshold, Variable shift, Extents axes) {
        return ops::soften_singular_values(x, threshold, shift, axes);
      },
      "x"_a, "threshold"_a, "shift"_a, "axes"_a);
  m.def(
      "nuclear_norms", [](Variable x, Extents axes) { return ops::nuclear_norms(x, axes); }, "x"_a,
      "axes"_a);
  m.def("gemv", &ops::gemv, "z"_a, "alpha"_a, "x"_a, "y"_a, "beta"_a);
  m.def("ger", &ops::ger, "z"_a, "alpha"_a, "x"_a, "y"_a);
}

// Functions of Python by the names of hooks, until the interpreter ends.
constinit GlobalObject hooks;

// A hook gets its name, the direction of the data and a copy of them.
void call_hook(const BreakpointHit& hit) {
  const Locked locked;
  if (!hooks.is_set()) return;
  const nb::object f = hooks.get()[nb::cast(std::string(hit.hook))];
  const Tensor shown =
      Tensor::from_blob(const_cast<void*>(hit.data.data), hit.data.dtype,
                        Extents(hit.data.extents.begin(), hit.data.extents.end()),
                        Strides(hit.data.strides.begin(), hit.data.strides.end()), {}, false);
  f(std::string(hit.hook), Names<PassDirection>::list[static_cast<std::size_t>(hit.direction)],
    export_array(shown.clone(), Kind::numpy));
}

void bind_debugging(nb::module_& m, nb::module_& ops) {
  hooks.set(nb::dict());
  at_end([] { hooks.clear(); });
  m.def(
      "set_breakpoint_hook",
      [](const std::string& name, nb::handle hook) {
        if (!PyCallable_Check(hook.ptr())) {
          throw TypeError("[set_breakpoint_hook] got " + class_name(hook) +
                          ", expected a function hook(name, direction, data).");
        }
        set_breakpoint_hook(name, call_hook);
        hooks.get()[nb::cast(name)] = hook;
      },
      "name"_a, "hook"_a);
  m.def("breakpoint_hooks", &breakpoint_hooks);
  m.def(
      "Breakpoint", [](Dims dims, const std::string& hook) { return Breakpoint(dims, hook); },
      "dims"_a, "hook"_a);
  m.attr("BreakpointLinop") = m.attr("Breakpoint");
  ops.def(
      "breakpoint",
      [](Variable x, const std::string& hook, PassDirection direction) {
        return ops::breakpoint(x, hook, direction);
      },
      "x"_a, "hook"_a, "direction"_a = "forward");
  ops.def("sleep", &ops::sleep, "x"_a, "seconds"_a);
}

}  // namespace

void bind_ops_sampling(nb::module_& m) {
  nb::module_ ops = m.def_submodule("ops");
  bind_points(ops);
  bind_filters(ops);
  bind_debugging(m, ops);
}

}  // namespace palimpsest::python
