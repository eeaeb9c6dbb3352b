// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/tensor/tensor.hpp"

// Access to parameters for copying.
namespace palimpsest {

/// The slices with positive steps that show these elements of an array, if there are such.
std::optional<std::vector<Slice>> as_slices(const ElementLayout& layout, const TensorType& of);

/// The elements of a value, in the order of its memory. Empty if that is not row-major and the
/// elements are not slices of it.
std::optional<Tensor> elements_of(const Tensor& whole, const ElementLayout& layout);

/// A variable over all of one storage and where in it views of that storage are.
struct Reduced {
  SharedVariable variable;
  std::vector<ElementLayout> layouts;
};
/// `preferred`: the dtype of the variable, if its items fill the storage.
Reduced reduced(const std::vector<Tensor>& views, DType preferred, const std::string& name);

/// While it lives, values that are derived in this thread are computed on first use.
class DeferredDerivations {
 public:
  DeferredDerivations();
  ~DeferredDerivations();
  DeferredDerivations(const DeferredDerivations&) = delete;
  DeferredDerivations& operator=(const DeferredDerivations&) = delete;
};

}  // namespace palimpsest
