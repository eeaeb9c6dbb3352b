// SPDX-License-Identifier: Apache-2.0
// Values that follow from the parameters of operators, such as the order of points. Operators with
// the same arguments have one such value, so that their graphs are equal and are computed once.
#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/node.hpp"

namespace palimpsest {
namespace {

using Versions = std::vector<std::uint64_t>;

// A node, held weakly, and the versions of the sources that its derived values were made for.
struct Entry {
  std::weak_ptr<const LinopNode> node;
  Versions versions;
};
// Nodes with derived parameters by the hash of their arguments.
struct Known {
  Mutex mutex;
  std::unordered_multimap<std::size_t, Entry> nodes;
  std::size_t most = 64;  // before entries of nodes that are gone are erased
};
Known& known() {
  return immortal([] { return Known(); });
}

std::size_t hash_of_arguments(const NamedLinop& A) {
  std::size_t hash = std::hash<const LinopType*>()(&A.type());
  const auto add = [&](std::size_t more) { hash = hash * 1099511628211U + more; };
  for (const auto& [name, p] : A.params()) {
    if (!p.present() || p.is_derived()) continue;
    add(std::hash<const Container*>()(p.variable().container_ptr().get()));
    const ElementLayout layout = p.layout();
    add(static_cast<std::size_t>(layout.offset));
    for (const index_t n : layout.shape) add(static_cast<std::size_t>(n));
  }
  return hash;
}

// Derived values follow from the attributes and the other parameters, whatever the names.
bool has_same_arguments(const NamedLinop& a, const NamedLinop& b) {
  const auto next = [](const Parameters& list, std::size_t i) {
    while (i < list.size() && list[i].second.is_derived()) ++i;
    return i;
  };
  std::size_t i = next(a.params(), 0), j = next(b.params(), 0);
  for (; i < a.params().size() && j < b.params().size();
       i = next(a.params(), i + 1), j = next(b.params(), j + 1)) {
    const auto& [name, p] = a.params()[i];
    const auto& [other, q] = b.params()[j];
    if (name != other || !p.is(q) || p.is_trainable() != q.is_trainable()) return false;
  }
  return i == a.params().size() && j == b.params().size() && &a.type() == &b.type() &&
         a.attrs() == b.attrs();
}

Versions versions_of(const NamedLinop& A) {
  Versions result;
  for (const auto& [name, p] : A.params()) {
    for (const std::uint64_t version : p.source_versions()) result.push_back(version);
  }
  return result;
}

// Derived values of A; empty if they were made for other values of their sources: new ones may have
// other shapes.
Parameters present_values(const NamedLinop& A, const Versions& made_for) {
  Parameters result;
  const bool is_as_made = versions_of(A) == made_for;
  for (const auto& [name, p] : A.params()) {
    if (!p.is_derived()) continue;
    if (!is_as_made && p.is_stale()) return {};
    result.emplace_back(name, p);
  }
  return result;
}

}  // namespace

Parameters derived_parameters(const NamedLinop& A) {
  // Freed after the lock.
  std::vector<std::pair<std::shared_ptr<const LinopNode>, Versions>> candidates;
  {
    Known& k = known();
    const std::lock_guard guard(k.mutex);
    const auto [first, last] = k.nodes.equal_range(hash_of_arguments(A));
    for (auto at = first; at != last; ++at) {
      if (auto node = at->second.node.lock()) {
        candidates.emplace_back(std::move(node), at->second.versions);
      }
    }
  }
  for (const auto& [node, versions] : candidates) {
    const NamedLinop other(node);
    if (!has_same_arguments(A, other)) continue;
    Parameters values = present_values(other, versions);
    if (!values.empty()) return values;
  }
  return A.type().derive(A);
}

void remember_derived(const NamedLinop& A) {
  Known& k = known();
  const std::lock_guard guard(k.mutex);
  k.nodes.emplace(hash_of_arguments(A), Entry{A.node(), versions_of(A)});
  if (k.nodes.size() <= k.most) return;
  std::erase_if(k.nodes, [](const auto& entry) { return entry.second.node.expired(); });
  k.most = 2 * k.nodes.size() + 64;
}

}  // namespace palimpsest
