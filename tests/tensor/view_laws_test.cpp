// SPDX-License-Identifier: Apache-2.0
// All views of small arrays of many layouts, compared with lists of their elements. An element's
// value is its number in the storage, so a list of values gives their positions.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "palimpsest/base/error.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

using Position = std::vector<index_t>;  // an index

struct Listed {
  Extents shape;
  std::vector<index_t> elements;  // row-major

  std::size_t rank() const { return shape.size(); }
  index_t at(const Position& index) const {
    index_t k = 0;
    for (std::size_t axis = 0; axis < rank(); ++axis) k = k * shape[axis] + index[axis];
    return elements[static_cast<std::size_t>(k)];
  }
};

// A list of this shape; its elements are those of `from` at mapped indices.
Listed picked(const Listed& from, const Extents& shape,
              const std::function<Position(Position)>& source) {
  Listed list{shape, {}};
  Position index(shape.size(), 0);
  for (index_t k = 0; k < element_count(shape); ++k) {
    index_t rest = k;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      index[axis] = rest % shape[axis];
    }
    list.elements.push_back(from.at(source(index)));
  }
  return list;
}

Listed listed(const Tensor& t) { return {t.shape(), t.to_vector<index_t>()}; }

// Expects these elements, and that the view may be written if no element occurs twice.
void expect_shows(Tensor view, const Listed& expected, const Tensor& base) {
  ASSERT_EQ(view.shape(), expected.shape);
  ASSERT_EQ(listed(view).elements, expected.elements)
      << "of shape " << to_string(base.shape()) << " with strides " << to_string(base.strides());
  const std::set<index_t> distinct(expected.elements.begin(), expected.elements.end());
  if (distinct.size() == expected.elements.size()) {
    EXPECT_NO_THROW(view.mutable_view());
  } else {
    EXPECT_THROW(view.mutable_view(), AliasError);
  }
}

Tensor counted(Extents shape) { return Tensor::arange(element_count(shape)).view(shape); }

const std::vector<Tensor>& bases() {
  static const std::vector<Tensor> list{
      counted({}),
      counted({5}),
      counted({1, 3}),
      counted({3, 4}),
      counted({2, 3, 4}),
      counted({2, 3, 4}).permute({2, 0, 1}),
      counted({5, 6})(slice(1, {}, 2), slice({}, {}, -2)),
      counted({4, 4, 3})(slice({}, {}, -1), slice(1, 3)),
      counted({3}).expand({2, 3}),
      counted({9}).unfold(0, 4, 2),
      counted({3, 0, 2}),
  };
  return list;
}

template <class F>
void for_each_axis(const Tensor& t, F&& f) {
  const auto rank = static_cast<index_t>(t.rank());
  for (index_t axis = -rank; axis < rank; ++axis) {
    f(axis, static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
  }
  EXPECT_THROW(f(rank, std::size_t{0}), ShapeError);
  EXPECT_THROW(f(-rank - 1, std::size_t{0}), ShapeError);
}

TEST(TensorViewLaws, SelectAndNarrow) {
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    for_each_axis(t, [&](index_t axis, std::size_t a) {
      const index_t n = t.shape(axis);
      for (index_t i = -n; i < n; ++i) {
        Extents shape = t.shape();
        shape.erase(a);
        const auto source = [&](Position index) {
          index.insert(index.begin() + static_cast<std::ptrdiff_t>(a), i < 0 ? i + n : i);
          return index;
        };
        expect_shows(t.select(axis, i), picked(from, shape, source), t);
      }
      for (const index_t i : {-n - 1, n}) EXPECT_THROW(t.select(axis, i), ShapeError);
      for (index_t start = -n; start <= n; ++start) {
        const index_t first = start < 0 ? start + n : start;
        for (index_t length = 0; length <= n - first; ++length) {
          Extents shape = t.shape();
          shape[a] = length;
          const auto source = [&](Position index) {
            index[a] += first;
            return index;
          };
          expect_shows(t.narrow(axis, start, length), picked(from, shape, source), t);
          if (length == 0) {
            EXPECT_EQ(t.narrow(axis, start, length).offset(), t.offset());
          }
        }
        EXPECT_THROW(t.narrow(axis, start, n - first + 1), ShapeError);
        EXPECT_THROW(t.narrow(axis, start, -1), ShapeError);
      }
      EXPECT_THROW(t.narrow(axis, -n - 1, 0), ShapeError);
      EXPECT_THROW(t.narrow(axis, n + 1, 0), ShapeError);
    });
  }
}

