// SPDX-License-Identifier: Apache-2.0
// Random operator trees with complex scalars, compared with their dense matrices. The matrix of a
// tree follows from the matrices of its leaves by matrix algebra. The tree, its adjoint, its normal
// operator and the normal operator of its adjoint are applied to random data, also into windows of
// larger arrays.
#include <numeric>
#include <random>

#include "linop/linop_support.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/rearrange.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/linop/operators/sparse.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "support/long_run.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::adjoint;
using testing::Complex;
using testing::matrix;
using testing::Matrix;
using testing::values;

constexpr int kShards = 8, kTreesPerShard = 250, kDepth = 6;
int trees_per_shard() { return testing::longer(kTreesPerShard); }
constexpr index_t kMostElements = 48;

// Named axes with known sizes.
struct Space {
  Dims dims;
  Extents sizes;
  index_t count() const { return element_count(sizes); }
  Space with(std::size_t k, const ND& name, index_t size) const {
    Space result;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      result.dims.push_back(i == k ? name : dims[i]);
      result.sizes.push_back(i == k ? size : sizes[i]);
    }
    return result;
  }
  Space without(std::size_t k) const { return slice_of(0, k) + slice_of(k + 1, sizes.size()); }
  Space slice_of(std::size_t first, std::size_t last) const {
    Space result;
    for (std::size_t i = first; i < last; ++i) {
      result.dims.push_back(dims[i]);
      result.sizes.push_back(sizes[i]);
    }
    return result;
  }
  friend Space operator+(Space a, const Space& b) {
    a.dims += b.dims;
    for (const index_t n : b.sizes) a.sizes.push_back(n);
    return a;
  }
};

struct Tree {
  NamedLinop A;
  Matrix M;
  Space in, out;
};

Matrix scaled(Complex s, const Matrix& m) {
  return matrix(m.size(), m[0].size(), [&](std::size_t i, std::size_t j) { return s * m[i][j]; });
}
Matrix sum(const Matrix& a, const Matrix& b) {
  return matrix(a.size(), a[0].size(),
                [&](std::size_t i, std::size_t j) { return a[i][j] + b[i][j]; });
}

// The positions of the elements of a part of a space, which begins at `start` along axis k.
std::vector<std::size_t> places(const Space& whole, const Extents& part, std::size_t k,
                                index_t start) {
  std::vector<std::size_t> result;
  for (index_t i = 0; i < element_count(part); ++i) {
    index_t rest = i, place = 0, stride = 1;
    for (std::size_t axis = part.size(); axis-- > 0;) {
      const index_t position = rest % part[axis] + (axis == k ? start : 0);
      rest /= part[axis];
      place += position * stride;
      stride *= whole.sizes[axis];
    }
    result.push_back(static_cast<std::size_t>(place));
  }
  return result;
}

class Grower {
 public:
  Grower(std::uint64_t seed, DType dtype) : random_(seed), dtype_(dtype) {}

  Tree grow() {
    Space space;
    const index_t rank = pick(1, 3);
    for (index_t d = 0; d < rank; ++d) {
      space.dims.push_back(fresh());
      space.sizes.push_back(pick(1, rank == 1 ? 8 : 4));
    }
    return tree(space, static_cast<int>(pick(1, kDepth)));
  }

  Tensor data(const Space& space) { return noise(space.sizes, dtype_); }

