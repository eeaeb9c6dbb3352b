// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/block_matrices.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/kernels/arrays/real_of.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kChunk = 64;  // rows converted to double precision at a time

template <class T>
struct WideOf {
  using type = double;
};
template <class R>
struct WideOf<std::complex<R>> {
  using type = std::complex<double>;
};
using Coordinates = SmallVector<index_t, 8>;

// The extents of the batch, the blocks, and the rows and columns of a block's matrix.
struct Shape {
  Shape(const BlockMatrices& m, std::span<const index_t> extents) {
    for (std::size_t k = 0; k < extents.size(); ++k) {
      if (m.axes[k] == BlockMatrices::kColumns) {
        columns *= extents[k];
      } else if (m.axes[k] == BlockMatrices::kBatch) {
        batch *= extents[k];
      } else {
        const index_t block = std::min(m.axes[k], extents[k]);
        rows *= block;
        blocks *= block > 0 ? (extents[k] + block - 1) / block : 0;
      }
    }
  }
  index_t small() const { return std::min(rows, columns); }
  index_t large() const { return std::max(rows, columns); }

  index_t batch = 1, blocks = 1, rows = 1, columns = 1;
};

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Scratch of one thread. A matrix with more columns than rows is transposed, so it has `large` rows
// of `small` elements. The whole matrix is never stored.
template <class W>
struct Work {
  // With `at` null only the size is computed.
  Work(const Shape& shape, std::byte* at) {
    const auto n = static_cast<std::size_t>(shape.small());
    const auto take = [&](std::size_t size) {
      std::byte* const here = at ? at + bytes : nullptr;
      bytes += aligned(size);
      return here;
    };
    const std::size_t square = n * n * sizeof(W), chunk = kChunk * n * sizeof(W);
    for (index_t** list : {&in_row, &out_row}) {
      *list =
          reinterpret_cast<index_t*>(take(static_cast<std::size_t>(shape.rows) * sizeof(index_t)));
    }
    for (index_t** list : {&in_column, &out_column}) {
      *list = reinterpret_cast<index_t*>(
          take(static_cast<std::size_t>(shape.columns) * sizeof(index_t)));
    }
    gram = reinterpret_cast<W*>(take(square));
    product = reinterpret_cast<W*>(take(square));
    a = reinterpret_cast<W*>(take(chunk));
    b = reinterpret_cast<W*>(take(chunk));
    values = reinterpret_cast<double*>(take(n * sizeof(double)));
    const std::size_t eigen_bytes = hermitian_eigen_work<W>(shape.small());
    eigen = {take(eigen_bytes), eigen_bytes};
  }

  index_t *in_row, *out_row, *in_column, *out_column;
  W *gram, *product, *a, *b;
  double* values;
  std::span<std::byte> eigen;
  std::size_t bytes = 0;
};

template <class T>
class Matrices {
 public:
  using W = typename WideOf<T>::type;
  using R = typename RealOf<T>::type;

  Matrices(const BlockMatrices& m, const ConstView& x, const MutableView* out)
      : m_(m), shape_(m, x.extents), x_(x), out_(out), in_(static_cast<const T*>(x.data)) {}

  const Shape& shape() const { return shape_; }

  static std::size_t bytes(const Shape& shape) { return Work<W>(shape, nullptr).bytes; }

  // The positions of a block's elements. `shift` has one number per axis that is cut.
  struct Block {
    index_t rows = 1, batch_in = 0, batch_threshold = 0;
    double scale = 0;  // a power of two near the largest element
  };
  Block locate(index_t number, const ConstView* shift, const ConstView* threshold,
               Work<W>& w) const {
    Block block;
    index_t batch = number / shape_.blocks, part = number % shape_.blocks, batch_out = 0;
    const std::size_t rank = x_.rank();
    Coordinates starts(rank, 0), counts(rank, 1);
    std::size_t n_cut = 0;
    for (std::size_t k = 0; k < rank; ++k) {
      if (m_.axes[k] > 0) ++n_cut;
    }
    for (std::size_t k = rank; k-- > 0;) {
      const index_t extent = x_.extents[k];
      if (m_.axes[k] == BlockMatrices::kBatch) {
        const index_t i = batch % extent;
        batch /= extent;
        block.batch_in += i * x_.strides[k];
        if (out_) batch_out += i * out_->strides[k];
        if (threshold) block.batch_threshold += i * threshold->strides[k];
      } else if (m_.axes[k] > 0) {
        --n_cut;
        const index_t size = std::min(m_.axes[k], extent), n = (extent + size - 1) / size;
        const index_t first = part % n * size;
        part /= n;
        counts[k] = std::min(size, extent - first);
        const index_t by = shift ? static_cast<const index_t*>(
                                       shift->data)[static_cast<index_t>(n_cut) * shift->strides[0]]
                                 : 0;
        starts[k] = ((first + by) % extent + extent) % extent;
        block.rows *= counts[k];
      }
    }
    list(true, starts, counts, block.rows, block.batch_in, batch_out, w.in_row, w.out_row);
    for (std::size_t k = 0; k < rank; ++k) counts[k] = x_.extents[k];
    list(false, starts, counts, shape_.columns, 0, 0, w.in_column, w.out_column);
    return block;
  }

