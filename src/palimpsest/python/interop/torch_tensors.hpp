// SPDX-License-Identifier: Apache-2.0
// Internal: tensors of torch that are to be learned, as parameters of operators.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// A torch.nn.Parameter, or a tensor that requires a gradient?
bool is_learned(nb::handle tensor);
/// The parameter over the memory of such a tensor, which lives as long as it; the same one for the
/// same tensor.
Parameter learned_parameter(nb::handle tensor);
/// The tensor whose memory a parameter is, whole; None: there is none.
nb::object torch_tensor_of(const Parameter& parameter);
/// Writes a value of the parameter's type into that memory, and lets torch count it. False: there
/// is none, or it is of another type.
bool write_torch_tensor(const Parameter& parameter, const Tensor& value);
/// Does torch record what is done now, and does x or a parameter of A require a gradient?
bool is_recorded(const NamedLinop& A, nb::handle x);
/// Does torch record gradients now?
bool records_gradients();

/// Containers over memory of torch count a version when torch wrote the memory. Unlocked does it.
void announce_torch_writes();
/// Is there any such container?
extern bool has_torch_containers;

}  // namespace palimpsest::python