 private:
  index_t pick(index_t first, index_t last) {
    return std::uniform_int_distribution<index_t>(first, last)(random_);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  ND fresh() { return ND("D", ++names_); }
  Tensor noise(Extents shape, DType dtype) {
    return Tensor::random_normal(std::move(shape), dtype, {random_(), 0});
  }
  Complex number() {
    const Complex z(static_cast<double>(pick(-3, 3)), static_cast<double>(pick(-3, 3)));
    return z == 0.0 ? Complex(1, -1) : z / 2.0;
  }
  DType weight_dtype() { return chance(30) ? real_of(dtype_) : dtype_; }

  // -- leaves -----------------------------------------------------------------------------------

  Tree leaf_of(const NamedLinop& A, const Space& in, const Space& out) {
    const Tensor dense = to_dense(A, {.extents = in.sizes, .dtype = dtype_});
    const auto flat = values(dense);
    const auto columns = static_cast<std::size_t>(in.count());
    return {A,
            matrix(static_cast<std::size_t>(out.count()), columns,
                   [&](std::size_t i, std::size_t j) { return flat[i * columns + j]; }),
            in, out};
  }

  Tree diagonal(const Space& s) {
    return leaf_of(Diagonal(noise(s.sizes, weight_dtype()), s.dims), s, s);
  }

  Tree matrix_on(const Space& s, std::size_t k) {
    const ND name = fresh();
    const Space out = s.with(k, name,
                             pick(1, std::min<index_t>(5, kMostElements * s.sizes[k] /
                                                              std::max<index_t>(s.count(), 1))));
    const Tensor W = noise({out.sizes[k], s.sizes[k]}, weight_dtype());
    return leaf_of(Dense(W, Dims{name, s.dims[k]}, s.dims, out.dims), s, out);
  }

  // A leaf over several axes, or over points.
  Tree wide_leaf(const Space& s) {
    const std::size_t rank = s.sizes.size();
    const bool may_grow = s.count() * 2 <= kMostElements;
    const Dims batch = s.dims.slice(0, rank - 1);
    const Dims last(s.dims[rank - 1]);
    const index_t n = s.sizes[rank - 1];
    switch (pick(0, 7)) {
      case 0: {
        const Space out = s.with(rank - 1, fresh(), pick(1, 3));
        return leaf_of(
            Zero(s.dims, out.dims,
                 {.sizes = {{s.dims[rank - 1], n}, {out.dims[rank - 1], out.sizes[rank - 1]}}}),
            s, out);
      }
      case 1: {
        const Space out = s.with(rank - 1, fresh(), pick(1, n + 1));
        std::vector<index_t> index;
        for (index_t i = 0; i < out.sizes[rank - 1]; ++i) index.push_back(pick(0, n - 1));
        return leaf_of(
            Sampling({Tensor::from(index)}, {n},
                     {.output = Dims(out.dims[rank - 1]), .input = last, .batch = batch}),
            s, out);
      }
      case 2: {  // points of a grid, scattered to it
        if (!may_grow) break;
        const Space out = s.with(rank - 1, fresh(), n + pick(0, 2));
        std::vector<index_t> index;
        for (index_t i = 0; i < n; ++i) index.push_back(pick(0, out.sizes[rank - 1] - 1));
        return leaf_of(Sampling({Tensor::from(index)}, {out.sizes[rank - 1]},
                                {.output = last, .input = Dims(out.dims[rank - 1]), .batch = batch})
                           .H(),
                       s, out);
      }
      case 3: {
        const Space out = s.with(rank - 1, fresh(), pick(1, 4));
        const Tensor locs =
            Tensor::random_uniform({out.sizes[rank - 1], 1}, real_of(dtype_), {random_(), 0});
        return leaf_of(Interpolate(locs, {n},
                                   {.width = 2.5,
                                    .kernel = Spline{.order = static_cast<int>(pick(0, 2))},
                                    .batch = batch,
                                    .locs_batch = Dims(out.dims[rank - 1]),
                                    .grid = last}),
                       s, out);
      }
      case 4: {
        const Space out = s.with(rank - 1, fresh(), pick(1, 5));
        const Tensor locs = noise({out.sizes[rank - 1], 1}, real_of(dtype_));
        const bool reversed = chance(50);
        return leaf_of(Nufft(locs, {n}, Dims(out.dims[rank - 1]),
                             {.input = last,
                              .batch = batch,
                              .sign = reversed ? 1 : -1,
                              .scale = reversed ? NufftScale::none : NufftScale::ortho}),
                       s, out);
      }
      case 5: {  // the last two axes merged
        if (rank < 2) break;
        const Space group{Dims(fresh()), {s.sizes[rank - 2] * n}};
        const Space out = s.slice_of(0, rank - 2) + group;
        const std::string names[] = {s.dims[rank - 2].str(), s.dims[rank - 1].str()};
        std::string left, outer;
        for (const ND& d : s.dims) left += d.str() + " ";
        for (const ND& d : s.dims.slice(0, rank - 2)) outer += d.str() + " ";
        const bool swaps = chance(50);
        return leaf_of(
            Rearrange(left + "-> " + outer + "(" + names[swaps ? 1 : 0] + " " +
                          names[swaps ? 0 : 1] + ")",
                      {.sizes = {{s.dims[rank - 2], s.sizes[rank - 2]}}, .out = out.dims}),
            s, out);
      }
      case 6: {
        if (rank < 2) break;
        Space out = s;
        out.dims = s.dims.slice(0, rank - 2) + Dims{fresh(), fresh()};
        return leaf_of(
            Fft(2, {.batch = s.dims.slice(0, rank - 2),
                    .grid = Grid{s.dims.slice(rank - 2, rank), out.dims.slice(rank - 2, rank)},
                    .norm = static_cast<FftNorm>(pick(0, 2)),
                    .centered = chance(50)})
                .with_sizes({{s.dims[rank - 2], s.sizes[rank - 2]}, {s.dims[rank - 1], n}}),
            s, out);
      }
      default: {  // a matrix for each element of another axis
        if (rank < 2) break;
        const Space out = s.with(rank - 1, fresh(), pick(1, 3));
        const Dims weight{s.dims[0], out.dims[rank - 1], s.dims[rank - 1]};
        return leaf_of(Dense(noise({s.sizes[0], out.sizes[rank - 1], n}, weight_dtype()), weight,
                             s.dims, out.dims),
                       s, out);
      }
    }
    return diagonal(s);
  }

  Tree leaf(const Space& s) {
    if (chance(25)) return wide_leaf(s);
    const auto k = static_cast<std::size_t>(pick(0, static_cast<index_t>(s.sizes.size()) - 1));
    const index_t n = s.sizes[k];
    const bool last = k + 1 == s.sizes.size(), may_grow = s.count() * 2 <= kMostElements;
    const Dims batch = s.dims.slice(0, s.dims.size() - 1);
    switch (pick(0, 17)) {
      case 0:
        return leaf_of(Identity(s.dims), s, s);
      case 1:
        return leaf_of(Scalar(number(), s.dims), s, s);
      case 2:
      case 3:
        return matrix_on(s, k);
      case 4: {
        if (!last) break;
        const Space out = s.with(k, fresh(), n);
        return leaf_of(Fft(1, {.batch = batch,
                               .grid = Grid{s.dims[k], out.dims[k]},
                               .norm = static_cast<FftNorm>(pick(0, 2)),
                               .centered = chance(50)})
                           .with_sizes({{s.dims[k], n}}),
                       s, out);
      }
      case 5: {
        if (!last || !may_grow) break;
        const Space out = s.with(k, fresh(), n + pick(0, n));
        return leaf_of(
            Pad({n}, {out.sizes[k]}, {.batch = batch, .in = s.dims[k], .out = out.dims[k]}), s,
            out);
      }
      case 6: {
        if (!last) break;
        const Space out = s.with(k, fresh(), pick(1, n));
        return leaf_of(
            Crop({n}, {out.sizes[k]}, {.batch = batch, .in = s.dims[k], .out = out.dims[k]}), s,
            out);
      }
      case 7: {
        const bool grows = may_grow && chance(50);
        const Space out = s.with(k, fresh(), grows ? n + pick(0, n) : pick(1, n));
        const PadDimOptions options{.out = out.dims[k]};
        return leaf_of(grows ? PadDim(s.dims[k], n, out.sizes[k], s.dims, options)
                             : Truncate(s.dims[k], n, out.sizes[k], s.dims, options),
                       s, out);
      }
      case 8: {
        const index_t start = pick(0, n - 1), stop = pick(start + 1, n);
        const Space out = s.with(k, fresh(), stop - start);
        return leaf_of(Restrict(s.dims, {{s.dims[k], slice(start, stop)}},
                                {.sizes = {{s.dims[k], n}}, .out = Dims(out.dims[k])}),
                       s, out);
      }
      case 9: {
        std::vector<std::size_t> order(s.sizes.size());
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), random_);
        Space out;
        for (const std::size_t i : order) {
          out.dims.push_back(s.dims[i]);
          out.sizes.push_back(s.sizes[i]);
        }
        return leaf_of(Permute(s.dims, out.dims), s, out);
      }
      case 10: {
        if (s.sizes.size() < 2) break;
        const Space out = s.without(k);
        return leaf_of(SumReduce(s.dims, out.dims, {.sizes = {{s.dims[k], n}}}), s, out);
      }
      case 11: {
        if (!may_grow) break;
        const ND name = fresh();
        const Space more{Dims(name), {2}};
        const Space out = s.slice_of(0, k) + more + s.slice_of(k, s.sizes.size());
        return leaf_of(Repeat({{name, 2}}, s.dims, out.dims), s, out);
      }
      case 12:
        return leaf_of(
            FiniteDifference(s.dims, s.dims[k],
                             {.boundary = static_cast<DifferenceBoundary>(pick(0, 2)),
                              .spacing = 0.5,
                              .direction = static_cast<DifferenceDirection>(pick(0, 1))}),
            s, s);
      case 13:
        if (n % 2 != 0) break;
        return leaf_of(
            Wavelet(s.dims, s.dims[k], {.family = chance(50) ? "haar" : "db2", .levels = 1}), s, s);
      case 14: {
        if (!last) break;
        return leaf_of(Convolution(noise({pick(1, 4)}, weight_dtype()),
                                   {.batch = batch,
                                    .grid = Dims(s.dims[k]),
                                    .boundary = chance(50) ? Boundary::zeros : Boundary::circular,
                                    .method = static_cast<ConvolutionMethod>(pick(0, 2))}),
                       s, s);
      }
      case 15: {
        if (!last || n < 2 || !may_grow) break;
        const Space blocks{Dims{fresh(), fresh()}, {n - 1, 2}};
        return leaf_of(ArrayToBlocks({n}, {2}, {1},
                                     {.batch = batch,
                                      .array = Dims(s.dims[k]),
                                      .blocks = Dims(blocks.dims[0]),
                                      .inner = Dims(blocks.dims[1])}),
                       s, s.slice_of(0, k) + blocks);
      }
      case 16: {
        if (!last) break;
        const index_t rows = pick(1, 4);
        std::vector<index_t> columns, start{0};
        for (index_t r = 0; r < rows; ++r) {
          for (index_t j = pick(0, 2); j > 0; --j) columns.push_back(pick(0, n - 1));
          start.push_back(static_cast<index_t>(columns.size()));
        }
        if (columns.empty()) break;
        const Space out = s.with(k, fresh(), rows);
        return leaf_of(Sparse(noise({static_cast<index_t>(columns.size())}, weight_dtype()),
                              Tensor::from(columns), Tensor::from(start), n,
                              {.in = s.dims[k], .out = out.dims[k], .batch = batch}),
                       s, out);
      }
      case 17: {
        const Space out = s.with(k, fresh(), n);
        return leaf_of(ShapeSpec(s.dims, out.dims), s, out);
      }
      default:
        break;
    }
    return diagonal(s);
  }

  // -- containers -------------------------------------------------------------------------------

  static Tree chain(const Tree& first, const Tree& second) {
    return {second.A * first.A, second.M * first.M, first.in, second.out};
  }

  // Another operator between the same spaces.
  Tree variant(const Tree& t) {
    switch (pick(0, 2)) {
      case 0: {
        const Complex s = number();
        return {s * t.A, scaled(s, t.M), t.in, t.out};
      }
      case 1:
        return chain(t, diagonal(t.out));
      default:
        return chain(diagonal(t.in), t);
    }
  }

  Tree stacked(const Space& s, int depth) {
    const ND name = fresh();
    if (chance(50) || s.sizes.size() < 2) {  // one input, results stacked
      const Tree a = tree(s, depth - 1), b = variant(a);
      const auto k = static_cast<std::size_t>(pick(0, static_cast<index_t>(a.out.sizes.size())));
      const Space out =
          a.out.slice_of(0, k) + Space{Dims(name), {2}} + a.out.slice_of(k, a.out.sizes.size());
      const NamedLinop A = Stack({a.A, b.A}, {.out = {name, static_cast<index_t>(k)}});
      Extents one = out.sizes;
      one[k] = 1;
      Matrix M(static_cast<std::size_t>(out.count()));
      for (index_t i : {0, 1}) {
        const Matrix& part = i == 0 ? a.M : b.M;
        const auto rows = places(out, one, k, i);
        for (std::size_t r = 0; r < rows.size(); ++r) M[rows[r]] = part[r];
      }
      return {A, M, s, out};
    }
    // Each child gets one part of the input along a dimension; results are added or stacked.
    const auto k = static_cast<std::size_t>(pick(0, static_cast<index_t>(s.sizes.size()) - 1));
    std::vector<Tree> parts{tree(s.without(k), depth - 1)};
    while (static_cast<index_t>(parts.size()) < s.sizes[k]) parts.push_back(variant(parts[0]));
    const bool both = chance(50) && parts[0].out.count() * s.sizes[k] <= kMostElements;
    std::vector<NamedLinop> linops;
    for (const Tree& part : parts) linops.push_back(part.A);
    const StackAxis in(s.dims[k], static_cast<index_t>(k));
    const Space inner = parts[0].out;
    const Space out = both ? Space{Dims(name), {s.sizes[k]}} + inner : inner;
    const NamedLinop A =
        both ? Stack(linops, {.in = in, .out = {name, 0}}) : Stack(linops, {.in = in});
    Matrix M = matrix(static_cast<std::size_t>(out.count()), static_cast<std::size_t>(s.count()),
                      [](std::size_t, std::size_t) { return Complex(0); });
    Extents one = s.sizes;
    one[k] = 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto columns = places(s, one, k, static_cast<index_t>(i));
      const std::size_t first = both ? i * static_cast<std::size_t>(inner.count()) : 0;
      for (std::size_t r = 0; r < parts[i].M.size(); ++r) {
        for (std::size_t c = 0; c < columns.size(); ++c)
          M[first + r][columns[c]] = parts[i].M[r][c];
      }
    }
    return {A, M, s, out};
  }

  Tree concatenated(const Space& s) {
    const auto k = static_cast<std::size_t>(pick(0, static_cast<index_t>(s.sizes.size()) - 1));
    const index_t n = s.sizes[k];
    if (n < 2) return diagonal(s);
    const index_t cut = pick(1, n - 1);
    const ND name = fresh();
    const bool joins = chance(50);
    const index_t rows[] = {pick(1, 3), pick(1, 3)};
    const Space out = s.with(k, name, joins ? rows[0] + rows[1] : rows[0]);
    Matrix M = matrix(static_cast<std::size_t>(out.count()), static_cast<std::size_t>(s.count()),
                      [](std::size_t, std::size_t) { return Complex(0); });
    std::vector<NamedLinop> linops;
    for (int i : {0, 1}) {
      const Space from = s.with(k, s.dims[k], i == 0 ? cut : n - cut);
      const Space to = s.with(k, name, joins ? rows[i] : rows[0]);
      const Tensor W = noise({to.sizes[k], from.sizes[k]}, dtype_);
      const Tree part = leaf_of(Dense(W, Dims{name, s.dims[k]}, s.dims, to.dims), from, to);
      linops.push_back(part.A);
      const auto r = places(out, to.sizes, k, joins && i == 1 ? rows[0] : 0);
      const auto c = places(s, from.sizes, k, i == 1 ? cut : 0);
      for (std::size_t a = 0; a < r.size(); ++a) {
        for (std::size_t b = 0; b < c.size(); ++b) M[r[a]][c[b]] += part.M[a][b];
      }
    }
    return {joins ? BlockDiagonal(linops, s.dims[k], name) : Concat(linops, {.in = s.dims[k]}), M,
            s, out};
  }

  Tree product(const Space& s, int depth) {
    if (s.sizes.size() < 2) return leaf(s);
    const std::size_t n = 1;
    const Tree a = tree(s.slice_of(0, n), depth - 1),
               b = tree(s.slice_of(n, s.sizes.size()), depth - 1);
    const std::size_t rows = b.M.size(), columns = b.M[0].size();
    return {Kronecker(a.A, b.A),
            matrix(a.M.size() * rows, a.M[0].size() * columns,
                   [&](std::size_t i, std::size_t j) {
                     return a.M[i / rows][j / columns] * b.M[i % rows][j % columns];
                   }),
            s, a.out + b.out};
  }

  Tree tree(const Space& s, int depth) {
    if (depth <= 1) return leaf(s);
    switch (pick(0, 11)) {
      case 0:
      case 1:
      case 2: {
        const Tree first = tree(s, depth - 1);
        return chain(first, tree(first.out, depth - 1));
      }
      case 3: {
        const Tree a = tree(s, depth - 1), b = variant(a);
        return chance(50) ? Tree{a.A + b.A, sum(a.M, b.M), a.in, a.out}
                          : Tree{a.A - b.A, sum(a.M, scaled(-1.0, b.M)), a.in, a.out};
      }
      case 4: {
        const Tree a = tree(s, depth - 1);
        const Complex z = number();
        if (chance(30)) return {a.A / z, scaled(1.0 / z, a.M), a.in, a.out};
        return {chance(50) ? z * a.A : a.A * z, scaled(z, a.M), a.in, a.out};
      }
      case 5: {
        const Tree a = tree(s, depth - 1);
        return {a.A.N(), adjoint(a.M) * a.M, s, s};
      }
      case 6: {
        const Tree a = tree(s, depth - 1);
        const Tree inner =
            chance(50) ? diagonal(a.out) : leaf_of(Scalar(number(), a.out.dims), a.out, a.out);
        return {a.A.normal(inner.A), adjoint(a.M) * (inner.M * a.M), s, s};
      }
      case 7: {
        const Tree a = tree(s, depth - 1);
        return {a.A.H() * a.A, adjoint(a.M) * a.M, s, s};
      }
      case 8:
        return stacked(s, depth);
      case 9:
        return concatenated(s);
      case 10:
        return product(s, depth);
      default: {
        const Tree a = tree(s, depth - 1);
        return {-a.A, scaled(-1.0, a.M), a.in, a.out};
      }
    }
  }

  std::mt19937_64 random_;
  DType dtype_;
  int names_ = 0;
};

