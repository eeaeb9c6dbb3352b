// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/nufft.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/transforms/gridding_op.hpp"
#include "palimpsest/ops/transforms/nufft_geometry.hpp"
#include "support/difference.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;

std::vector<C> values(const Tensor& t) { return t.to(DType::complex128).to_vector<C>(); }

Tensor noise(Extents shape, DType dtype, std::uint64_t stream = 1) {
  return Tensor::random_normal(std::move(shape), dtype, {21, stream});
}

// Locations in cycles per field of view, slightly beyond the nominal range.
Tensor trajectory(const Extents& image, index_t n, DType real, double reach = 0.6) {
  const auto ndim = static_cast<index_t>(image.size());
  Tensor t = Tensor::random_uniform({n, ndim}, DType::float64, {22, 1});
  auto* k = static_cast<double*>(t.raw_mutable_data());
  for (index_t i = 0; i < n * ndim; ++i) {
    k[i] = (2 * k[i] - 1) * reach * static_cast<double>(image[static_cast<std::size_t>(i % ndim)]);
  }
  return t.to(real);
}

// The sum by definition, for every batch element: exp(sign 2 pi i k n / N), scale s.
Tensor direct(const Tensor& x, const Tensor& locs, const Extents& image, double sign = -1,
              bool ortho = true) {
  const auto k = values(locs), v = values(x);
  const auto ndim = image.size();
  const auto n_points = static_cast<std::size_t>(locs.shape(0));
  const auto n_image = static_cast<std::size_t>(element_count(image));
  const std::size_t n_batch = v.size() / n_image;
  const double s = ortho ? 1 / std::sqrt(static_cast<double>(n_image)) : 1;
  std::vector<C> y(n_batch * n_points);
  for (std::size_t p = 0; p < n_points; ++p) {
    std::vector<C> wave{s};
    for (std::size_t d = 0; d < ndim; ++d) {
      std::vector<C> next;
      const auto n = static_cast<double>(image[d]);
      for (const C& w : wave) {
        for (index_t i = 0; i < image[d]; ++i) {
          const double cycles = k[p * ndim + d].real() * static_cast<double>(i - image[d] / 2) / n;
          next.push_back(w * std::polar(1.0, sign * 2 * std::numbers::pi * cycles));
        }
      }
      wave = std::move(next);
    }
    for (std::size_t b = 0; b < n_batch; ++b) {
      for (std::size_t i = 0; i < n_image; ++i) y[b * n_points + p] += wave[i] * v[b * n_image + i];
    }
  }
  return Tensor::from(y, Extents{static_cast<index_t>(n_batch), static_cast<index_t>(n_points)});
}

Tensor transformed(const Tensor& x, const Tensor& locs, const NufftOptions& options) {
  const Variable vx = testing::input_like(x), vk = testing::input_like(locs);
  return evaluate(ops::nufft(vx, vk, options), {{vx, x}, {vk, locs}});
}
Tensor gridded(const Tensor& y, const Tensor& locs, const Extents& image,
               const NufftOptions& options) {
  const Variable vy = testing::input_like(y), vk = testing::input_like(locs);
  return evaluate(ops::nufft_adjoint(vy, vk, image, options), {{vy, y}, {vk, locs}});
}

const Extents kImages[] = {{60}, {20, 17}, {12, 9, 10}};

TEST(Nufft, HasTheAccuracyThatItsWidthPromises) {
  for (const Extents& image : kImages) {
    const int ndim = static_cast<int>(image.size());
    Extents shape{2};
    for (const index_t n : image) shape.push_back(n);
    const Tensor x = noise(shape, DType::complex128), k = trajectory(image, 150, DType::float64);
    const Tensor expected = direct(x, k, image);
    for (const double oversamp : {1.25, 2.0}) {
      for (const double w : {3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0}) {
        const NufftOptions options{.oversamp = oversamp, .width = PerAxis(w), .fast_size = false};
        const double promised = nufft_expected_error(ndim, w, oversamp);
        const double error = difference(transformed(x, k, options), expected);
        EXPECT_LE(error, promised + 1e-13) << ndim << "-D w " << w << " os " << oversamp;
        EXPECT_GE(error, promised / 300) << ndim << "-D w " << w << ": the promise is too weak";
        if (promised < 2e-6) continue;
        const Tensor single = transformed(x.to(DType::complex64), k.to(DType::float32), options);
        const Tensor exact = direct(x.to(DType::complex64), k.to(DType::float32), image);
        EXPECT_LE(difference(single, exact), promised) << ndim << "-D f32 w " << w;
      }
    }
  }
}