  // The Gram matrix of the smaller side over scale^2, and its eigenvectors. False: an element is
  // not finite. scale 0: all are 0.
  bool decompose(Block& block, Work<W>& w) const {
    const View v(*this, block, w);
    double largest = 0;
    for (index_t i = 0; i < v.large; ++i) {
      for (index_t j = 0; j < v.small; ++j) {
        const W e = W(in_[v.long_in[i] + v.short_in[j]]);
        const double size = std::max(std::abs(std::real(e)), std::abs(std::imag(e)));
        if (!(size <= std::numeric_limits<double>::max())) return false;
        largest = std::max(largest, size);
      }
    }
    block.scale = largest == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(largest), -1000));
    if (largest == 0) return true;
    std::fill(w.gram, w.gram + v.small * v.small, W(0));
    for (index_t i = 0; i < v.large; i += kChunk) {
      const index_t n = std::min(kChunk, v.large - i);
      read(v, i, n, 1 / block.scale, w.a);
      add_gram(n, v.small, w.a, w.gram);
    }
    hermitian_eigen(v.small, w.gram, w.values, w.eigen);
    return true;
  }

  // In units of the scale; 0 below the rounding error.
  double singular_value(const Work<W>& w, index_t k, index_t n) const {
    constexpr double kRounding = std::numeric_limits<double>::epsilon();
    const double value = w.values[k];
    return value > kRounding * w.values[n - 1] ? std::sqrt(value) : 0;
  }

  void soften(const Block& block, double threshold, Work<W>& w) const {
    const View v(*this, block, w);
    T* const out = static_cast<T*>(out_->data);
    const index_t n = v.small;
    std::fill(w.product, w.product + n * n, W(0));
    for (index_t k = 0; k < n; ++k) {
      const double s = singular_value(w, k, n), bound = threshold / block.scale;
      const double factor = s > bound ? 1 - bound / s : 0;
      if (factor == 0) continue;
      const W* const vector = w.gram + k * n;
      for (index_t i = 0; i < n; ++i) {
        const W left = factor * vector[i];
        for (index_t j = 0; j < n; ++j) w.product[i * n + j] += left * conjugate(vector[j]);
      }
    }
    for (index_t i = 0; i < v.large; i += kChunk) {
      const index_t count = std::min(kChunk, v.large - i);
      read(v, i, count, 1, w.a);
      times(count, n, w.a, w.product, w.b);
      for (index_t r = 0; r < count; ++r) {
        for (index_t j = 0; j < n; ++j) {
          out[v.long_out[i + r] + v.short_out[j]] = static_cast<T>(w.b[r * n + j]);
        }
      }
    }
  }

  void fill(const Block& block, T value, Work<W>& w) const {
    T* const out = static_cast<T*>(out_->data);
    for (index_t i = 0; i < block.rows; ++i) {
      for (index_t j = 0; j < shape_.columns; ++j) out[w.out_row[i] + w.out_column[j]] = value;
    }
  }

 private:
  // A matrix with at least as many rows as columns, maybe transposed.
  struct View {
    View(const Matrices& of, const Block& block, const Work<W>& w)
        : large(std::max(block.rows, of.shape_.columns)),
          small(std::min(block.rows, of.shape_.columns)) {
      const bool is_tall = block.rows >= of.shape_.columns;
      long_in = is_tall ? w.in_row : w.in_column;
      short_in = is_tall ? w.in_column : w.in_row;
      long_out = is_tall ? w.out_row : w.out_column;
      short_out = is_tall ? w.out_column : w.out_row;
    }
    index_t large, small;
    const index_t *long_in, *short_in, *long_out, *short_out;
  };

  static W conjugate(const W& v) {
    if constexpr (std::is_same_v<W, double>) {
      return v;
    } else {
      return std::conj(v);
    }
  }

  void read(const View& v, index_t first, index_t count, double scale, W* to) const {
    for (index_t i = 0; i < count; ++i) {
      const T* const row = in_ + v.long_in[first + i];
      for (index_t j = 0; j < v.small; ++j) to[i * v.small + j] = W(row[v.short_in[j]]) * scale;
    }
  }

  // Lists the offsets of `total` elements along the axes that are cut, or along those of the
  // columns.
  void list(bool cut, const Coordinates& starts, const Coordinates& counts, index_t total,
            index_t base_in, index_t base_out, index_t* in, index_t* out) const {
    for (index_t i = 0; i < total; ++i) {
      index_t rest = i, at_in = base_in, at_out = base_out;
      for (std::size_t k = x_.rank(); k-- > 0;) {
        const bool is_one = cut ? m_.axes[k] > 0 : m_.axes[k] == BlockMatrices::kColumns;
        if (!is_one) continue;
        const index_t at = (starts[k] + rest % counts[k]) % x_.extents[k];
        rest /= counts[k];
        at_in += at * x_.strides[k];
        if (out_) at_out += at * out_->strides[k];
      }
      in[i] = at_in;
      out[i] = at_out;
    }
  }

  const BlockMatrices& m_;
  Shape shape_;
  ConstView x_;
  const MutableView* out_;
  const T* in_;
};

