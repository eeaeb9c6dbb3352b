// SPDX-License-Identifier: Apache-2.0
// The testing kit for operators of one's own; palimpsest.hpp has it too.
#pragma once

#include "palimpsest/linop/testing/testing.hpp"