std::vector<Complex> times(const Matrix& m, const std::vector<Complex>& x) {
  std::vector<Complex> y(m.size());
  for (std::size_t i = 0; i < m.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += m[i][j] * x[j];
  }
  return y;
}

double norm_of(const std::vector<Complex>& v) {
  double sum = 0;
  for (const Complex& z : v) sum += std::norm(z);
  return std::sqrt(sum);
}

double frobenius(const Matrix& m) {
  double sum = 0;
  for (const auto& row : m) {
    for (const Complex& z : row) sum += std::norm(z);
  }
  return std::sqrt(sum);
}

void expect_result(const char* what, const Tensor& got, const std::vector<Complex>& expected,
                   double scale) {
  const auto v = values(got);
  ASSERT_EQ(v.size(), expected.size()) << what;
  std::vector<Complex> difference(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) difference[i] = v[i] - expected[i];
  EXPECT_LE(norm_of(difference), scale) << what;
}

// The result in a window.
Tensor applied(const NamedLinop& A, const Tensor& x, const Tensor& y, std::uint64_t seed) {
  testing::Window out(y.shape(), y.dtype(), testing::window_layout(seed));
  A.apply(x, out.tensor());
  return out.tensor().clone();
}

class RandomTrees : public ::testing::TestWithParam<int> {};

