// SPDX-License-Identifier: Apache-2.0
// ops: products, transforms, conditions and loops.
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/products/svd.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/transform_options.hpp"

namespace palimpsest::python {

PALIMPSEST_OPTIONS(FftOptions)

namespace {

void bind_products(nb::module_& m) {
  m.def(
      "einsum",
      [](const std::string& subscripts, nb::args operands) {
        std::vector<Variable> list;
        for (nb::handle operand : operands) list.push_back(from_python<Variable>(operand));
        return ops::einsum(subscripts, list);
      },
      "subscripts"_a, "operands"_a, "A sum of products, in Einstein's notation.");
  m.def("matmul", &ops::matmul, "a"_a, "b"_a, "The matrix product of the last two axes.");
  m.def("dot", &ops::dot, "a"_a, "b"_a, "The product of matrices and vectors, or with a number.");
  m.def(
      "tensordot",
      [](Variable a, Variable b, nb::handle axes) {
        if (is_integer(axes)) return ops::tensordot(a, b, integer_of(axes, "a number of axes"));
        if (!is_list(axes) || nb::len(axes) != 2) {
          throw TypeError("[tensordot] axes: got " + class_name(axes) +
                          ", expected a number, or the axes of a and those of b.");
        }
        return ops::tensordot(a, b, from_python<Extents>(nb::object(axes[0])),
                              from_python<Extents>(nb::object(axes[1])));
      },
      "a"_a, "b"_a, "axes"_a = 2, "The sum over some axes of both.");
  m.def("outer", &ops::outer, "a"_a, "b"_a, "a[i] b[j].");
  m.def("vdot", &ops::vdot, "a"_a, "b"_a, "The sum of conj(a) b.");
  m.def("norm2", &ops::norm2, "x"_a, "The sum of |x|^2, real.");
  m.def("gemm", &ops::gemm, "z"_a, "alpha"_a, "x"_a, "y"_a, "beta"_a, "beta z + alpha x y.");
  m.def("diagonal", &ops::diagonal, "x"_a, "offset"_a = 0, "axis1"_a = -2, "axis2"_a = -1,
        "The diagonal of two axes.");
  m.def("trace", &ops::trace, "x"_a, "offset"_a = 0, "axis1"_a = -2, "axis2"_a = -1,
        "The sum of the diagonal.");
  m.def(
      "svd",
      [](Variable a) {
        const ops::SingularVectors parts = ops::svd(a);
        return nb::make_tuple(parts.u, parts.s, parts.vh);
      },
      "a"_a, "u, s, vh with a = u diag(s) vh.");
}

void bind_ffts(nb::module_& m) {
  const Positional axes("axes", nb::make_tuple(-1));
  def_with_options(m, "fft", &ops::fft, {"x", axes});
  def_with_options(m, "ifft", &ops::ifft, {"x", axes});
  def_with_options(m, "fft_adjoint", &ops::fft_adjoint, {"x", axes});
  def_with_options(m, "rfft", &ops::rfft, {"x", axes});
  def_with_options(m, "irfft", &ops::irfft, {"y", "n", axes});
  m.def("fftshift", &ops::fftshift, "x"_a, "axes"_a.none() = nb::none(), "Index 0 to the middle.");
  m.def("ifftshift", &ops::ifftshift, "x"_a, "axes"_a.none() = nb::none(), "And back.");
}

// -- conditions and loops ---------------------------------------------------------------------

Shown<"Any"> if_else(Variable condition, nb::handle then, nb::handle otherwise) {
  if (is_list(then)) {
    return nb::object(nb::cast(ops::ifelse(condition, from_python<std::vector<Variable>>(then),
                                           from_python<std::vector<Variable>>(otherwise))));
  }
  return to_python(
      ops::ifelse(condition, from_python<Operand>(then), from_python<Operand>(otherwise)));
}

// A Variable, or (Variable, taps).
template <class Item>
std::vector<Item> with_taps(nb::handle list) {
  std::vector<Item> items;
  if (!is_list(list)) throw TypeError("[loop] expected a list of sequences or states.");
  for (nb::handle entry : list) {
    if (!PyTuple_Check(entry.ptr())) {
      items.emplace_back(from_python<Variable>(entry));
      continue;
    }
    if (nb::len(entry) != 2) throw ValueError("[loop] expected (Variable, taps).");
    const Extents taps = from_python<Extents>(nb::object(entry[1]));
    items.emplace_back(from_python<Variable>(nb::object(entry[0])),
                       std::vector<index_t>(taps.begin(), taps.end()));
  }
  return items;
}

std::vector<Variable> listed(nb::handle result) {
  if (result.is_none()) return {};
  if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
    return from_python<std::vector<Variable>>(result);
  }
  return {from_python<Variable>(result)};
}

nb::object call_with(nb::handle f, const std::vector<Variable>& first,
                     const std::vector<Variable>& then = {}) {
  nb::list arguments;
  for (const Variable& v : first) arguments.append(to_python(v));
  for (const Variable& v : then) arguments.append(to_python(v));
  return f(*nb::tuple(arguments));
}

ops::LoopResult make_loop(nb::handle body, nb::handle sequences, nb::handle states,
                          std::vector<Variable> fixed, std::optional<Operand> n_steps,
                          bool backwards, nb::handle until) {
  ops::LoopOptions options{.sequences = with_taps<ops::LoopSequence>(sequences),
                           .states = with_taps<ops::LoopState>(states),
                           .fixed = std::move(fixed),
                           .n_steps = n_steps,
                           .backwards = backwards};
  if (!until.is_none()) {
    options.until = [until](const std::vector<Variable>& arguments,
                            const std::vector<Variable>& results) {
      return from_python<Variable>(call_with(until, arguments, results));
    };
  }
  return ops::loop(
      [body](const std::vector<Variable>& arguments) { return listed(call_with(body, arguments)); },
      options);
}

void bind_control(nb::module_& m) {
  m.def("ifelse", if_else, "condition"_a, "then"_a, "otherwise"_a,
        "The one or the other; only the steps of the branch that is taken run.");
  m.def(
      "assert_that",
      [](Variable x, nb::args conditions, const std::string& message) {
        std::vector<Variable> list;
        for (nb::handle condition : conditions) list.push_back(from_python<Variable>(condition));
        return ops::assert_that(x, list, message);
      },
      "x"_a, "conditions"_a, "message"_a = "",
      "x, after every element of the conditions has been found to be true.");
  m.def("to_device", &ops::to_device, "x"_a, "device"_a, "x on another device.");
  nb::class_<ops::LoopResult>(m, "LoopResult", "Results of a loop.")
      .def("trace", &ops::LoopResult::trace, "k"_a = 0, "State k after each step.")
      .def("last", &ops::LoopResult::last, "k"_a = 0, "State k after the last step.")
      .def("mapped", &ops::LoopResult::mapped, "k"_a = 0,
           "Value k that the body returned after the states, for each step.")
      .def_prop_ro("n_steps", &ops::LoopResult::n_steps);
  m.def("loop", make_loop, "body"_a, "sequences"_a = nb::make_tuple(),
        "states"_a = nb::make_tuple(), "fixed"_a = nb::make_tuple(),
        "n_steps"_a.none() = nb::none(), "backwards"_a = false, "until"_a.none() = nb::none(),
        "Repeats a body, which is called once with Variables.");
}

}  // namespace

void bind_ops_transforms(nb::module_& m) {
  nb::module_ ops = m.def_submodule("ops");
  bind_products(ops);
  bind_ffts(ops);
  bind_control(ops);
}

}  // namespace palimpsest::python
