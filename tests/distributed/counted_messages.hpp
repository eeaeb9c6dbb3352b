// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/collective.hpp"

namespace palimpsest::testing {

/// Messages that this process has sent, counted by the profiling interface of MPI; all zero where a
/// test runs without MPI. Synchronisations are not counted.
Traffic sent_messages();

}  // namespace palimpsest::testing