TEST_P(RandomTrees, AreTheirMatrices) {
  for (int i = 0; i < trees_per_shard(); ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * trees_per_shard() + i);
    const DType dtype = i % 4 == 3 ? DType::complex64 : DType::complex128;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string growing = "while growing";
    try {
      Grower grower(seed, dtype);
      const Tree t = grower.grow();
      growing = t.A.str();
      SCOPED_TRACE(growing);
      const double unit = dtype == DType::complex64 ? 1e-5 : 2e-13;
      const Matrix H = adjoint(t.M);
      // Tolerance: the norms of the leaves are of the order of the norm of the whole, or larger.
      const double size = 1 + frobenius(t.M);
      const Tensor x = grower.data(t.in), y = grower.data(t.out);
      const auto Mx = times(t.M, values(x)), Hy = times(H, values(y));
      const double x_norm = norm_of(values(x)), y_norm = norm_of(values(y));
      const double slack = 300;
      const auto expect_applied = [&](const char* what, const NamedLinop& A, const Tensor& v,
                                      const std::vector<Complex>& expected, double scale) {
        const Tensor result = A(v);
        expect_result(what, result, expected, slack * unit * scale);
        expect_result(what, applied(A, v, result, seed), expected, slack * unit * scale);
      };
      expect_applied("A", t.A, x, Mx, size * x_norm);
      expect_applied("A.H", t.A.H(), y, Hy, size * y_norm);
      expect_applied("A.N", t.A.N(), x, times(H, Mx), size * size * x_norm);
      expect_applied("A.H.N", t.A.H().N(), y, times(t.M, Hy), size * size * y_norm);
      EXPECT_TRUE(t.A.H().H().is(t.A));
      EXPECT_EQ(t.A.matrix_size(t.in.sizes), (MatrixSize{t.out.count(), t.in.count()}));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << growing;
    }
    if (HasFailure()) return;
  }
}

