// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/long_transform.hpp"

#include <algorithm>
#include <thread>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/panel_weights.hpp"
#include "palimpsest/kernels/fft/split_transform.hpp"
#include "palimpsest/kernels/fft/wide.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kLongestRow = 1024;
constexpr index_t kVector = 16;  // numbers behind the last factor that a vector reads

// The largest divisor of n up to its root.
index_t row_length(index_t n) {
  index_t best = 1;
  for (index_t d = 1; d * d <= n && d <= kLongestRow; ++d) {
    if (n % d == 0) best = d;
  }
  return best;
}

// Tasks that share a line. The number is one for the process, so that scratch has one size.
index_t tasks_of(index_t n) {
  constexpr index_t kMost = 16, kLeastEach = 16384;
  const index_t n_threads =
      immortal([] { return static_cast<index_t>(std::thread::hardware_concurrency()); });
  return std::clamp(std::min(n_threads, n / kLeastEach), index_t{1}, kMost);
}

}  // namespace

template <class T>
bool LongTransform<T>::is_able(index_t n) {
  return n > 1 && largest_prime_factor(n) <= kLargestPrime;
}

// Factors are products of two wide ones, rounded once.
template <class T>
LongTransform<T>::LongTransform(index_t n) : LineTransform<T>(n) {
  constexpr index_t kFine = 1024;
  const index_t n2 = row_length(n), n1 = n / n2;
  columns_ = LineTransform<T>::find_or_make(n1);
  rows_ = LineTransform<T>::find_or_make(n2);
  std::vector<WideComplex> fine, coarse;
  for (index_t m = 0; m < kFine; ++m) fine.push_back(root_of_unity(m, n, true));
  for (index_t m = 0; m < n; m += kFine) coarse.push_back(root_of_unity(m, n, true));
  turns_.reserve(static_cast<std::size_t>(n + kVector));
  for (index_t k1 = 0; k1 < n1; ++k1) {
    for (index_t j2 = 0; j2 < n2; ++j2) {
      const index_t m = j2 * k1;  // < n
      const WideComplex turn =
          coarse[static_cast<std::size_t>(m / kFine)] * fine[static_cast<std::size_t>(m % kFine)];
      turns_.emplace_back(static_cast<T>(turn.re), static_cast<T>(turn.im));
    }
  }
  turns_.resize(static_cast<std::size_t>(n + kVector));
}

template <class T>
std::size_t LongTransform<T>::bytes() const {
  return turns_.size() * sizeof(std::complex<T>) + columns_->bytes() + rows_->bytes();
}

template <class T>
index_t LongTransform<T>::lines_together(LineLayout layout) const {
  return layout == LineLayout::rows ? rows_->lines_together(layout) : 1;
}

template <class T>
bool LongTransform<T>::is_shared() const {
  return tasks_of(this->size()) > 1;
}

template <class T>
typename LongTransform<T>::Room LongTransform<T>::room(LineLayout layout, index_t lines) const {
  const auto aligned = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  const bool is_rows = layout == LineLayout::rows;
  const index_t together = is_rows ? lines : columns_->lines_together(LineLayout::rows);
  Room room{};
  room.row = scratch_distance<T>(rows_->size() * (is_rows ? row_width(lines) : 1));
  room.matrix_bytes =
      static_cast<std::size_t>(columns_->size() * room.row) * sizeof(std::complex<T>);
  room.task_bytes = aligned(
      std::max(columns_->scratch_bytes(LineLayout::rows, together),
               rows_->scratch_bytes(is_rows ? layout : LineLayout::dense_to_rows, together)));
  room.n_tasks = tasks_of(this->size());
  return room;
}

template <class T>
std::size_t LongTransform<T>::scratch_bytes(LineLayout layout, index_t lines) const {
  const Room all = room(layout, lines);
  return all.matrix_bytes + static_cast<std::size_t>(all.n_tasks) * all.task_bytes;
}

template <class T>
template <class F>
void LongTransform<T>::share(const Room& room, std::byte* scratch, index_t count, index_t grain,
                             const F& f) const {
  const index_t parts = (count + grain - 1) / grain;
  parallel_ranges(room.n_tasks, 1, [&](index_t first, index_t last) {
    for (index_t task = first; task < last; ++task) {
      const index_t begin = parts * task / room.n_tasks * grain;
      const index_t end = std::min(count, parts * (task + 1) / room.n_tasks * grain);
      const std::size_t at = room.matrix_bytes + static_cast<std::size_t>(task) * room.task_bytes;
      if (begin < end) f(begin, end, scratch + at);
    }
  });
}

