// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/collective.hpp"

namespace palimpsest::testing {

/// Messages sent by this process, counted by the profiling interface of MPI; all zero in tests
/// without MPI. Synchronisations are not counted.
Traffic sent_messages();

}  // namespace palimpsest::testing
