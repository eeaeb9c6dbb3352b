// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/total.hpp"

#include <algorithm>

namespace palimpsest {
namespace {

// The part of A that knows how vectors on that side are spread; null where they are whole.
// Children stand in the order in which they are applied.
const NamedLinop* spreading(const NamedLinop& A, VectorSide side) {
  if (A.type().parts) return &A;
  const auto& children = A.linops();
  const auto found_in = [&](auto first, auto last) -> const NamedLinop* {
    for (; first != last; ++first) {
      if (const NamedLinop* const found = spreading(*first, side)) return found;
    }
    return nullptr;
  };
  return side == VectorSide::input ? found_in(children.begin(), children.end())
                                   : found_in(children.rbegin(), children.rend());
}

}  // namespace

Variable total(const NamedLinop& A, VectorSide side, const Variable& number) {
  const NamedLinop* const part = spreading(A, side);
  return part ? part->type().parts->total(*part, side, number) : number;
}

bool is_in_parts(const NamedLinop& A) { return spreading(A, VectorSide::input) != nullptr; }

bool on_any_process(const NamedLinop& A, bool here) {
  const NamedLinop* const part = spreading(A, VectorSide::input);
  return part ? part->type().parts->on_any(*part, here) : here;
}

Dims cut_dims(const NamedLinop& A, VectorSide side) {
  const NamedLinop* const part = spreading(A, side);
  return part ? part->type().parts->cut_dims(*part, side) : Dims();
}

}  // namespace palimpsest