TEST(TensorViewLaws, OrdersOfAxes) {
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    const std::size_t rank = t.rank();
    std::vector<index_t> axes(rank);
    std::iota(axes.begin(), axes.end(), index_t{0});
    do {
      Extents shape;
      for (const index_t axis : axes) shape.push_back(t.shape(axis));
      const auto source = [&](const Position& index) {
        Position old(rank);
        for (std::size_t k = 0; k < rank; ++k) old[static_cast<std::size_t>(axes[k])] = index[k];
        return old;
      };
      const Listed expected = picked(from, shape, source);
      expect_shows(t.permute(std::span<const index_t>(axes)), expected, t);
      if (rank == 2 && axes[0] == 1) expect_shows(t.transpose(-1, 0), expected, t);
    } while (std::next_permutation(axes.begin(), axes.end()));
    for (unsigned subset = 0; subset < 1U << rank; ++subset) {
      Axes flipped;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        if ((subset >> axis & 1U) != 0) flipped.push_back(static_cast<index_t>(axis));
      }
      const auto source = [&](Position index) {
        for (const index_t axis : flipped) {
          index_t& i = index[static_cast<std::size_t>(axis)];
          i = t.shape(axis) - 1 - i;
        }
        return index;
      };
      expect_shows(t.flip(flipped), picked(from, t.shape(), source), t);
    }
  }
}

TEST(TensorViewLaws, Diagonals) {
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    const auto rank = static_cast<index_t>(t.rank());
    for (index_t row = 0; row < rank; ++row) {
      for (index_t column = -rank; column < rank; ++column) {
        const auto r = static_cast<std::size_t>(row),
                   c = static_cast<std::size_t>(column < 0 ? column + rank : column);
        if (r == c) {
          EXPECT_THROW(t.diagonal(0, row, column), ShapeError);
          continue;
        }
        const index_t n = t.shape(row), m = t.shape(column);
        for (index_t offset = -n - 1; offset <= m + 1; ++offset) {
          index_t length = 0;
          for (index_t i = 0; i < n; ++i) length += i + offset >= 0 && i + offset < m ? 1 : 0;
          Extents shape = t.shape();
          shape.erase(std::max(r, c));
          shape.erase(std::min(r, c));
          shape.push_back(length);
          const auto source = [&](Position index) {
            const index_t i = index.back() + std::max<index_t>(0, -offset);
            index.pop_back();
            index.insert(index.begin() + static_cast<std::ptrdiff_t>(std::min(r, c)), 0);
            index.insert(index.begin() + static_cast<std::ptrdiff_t>(std::max(r, c)), 0);
            index[r] = i;
            index[c] = i + offset;
            return index;
          };
          const Tensor diagonal = t.diagonal(offset, row, column);
          expect_shows(diagonal, picked(from, shape, source), t);
          if (length == 0) {
            EXPECT_EQ(diagonal.offset(), t.offset()) << "there may be no memory elsewhere";
          }
        }
      }
    }
    EXPECT_THROW(t.diagonal(0, 0, rank), ShapeError);
  }
}

