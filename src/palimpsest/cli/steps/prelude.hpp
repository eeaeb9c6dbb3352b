// SPDX-License-Identifier: Apache-2.0
// Includes that the sources of commands that compute have in common.
#pragma once

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/cli/steps/array_files.hpp"
#include "palimpsest/cli/steps/common_options.hpp"
#include "palimpsest/graph/type.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/transforms.hpp"
#include "palimpsest/io/npy.hpp"
