// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// Registers all ops of the library for restore_op(); once, however often it is called.
void register_library_ops();

}  // namespace ops
}  // namespace palimpsest
