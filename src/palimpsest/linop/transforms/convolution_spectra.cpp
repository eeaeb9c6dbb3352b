// SPDX-License-Identifier: Apache-2.0
// Transforms of kernels that several graphs share: those of an operator, its adjoint and its normal
// operator. They are held weakly: each lives as long as a graph needs it.
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/linop/transforms/convolution_graph.hpp"

namespace palimpsest {
namespace {

// Graphs are copied when they are compiled: variables come and go, their cell stays.
struct Spectrum {
  std::weak_ptr<VariableNode> kernel, spectrum;
  std::weak_ptr<Container> cell;
};
struct Spectra {
  Mutex mutex;
  std::map<std::pair<const VariableNode*, std::vector<index_t>>, Spectrum> entries;
};
Spectra& spectra() {
  return immortal([] { return Spectra(); });
}

}  // namespace

Variable kept_spectrum(const Variable& h, const Extents& key, const Variable& spectrum) {
  Spectra& known = spectra();
  const std::lock_guard guard(known.mutex);
  std::erase_if(known.entries, [](const auto& entry) {
    return entry.second.kernel.expired() || entry.second.cell.expired();
  });
  Spectrum& entry = known.entries[{h.node(), {key.begin(), key.end()}}];
  if (auto node = entry.spectrum.lock()) return Variable(std::move(node));
  if (auto cell = entry.cell.lock()) {
    const SharedVariable again(cell->type(), cell);
    entry.spectrum = again.var().handle();
    return again.var();
  }
  const DeferredDerivations on_first_use;
  const Parameter made = Parameter::derived(spectrum);
  entry = {h.handle(), made.var().handle(), made.variable().container_ptr()};
  return made.var();
}

std::vector<std::shared_ptr<Container>> kept_spectra(const Variable& h) {
  Spectra& known = spectra();
  const std::lock_guard guard(known.mutex);
  std::vector<std::shared_ptr<Container>> result;
  for (const auto& [key, entry] : known.entries) {
    if (key.first != h.node() || entry.kernel.expired()) continue;
    if (auto cell = entry.cell.lock()) result.push_back(std::move(cell));
  }
  return result;
}

}  // namespace palimpsest
