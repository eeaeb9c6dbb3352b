// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {
std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::arena:
      return "arena";
    case BufferKind::output:
      return "output";
    case BufferKind::update:
      return "update";
    case BufferKind::argument:
      return "argument";
    case BufferKind::container:
      return "container";
    case BufferKind::constant:
      return "constant";
  }
  return "unknown";
}

std::string_view name_of(Handover handover) {
  switch (handover) {
    case Handover::own:
      return "own";
    case Handover::keep:
      return "keep";
    case Handover::clone:
      return "clone";
    case Handover::compact:
      return "compact";
    case Handover::borrow:
      return "borrow";
  }
  return "unknown";
}

}  // namespace palimpsest
