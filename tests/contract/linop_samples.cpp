// SPDX-License-Identifier: Apache-2.0
#include "contract/linop_samples.hpp"

#include <ostream>

#include "contract/linop_lists.hpp"

namespace palimpsest::testing {
namespace {

Tensor random(Extents shape, DType dtype, std::uint64_t stream = 0) {
  return Tensor::random_normal(std::move(shape), dtype, {5, stream});
}

std::vector<Tensor> points() {
  return {Tensor::from<index_t>({0, 4, 2, 2, 1}), Tensor::from<index_t>({3, 0, 2, 2, 5})};
}

Tensor mask() {
  Tensor m = Tensor::zeros({5, 6}, DType::bool_);
  for (index_t i : {0, 3, 7, 8, 21, 29}) m.view({30}).set<bool>({i}, true);
  return m;
}

// Random locations within a grid of this size, around its middle or its origin.
Tensor locations(const Extents& grid, index_t n, DType dtype) {
  const auto ndim = static_cast<index_t>(grid.size());
  Tensor t = Tensor::random_uniform({n, ndim}, DType::float64, {6, 0});
  auto* values = static_cast<double*>(t.raw_mutable_data());
  for (index_t i = 0; i < n * ndim; ++i) {
    values[i] = (values[i] - 0.4) * static_cast<double>(grid[static_cast<std::size_t>(i % ndim)]);
  }
  return t.to(real_of(dtype));
}

NamedLinop sense(DType dtype, bool centered) {
  return Chain(Dense(random({3, 5, 6}, dtype), "C Ny Nx,Ny Nx->C Ny Nx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = centered}),
               SamplingFromMask(mask(), {.batch = "C"}));
}

// Structure, filters, containers.
void add_structure(std::vector<LinopSample>& all) {
  const auto add = [&](std::string name, std::function<NamedLinop(DType)> make,
                       TestOptions options = {}) {
    all.push_back({std::move(name), std::move(make), std::move(options)});
  };
  add("ShapeSpec", [](DType) { return ShapeSpec("A ...", "B ..."); },
      {.sizes = {{"A", 3}}, .ellipsis = {2}});
  for (const index_t size : {4, 7}) {
    const std::string suffix = std::to_string(size);
    add("PadDim" + suffix, [=](DType) { return PadDim("A", size, 9, "B A ..."); },
        {.sizes = {{"B", 2}}, .ellipsis = {3}});
    add("Truncate" + suffix, [=](DType) { return Truncate("A", 9, size, "... A B"); },
        {.sizes = {{"B", 2}}, .ellipsis = {3}});
  }
  add("Restrict",
      [](DType) {
        return Restrict("A B C", {{"A", slice(1, 4)}, {"C", slice(0, 2)}},
                        {.sizes = {{"A", 6}, {"C", 3}}});
      },
      {.sizes = {{"B", 2}}});
  add("Embed",
      [](DType) {
        return Embed("A ...", {{"A", slice(2, 5)}}, {.sizes = {{"A", 7}}});
      },
      {.ellipsis = {2}});
  add("Permute", [](DType) { return Permute("A ... B", "B A ..."); },
      {.sizes = {{"A", 3}, {"B", 4}}, .ellipsis = {2, 5}});
  add("Rearrange",
      [](DType) {
        return Rearrange("(A B) ... C -> C A ... B", {.sizes = {{"A", 2}}});
      },
      {.sizes = {{"Ab", 6}, {"C", 5}}, .ellipsis = {2}});
  add("RearrangeGroups",
      [](DType) {
        return Rearrange("A B C -> (C A) B", {.sizes = {{"A", 3}, {"C", 4}}});
      },
      {.sizes = {{"B", 2}}});
  add("RealPart", [](DType) { return RealPart("A"); }, {.sizes = {{"A", 5}}});
  add("ImagPart", [](DType) { return ImagPart(); }, {.ellipsis = {2, 3}});
  add("AsReal", [](DType) { return AsReal("A ..."); }, {.sizes = {{"A", 5}}, .ellipsis = {2}});
  add("RealPartInChain", [](DType t) {
    return Chain(Diagonal(random({5}, t), "A"), RealPart("A"),
                 Scalar(std::complex<double>(1, 2), "A"));
  });
  add("Blocks1", [](DType) { return ArrayToBlocks({9}, {4}, {2}, {.batch = "C"}); },
      {.sizes = {{"C", 2}}});
  add("Blocks2", [](DType) { return ArrayToBlocks({7, 6}, {3, 2}, {1, 2}); }, {.ellipsis = {2}});
  add("Blocks3", [](DType) { return ArrayToBlocks({4, 5, 3}, {2, 2, 2}); });
  add("BlocksGaps", [](DType) { return ArrayToBlocks({8, 7}, {2, 3}, {3, 4}); });
  add("BlocksMasked", [](DType) {
    Tensor within = Tensor::zeros({3, 2}, DType::bool_);
    for (index_t i : {0, 3, 4}) within.view({6}).set<bool>({i}, true);
    return ArrayToBlocks({7, 6}, {3, 2}, {2, 1}, {.mask = within});
  });
  add("BlocksToArray", [](DType) { return BlocksToArray({7, 6}, {3, 2}, {2, 1}); });
  add("Sparse",
      [](DType t) {
        return Sparse(random({6}, t), Tensor::from<index_t>({0, 3, 3, 1, 4, 0}),
                      Tensor::from<index_t>({0, 2, 2, 5, 6}), 5);
      },
      {.ellipsis = {2}});
  for (const Boundary boundary : {Boundary::zeros, Boundary::circular}) {
    const std::string edge = boundary == Boundary::zeros ? "Zeros" : "Circular";
    for (const ConvolutionMethod method : {ConvolutionMethod::direct, ConvolutionMethod::fft}) {
      const std::string how = method == ConvolutionMethod::direct ? "Direct" : "Fft";
      add("Convolution1" + edge + how,
          [=](DType t) {
            return Convolution(random({4}, t), {.boundary = boundary, .method = method});
          },
          {.sizes = {{"Nx", 9}}, .ellipsis = {2}});
      add("Convolution2" + edge + how,
          [=](DType t) {
            return Convolution(random({3, 2}, real_of(t)),
                               {.batch = "C", .boundary = boundary, .method = method});
          },
          {.sizes = {{"C", 2}, {"Nx", 6}, {"Ny", 5}}});
    }
  }
  add("Convolution3",
      [](DType t) {
        return Convolution(random({2, 3, 2}, t), {.batch = Dims()});
      },
      {.sizes = {{"Nx", 3}, {"Ny", 4}, {"Nz", 5}}});
  add("ConvolutionWide",
      [](DType t) {
        return Convolution(random({9}, t), {.batch = Dims(), .boundary = Boundary::circular});
      },
      {.sizes = {{"Nx", 4}}});
  for (const Boundary boundary : {Boundary::zeros, Boundary::circular}) {
    add(boundary == Boundary::zeros ? "ConvolutionToZeros" : "ConvolutionToCircular",
        [=](DType t) {
          return Convolution(
                     random({3}, t),
                     {.batch = "C", .grid = Dims("A"), .out = Dims("B"), .boundary = boundary})
              .with_sizes({{"A", 5}});
        },
        {.sizes = {{"C", 2}}});
  }
  add("ConvolutionKernelNormal",
      [](DType t) {
        return Convolution(
            random({3}, t),
            {.batch = Dims(), .boundary = Boundary::circular, .normal = ConvolutionNormal::kernel});
      },
      {.sizes = {{"Nx", 8}}});
  add("FftConvolution",
      [](DType t) {
        return FftConvolution(random({3, 4}, t));
      },
      {.sizes = {{"Nx", 5}, {"Ny", 6}}});
  for (const DifferenceBoundary boundary :
       {DifferenceBoundary::periodic, DifferenceBoundary::neumann, DifferenceBoundary::zero}) {
    const std::string suffix = std::to_string(static_cast<int>(boundary));
    add("FiniteDifference" + suffix,
        [=](DType) {
          return FiniteDifference("A ... B", "A", {.boundary = boundary, .spacing = 0.5});
        },
        {.sizes = {{"A", 6}, {"B", 3}}, .ellipsis = {2}});
    add("Gradient" + suffix,
        [=](DType) {
          return Gradient("Ny Nx", "Ny Nx",
                          {.boundary = boundary, .direction = DifferenceDirection::backward});
        },
        {.sizes = {{"Ny", 4}, {"Nx", 5}}});
  }
  for (const char* family : {"haar", "db2", "db5"}) {
    add("Wavelet_" + std::string(family),
        [=](DType) { return Wavelet("C Y X", "Y X", {.family = family, .levels = 2}); },
        {.sizes = {{"C", 3}, {"Y", 8}, {"X", 12}}});
  }
  add("Wavelet_odd", [](DType) { return Wavelet("C Y X", "Y X", {.family = "db2", .levels = 2}); },
      {.sizes = {{"C", 2}, {"Y", 7}, {"X", 11}}});
  add("Roll",
      [](DType) {
        return Roll("C Y ... X", "Y X", {2, -1});
      },
      {.sizes = {{"C", 2}, {"Y", 5}, {"X", 4}}, .ellipsis = {2}});
  add("Kronecker", [](DType t) {
    return Kronecker(Dense(random({4, 3}, t), "MN,N->M"),
                     Fft(1, {.norm = FftNorm::backward}).with_sizes({{"Nx", 5}}));
  });
  add("KroneckerOfMatrices", [](DType t) {
    return Kronecker(Dense(random({4, 3}, t), "MN,N->M"), Dense(random({2, 5}, t), "PQ,Q->P"));
  });
  add("SimpleLinop",
      [](DType) {
        return SimpleLinop({.fn = [](const Variable& x) { return x * 2.0; },
                            .adj_fn = [](const Variable& y) { return y * 2.0; },
                            .normal_fn = [](const Variable& x) { return x * 4.0; }});
      },
      {.ellipsis = {5}});
  add("SimpleLinopTransposed",
      [](DType) {
        return SimpleLinop(
            {.fn = [](const Variable& x) { return x - ops::roll(x, 1, -1); }, .ishape = "A B"});
      },
      {.sizes = {{"A", 2}, {"B", 5}}});
}

NamedLinop wide_dense(DType t, index_t rows, index_t columns, std::uint64_t stream) {
  return Dense(random({rows, columns}, t, stream), "MN,N->M");
}

void add_containers(std::vector<LinopSample>& all) {
  const auto add = [&](std::string name, std::function<NamedLinop(DType)> make,
                       TestOptions options = {}) {
    all.push_back({std::move(name), std::move(make), std::move(options)});
  };
  add("ConcatIn", [](DType t) {
    return Concat({wide_dense(t, 4, 3, 0), wide_dense(t, 4, 2, 1)}, {.in = "N"});
  });
  add("ConcatOut", [](DType t) {
    return Concat({wide_dense(t, 4, 3, 0), wide_dense(t, 2, 3, 1)}, {.out = "M"});
  });
  add("ConcatBoth", [](DType t) {
    return BlockDiagonal({wide_dense(t, 4, 3, 0), wide_dense(t, 2, 5, 1)}, "N", "M");
  });
  add("ConcatDiagonals", [](DType t) {
    return BlockDiagonal({Diagonal(random({3}, t), "A"), Diagonal(random({2}, t), "A")}, "A", "A");
  });
  add("StackIn", [](DType t) {
    return Stack({wide_dense(t, 4, 3, 0), wide_dense(t, 4, 3, 1)}, {.in = {"S", 1}});
  });
  add("StackOut", [](DType t) {
    return Stack({wide_dense(t, 4, 3, 0), wide_dense(t, 4, 3, 1)}, {.out = {"S", 0}});
  });
  add("StackBoth", [](DType t) {
    return Stack({wide_dense(t, 4, 3, 0), wide_dense(t, 4, 3, 1), wide_dense(t, 4, 3, 2)},
                 {.in = {"S", 0}, .out = {"T", -1}});
  });
  add("StackBehindEllipsis",
      [](DType t) {
        return Stack({Diagonal(random({3}, t), "... A"), Diagonal(random({3}, t), "... A")},
                     {.in = {"S", -1}, .out = {"S", 1}});
      },
      {.ellipsis = {2}});
  add("StackOfChains", [](DType t) {
    const auto one = [&](std::uint64_t stream) {
      return Chain(wide_dense(t, 4, 3, stream), Diagonal(random({4}, t, stream), "M"));
    };
    return Stack({one(0), one(1)}, {.out = {"S", 0}});
  });
  add("ConcatOfAdds", [](DType t) {
    return Concat({Add(wide_dense(t, 4, 3, 0), wide_dense(t, 4, 3, 1)), wide_dense(t, 2, 3, 2)},
                  {.out = "M"});
  });
  add("WaveletSense", [](DType t) {
    return Chain(Wavelet("Ny Nx", "Ny Nx", {.family = "db2", .levels = 1}).H(),
                 Dense(random({3, 4, 6}, t), "C Ny Nx,Ny Nx->C Ny Nx"),
                 Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = true}));
  });
}

}  // namespace

