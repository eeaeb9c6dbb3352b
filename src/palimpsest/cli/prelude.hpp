// SPDX-License-Identifier: Apache-2.0
// Includes that the sources of commands have in common.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/standard_output.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/io/report.hpp"
