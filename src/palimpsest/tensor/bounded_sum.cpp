// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/bounded_sum.hpp"

#include <algorithm>
#include <numeric>

namespace palimpsest {
namespace {

__extension__ using Wide = __int128;

// Nodes of one search; a few milliseconds.
constexpr int kWorkLimit = 5000;

// The inverse of a modulo m, for coprime a and m > 0.
index_t inverse(index_t a, index_t m) {
  index_t r0 = m, r1 = a % m, t0 = 0, t1 = 1;
  while (r1 != 0) {
    const index_t q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    t0 = std::exchange(t1, t0 - q * t1);
  }
  return t0 < 0 ? t0 + m : t0;
}

}  // namespace

void BoundedSum::add(index_t step, index_t bound) {
  if (step == 0 || bound == 0) return;
  const auto same = std::find_if(terms_.begin(), terms_.end(),
                                 [step](const Term& term) { return term.step == step; });
  if (same != terms_.end()) {
    same->bound = checked_add(same->bound, bound);
  } else {
    terms_.push_back({step, bound, 0, 0, false});
  }
}

void BoundedSum::prepare() {
  std::sort(terms_.begin(), terms_.end(),
            [](const Term& a, const Term& b) { return a.step > b.step; });
  index_t reach = 0, divisor = 0;
  bool is_dense = true;
  for (std::size_t k = terms_.size(); k-- > 0;) {
    Term& term = terms_[k];
    // Repeating a gap-free row leaves no gap if the next row starts where the last one ends.
    is_dense = is_dense && (divisor == 0 ||
                            (term.step % divisor == 0 && term.step <= checked_add(reach, divisor)));
    divisor = std::gcd(divisor, term.step);
    reach = checked_add(reach, checked_multiply(term.step, term.bound));
    term.reach = reach;
    term.divisor = divisor;
    term.is_dense = is_dense;
  }
}

BoundedSum::Answer BoundedSum::solve(index_t target) {
  try {
    prepare();
  } catch (const OverflowError&) {
    return Answer::unknown;
  }
  work_left_ = kWorkLimit;
  return search(0, target);
}

BoundedSum::Answer BoundedSum::search(std::size_t first, index_t target) {
  if (target == 0) return Answer::yes;
  if (first == terms_.size() || target < 0) return Answer::no;
  const Term& term = terms_[first];
  if (target > term.reach || target % term.divisor != 0) return Answer::no;
  if (term.is_dense) return Answer::yes;
  // What this term leaves must be within reach of the others and divisible by their divisor, which
  // fixes x modulo `period`. A last term is dense, so there are others.
  const Term& rest = terms_[first + 1];
  const index_t period = rest.divisor / term.divisor;
  const Wide residue = Wide{target / term.divisor % period} *
                       (period == 1 ? 0 : inverse(term.step / term.divisor, period)) % period;
  const index_t excess = std::max<index_t>(0, target - rest.reach);
  const index_t lowest = excess / term.step + (excess % term.step != 0 ? 1 : 0);
  const index_t highest = std::min(term.bound, target / term.step);
  const index_t ahead = (static_cast<index_t>(residue) - lowest % period + period) % period;
  for (index_t x = lowest + ahead; x <= highest; x += period) {
    if (--work_left_ < 0) return Answer::unknown;
    const Answer answer = search(first + 1, target - x * term.step);
    if (answer != Answer::no) return answer;
  }
  return Answer::no;
}

}  // namespace palimpsest