// The corners of k-space alone, and points that all lie at one place between two grid elements.
TEST(Nufft, PointsAtOnePlaceHaveAtMostTwiceTheError) {
  for (const Extents& image : kImages) {
    const auto ndim = static_cast<index_t>(image.size());
    Extents shape{60};
    for (const index_t n : image) shape.push_back(n);
    const Tensor x = noise(shape, DType::complex128);
    Tensor corners = Tensor::zeros({index_t{1} << ndim, ndim}, DType::float64);
    auto* const k = static_cast<double*>(corners.raw_mutable_data());
    for (index_t i = 0; i < corners.numel(); ++i) {
      const bool is_upper = ((i / ndim) >> (i % ndim)) % 2 == 1;
      k[i] =
          (is_upper ? 0.5 : -0.5) * static_cast<double>(image[static_cast<std::size_t>(i % ndim)]);
    }
    for (const double oversamp : {1.25, 1.5, 2.0}) {
      Tensor between = Tensor::zeros({1, ndim}, DType::float64);  // 7.05 elements from the middle
      between.fill(7.05 / oversamp);
      for (const Tensor& locs : {corners, between}) {
        const Tensor expected = direct(x, locs, image);
        for (const double w : {2.0, 3.0, 4.0, 6.0, 8.0}) {
          const NufftOptions options{.oversamp = oversamp, .width = PerAxis(w), .fast_size = false};
          const double promised = nufft_expected_error(static_cast<int>(ndim), w, oversamp);
          EXPECT_LE(difference(transformed(x, locs, options), expected), 2 * promised)
              << ndim << "-D w " << w << " os " << oversamp;
        }
      }
    }
  }
}

// Measured: relative l2 errors for white noise in one dimension.
TEST(Nufft, HasTheMeasuredAccuracyInOneDimension) {
  const Extents image{200};
  const Tensor x = noise({4, 200}, DType::complex128), k = trajectory(image, 1000, DType::float64);
  const Tensor expected = direct(x, k, image);
  struct Row {
    double oversamp, width, error;
  };
  for (const Row& row :
       {Row{1.25, 4, 4.7e-3}, Row{1.25, 6, 2.9e-4}, Row{1.25, 8, 1.6e-5}, Row{1.25, 12, 5.8e-8},
        Row{2, 4, 4.4e-4}, Row{2, 6, 4.3e-6}, Row{2, 8, 5.5e-8}, Row{2, 12, 8.4e-12}}) {
    const NufftOptions options{.oversamp = row.oversamp, .width = PerAxis(row.width)};
    const double error = difference(transformed(x, k, options), expected);
    EXPECT_NEAR(std::log10(error), std::log10(row.error), 0.25)
        << "w " << row.width << " os " << row.oversamp << ": " << error;
  }
}

TEST(Nufft, ReachesTheAccuracyAskedFor) {
  for (const Extents& image : kImages) {
    const Tensor x = noise(image, DType::complex128);
    for (const double eps : {1e-2, 1e-3, 1e-6, 1e-9, 1e-12, 1e-14}) {
      const Tensor k = trajectory(image, 100, DType::float64);
      const double error = difference(transformed(x, k, {.eps = eps}), direct(x, k, image));
      EXPECT_LE(error, eps + 1e-14) << image.size() << "-D " << eps;
      if (eps < 1e-6) continue;
      const Tensor x32 = x.to(DType::complex64), k32 = k.to(DType::float32);
      const double single =
          difference(transformed(x32, k32, {.eps = eps}), direct(x32, k32, image));
      EXPECT_LE(single, eps) << image.size() << "-D f32 " << eps;
    }
  }
}

