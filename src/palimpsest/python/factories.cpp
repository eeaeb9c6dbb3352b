// SPDX-License-Identifier: Apache-2.0
// Operators that rearrange, weight and sum.
#include "palimpsest/linop/operators/complex_parts.hpp"
#include "palimpsest/linop/operators/debugging.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/pad.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/rearrange.hpp"
#include "palimpsest/linop/operators/repeat.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/operators/roll.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/linop/operators/sparse.hpp"
#include "palimpsest/linop/operators/sum_reduce.hpp"
#include "palimpsest/linop/operators/to_device.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/options.hpp"

namespace palimpsest {
using Cuts = std::vector<std::pair<ND, Slice>>;
}
namespace palimpsest::python {

PALIMPSEST_OPTIONS(DiagonalOptions)
PALIMPSEST_OPTIONS(SumReduceOptions)
PALIMPSEST_OPTIONS(PadOptions)
PALIMPSEST_OPTIONS(PadDimOptions)
PALIMPSEST_OPTIONS(RestrictOptions)

// A dict or pairs of dimensions and slices, in their order.
template <>
struct From<Cuts> {
  static constexpr auto name =
      nb::detail::const_name("Mapping[str, slice] | Sequence[tuple[str, slice]]");
  static Cuts from(nb::handle object) {
    Cuts cuts;
    for (const auto& [dim, range] : pairs_in(object, "a dict such as {'N': slice(0, 2)}")) {
      cuts.emplace_back(from_python<ND>(dim), from_python<Slice>(range));
    }
    return cuts;
  }
};
template <>
inline constexpr auto kResultName<Cuts> = From<Cuts>::name;

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(Cuts)

namespace palimpsest::python {
namespace {

Shown<"NamedLinop"> dense(Parameter weight, nb::handle einsum, std::optional<Dims> ishape,
                          std::optional<Dims> oshape, Dims broadcast, std::optional<Dims> output) {
  DenseOptions options{.broadcast = broadcast, .output = output};
  if (ishape || oshape) {
    if (!ishape || !oshape || einsum.is_none()) {
      throw TypeError("[Dense] expected weightshape, ishape and oshape together.");
    }
    return to_python(Dense(weight, from_python<Dims>(einsum), *ishape, *oshape, options));
  }
  if (einsum.is_none()) return to_python(Dense(weight));
  return to_python(Dense(weight, text_of(einsum, "an einsum such as 'MN,N->M'"), options));
}

Shown<"NamedLinop"> scalar(nb::handle alpha, Dims dims) {
  if (nb::isinstance<VariableObject>(alpha) || is_array(alpha)) {
    return to_python(Scalar(from_python<Parameter>(alpha), dims));
  }
  if (PyComplex_Check(alpha.ptr())) {
    return to_python(Scalar(LinopScalar(nb::cast<std::complex<double>>(alpha)), dims));
  }
  if (!PyLong_Check(alpha.ptr()) && !PyFloat_Check(alpha.ptr())) {
    throw TypeError("[Scalar] got " + class_name(alpha) + ", expected a number.");
  }
  return to_python(Scalar(LinopScalar(PyFloat_AsDouble(alpha.ptr())), dims));
}

// Values, columns and starts of rows; or a matrix of scipy.sparse.
Shown<"NamedLinop"> sparse(nb::handle values, nb::handle columns, nb::handle starts,
                           nb::handle n_columns, Dims in, Dims out, Dims batch) {
  const SparseOptions options{.in = in, .out = out, .batch = batch};
  if (columns.is_none()) {
    if (!nb::hasattr(values, "tocsr")) {
      throw TypeError("[Sparse] got " + class_name(values) +
                      ", expected a matrix of scipy.sparse, or values, columns and row starts.");
    }
    const nb::object csr = values.attr("tocsr")();
    csr.attr("sum_duplicates")();
    return to_python(Sparse(from_python<Parameter>(nb::object(csr.attr("data"))),
                            from_python<Tensor>(nb::object(csr.attr("indices"))),
                            from_python<Tensor>(nb::object(csr.attr("indptr"))),
                            integer_of(nb::object(csr.attr("shape")[1]), "columns"), options));
  }
  return to_python(Sparse(from_python<Parameter>(values), from_python<Tensor>(columns),
                          from_python<Tensor>(starts), integer_of(n_columns, "columns"), options));
}

void bind_weights(nb::module_& m) {
  m.def("Dense", dense, "weight"_a, "einsum_or_weightshape"_a.none() = nb::none(),
        "ishape"_a.none() = nb::none(), "oshape"_a.none() = nb::none(), nb::kw_only(),
        "broadcast"_a = nb::make_tuple(), "output"_a.none() = nb::none(),
        "A contraction with a weight: Dense(W, 'MN,N->M').");
  def_with_options(m, "Diagonal", &Diagonal, {"w", {"dims", "..."}});
  m.def("Scalar", scalar, "alpha"_a, "dims"_a = "...", "Multiplies by one number.");
  m.def("Sparse", sparse, "values"_a, "column_index"_a.none() = nb::none(),
        "row_start"_a.none() = nb::none(), "columns"_a.none() = nb::none(), nb::kw_only(),
        "in_"_a = "N", "out"_a = "M", "batch"_a = "...", "A sparse matrix in compressed rows.");
  m.def(
      "Identity",
      [](Dims ishape, std::optional<Dims> oshape) {
        return oshape ? Identity(ishape, *oshape) : Identity(ishape);
      },
      "ishape"_a = "...", "oshape"_a.none() = nb::none(), "x itself.");
  m.def(
      "Zero",
      [](Dims ishape, std::optional<Dims> oshape, DimMap sizes) {
        return oshape ? Zero(ishape, *oshape, {.sizes = sizes}) : Zero(ishape);
      },
      "ishape"_a = "...", "oshape"_a.none() = nb::none(), nb::kw_only(),
      "sizes"_a.none() = nb::none(), "Zeros.");
  def_with_options(m, "SumReduce", &SumReduce, {"ishape", "oshape"});
  m.def(
      "Repeat",
      [](Shown<"Mapping[str, int] | Sequence[tuple[str, int]]"> repeats, Dims ishape, Dims oshape) {
        return Repeat(ordered_sizes(repeats), ishape, oshape);
      },
      "repeats"_a, "ishape"_a, "oshape"_a, "New dimensions along which x is repeated.");
}

void bind_rearrangements(nb::module_& m) {
  m.def(
      "Permute", [](Dims i, Dims o) { return Permute(i, o); }, "ishape"_a, "oshape"_a,
      "A permutation of dimensions.");
  m.def(
      "Rearrange",
      [](const std::string& pattern, DimMap sizes, std::optional<Dims> in,
         std::optional<Dims> out) {
        return Rearrange(pattern, {.sizes = sizes, .in = in, .out = out});
      },
      "pattern"_a, "sizes"_a.none() = nb::none(), nb::kw_only(), "in_"_a.none() = nb::none(),
      "out"_a.none() = nb::none(), "Groups and ungroups axes: Rearrange('(A B) C -> A B C').");
  m.def(
      "ShapeSpec", [](Dims i, Dims o) { return ShapeSpec(i, o); }, "ishape"_a, "oshape"_a,
      "Renames dimensions.");
  def_with_options(m, "Pad", &Pad, {"im_size", "size"});
  def_with_options(m, "Crop", &Crop, {"im_size", "size"});
  def_with_options(m, "PadDim", &PadDim, {"dim", "from_length", "to_length", "dims"});
  def_with_options(m, "Truncate", &Truncate, {"dim", "from_length", "to_length", "dims"});
  def_with_options(m, "Restrict", &Restrict, {"dims", "cuts"});
  def_with_options(m, "Embed", &Embed, {"dims", "cuts"});
  m.def(
      "Roll", [](Dims d, Dims over, Extents shifts) { return Roll(d, over, shifts); }, "dims"_a,
      "over"_a, "shifts"_a, "A periodic shift along some dimensions.");
}

void bind_rest(nb::module_& m) {
  m.def(
      "RealPart", [](Dims d) { return RealPart(d); }, "dims"_a = "...", "The real part.");
  m.def(
      "ImagPart", [](Dims d) { return ImagPart(d); }, "dims"_a = "...",
      "The imaginary part of complex data.");
  m.def(
      "AsReal", [](Dims d, ND pair) { return AsReal(d, pair); }, "dims"_a = "...", "pair"_a = "R",
      "Complex numbers as pairs of real ones.");
  m.def(
      "AsComplex", [](Dims d, ND pair) { return AsComplex(d, pair); }, "dims"_a = "...",
      "pair"_a = "R", "The adjoint of AsReal.");
  m.def(
      "ToDevice", [](Device from, Device to, Dims d) { return ToDevice(from, to, d); },
      "from_device"_a, "to_device"_a, "dims"_a = "...", "Copies x to another device.");
  m.def(
      "Sleep", [](double seconds, Dims d) { return Sleep(seconds, d); }, "seconds"_a = 0.1,
      "dims"_a = "...", "Identity that takes its time.");
}

}  // namespace

void bind_factories(nb::module_& m) {
  bind_weights(m);
  bind_rearrangements(m);
  bind_rest(m);
}

}  // namespace palimpsest::python
