// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>

#include "palimpsest/base/shape.hpp"

namespace palimpsest {

/// Decides whether the sum over k of step_k x_k = target has an integer solution with 0 <= x_k <=
/// bound_k. All tests whether strided sets of elements meet ask this question.
///
/// Cost     linear in the number of terms where steps nest, as those of arrays nearly always do;
///          else a depth-first search, pruned by reach and divisibility, up to a work limit
class BoundedSum {
 public:
  enum class Answer { no, yes, unknown };

  /// step >= 0 and bound >= 0. At most 2 kMaxRank + 2 terms.
  void add(index_t step, index_t bound);
  Answer solve(index_t target);

 private:
  struct Term {
    index_t step, bound;
    // Sums over this term and the smaller ones behind it:
    index_t reach;    // the largest sum
    index_t divisor;  // greatest common divisor of the steps
    index_t period;   // the divisor of those that follow, in units of this one
    bool is_dense;    // every multiple of the divisor up to the reach is a sum
  };

  void prepare();
  Answer search(std::size_t first, index_t target);

  // Not cleared: most sums have a handful of terms.
  std::array<Term, 2 * kMaxRank + 2> terms_;
  std::size_t n_terms_ = 0;
  int work_left_ = 0;
};

}  // namespace palimpsest
