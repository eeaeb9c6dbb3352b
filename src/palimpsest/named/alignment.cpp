// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/alignment.hpp"

#include <algorithm>

namespace palimpsest::named {
namespace {

// The best alignment of the rests of both shapes. Every step prepends a number to `received`, or
// adds one to its first number, for all candidates alike: so the best of the whole consists of best
// rests.
struct Candidate {
  bool ok = false;
  int equal = 0;
  std::vector<int> received;
};

bool better(const Candidate& a, const Candidate& b) {
  if (!a.ok || !b.ok) return a.ok;
  if (a.equal != b.equal) return a.equal > b.equal;
  return a.received < b.received;
}

Candidate extended(Candidate rest, int received) {
  rest.received.insert(rest.received.begin(), received);
  return rest;
}

// The best alignment that begins with the old token. `row` belongs to that token, `below` to the
// next one, and j is the position in the new shape.
Candidate best(const NamedDimension& old_token, const Dims& new_dims, std::size_t j,
               const std::vector<Candidate>& row, const std::vector<Candidate>& below) {
  const bool more = j < new_dims.size();
  const bool new_open = more && new_dims[j].is_ellipsis();
  Candidate result;
  const auto consider = [&](Candidate candidate) {
    if (better(candidate, result)) result = std::move(candidate);
  };
  if (new_open) consider(row[j + 1]);  // the new ellipsis ends
  if (old_token.is_ellipsis()) {
    consider(extended(below[j], 0));  // the old ellipsis ends
    if (more && !new_open) {
      Candidate taken = row[j + 1];
      if (taken.ok) ++taken.received.front();
      consider(std::move(taken));
    }
  } else if (new_open) {
    consider(extended(below[j], 0));  // taken up by the new ellipsis
  } else if (more) {
    Candidate paired = extended(below[j + 1], 1);
    if (old_token == new_dims[j]) ++paired.equal;
    consider(std::move(paired));
  }
  return result;
}

}  // namespace

std::optional<Alignment> align(const Dims& old_dims, const Dims& new_dims) {
  const std::size_t m = new_dims.size();
  std::vector<Candidate> row(m + 1), below(m + 1);
  below[m].ok = true;
  for (std::size_t j = m; j-- > 0;) below[j].ok = new_dims[j].is_ellipsis() && below[j + 1].ok;
  for (std::size_t i = old_dims.size(); i-- > 0;) {
    for (std::size_t j = m + 1; j-- > 0;) row[j] = best(old_dims[i], new_dims, j, row, below);
    std::swap(row, below);
  }
  if (!below[0].ok) return std::nullopt;
  return Alignment{std::move(below[0].received)};
}

std::vector<std::pair<NamedDimension, NamedDimension>> pairs(const Alignment& alignment,
                                                             const Dims& old_dims,
                                                             const Dims& new_dims) {
  std::vector<std::pair<NamedDimension, NamedDimension>> result;
  std::size_t j = 0;
  for (std::size_t i = 0; i < old_dims.size(); ++i) {
    for (int k = 0; k < alignment.received[i]; ++k, ++j) {
      while (new_dims[j].is_ellipsis()) ++j;
      if (!old_dims[i].is_ellipsis()) result.emplace_back(old_dims[i], new_dims[j]);
    }
  }
  return result;
}

Dims received_at(const Alignment& alignment, const Dims& new_dims, std::size_t i) {
  int before = 0;
  for (std::size_t k = 0; k < i; ++k) before += alignment.received[k];
  const int after = before + alignment.received[i];
  Dims result;
  int seen = 0;  // new tokens so far, ellipses not counted
  for (const NamedDimension& token : new_dims) {
    if (token.is_ellipsis()) {
      if (seen >= before && seen <= after) result.push_back(token);
    } else {
      if (seen >= before && seen < after) result.push_back(token);
      ++seen;
    }
  }
  return result;
}

}  // namespace palimpsest::named