std::vector<LinopSample> linop_samples() {
  std::vector<LinopSample> all;
  const auto add = [&](std::string name, std::function<NamedLinop(DType)> make,
                       TestOptions options = {}) {
    all.push_back({std::move(name), std::move(make), std::move(options)});
  };
  add("Identity", [](DType) { return Identity("A ..."); },
      {.sizes = {{"A", 3}}, .ellipsis = {2, 2}});
  add("Zero",
      [](DType) {
        return Zero("A B", "C A", {.sizes = {{"C", 2}}});
      },
      {.sizes = {{"A", 3}, {"B", 4}}});
  add("ScalarNumber", [](DType) { return Scalar(std::complex<double>(2, -3), "A"); },
      {.sizes = {{"A", 5}}});
  add("ScalarReal", [](DType) { return Scalar(0.5); }, {.ellipsis = {4}});
  add("ScalarParameter", [](DType t) { return Scalar(Parameter(random({}, t)), "A"); },
      {.sizes = {{"A", 5}}});
  add("Diagonal", [](DType t) { return Diagonal(random({4, 3}, t), "A B"); });
  add("DiagonalReal", [](DType t) { return Diagonal(random({3}, real_of(t)), "A B"); },
      {.sizes = {{"A", 4}}});
  add("DiagonalUnderEllipsis",
      [](DType t) {
        return Diagonal(random({4, 3}, t));
      },
      {.ellipsis = {2, 4, 3}});
  add("DiagonalOfSomeAxes",
      [](DType t) {
        return Diagonal(random({2, 3}, t), "A B C D", {.weight_shape = Dims("A C")});
      },
      {.sizes = {{"B", 3}, {"D", 2}}});
  add("DiagonalStretched", [](DType t) {
    return Diagonal(random({1, 3}, t), "A B", {.broadcast = "A", .sizes = {{"A", 4}}});
  });
  add("DenseMatrix", [](DType t) { return Dense(random({4, 3}, t)); });
  add("DenseBatch", [](DType t) { return Dense(random({2, 4, 3}, t)); });
  add("DenseNamed", [](DType t) { return Dense(random({5, 3, 7}, t), "BMN,BN->BM"); });
  add("DensePassing",
      [](DType t) {
        return Dense(random({4, 3}, t), "MN,T N->M T");
      },
      {.sizes = {{"T", 2}}});
  add("DenseRun",
      [](DType t) {
        return Dense(random({4, 3}, t), "MN,... N->... M");
      },
      {.ellipsis = {2, 3}});
  add("DenseMaps", [](DType t) { return Dense(random({3, 4, 5}, t), "CNxNy,NxNy->CNxNy"); });
  add("DenseRealMaps", [](DType t) {
    return Dense(random({3, 4, 5}, real_of(t)), "CNxNy,NxNy->CNxNy");
  });
  add("DenseElementwise", [](DType t) { return Dense(random({4, 5}, t), "AB,AB->AB"); });
  add("DenseSquare", [](DType t) {
    return Dense(random({3, 3}, t), "MN,N->M", {.output = Dims("N")});
  });
  add("DenseStretched",
      [](DType t) {
        return Dense(random({1, 4, 3}, t), "AMN,AN->AM", {.broadcast = "A"});
      },
      {.sizes = {{"A", 2}}});
  // Weights of which several elements are one: stretched, and windows that overlap.
  add("DenseOfStretchedWeight", [](DType t) {
    return Dense(random({3}, t).expand({2, 5, 3}), "BMN,BN->BM");
  });
  add("DenseOfWindows", [](DType t) { return Dense(random({7}, t).unfold(0, 3, 1), "MN,N->M"); });
  add("DenseTall", [](DType t) { return Dense(random({2, 5}, t), "MN,N->M"); });
  for (const bool centered : {false, true}) {
    for (const FftNorm norm : {FftNorm::ortho, FftNorm::backward, FftNorm::forward}) {
      const std::string suffix =
          std::string(centered ? "Centered" : "") + (norm == FftNorm::ortho      ? "Ortho"
                                                     : norm == FftNorm::backward ? "Backward"
                                                                                 : "Forward");
      add("Fft1" + suffix, [=](DType) { return Fft(1, {.norm = norm, .centered = centered}); },
          {.sizes = {{"Nx", 7}}, .ellipsis = {2}});
      add("Fft2" + suffix,
          [=](DType) {
            return Fft(2, {.batch = "C", .norm = norm, .centered = centered})
                .with_sizes({{"Nx", 4}, {"Ny", 5}});
          },
          {.sizes = {{"C", 2}}});
    }
  }
  add("FftInverse", [](DType) { return Fft(2, {.norm = FftNorm::backward}).inverse(); },
      {.sizes = {{"Kx", 4}, {"Ky", 3}}});
  add("Fft3", [](DType) { return Fft(3, {.centered = true}); },
      {.sizes = {{"Nx", 3}, {"Ny", 4}, {"Nz", 2}}});
  for (const index_t size : {5, 6}) {
    const std::string suffix = std::to_string(size);
    add("Pad" + suffix, [=](DType) { return Pad({size, 4}, {9, 4}); }, {.ellipsis = {2}});
    add("Crop" + suffix,
        [=](DType) {
          return Crop({9, 4}, {size, 3}, {.batch = "B"});
        },
        {.sizes = {{"B", 2}}});
  }
  add("Sampling",
      [](DType) {
        return Sampling(points(), {5, 6}, {.input = Dims("NyNx"), .batch = "C"});
      },
      {.sizes = {{"C", 2}}});
  add("SamplingGrid", [](DType) {
    return Sampling({Tensor::from<index_t>({4, 0, 2}, Extents{3, 1}),
                     Tensor::from<index_t>({5, 1}, Extents{1, 2})},
                    {5, 6}, {.input = Dims("NyNx")});
  });
  add("SamplingFromMask", [](DType) { return SamplingFromMask(mask(), {.input = Dims("NyNx")}); },
      {.ellipsis = {2}});
  add("Interpolate1",
      [](DType t) {
        return Interpolate(locations({7}, 12, t), {7}, {.width = 3.0, .grid = Dims("N")});
      },
      {.ellipsis = {2}});
  add("Interpolate2", [](DType t) {
    return Interpolate(locations({8, 9}, 12, t).view({3, 4, 2}), {8, 9},
                       {.kernel = KaiserBessel{.beta = 5.0}, .grid = Dims("Y X")});
  });
  add("InterpolateSplineZero", [](DType t) {
    return Interpolate(locations({8, 9}, 12, t), {8, 9},
                       {.width = PerAxis{2.5, 3},
                        .kernel = Spline{.order = 2},
                        .norm = 2,
                        .pad_mode = PadMode::zero,
                        .grid = Dims("Y X")});
  });
  add("Nufft1", [](DType t) { return Nufft(locations({9}, 20, t), {9}, "K", {.batch = "C"}); },
      {.sizes = {{"C", 2}}});
  add("Nufft2", [](DType t) {
    return Nufft(locations({6, 7}, 20, t).view({4, 5, 2}), {6, 7}, "S R",
                 {.sign = 1, .scale = NufftScale::none, .eps = 1e-5});
  });
  add("Nufft3", [](DType t) { return Nufft(locations({4, 5, 3}, 20, t), {4, 5, 3}, "K"); });
  add("NufftSampling", [](DType t) {
    return SamplingNufft(locations({6, 7}, 20, t), {6, 7}, "K");
  });
  add("NufftSamplingOfManyPoints",
      [](DType t) {
        return SamplingNufft(locations({3, 4}, 60, t), {3, 4}, "K", {.batch = "C"});
      },
      {.sizes = {{"C", 2}}});
  add("NufftToeplitz",
      [](DType t) {
        return Nufft(locations({6, 7}, 20, t), {6, 7}, "K",
                     {.batch = "C", .eps = 1e-6, .toeplitz = Toeplitz::yes});
      },
      {.sizes = {{"C", 2}}});
  // Names of neighbours that the inside of the normal operator might have chosen.
  add("NufftToeplitzBesideNames", [](DType t) {
    return Chain(Dense(random({6, 2, 3}, t), "NxKxNx1,Nx1->KxNx"),
                 Nufft(locations({6}, 9, t), {6}, "K", {.eps = 1e-6, .toeplitz = Toeplitz::yes}));
  });
  add("NufftToeplitzDense",
      [](DType t) {
        return Nufft(locations({6, 7}, 20, t), {6, 7}, "K",
                     {.batch = "C", .eps = 1e-6, .toeplitz = Toeplitz::yes})
            .normal(Dense(random({3, 2, 20}, t), "PCK,CK->PK"));
      },
      {.sizes = {{"C", 2}}});
  add("NufftSense", [](DType t) {
    return Chain(Dense(random({3, 6, 7}, t), "CNxNy,NxNy->CNxNy"),
                 Nufft(locations({6, 7}, 20, t), {6, 7}, "K", {.batch = "C"}),
                 Diagonal(random({20}, real_of(t)), "C K"));
  });
  add("SumReduce",
      [](DType) {
        return SumReduce("A B C", "A C", {.sizes = {{"B", 4}}});
      },
      {.sizes = {{"A", 2}, {"C", 3}}});
  add("SumReduceUnderEllipsis",
      [](DType) {
        return SumReduce("A ... B", "...", {.sizes = {{"A", 2}, {"B", 4}}});
      },
      {.ellipsis = {3}});
  add("Repeat",
      [](DType) {
        return Repeat({{"C", 3}, {"D", 2}}, "A B", "C A D B");
      },
      {.sizes = {{"A", 2}, {"B", 4}}});
  add("Chain", [](DType t) {
    return Chain(Dense(random({4, 3}, t), "KN,N->K"), Dense(random({5, 4}, t, 1), "MK,K->M"));
  });
  add("ChainOfSum",
      [](DType t) { return Chain(SumReduce("A B", "A"), Diagonal(random({3}, t), "A")); },
      {.sizes = {{"B", 4}}});
  add("Add", [](DType t) {
    return Add(Dense(random({3, 3}, t), "MN,N->M", {.output = Dims("N")}), Scalar(2.5, "N"),
               Zero("N"));
  });
  add("AddOfTheSame", [](DType t) {
    const NamedLinop A = Dense(random({4, 3}, t), "MN,N->M");
    return Add(A, A);
  });
  add("Difference", [](DType t) {
    return Dense(random({4, 3}, t), "MN,N->M") - Dense(random({4, 3}, t, 1), "MN,N->M");
  });
  add("Power", [](DType t) {
    return pow(Dense(random({3, 3}, t), "MN,N->M", {.output = Dims("N")}), 3);
  });
  add("Sense", [](DType t) { return sense(t, false); });
  add("SenseCentered", [](DType t) { return std::complex<double>(0, 2) * sense(t, true); });
  add("SenseWeighted",
      [](DType t) { return Chain(sense(t, true), Diagonal(random({6}, real_of(t)), "C K")); });
  add("SenseRegularized", [](DType t) { return sense(t, true).N() + 0.1 * Identity("Ny Nx"); });
  add("Sleep", [](DType) { return Sleep(1e-5, "A B"); }, {.sizes = {{"A", 2}, {"B", 3}}});
  add("Breakpoint",
      [](DType) {
        set_breakpoint_hook("sample", [](const BreakpointHit&) {});
        return Breakpoint("... A", "sample");
      },
      {.sizes = {{"A", 3}}, .ellipsis = {2}});
  add("DividedByParameter", [](DType t) {
    return Dense(random({4, 3}, t), "MN,N->M") / Parameter(random({}, t, 3));
  });
  add("OnAnotherDevice", [](DType t) {
    const Device here{}, there{DeviceType::cpu, 2};
    return Chain(ToDevice(here, there, "A B"), Diagonal(random({4, 3}, t).to(there), "A B"),
                 ToDevice(there, here, "A B"));
  });
  add_structure(all);
  add_containers(all);
  for (const auto& [name, samples] : linop_sample_lists()) {
    for (LinopSample& sample : samples()) all.push_back(std::move(sample));
  }
  return all;
}

Extents input_extents(const NamedLinop& A, const TestOptions& options) {
  if (options.extents) return *options.extents;
  Extents result;
  for (const ND& d : A.ishape()) {
    if (d.is_ellipsis()) {
      for (const index_t n : options.ellipsis) result.push_back(n);
      continue;
    }
    const auto given = options.sizes.find(d);
    result.push_back(A.size(d) ? *A.size(d) : given->second);
  }
  return result;
}

std::vector<Refusal> linop_refusals() {
  std::vector<Refusal> all;
  for (const auto refusals : linop_refusal_lists()) {
    for (Refusal& refusal : refusals()) all.push_back(std::move(refusal));
  }
  return all;
}

std::ostream& operator<<(std::ostream& stream, const LinopSample& sample) {
  return stream << sample.name;
}

}  // namespace palimpsest::testing
