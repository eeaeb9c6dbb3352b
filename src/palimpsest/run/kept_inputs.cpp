// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/kept_inputs.hpp"

#include "palimpsest/run/program.hpp"

namespace palimpsest {

KeptInputs::KeptInputs(const CallAccess& call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.program.overwritten[i]) continue;
    kept_.emplace_back(call.inputs[i], DebugValue::read(call.inputs[i]->view_of()));
  }
}

KeptInputs::~KeptInputs() {
  for (const auto& [tensor, value] : kept_) {
    // The call's own memory by now, although its handle is read-only here.
    const ConstView view = tensor->view_of();
    value.write({const_cast<void*>(view.data), view.dtype, view.extents, view.strides});
  }
}

}  // namespace palimpsest
