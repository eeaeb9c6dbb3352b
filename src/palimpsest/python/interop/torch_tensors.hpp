// SPDX-License-Identifier: Apache-2.0
// Internal: tensors of torch that are to be learned, as parameters of operators.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// True for a torch.nn.Parameter, or a tensor that requires a gradient.
bool is_learned(nb::handle tensor);
/// The parameter over the memory of such a tensor, which lives as long as it; the same one for the
/// same tensor.
Parameter learned_parameter(nb::handle tensor);
/// The tensor whose whole memory a parameter is; None without such a tensor.
nb::object torch_tensor_of(const Parameter& parameter);
/// Writes a value of the parameter's type into that memory, and lets torch count the write. False
/// if there is no such memory, or if the tensor has another type.
bool write_torch_tensor(const Parameter& parameter, const Tensor& value);
/// True if torch computes tangents (forward-mode differentiation) at present.
bool records_tangents();
/// True if torch computes tangents, or records operations and x or a parameter of A requires
/// a gradient.
bool is_recorded(const NamedLinop& A, nb::handle x);
/// True if torch records gradients at present.
bool records_gradients();

/// Containers over memory of torch count a version when torch wrote the memory. Unlocked does it.
void announce_torch_writes();
/// True if there is such a container.
extern bool has_torch_containers;

}  // namespace palimpsest::python