template <class T>
typename LongTransform<T>::Sums LongTransform<T>::sums(const TransformLines<T>& all) const {
  const index_t n1 = columns_->size(), n2 = rows_->size();
  Sums sums;
  sums.columns.x_line = sums.columns.y_line = sums.rows.y_line = 1;
  sums.columns.forward = sums.rows.forward = all.forward;
  sums.columns.given = sums.columns.taken = n1;
  sums.rows.given = sums.rows.taken = n2;
  sums.columns.turn_step = n2;
  if (n2 % 2 != 0) sums.columns.before = all.before;
  sums.rows.before = all.before;
  if (all.after[1] != all.after[0]) sums.columns.after = {1, -1};
  sums.rows.after = {all.after[0], n1 % 2 != 0 ? all.after[1] : all.after[0]};
  return sums;
}

template <class T>
void LongTransform<T>::execute_rows(const TransformLines<T>& all, std::byte* scratch) const {
  const index_t n1 = columns_->size(), n2 = rows_->size(), width = row_width(all.lines);
  const Room here = room(LineLayout::rows, all.lines);
  auto* const matrix = reinterpret_cast<std::complex<T>*>(scratch);
  Sums both = sums(all);
  both.columns.lines = both.rows.lines = all.lines;
  share(here, scratch, n2, 1, [&](index_t begin, index_t end, std::byte* memory) {
    TransformLines<T> one = both.columns;
    one.x_step = n2 * all.x_step;
    one.y_step = here.row;
    for (index_t j2 = begin; j2 < end; ++j2) {
      one.x = all.x + j2 * all.x_step;
      one.y = matrix + j2 * width;
      one.turns = turns_.data() + j2;
      one.given = (std::max<index_t>(all.given - j2, 0) + n2 - 1) / n2;
      columns_->execute(one, memory);
    }
  });
  share(here, scratch, std::min(n1, all.taken), 1,
        [&](index_t begin, index_t end, std::byte* memory) {
          TransformLines<T> one = both.rows;
          one.x_line = 1;
          one.x_step = width;
          one.y_step = n1 * all.y_step;
          one.turn_line = all.turn_line;
          one.turn_step = n1 * all.turn_step;
          for (index_t k1 = begin; k1 < end; ++k1) {
            one.x = matrix + k1 * here.row;
            one.y = all.y + k1 * all.y_step;
            if (all.turns != nullptr) one.turns = all.turns + k1 * all.turn_step;
            one.taken = (all.taken - k1 + n1 - 1) / n1;
            rows_->execute(one, memory);
          }
        });
}

template <class T>
void LongTransform<T>::execute_dense(const TransformLines<T>& all, std::byte* scratch) const {
  const index_t n1 = columns_->size(), n2 = rows_->size();
  const Room here = room(LineLayout::dense, 1);
  auto* const matrix = reinterpret_cast<std::complex<T>*>(scratch);
  const Sums both = sums(all);
  const index_t columns = columns_->lines_together(LineLayout::rows);
  share(here, scratch, n2, columns, [&](index_t begin, index_t end, std::byte* memory) {
    TransformLines<T> some = both.columns;
    some.x_step = n2;
    some.y_step = here.row;
    some.turn_line = 1;
    for (index_t j2 = begin; j2 < end; j2 += columns) {
      some.x = all.x + j2;
      some.y = matrix + j2;
      some.turns = turns_.data() + j2;
      some.lines = std::min(columns, end - j2);
      columns_->execute(some, memory);
    }
  });
  const index_t together = rows_->lines_together(LineLayout::dense_to_rows);
  share(here, scratch, n1, together, [&](index_t begin, index_t end, std::byte* memory) {
    TransformLines<T> some = both.rows;
    some.x_line = here.row;
    some.x_step = 1;
    some.y_step = n1;
    for (index_t k1 = begin; k1 < end; k1 += together) {
      some.x = matrix + k1 * here.row;
      some.y = all.y + k1;
      some.lines = std::min(together, end - k1);
      rows_->execute(some, memory);
    }
  });
}

template <class T>
void LongTransform<T>::execute(const TransformLines<T>& all, std::byte* scratch) const {
  if (all.x_step != 1) return execute_rows(all, scratch);
  for (index_t c = 0; c < all.lines; ++c) {
    TransformLines<T> line = all;
    line.x += c * all.x_line;
    line.y += c * all.y_line;
    execute_dense(line, scratch);
  }
}

template class LongTransform<float>;
template class LongTransform<double>;

}  // namespace palimpsest
