// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/matching.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "palimpsest/base/error.hpp"

// Refinements are found by dynamic programming over states (i, j, e): the rests s[i..] and t[j..],
// and whether the last emitted token is an ellipsis (e). F(i, j, e) is the set of refinements of
// the rests. Invariants:
//   1. A set keeps at most two elements, which are different; two mean "at least two". Prepending a
//      token keeps elements different, so the answer for the whole is exact.
//   2. Elements are lists that share their tails: prepending costs one cell.
//   3. A refinement never has two adjacent ellipses: e suppresses the second.

namespace palimpsest {
namespace {

enum class Compare { names, bases };

bool may_pair(const NamedDimension& a, const NamedDimension& b, Compare compare) {
  if (a.is_any() || b.is_any()) return true;
  return compare == Compare::names ? a == b : a.base() == b.base();
}

// The token for a pair of tokens: the name, the any of s, the higher index.
NamedDimension pair_of(const NamedDimension& a, const NamedDimension& b) {
  if (a.is_any()) return b.is_any() ? a : b;
  if (b.is_any()) return a;
  return std::max(a, b);
}

class RefinementSearch {
 public:
  RefinementSearch(const Dims& s, const Dims& t, Compare compare)
      : s_(s), t_(t), compare_(compare), sets_(2 * (s.size() + 1) * (t.size() + 1)) {
    for (std::size_t i = s.size() + 1; i-- > 0;) {
      for (std::size_t j = t.size() + 1; j-- > 0;) {
        for (bool e : {false, true}) at(i, j, e) = refinements(i, j, e);
      }
    }
  }

  Match result() const {
    const Set& all = sets_[0];
    Match match{all.count > 0, all.count == 1, {}};
    if (match.unique) {
      for (int c = all.heads[0]; c >= 0; c = cell(c).next) match.refined.push_back(cell(c).token);
    }
    return match;
  }

 private:
  struct Cell {
    NamedDimension token;
    int next;  // -1: the end
  };
  struct Set {
    int count = 0;
    std::array<int, 2> heads{};
  };

  const Cell& cell(int c) const { return cells_[static_cast<std::size_t>(c)]; }
  Set& at(std::size_t i, std::size_t j, bool e) {
    return sets_[2 * (i * (t_.size() + 1) + j) + (e ? 1 : 0)];
  }
  int prepended(const NamedDimension& token, int list) {
    cells_.push_back({token, list});
    return static_cast<int>(cells_.size()) - 1;
  }
  Set prepended(const NamedDimension& token, Set set) {
    for (int k = 0; k < set.count; ++k) {
      int& head = set.heads[static_cast<std::size_t>(k)];
      head = prepended(token, head);
    }
    return set;
  }

  Set refinements(std::size_t i, std::size_t j, bool e) {
    const std::size_t n = s_.size(), m = t_.size();
    const bool s_open = i < n && s_[i].is_ellipsis(), t_open = j < m && t_[j].is_ellipsis();
    Set set;
    if (i == n && j == m) {
      set.count = 1;
      set.heads[0] = -1;
    } else if (s_open && t_open) {
      set = united(at(i + 1, j, true), at(i, j + 1, true));
      if (!e) set = prepended(s_[i], set);
    } else if (s_open) {
      set = at(i + 1, j, e);
      if (j < m) set = united(set, prepended(t_[j], at(i, j + 1, false)));
    } else if (t_open) {
      set = at(i, j + 1, e);
      if (i < n) set = united(set, prepended(s_[i], at(i + 1, j, false)));
    } else if (i < n && j < m && may_pair(s_[i], t_[j], compare_)) {
      set = prepended(pair_of(s_[i], t_[j]), at(i + 1, j + 1, false));
    }
    return set;
  }

  Set united(Set a, const Set& b) {
    for (int k = 0; k < b.count; ++k) include(a, b.heads[static_cast<std::size_t>(k)]);
    return a;
  }

  // Lists that differ in indices only are one element when bases are compared: of the indices at
  // one position the highest stays.
  void include(Set& set, int list) {
    for (int k = 0; k < set.count; ++k) {
      int& head = set.heads[static_cast<std::size_t>(k)];
      if (!same(head, list)) continue;
      if (compare_ == Compare::bases) head = highest(head, list);
      return;
    }
    if (set.count < 2) set.heads[static_cast<std::size_t>(set.count++)] = list;
  }

  bool same(int a, int b) const {
    for (; a != b; a = cell(a).next, b = cell(b).next) {
      if (a < 0 || b < 0) return false;
      const NamedDimension &x = cell(a).token, &y = cell(b).token;
      if (compare_ == Compare::bases && x.is_concrete() && y.is_concrete()) {
        if (x.base() != y.base()) return false;
      } else if (x != y) {
        return false;
      }
    }
    return true;
  }

  int highest(int a, int b) {
    if (a == b) return a;
    const NamedDimension token = std::max(cell(a).token, cell(b).token);
    return prepended(token, highest(cell(a).next, cell(b).next));
  }

  const Dims& s_;
  const Dims& t_;
  Compare compare_;
  std::vector<Cell> cells_;
  std::vector<Set> sets_;
};

Dims structure_of(const Dims& dims) {
  Dims result;
  for (const NamedDimension& d : dims) {
    result.push_back(d.is_ellipsis() ? d : NamedDimension::any());
  }
  return result;
}

}  // namespace

bool isequal(const Dims& s, const Dims& t) {
  const std::size_t n = s.size(), m = t.size();
  // row[j]: does the rest of s from i on match the rest of t from j on? Computed from i = n down.
  SmallVector<std::uint8_t, 32> row(m + 1), below(m + 1);
  for (std::size_t i = n + 1; i-- > 0;) {
    for (std::size_t j = m + 1; j-- > 0;) {
      bool matches = false;
      if (i == n && j == m) {
        matches = true;
      } else {
        const bool s_open = i < n && s[i].is_ellipsis(), t_open = j < m && t[j].is_ellipsis();
        if (s_open) matches = below[j] || (j < m && row[j + 1]);
        if (t_open) matches = matches || row[j + 1] || (i < n && below[j]);
        if (!s_open && !t_open && i < n && j < m) {
          matches = below[j + 1] && may_pair(s[i], t[j], Compare::names);
        }
      }
      row[j] = matches ? 1 : 0;
    }
    std::swap(row, below);
  }
  return below[0] != 0;
}

bool iscompatible(const Dims& s, const Dims& t) {
  return isequal(structure_of(s), structure_of(t));
}

Match match(const Dims& s, const Dims& t) {
  return RefinementSearch(s, t, Compare::names).result();
}

Dims resolve_wildcards(const Dims& s, const Dims& t) {
  if (!s.has_wildcard()) return s;
  Match found = match(s, t);
  if (!found.unique) return s;
  return std::move(found.refined);
}

Dims max_shape(const std::vector<Dims>& shapes) {
  if (shapes.empty()) {
    throw ValueError("[max_shape] no shapes: got an empty list, expected at least one shape");
  }
  Dims result = shapes.front();
  for (std::size_t k = 1; k < shapes.size(); ++k) {
    Match found = RefinementSearch(result, shapes[k], Compare::bases).result();
    if (!found.unique) {
      throw ShapeError("[max_shape] shapes are " +
                       std::string(found.ok ? "ambiguous" : "incompatible") + ": got " +
                       result.str() + " and " + shapes[k].str() +
                       (found.ok ? ", expected one way to match them. Try fewer ellipses"
                                 : ", expected names of the same bases in the same order"));
    }
    result = std::move(found.refined);
  }
  return result;
}

}  // namespace palimpsest