// Calls body(number, scratch) for each number below n, on as many threads as there are scratches.
template <class Body>
void for_each(index_t n, std::size_t bytes, std::span<std::byte> scratch, const Body& body) {
  const auto workers = static_cast<index_t>(scratch.size() / bytes);
  parallel_ranges(workers, 1, [&](index_t begin, index_t end) {
    for (index_t w = begin; w < end; ++w) {
      std::byte* const own = scratch.data() + static_cast<std::size_t>(w) * bytes;
      for (index_t i = w * n / workers; i < (w + 1) * n / workers; ++i) body(i, own);
    }
  });
}

}  // namespace

std::size_t block_matrices_scratch(const BlockMatrices& m, const ConstView& x) {
  const Shape shape(m, x.extents);
  return is_complex(x.dtype) ? Matrices<std::complex<double>>::bytes(shape)
                             : Matrices<double>::bytes(shape);
}

void soften_singular_values(const BlockMatrices& m, const ConstView& x, const ConstView& threshold,
                            const ConstView& shift, const MutableView& out,
                            std::span<std::byte> scratch) {
  visit_inexact(x.dtype, "soften_singular_values", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Of = Matrices<T>;
    const Of matrices(m, x, &out);
    const Shape& shape = matrices.shape();
    if (shape.batch * shape.blocks * shape.rows * shape.columns == 0) return;
    for_each(
        shape.batch * shape.blocks, Of::bytes(shape), scratch, [&](index_t number, std::byte* own) {
          Work<typename Of::W> w(shape, own);
          auto block = matrices.locate(number, &shift, &threshold, w);
          if (!matrices.decompose(block, w)) {
            return matrices.fill(block, T(std::numeric_limits<typename Of::R>::quiet_NaN()), w);
          }
          if (block.scale == 0) return matrices.fill(block, T(0), w);
          const auto* const values = static_cast<const typename Of::R*>(threshold.data);
          matrices.soften(block, static_cast<double>(values[block.batch_threshold]), w);
        });
  });
}

void nuclear_norms(const BlockMatrices& m, const ConstView& x, const MutableView& out,
                   std::span<std::byte> scratch) {
  visit_inexact(x.dtype, "nuclear_norms", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Of = Matrices<T>;
    using R = typename Of::R;
    const Of matrices(m, x, nullptr);
    const Shape& shape = matrices.shape();
    const bool is_empty = shape.blocks * shape.rows * shape.columns == 0;
    // The strides of the result. Its axes outside the batch have one element.
    const ConstView as_threshold = out;
    for_each(shape.batch, Of::bytes(shape), scratch, [&](index_t element, std::byte* own) {
      double sum = 0;
      Work<typename Of::W> w(shape, own);
      index_t at = 0, rest = element;
      for (std::size_t k = x.rank(); k-- > 0;) {
        if (m.axes[k] != BlockMatrices::kBatch) continue;
        at += rest % x.extents[k] * as_threshold.strides[k];
        rest /= x.extents[k];
      }
      for (index_t part = 0; part < (is_empty ? 0 : shape.blocks); ++part) {
        auto block = matrices.locate(element * shape.blocks + part, nullptr, nullptr, w);
        if (!matrices.decompose(block, w)) {
          sum = std::numeric_limits<double>::quiet_NaN();
          continue;
        }
        const index_t n = std::min(block.rows, shape.columns);
        for (index_t k = 0; block.scale > 0 && k < n; ++k) {
          sum += matrices.singular_value(w, k, n) * block.scale;
        }
      }
      static_cast<R*>(out.data)[at] = static_cast<R>(sum);
    });
  });
}

}  // namespace palimpsest
