// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/dims.hpp"

namespace PALIMPSEST_API palimpsest {

// A shape s stands for the set L(s) of sequences of names: a name for itself, an any for every
// sequence of one name, an ellipsis for every sequence.

/// True if s and t stand for a common sequence of names. Symmetric, reflexive, not transitive.
/// Cost     O(n m) time, O(m) memory
bool isequal(const Dims& s, const Dims& t);

/// True if s and t are equal in structure, for any names.
bool iscompatible(const Dims& s, const Dims& t);

/// Match of two shapes. A refinement spells out one alignment of them: the name where a name meets
/// a wildcard, `...` where both go on. All refinements together stand for exactly the shapes that
/// match both.
struct Match {
  bool ok = false;      ///< isequal
  bool unique = false;  ///< there is exactly one refinement
  Dims refined;         ///< that one, else empty
};
/// Cost     O(n m) steps
Match match(const Dims& s, const Dims& t);

/// s with the wildcards that t decides replaced; s itself where nothing matches or several
/// refinements are possible. It never guesses.
Dims resolve_wildcards(const Dims& s, const Dims& t);

/// A shape that has room for all: names match by their bases, a wildcard gives way to a name,
/// and of two indices of one base the higher wins.
/// Errors   ShapeError "incompatible", "ambiguous"; ValueError for an empty list
Dims max_shape(const std::vector<Dims>& shapes);

}  // namespace palimpsest