// A tenth of the trees: copied, moved and saved trees give the same bits.
TEST_P(RandomTrees, SurviveCopyingMovingAndSaving) {
  const Device other{DeviceType::cpu, 1};
  for (int i = 0; i < kTreesPerShard; i += 10) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * kTreesPerShard + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Grower grower(seed, i % 4 == 2 ? DType::complex64 : DType::complex128);
    const Tree t = grower.grow();
    SCOPED_TRACE(t.A.str());
    const Tensor x = grower.data(t.in), y = t.A(x), back = t.A.H()(y);
    const std::pair<const char*, NamedLinop> copies[] = {{"copy", t.A.copy()},
                                                         {"lazy", t.A.deepcopy()},
                                                         {"eager", t.A.deepcopy(Copy::eager)},
                                                         {"loaded", from_bytes(to_bytes(t.A))}};
    for (const auto& [how, B] : copies) {
      SCOPED_TRACE(how);
      EXPECT_TRUE(equal(B(x), y)) << testing::difference(B(x), y);
      EXPECT_TRUE(equal(B.H()(y), back));
      EXPECT_EQ(B.str(), t.A.str());
    }
    const NamedLinop there = t.A.to(other);
    EXPECT_TRUE(equal(there(x.to(other)).to(Device{}), y));
    EXPECT_TRUE(equal(there.H()(y.to(other)).to(Device{}), back));
    if (HasFailure()) return;
  }
}

// Some of the trees only: cutting compiles every tile.
TEST_P(RandomTrees, TilesMakeUpTheWhole) {
  for (int i = 0; i < kTreesPerShard; i += 20) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * kTreesPerShard + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::string growing = "while growing";
    try {
      Grower grower(seed, DType::complex128);
      const Tree t = grower.grow();
      growing = t.A.str();
      SCOPED_TRACE(growing);
      const auto holds = [&](const char* what, const NamedLinop& A, const Space& from) {
        const SplitTest test = check_split(A, {.extents = from.sizes, .seed = seed});
        // Sums of sums lose more digits than one operator.
        const bool is_close = test.failure.starts_with("the parts make up") && test.error < 1e-10;
        EXPECT_TRUE(test.ok || is_close) << what << test.failure;
      };
      holds("A: ", t.A, t.in);
      holds("A.H: ", t.A.H(), t.out);
      holds("A.N: ", t.A.N(), t.in);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << growing;
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomTrees, ::testing::Range(0, kShards));

}  // namespace
}  // namespace palimpsest
