// SPDX-License-Identifier: Apache-2.0
// Operators that transform and sample, and containers.
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/linop/transforms/radon.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/transform_options.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(Boundary, "boundary", "zeros", "circular")
PALIMPSEST_NAMES(ConvolutionMethod, "method", "automatic", "direct", "fft")
PALIMPSEST_NAMES(ConvolutionNormal, "normal", "automatic", "fft", "kernel", "composed")
PALIMPSEST_NAMES(NufftMode, "mode", "interpolate", "sampling")

template <>
struct From<Toeplitz> {
  static constexpr auto name = nb::detail::const_name("bool | str");
  static Toeplitz from(nb::handle object) {
    if (object.ptr() == Py_True) return Toeplitz::yes;
    if (object.ptr() == Py_False) return Toeplitz::no;
    if (text_of(object, "True, False or 'automatic' for toeplitz") == "automatic") {
      return Toeplitz::automatic;
    }
    throw ValueError("[toeplitz] got '" + str_of(object) +
                     "', expected True, False or 'automatic'.");
  }
  static nb::object shown(Toeplitz value) { return nb::cast(value == Toeplitz::yes); }
};
template <>
struct From<Grid> {
  static constexpr auto name = nb::detail::const_name("tuple[DimsLike, DimsLike]");
  static Grid from(nb::handle grid) {
    return {from_python<Dims>(nb::object(grid[0])), from_python<Dims>(nb::object(grid[1]))};
  }
};

PALIMPSEST_OPTIONS(FftLinopOptions)
PALIMPSEST_OPTIONS(NufftLinopOptions)
PALIMPSEST_OPTIONS(RadonLinopOptions)
PALIMPSEST_OPTIONS(ConvolutionOptions)
PALIMPSEST_OPTIONS(FftConvolutionOptions)
PALIMPSEST_OPTIONS(FiniteDifferenceOptions)
PALIMPSEST_OPTIONS(GradientOptions)
PALIMPSEST_OPTIONS(SamplingOptions)
PALIMPSEST_OPTIONS(BlocksOptions)

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(Grid)
PALIMPSEST_ARGUMENT(PadMode)
PALIMPSEST_ARGUMENT(Toeplitz)