TEST(TensorViewLaws, Windows) {
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    for_each_axis(t, [&](index_t axis, std::size_t a) {
      const index_t n = t.shape(axis);
      for (index_t size = 0; size <= n; ++size) {
        for (index_t step = 1; step <= n + 1; ++step) {
          Extents shape = t.shape();
          shape[a] = 0;
          for (index_t first = 0; first + size <= n; first += step) ++shape[a];
          shape.push_back(size);
          const auto source = [&](Position index) {
            index[a] = index[a] * step + index.back();
            index.pop_back();
            return index;
          };
          expect_shows(t.unfold(axis, size, step), picked(from, shape, source), t);
        }
        EXPECT_THROW(t.unfold(axis, size, 0), ShapeError);
      }
      EXPECT_THROW(t.unfold(axis, n + 1, 1), ShapeError);
      EXPECT_THROW(t.unfold(axis, -1, 1), ShapeError);
      // A single window has no distance to a next one.
      EXPECT_NO_THROW(t.unfold(axis, n, index_t{1} << 62));
    });
  }
}

TEST(TensorViewLaws, AxesOfOneElementComeGoAndStretch) {
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    for (index_t axis = 0; axis <= static_cast<index_t>(t.rank()); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      Extents shape = t.shape();
      shape.insert(a, 1);
      const auto source = [&](Position index) {
        index.erase(index.begin() + static_cast<std::ptrdiff_t>(a));
        return index;
      };
      const Tensor wider = t.unsqueeze(axis);
      expect_shows(wider, picked(from, shape, source), t);
      expect_shows(wider.squeeze(axis), from, t);
      for (const index_t n : {0, 1, 3}) {
        shape[a] = n;
        expect_shows(wider.expand(shape), picked(from, shape, source), t);
      }
      shape[a] = -1;
      expect_shows(wider.expand(shape), listed(wider), t);
      shape[a] = 2;
      shape.insert(std::size_t{0}, 2);
      const auto from_both = [&](Position index) {
        index.erase(index.begin());
        return source(index);
      };
      expect_shows(wider.expand(shape), picked(from, shape, from_both), t);
    }
  }
}

// Can one stride per axis give the elements of this shape?
bool is_affine(const Listed& list) {
  if (list.elements.empty()) return true;
  Position step(list.rank(), 0);
  for (std::size_t axis = 0; axis < list.rank(); ++axis) {
    Position index(list.rank(), 0);
    index[axis] = 1;
    if (list.shape[axis] > 1) step[axis] = list.at(index) - list.elements[0];
  }
  bool is_right = true;
  picked(list, list.shape, [&](Position index) {
    index_t element = list.elements[0];
    for (std::size_t axis = 0; axis < list.rank(); ++axis) element += index[axis] * step[axis];
    is_right = is_right && element == list.at(index);
    return index;
  });
  return is_right;
}

TEST(TensorViewLaws, OtherShapes) {
  int n_views = 0, n_copies = 0;
  for (const Tensor& t : bases()) {
    const Listed from = listed(t);
    const index_t n = t.numel();
    for (index_t i = 0; i <= n; ++i) {
      for (index_t j = 0; j <= n; ++j) {
        for (const index_t k : {index_t{0}, index_t{1}, index_t{2}, index_t{3}}) {
          const Extents shape{i, k, j};
          if (i * j * k != n) {
            EXPECT_THROW(t.view(shape), ShapeError);
            EXPECT_THROW(t.reshape(shape), ShapeError);
            continue;
          }
          const Listed expected{shape, from.elements};
          EXPECT_EQ(listed(t.reshape(shape)).elements, expected.elements);
          EXPECT_EQ(t.reshape(shape).shape(), shape);
          if (is_affine(expected)) {
            ++n_views;
            expect_shows(t.view(shape), expected, t);
            if (n > 0) expect_shows(t.view({i, k, -1}), expected, t);
          } else {
            ++n_copies;
            EXPECT_THROW(t.view(shape), ShapeError);
          }
        }
      }
    }
  }
  EXPECT_GT(n_views, 50);
  EXPECT_GT(n_copies, 10);
}

}  // namespace
}  // namespace palimpsest
