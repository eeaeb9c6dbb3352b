// SPDX-License-Identifier: Apache-2.0
// Internal: values of which several elements are one, such as stretched ones, in containers. They
// take the memory that they have, and are copied before they are written.
#pragma once

#include "palimpsest/run/container.hpp"

namespace palimpsest {

/// While it lives, containers that this thread makes keep first values whose elements overlap one
/// another as they are.
class KeepStretchedValues {
 public:
  KeepStretchedValues();
  ~KeepStretchedValues();
  KeepStretchedValues(const KeepStretchedValues&) = delete;
  KeepStretchedValues& operator=(const KeepStretchedValues&) = delete;
};

/// Gives each element memory of its own, before the value is written in place. The caller holds the
/// container exclusively.
void separate_elements(Container& container);

}  // namespace palimpsest
