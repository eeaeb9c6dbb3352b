// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string_view>

#include "palimpsest/linop/core/named_linop.hpp"

namespace palimpsest {

/// True if the parameter is computed from the others when the operator is made.
bool follows_from_others(const NamedLinop& A, std::string_view name, const Parameter& p);

/// The parameters that follow from the others, those of another operator if it is of the same type
/// with the same arguments: so copies, tiles and loaded operators of what was one stay equal.
Parameters derived_parameters(const NamedLinop& A);
/// Lets derived_parameters() find those of A while A lives.
void remember_derived(const NamedLinop& A);

/// Bytes that a call needs at most to bring a derived value up to date before it runs, with the new
/// value; 0 if it is up to date.
index_t renewal_bytes(const Container& target);

}  // namespace palimpsest