// |A x - E x| <= 2 e |E| |x| for every x: the norm of the difference by power iteration.
TEST(Nufft, NoImageIsMuchWorseThanNoise) {
  const Extents image{32};
  constexpr std::size_t n = 32, m = 100;
  const Tensor k = trajectory(image, m, DType::float64);
  Tensor identity = Tensor::zeros({n, n}, DType::complex128);
  for (index_t i = 0; i < static_cast<index_t>(n); ++i) identity.set<C>({i, i}, 1.0);
  const auto norm_of = [&](const std::vector<C>& rows) {  // n rows of m: the transpose
    std::vector<C> v(n, 1.0);
    double norm = 0;
    for (int iteration = 0; iteration < 200; ++iteration) {
      std::vector<C> y(m), next(n);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t p = 0; p < m; ++p) y[p] += rows[i * m + p] * v[i];
      }
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t p = 0; p < m; ++p) next[i] += std::conj(rows[i * m + p]) * y[p];
      }
      norm = 0;
      for (const C& z : next) norm += std::norm(z);
      norm = std::sqrt(norm);
      for (std::size_t i = 0; i < n; ++i) v[i] = next[i] / norm;
    }
    return std::sqrt(norm);
  };
  const std::vector<C> exact = values(direct(identity, k, image));
  for (const double oversamp : {1.25, 2.0}) {
    for (const double w : {4.0, 6.0, 8.0}) {
      std::vector<C> difference = values(transformed(
          identity, k, {.oversamp = oversamp, .width = PerAxis(w), .fast_size = false}));
      for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= exact[i];
      EXPECT_LE(norm_of(difference), 2 * nufft_error_bound(w, oversamp) * norm_of(exact) + 1e-13)
          << w << " " << oversamp;
    }
  }
}

TEST(Nufft, UnitsSignsAndScalesAreThoseOfOtherTools) {
  const Extents image{14, 9};
  const Tensor x = noise(image, DType::complex128), k = trajectory(image, 80, DType::float64, 2.5);
  const auto in_units = [&](double factor_0, double factor_1) {
    Tensor t = k.clone();
    auto* data = static_cast<double*>(t.raw_mutable_data());
    for (index_t i = 0; i < t.numel(); ++i) data[i] *= i % 2 == 0 ? factor_0 : factor_1;
    return t;
  };
  const double two_pi = 2 * std::numbers::pi;
  for (const int sign : {-1, 1}) {
    for (const NufftScale scale : {NufftScale::ortho, NufftScale::none}) {
      const Tensor expected = direct(x, k, image, sign, scale == NufftScale::ortho);
      const auto expect = [&](const Tensor& locs, LocsUnit units) {
        const NufftOptions options{.units = units, .sign = sign, .scale = scale, .eps = 1e-12};
        EXPECT_LE(difference(transformed(x, locs, options), expected), 1e-11);
      };
      expect(k, LocsUnit::cycles);
      expect(in_units(1.0 / 14, 1.0 / 9), LocsUnit::normalized);
      expect(in_units(two_pi / 14, two_pi / 9), LocsUnit::radians);
    }
  }
  // Prepared locations are positions on the padded grid.
  const NufftOptions options{.eps = 1e-12};
  const NufftGeometry g(image, options, DType::float64, "nufft");
  Tensor prepared =
      in_units(static_cast<double>(g.padded[0]) / 14, static_cast<double>(g.padded[1]) / 9);
  auto* data = static_cast<double*>(prepared.raw_mutable_data());
  for (index_t i = 0; i < prepared.numel(); ++i) {
    data[i] += static_cast<double>(g.padded[static_cast<std::size_t>(i % 2)] / 2);
  }
  EXPECT_LE(
      difference(transformed(x, prepared, {.eps = 1e-12, .prepared = true}), direct(x, k, image)),
      1e-11);
}

TEST(Nufft, ItsAdjointIsExactToRounding) {
  for (const Extents& image : kImages) {
    for (const double w : {2.0, 4.0, 3.5, 7.0}) {
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        const NufftOptions options{.sign = w == 4.0 ? 1 : -1, .width = PerAxis(w)};
        const Tensor x = noise(image, dtype), y = noise({500}, dtype, 2);
        const Tensor k = trajectory(image, 500, real_of(dtype));
        const auto ax = values(transformed(x, k, options)), vy = values(y);
        const auto aty = values(gridded(y, k, image, options)), vx = values(x);
        C lhs = 0, rhs = 0;
        double norm_ax = 0, norm_y = 0;
        for (std::size_t i = 0; i < vy.size(); ++i) {
          lhs += std::conj(ax[i]) * vy[i];
          norm_ax += std::norm(ax[i]);
          norm_y += std::norm(vy[i]);
        }
        for (std::size_t i = 0; i < vx.size(); ++i) rhs += std::conj(vx[i]) * aty[i];
        const double rounding = dtype == DType::complex64 ? 1e-6 : 1e-14;
        EXPECT_LE(std::abs(lhs - rhs), rounding * std::sqrt(norm_ax * norm_y)) << w;
      }
    }
  }
}

