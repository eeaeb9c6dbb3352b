// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/bounded_sum.hpp"

#include <algorithm>
#include <numeric>

namespace palimpsest {
namespace {

__extension__ using Wide = __int128;

// Nodes of one search; a few milliseconds.
constexpr int kWorkLimit = 5000;

// a / b for a >= 0 and b > 0. Doubles represent integers below 2^53, and divide several times as
// fast as 64-bit integers on most processors.
index_t quotient(index_t a, index_t b) {
  constexpr index_t kExact = index_t{1} << 52;
  if (a >= kExact || b >= kExact) [[unlikely]]
    return a / b;
  // A quotient that is not whole is 1 / b away from the next whole number k at least. With k b <=
  // 2^52 that is more than half a unit in the last place of k, so the division does not round up to
  // it.
  return static_cast<index_t>(static_cast<double>(a) / static_cast<double>(b));
}

index_t residue(index_t a, index_t b) { return a - quotient(a, b) * b; }

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
  // In descending order of the steps.
  const auto end = terms_.begin() + static_cast<std::ptrdiff_t>(n_terms_);
  const auto place =
      std::find_if(terms_.begin(), end, [&](const Term& t) { return t.step <= step; });
  if (place != end && place->step == step) {
    place->bound = checked_add(place->bound, bound);
    return;
  }
  std::move_backward(place, end, end + 1);
  place->step = step;
  place->bound = bound;
  ++n_terms_;
}

void BoundedSum::prepare() {
  index_t reach = 0, divisor = 0;
  bool is_dense = true;
  for (std::size_t k = n_terms_; k-- > 0;) {
    Term& term = terms_[k];
    const index_t common = divisor == 1 ? 1 : std::gcd(divisor, term.step);
    // Repeating a gap-free row leaves no gap if the next row starts where the last one ends.
    is_dense = is_dense &&
               (divisor == 0 || (common == divisor && term.step <= checked_add(reach, divisor)));
    term.period = quotient(divisor, common);  // not read where nothing follows
    divisor = common;
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
  if (first == n_terms_ || target < 0) return Answer::no;
  const Term& term = terms_[first];
  if (target > term.reach) return Answer::no;
  if (term.divisor > 1 && residue(target, term.divisor) != 0) return Answer::no;
  if (term.is_dense) return Answer::yes;
  // The rest of the target must be within reach of the other terms and divisible by their divisor,
  // which fixes x modulo `period`. A last term is dense, so there are others.
  const index_t rest = terms_[first + 1].reach, period = term.period;
  index_t x = target > rest ? quotient(target - rest - 1, term.step) + 1 : 0;
  if (period > 1) {
    const Wide wanted =
        Wide{target / term.divisor % period} * inverse(term.step / term.divisor, period) % period;
    x += (static_cast<index_t>(wanted) - x % period + period) % period;
  }
  const index_t highest = std::min(term.bound, quotient(target, term.step));
  for (; x <= highest; x += period) {
    if (--work_left_ < 0) return Answer::unknown;
    const Answer answer = search(first + 1, target - x * term.step);
    if (answer != Answer::no) return answer;
  }
  return Answer::no;
}

}  // namespace palimpsest
