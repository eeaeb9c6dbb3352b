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
#include "palimpsest/python/transform_options.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(Boundary, "boundary", "zeros", "circular")
PALIMPSEST_NAMES(ConvolutionMethod, "method", "automatic", "direct", "fft")
PALIMPSEST_NAMES(ConvolutionNormal, "normal", "automatic", "fft", "kernel", "composed")
PALIMPSEST_NAMES(DifferenceBoundary, "boundary", "periodic", "neumann", "zero")
PALIMPSEST_NAMES(DifferenceDirection, "direction", "forward", "backward")
PALIMPSEST_NAMES(NufftMode, "mode", "interpolate", "sampling")

namespace {

template <class E>
E named(const std::string& text) {
  return from_python<E>(nb::cast(text));
}

std::optional<PerAxis> maybe_per_axis(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return from_python<PerAxis>(object);
}

NamedLinop fourier(int ndim, Dims batch, nb::handle grid, const std::string& norm, bool centered) {
  FftLinopOptions options{.batch = batch, .norm = named<FftNorm>(norm), .centered = centered};
  if (!grid.is_none()) {
    options.grid =
        Grid{from_python<Dims>(nb::object(grid[0])), from_python<Dims>(nb::object(grid[1]))};
  }
  return Fft(ndim, options);
}

Toeplitz toeplitz_of(nb::handle object) {
  if (object.ptr() == Py_True) return Toeplitz::yes;
  if (object.ptr() == Py_False) return Toeplitz::no;
  if (text_of(object, "True, False or 'automatic' for toeplitz") == "automatic") {
    return Toeplitz::automatic;
  }
  throw ValueError("[toeplitz] got '" + str_of(object) + "', expected True, False or 'automatic'.");
}

template <auto make>
NamedLinop nufft_operator(Parameter locs, Extents grid_size, Dims output, std::optional<Dims> input,
                          std::optional<Dims> kspace, Dims batch, const std::string& units,
                          int sign, const std::string& scale, std::optional<double> eps,
                          std::optional<double> oversamp, nb::handle width, nb::handle beta,
                          bool fast_size, const std::string& mode, bool prepared,
                          Parameter apodization, nb::handle toeplitz,
                          std::optional<double> toeplitz_eps) {
  return make(locs, grid_size, output,
              {.input = input,
               .kspace = kspace,
               .batch = batch,
               .units = named<LocsUnit>(units),
               .sign = sign,
               .scale = named<NufftScale>(scale),
               .eps = eps,
               .oversamp = oversamp,
               .width = maybe_per_axis(width),
               .beta = maybe_per_axis(beta),
               .fast_size = fast_size,
               .mode = named<NufftMode>(mode),
               .prepared = prepared,
               .apodization = apodization,
               .toeplitz = toeplitz_of(toeplitz),
               .toeplitz_eps = toeplitz_eps});
}

void bind_fourier(nb::module_& m) {
  m.def("Fft", fourier, "ndim"_a, nb::kw_only(), "batch"_a = "...", "grid"_a.none() = nb::none(),
        "norm"_a = "ortho", "centered"_a = false, "Fourier transform over the last ndim axes.");
  m.attr("FFT") = m.attr("Fft");
#define PALIMPSEST_NUFFT_ARGUMENTS                                                           \
  "locs"_a, "grid_size"_a, "output"_a, nb::kw_only(),                                        \
      "input"_a.none() = nb::none(), "kspace"_a.none() = nb::none(), "batch"_a = "...",      \
      "units"_a = "cycles", "sign"_a = -1, "scale"_a = "ortho", "eps"_a.none() = nb::none(), \
      "oversamp"_a.none() = nb::none(), "width"_a.none() = nb::none(),                       \
      "beta"_a.none() = nb::none(), "fast_size"_a = true, "mode"_a = "interpolate",          \
      "prepared"_a = false, "apodization"_a.none() = nb::none(), "toeplitz"_a = false,       \
      "toeplitz_eps"_a.none() = nb::none()
  m.def("Nufft", nufft_operator<&Nufft>, PALIMPSEST_NUFFT_ARGUMENTS,
        "Image to samples at any frequencies.");
  m.def("SamplingNufft", nufft_operator<&SamplingNufft>, PALIMPSEST_NUFFT_ARGUMENTS,
        "Image to the elements of the padded spectrum next to the points.");
#undef PALIMPSEST_NUFFT_ARGUMENTS
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
      [](Parameter locs, Extents grid_size, nb::handle width, nb::handle beta, int norm,
         const std::string& pad_mode, Dims batch, std::optional<Dims> locs_batch,
         std::optional<Dims> grid) {
        return Interpolate(locs, grid_size,
                           {.width = from_python<PerAxis>(width),
                            .kernel = KaiserBessel{from_python<PerAxis>(beta)},
                            .norm = norm,
                            .pad_mode = named<PadMode>(pad_mode),
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
  m.def(
      "Radon",
      [](Parameter angles, Extents image_size, std::optional<index_t> n_detectors, double spacing,
         std::optional<double> center, Dims batch, Dims image, Dims output) {
        return Radon(angles, image_size,
                     {.n_detectors = n_detectors,
                      .spacing = spacing,
                      .center = center,
                      .batch = batch,
                      .image = image,
                      .output = output});
      },
      "angles"_a, "image_size"_a, nb::kw_only(), "n_detectors"_a.none() = nb::none(),
      "spacing"_a = 1.0, "center"_a.none() = nb::none(), "batch"_a = "...", "image"_a = "Ny Nx",
      "output"_a = "A R", "Slices to their sinograms.");
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
  m.def(
      "Convolution",
      [](Parameter kernel, Dims batch, std::optional<Dims> grid, std::optional<Dims> out,
         const std::string& boundary, const std::string& method, const std::string& normal) {
        return Convolution(kernel, {.batch = batch,
                                    .grid = grid,
                                    .out = out,
                                    .boundary = named<Boundary>(boundary),
                                    .method = named<ConvolutionMethod>(method),
                                    .normal = named<ConvolutionNormal>(normal)});
      },
      "kernel"_a, nb::kw_only(), "batch"_a = "...", "grid"_a.none() = nb::none(),
      "out"_a.none() = nb::none(), "boundary"_a = "zeros", "method"_a = "automatic",
      "normal"_a = "automatic", "Convolution of the last axes with a kernel.");
  m.def(
      "FftConvolution",
      [](Parameter kernel, Dims batch, std::optional<Dims> grid, std::optional<Dims> out) {
        return FftConvolution(kernel, {.batch = batch, .grid = grid, .out = out});
      },
      "kernel"_a, nb::kw_only(), "batch"_a = "...", "grid"_a.none() = nb::none(),
      "out"_a.none() = nb::none(), "The circular convolution, by FFT.");
  m.attr("FFTConvolution") = m.attr("FftConvolution");
  m.def(
      "FiniteDifference",
      [](Dims dims, ND dim, const std::string& boundary, double spacing,
         const std::string& direction) {
        return FiniteDifference(dims, dim,
                                {.boundary = named<DifferenceBoundary>(boundary),
                                 .spacing = spacing,
                                 .direction = named<DifferenceDirection>(direction)});
      },
      "dims"_a, "dim"_a, nb::kw_only(), "boundary"_a = "periodic", "spacing"_a = 1.0,
      "direction"_a = "forward", "Differences along one dimension.");
  m.def(
      "Gradient",
      [](Dims dims, Dims over, const std::string& boundary, double spacing, ND out,
         const std::string& direction) {
        return Gradient(dims, over,
                        {.boundary = named<DifferenceBoundary>(boundary),
                         .spacing = spacing,
                         .out = out,
                         .direction = named<DifferenceDirection>(direction)});
      },
      "dims"_a, "over"_a, nb::kw_only(), "boundary"_a = "periodic", "spacing"_a = 1.0,
      "out"_a = "D", "direction"_a = "forward",
      "Differences along several dimensions, stacked along a new first one.");
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
  m.def(
      "Sampling",
      [](std::vector<Tensor> idx, Extents input_size, std::optional<Dims> output,
         std::optional<Dims> input, Dims batch) {
        return Sampling(idx, input_size, {.output = output, .input = input, .batch = batch});
      },
      "idx"_a, "input_size"_a, nb::kw_only(), "output"_a.none() = nb::none(),
      "input"_a.none() = nb::none(), "batch"_a = "...", "Reads points of the last axes.");
  m.def(
      "SamplingFromMask",
      [](Tensor mask, std::optional<Dims> output, std::optional<Dims> input, Dims batch) {
        return SamplingFromMask(mask, {.output = output, .input = input, .batch = batch});
      },
      "mask"_a, nb::kw_only(), "output"_a.none() = nb::none(), "input"_a.none() = nb::none(),
      "batch"_a = "...", "Reads the true entries of a mask.");
  m.def(
      "SamplingFromStacked",
      [](Tensor idx, Extents input_size, std::optional<Dims> output, std::optional<Dims> input,
         Dims batch) {
        return SamplingFromStacked(idx, input_size,
                                   {.output = output, .input = input, .batch = batch});
      },
      "idx"_a, "input_size"_a, nb::kw_only(), "output"_a.none() = nb::none(),
      "input"_a.none() = nb::none(), "batch"_a = "...",
      "The indices of a point along the last axis.");
  const auto def_blocks = [&](const char* name,
                              NamedLinop (*f)(Extents, Extents, Extents, BlocksOptions),
                              const char* doc) {
    m.def(
        name,
        [f](Extents im_size, Extents block, Extents stride, nb::handle mask, Dims batch,
            std::optional<Dims> array, std::optional<Dims> blocks, std::optional<Dims> inner) {
          BlocksOptions options{.batch = batch, .array = array, .blocks = blocks, .inner = inner};
          if (!mask.is_none()) options.mask = from_python<Parameter>(mask);
          return f(im_size, block, stride, options);
        },
        "im_size"_a, "block_size"_a, "stride"_a = 1, nb::kw_only(), "mask"_a.none() = nb::none(),
        "batch"_a = "...", "array"_a.none() = nb::none(), "blocks"_a.none() = nb::none(),
        "inner"_a.none() = nb::none(), doc);
  };
  def_blocks("ArrayToBlocks", &ArrayToBlocks, "Blocks of the last axes, which may overlap.");
  def_blocks("BlocksToArray", &BlocksToArray, "The sum of blocks.");
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
      "linops"_a, nb::kw_only(), "in_"_a, "out"_a, "Concat along both.");
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