TEST(Nufft, RealImagesAndLeadingAxes) {
  const Tensor x = noise({2, 3, 11}, DType::float64), k = trajectory({11}, 12, DType::float64);
  const Tensor y = transformed(x, k.view({3, 4, 1}), {.eps = 1e-10});
  EXPECT_EQ(y.shape(), (Extents{2, 3, 3, 4}));
  EXPECT_EQ(y.dtype(), DType::complex128);
  EXPECT_LE(difference(y, direct(x, k, {11})), 1e-10);
}

TEST(Nufft, SizesAndShapesOfTheKernel) {
  EXPECT_EQ(nufft_padded_size(64, 1.25), 80);
  EXPECT_EQ(nufft_padded_size(100, 1.25), 126);
  EXPECT_EQ(nufft_padded_size(100, 1.25, false), 125);
  EXPECT_EQ(nufft_padded_size(11, 2), 24);
  EXPECT_EQ(nufft_padded_size(10, 1.1), 12);
  EXPECT_EQ(nufft_padded_size(10, 1.1, false), 11);
  EXPECT_NEAR(kaiser_bessel_beta(4, 2), std::numbers::pi * std::sqrt(8.2), 1e-12);
  expect_error<ValueError>([] { kaiser_bessel_beta(1, 1.25); }, "width");
  const NufftGeometry wide({64, 64, 64}, {.eps = 1e-6}, DType::float64, "nufft");
  EXPECT_EQ(wide.spec.width[0], 11);
  EXPECT_EQ(wide.padded[0], 80);
  // With oversampling 1.25, rounding errors would exceed eps in single precision.
  const NufftGeometry single({64, 64, 64}, {.eps = 1e-6}, DType::float32, "nufft");
  EXPECT_EQ(single.spec.width[0], 8);
  EXPECT_EQ(single.padded[0], 128);
  // A width of 16 is not enough at the default oversampling.
  const NufftGeometry fine({64}, {.eps = 1e-13}, DType::float64, "nufft");
  EXPECT_EQ(fine.padded[0], 128);
  EXPECT_EQ(fine.spec.width[0], 15);
}

TEST(Nufft, DerivativesAreTheAdjointAndNoneExistsForLocations) {
  const Extents image{10, 8};
  const Tensor x = noise(image, DType::complex128), k = trajectory(image, 30, DType::float64);
  const Tensor y = noise({30}, DType::complex128, 3);
  const Variable vx = testing::input_like(x), vk = testing::input_like(k),
                 vy = testing::input_like(y);
  const Variable result = ops::nufft(vx, vk);
  EXPECT_EQ(is_linear(result, vx), Linearity::complex);
  EXPECT_LE(testing::distance(evaluate(linear_adjoint(result, vx, vy), {{vx, x}, {vk, k}, {vy, y}}),
                              gridded(y, k, image, {})),
            1e-13);
  expect_error<NotSupported>(
      [&] {
        evaluate(pullback({&result, 1}, {&vk, 1}, {&vy, 1})[0], {{vx, x}, {vk, k}, {vy, y}});
      },
      "locs");
  EXPECT_EQ(is_linear(result, vk), Linearity::no);
}

TEST(Interpolate, ReadsBetweenElementsAndSpreadsBack) {
  const Tensor x = Tensor::from<double>({0, 10, 20, 30, 40});
  const Tensor k = Tensor::from<double>({1.25, 3, 4.5}, Extents{3, 1});
  const Variable vx = testing::input_like(x), vk = testing::input_like(k);
  const InterpolateOptions linear{.width = 2.0, .kernel = Spline{.order = 1}};
  EXPECT_EQ(evaluate(ops::interpolate(vx, vk, linear), {{vx, x}, {vk, k}}).to_vector<double>(),
            (std::vector<double>{12.5, 30, 20}));
  InterpolateOptions zero = linear;
  zero.pad_mode = PadMode::zero;
  EXPECT_EQ(evaluate(ops::interpolate(vx, vk, zero), {{vx, x}, {vk, k}}).to_vector<double>(),
            (std::vector<double>{12.5, 30, 20}));
  const Tensor y = Tensor::from<double>({4, 1, 2});
  const Variable vy = testing::input_like(y);
  EXPECT_EQ(evaluate(ops::interpolate_adjoint(vy, vk, {5}, linear), {{vy, y}, {vk, k}})
                .to_vector<double>(),
            (std::vector<double>{1, 3, 1, 1, 1}));
}

Variable of(Extents shape, DType dtype = DType::complex128) {
  return make_input({dtype, std::move(shape), {}});
}

