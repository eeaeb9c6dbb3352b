// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/marks.hpp"

#include "palimpsest/graph/origin.hpp"

namespace palimpsest {

void copy_marks(const Variable& from, const Variable& to) {
  to.node()->name = from.name();
  to.node()->tags = from.tags();
}

void copy_marks(const Apply& from, const Apply& to) {
  to.node()->built_at = from.node()->built_at;
  copy_origin(from, to);
  for (std::size_t k = 0; k < from.output_count(); ++k) copy_marks(from.output(k), to.output(k));
}

void pass_marks(const Variable& old, const Variable& with) {
  if (with.name().empty() && !old.name().empty()) with.named(old.name());
  VariableTags& tags = with.tags();
  tags.indestructible = tags.indestructible || old.tags().indestructible;
  tags.nan_guard = tags.nan_guard && old.tags().nan_guard;
}

}  // namespace palimpsest
