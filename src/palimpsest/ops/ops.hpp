// SPDX-License-Identifier: Apache-2.0
#pragma once

// The builders of all ops: what users and operators write graphs with. One header per family.
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/ops/blocks.hpp"
#include "palimpsest/ops/control.hpp"
#include "palimpsest/ops/create.hpp"
#include "palimpsest/ops/debugging.hpp"
#include "palimpsest/ops/device.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/fft.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/index.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/loop.hpp"
#include "palimpsest/ops/nufft.hpp"
#include "palimpsest/ops/products.hpp"
#include "palimpsest/ops/random.hpp"
#include "palimpsest/ops/reduce.hpp"
#include "palimpsest/ops/shape_ops.hpp"
#include "palimpsest/ops/stencil.hpp"
#include "palimpsest/ops/strided.hpp"