TEST(Nufft, ErrorsSayWhatIsWrong) {
  const Variable x = of({8, 8}), k = of({5, 2}, DType::float64);
  const auto refused = [&](NufftOptions options, const std::string& text) {
    expect_error<ValueError>([&] { ops::nufft(x, k, options); }, text);
  };
  refused({.eps = 1e-3, .width = PerAxis(4.0)}, "[nufft] eps: got both");
  refused({.eps = 1e-15}, "eps: got");
  refused({.eps = 1e-9, .oversamp = 1.05}, "eps: no width up to 16");
  refused({.sign = 2}, "sign: got 2");
  refused({.oversamp = 1.0}, "oversamp");
  refused({.width = PerAxis(1.0)}, "width");
  refused({.width = PerAxis{4, 4, 4}}, "width, beta");
  expect_error<ValueError>(
      [] {
        ops::nufft(of({8}, DType::complex64), of({5, 1}, DType::float32), {.eps = 1e-7});
      },
      "1e-6 in single");
  expect_error<ValueError>([&] { ops::nufft(x, of({5, 4}, DType::float64)); }, "[nufft] locs");
  expect_error<ShapeError>([&] { ops::nufft(of({8}), k); }, "image");
  expect_error<ShapeError>([&] { ops::nufft(of({kUnknown, 8}), k); }, "specify_shape");
  expect_error<DTypeError>([&] { ops::nufft(x, of({5, 2}, DType::float32)); }, "precision");
  expect_error<ValueError>([&] { ops::nufft_adjoint(of({5}), k, {8}); }, "locs: got");
  expect_error<ValueError>([&] { ops::nufft_adjoint(of({5}), k, {8, 0}); }, "grid_size");
  expect_error<ValueError>([&] { ops::nufft_adjoint(of({5}), k, {}); }, "grid_size");
  expect_error<ShapeError>([&] { ops::nufft_adjoint(of({6}), k, {8, 8}); }, "data: got");
}

TEST(Interpolate, ErrorsSayWhatIsWrong) {
  const Variable x = of({8, 8}), k = of({5, 2}, DType::float64);
  const auto refused = [&](InterpolateOptions options, const std::string& text) {
    expect_error<ValueError>([&] { ops::interpolate(x, k, options); }, text);
  };
  refused({.width = 0.0}, "[interpolate] width");
  refused({.width = PerAxis{1, 2, 3}}, "width: got 3 numbers");
  refused({.kernel = KaiserBessel{.beta = -1.0}}, "kernel");
  refused({.kernel = KaiserBessel{.beta = PerAxis{1, 2, 3}}}, "kernel beta");
  refused({.kernel = Spline{.order = 7}}, "kernel");
  refused({.norm = 0}, "norm");
  expect_error<ValueError>([&] { ops::interpolate(x, of({5, 4}, DType::float64)); }, "locs");
  expect_error<ShapeError>([&] { ops::interpolate(of({8}), k); }, "data");
  expect_error<DTypeError>([&] { ops::interpolate(x, of({5, 2}, DType::int64)); }, "locs");
  expect_error<DTypeError>([&] { ops::interpolate(of({8, 8}, DType::int64), k); }, "floating");
  const GriddingPlan plan(ops::gridding_spec(Extents{8, 8}, {}, "interpolate"));
  expect_error<DTypeError>([&] { ops::interpolate(plan, x, k, of({7}, DType::float64)); }, "order");
  expect_error<ShapeError>([&] { ops::interpolate(plan, x, k, of({99}, DType::int32)); }, "order");
  const Variable vk = of({2, 1}, DType::float64);
  const Tensor wrong = Tensor::from<double>({1, std::nan("")}, Extents{2, 1});
  expect_error<ValueError>(
      [&] {
        evaluate(ops::interpolate_adjoint(of({2}), vk, {8}).owner().input(2), {{vk, wrong}});
      },
      "finite");
  // More points than an int32 can number require known extents.
  const Variable many = of({kUnknown, 1}, DType::float64);
  const GriddingPlan line(ops::gridding_spec(Extents{8}, {}, "interpolate"));
  const Apply order = ops::point_order(line, many).owner();
  const Extents huge[] = {{index_t{1} << 31, 1}};
  expect_error<OverflowError>([&] { order.op().infer_shapes(order, huge); }, "specify_shape");
  EXPECT_EQ(ops::point_order(line, of({index_t{1} << 31, 1}, DType::float64)).dtype(),
            DType::int64);
}

}  // namespace
}  // namespace palimpsest