namespace palimpsest::python {
namespace {

void bind_fourier(nb::module_& m) {
  def_with_options(m, "Fft", &Fft, {"ndim"});
  m.attr("FFT") = m.attr("Fft");
  def_with_options(m, "Nufft", &Nufft, {"locs", "grid_size", "output"});
  def_with_options(m, "SamplingNufft", &SamplingNufft, {"locs", "grid_size", "output"});
  m.def(
      "toeplitz_kernel",
      [](NamedLinop A, std::optional<NamedLinop> inner) {
        return export_array(
            released([&] { return toeplitz_kernel(A, inner.value_or(NamedLinop())); }),
            kind_returned(Kind::numpy));
      },
      "A"_a, "inner"_a.none() = nb::none());
  m.attr("NUFFT") = m.attr("Nufft");
  m.def(
      "Interpolate",
      [](Parameter locs, Extents grid_size, PerAxis width, PerAxis beta, int norm, PadMode pad_mode,
         Dims batch, std::optional<Dims> locs_batch, std::optional<Dims> grid) {
        return Interpolate(locs, grid_size,
                           {.width = width,
                            .kernel = KaiserBessel{beta},
                            .norm = norm,
                            .pad_mode = pad_mode,
                            .batch = batch,
                            .locs_batch = locs_batch,
                            .grid = grid});
      },
      "locs"_a, "grid_size"_a, nb::kw_only(), "width"_a = 4.0, "beta"_a = 1.0, "norm"_a = 1,
      "pad_mode"_a = "circular", "batch"_a = "...", "locs_batch"_a.none() = nb::none(),
      "grid"_a.none() = nb::none(), "Reads a grid between its elements.");
}

void bind_radon(nb::module_& m) {
  // Example of Radon:
  //   >>> A = ps.Radon(np.arange(4) * np.pi / 4, (3, 5), n_detectors=5)
  //   >>> A.oshape, A(np.ones((2, 3, 5))).shape
  //   ((..., A, R), (2, 4, 5))
  //   >>> bool(ps.check_contract(A, extents=(2, 3, 5)))
  //   True
  def_with_options(m, "Radon", &Radon, {"angles", "image_size"});
  // Example of filtered_back_projection:
  //   >>> A = ps.Radon(np.arange(90) * np.pi / 90, (33, 33))
  //   >>> x = np.zeros((33, 33)); x[8:25, 8:25] = 1
  //   >>> y = np.asarray(ps.filtered_back_projection(A)(A(x)))
  //   >>> round(float(y[12:21, 12:21].mean()), 1)
  //   1.0
  m.def("filtered_back_projection", &filtered_back_projection, "A"_a,
        "Sinograms to slices: the adjoint of a Radon operator after a ramp filter.");
}

void bind_filters(nb::module_& m) {
  def_with_options(m, "Convolution", &Convolution, {"kernel"});
  def_with_options(m, "FftConvolution", &FftConvolution, {"kernel"});
  m.attr("FFTConvolution") = m.attr("FftConvolution");
  def_with_options(m, "FiniteDifference", &FiniteDifference, {"dims", "dim"});
  def_with_options(m, "Gradient", &Gradient, {"dims", "over"});
  m.def(
      "Wavelet",
      [](Dims dims, Dims over, const std::string& family, std::optional<int> levels) {
        if (levels.value_or(0) < 0) {
          throw ValueError("[Wavelet] levels: got " + std::to_string(*levels) +
                           ", expected 0 to 39, or None");
        }
        return Wavelet(dims, over, {.family = family, .levels = levels.value_or(kAutomaticLevels)});
      },
      "dims"_a, "over"_a, nb::kw_only(), "family"_a = "db4", "levels"_a.none() = 4,
      "Orthogonal wavelet transform; levels=None chooses.");
}

void bind_sampling(nb::module_& m) {
  def_with_options(m, "Sampling", &Sampling, {"idx", "input_size"});
  def_with_options(m, "SamplingFromMask", &SamplingFromMask, {"mask"});
  def_with_options(m, "SamplingFromStacked", &SamplingFromStacked, {"idx", "input_size"});
  def_with_options(m, "ArrayToBlocks", &ArrayToBlocks, {"im_size", "block_size", {"stride", 1}});
  def_with_options(m, "BlocksToArray", &BlocksToArray, {"im_size", "block_size", {"stride", 1}});
}

// Operators one by one, or a list of them.
std::vector<NamedLinop> operators_of(nb::args list) {
  if (list.size() == 1 && (PyList_Check(list[0].ptr()) || PyTuple_Check(list[0].ptr()))) {
    return from_python<std::vector<NamedLinop>>(list[0]);
  }
  std::vector<NamedLinop> operators;
  for (nb::handle item : list) operators.push_back(from_python<NamedLinop>(item));
  return operators;
}

// (dim, position), or a dimension at the front.
StackAxis stack_axis(nb::handle object) {
  if (object.is_none()) return {};
  if (PyTuple_Check(object.ptr())) {
    return {from_python<ND>(nb::object(object[0])),
            integer_of(nb::object(object[1]), "a position")};
  }
  return {from_python<ND>(object), 0};
}

void bind_containers(nb::module_& m) {
  m.def(
      "Chain", [](nb::args linops) { return Chain(operators_of(linops)); }, "linops"_a,
      "Operators one after the other, in order of execution.");
  m.def(
      "Add", [](nb::args linops) { return Add(operators_of(linops)); }, "linops"_a,
      "The sum of operators on one shape.");
  m.def(
      "Concat",
      [](nb::args linops, std::optional<ND> in, std::optional<ND> out) {
        return Concat(operators_of(linops), {.in = in, .out = out});
      },
      "linops"_a, nb::kw_only(), "in_"_a.none() = nb::none(), "out"_a.none() = nb::none(),
      "Operators side by side along a dimension that they have.");
  m.def(
      "BlockDiagonal",
      [](nb::args linops, ND in, ND out) { return BlockDiagonal(operators_of(linops), in, out); },
      "linops"_a, nb::kw_only(), "in_"_a, "out"_a, "Concat along both dimensions.");
  m.def(
      "Stack",
      [](nb::args linops, nb::handle in, nb::handle out) {
        return Stack(operators_of(linops), {.in = stack_axis(in), .out = stack_axis(out)});
      },
      "linops"_a, nb::kw_only(), "in_"_a.none() = nb::none(), "out"_a.none() = nb::none(),
      "Operators side by side along a new dimension, given as name or (name, position).");
  m.def(
      "Kronecker", [](NamedLinop A, NamedLinop B) { return Kronecker(A, B); }, "A"_a, "B"_a,
      "A over the first group of dimensions and B over the second.");
}

}  // namespace

void bind_transforms(nb::module_& m) {
  bind_fourier(m);
  bind_radon(m);
  bind_filters(m);
  bind_sampling(m);
  bind_containers(m);
}

}  // namespace palimpsest::python
