// SPDX-License-Identifier: Apache-2.0
#pragma once

// The builders of all ops, with which users and operators write graphs. One header per family.
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/ops/control/control.hpp"
#include "palimpsest/ops/control/debugging.hpp"
#include "palimpsest/ops/control/device.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/create/random.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/ops/loop/loop.hpp"
#include "palimpsest/ops/products/block_matrices.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/blocks.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "palimpsest/ops/shape/strided.hpp"
#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"
