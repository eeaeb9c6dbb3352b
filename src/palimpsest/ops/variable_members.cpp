// SPDX-License-Identifier: Apache-2.0
// The builders that are members of Variable.
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {

Variable Variable::T() const { return ops::transpose(*this); }
Variable Variable::H() const { return ops::conj(T()); }
Variable Variable::reshape(const ShapeArgument& shape) const { return ops::reshape(*this, shape); }
Variable Variable::ravel() const { return ops::ravel(*this); }
Variable Variable::astype(DType dtype) const { return ops::astype(*this, dtype); }
Variable Variable::shape() const { return ops::shape(*this); }
Variable Variable::shape(index_t axis) const { return ops::shape(*this, axis); }

#define PALIMPSEST_REDUCTION(name, function)                               \
  Variable Variable::name(const AxesArgument& axes, bool keepdims) const { \
    return ops::function(*this, {axes.value(), keepdims});                 \
  }
PALIMPSEST_REDUCTION(sum, sum)
PALIMPSEST_REDUCTION(prod, prod)
PALIMPSEST_REDUCTION(mean, mean)
PALIMPSEST_REDUCTION(max, max)
PALIMPSEST_REDUCTION(min, min)
PALIMPSEST_REDUCTION(any, any)
PALIMPSEST_REDUCTION(all, all_of)
#undef PALIMPSEST_REDUCTION

}  // namespace palimpsest
