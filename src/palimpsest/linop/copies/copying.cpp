// SPDX-License-Identifier: Apache-2.0
// Deep copies and moves: TreeMap decides about operators, MemoryMap about bytes.
#include "palimpsest/linop/copies/copying.hpp"

#include <algorithm>

#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {

void add(MemoryMap& map, const NamedLinop& A) {
  A.type();  // it is defined
  if (map.is_done()) {
    throw ValueError(
        "[MemoryMap.add] operator " + A.name() +
        " not registered: the copies are made already. Try a new map, or add everything first.");
  }
  std::shared_ptr<void>& companion = map.companion();
  if (!companion) companion = std::make_shared<TreeMap>();
  TreeMap& tree = *static_cast<TreeMap*>(companion.get());
  tree.collect(A);
  const HeldContainers held(tree.containers(), "add");
  tree.read(map);
}

NamedLinop map(const MemoryMap& map, const NamedLinop& A) {
  A.type();
  TreeMap* const tree = static_cast<TreeMap*>(map.companion().get());
  if (!tree || !tree->knows(A)) {
    throw ValueError("[MemoryMap.map] operator " + A.name() +
                     " was not registered. Try add() with it before the copy");
  }
  return tree->mapped(map, A);
}

NamedLinop NamedLinop::deepcopy(Copy when) const {
  data();
  TreeMap tree;
  MemoryMap memory;
  tree.collect(*this);
  {
    const HeldContainers held(tree.containers(), "deepcopy");
    tree.read(memory);
    when == Copy::eager ? memory.copy() : memory.lazy_copy();
  }
  return tree.mapped(memory, *this);
}

std::vector<std::shared_ptr<Container>> variables_of(const NamedLinop& A) {
  A.type();
  TreeMap tree;
  tree.collect(A);
  return tree.variables();
}

NamedLinop deepcopy(const NamedLinop& A, std::span<const std::shared_ptr<Container>> variables) {
  A.type();
  TreeMap tree;
  MemoryMap memory;
  tree.collect(A);
  const std::vector<std::shared_ptr<Container>> originals = tree.variables();
  if (variables.size() != originals.size()) {
    throw ValueError("[deepcopy] operator " + A.name() + ": got " +
                     std::to_string(variables.size()) + " variables, expected " +
                     std::to_string(originals.size()));
  }
  for (std::size_t i = 0; i < originals.size(); ++i) {
    tree.give(*originals[i], SharedVariable(originals[i]->type(), variables[i]));
  }
  {
    const HeldContainers held(tree.containers(), "deepcopy");
    tree.read(memory);
    memory.lazy_copy();
  }
  return tree.mapped(memory, A);
}

NamedLinop NamedLinop::to(Device device) const& {
  data();
  TreeMap tree({.caches = true, .moves = true, .device = device});
  MemoryMap memory;
  tree.collect(*this);
  {
    const HeldContainers held(tree.containers(), "to");
    tree.read(memory);
    memory.to(device);
  }
  return tree.mapped(memory, *this);
}

NamedLinop NamedLinop::to(Device device) && {
  data();
  TreeMap tree({.caches = true, .moves = true, .device = device});
  MemoryMap memory;
  NamedLinop result;
  tree.collect(*this);
  HeldContainers held(tree.containers(), "to");
  tree.read(memory);
  memory.move_to(device, [&] {
    result = tree.mapped(memory, *this);
    // No step can fail from here on. The map alone holds the data without other owners, and
    // releases them piece by piece.
    *this = NamedLinop();
    tree.forget();
    held.let_go_of_unshared();
  });
  return result;
}

NamedLinop memory_aware_to(const NamedLinop& A, Device device) { return A.to(device); }
NamedLinop memory_aware_to(NamedLinop&& A, Device device) { return std::move(A).to(device); }

std::int64_t MemoryReport::bytes() const {
  std::int64_t sum = 0;
  for (const Entry& entry : devices) sum += entry.bytes;
  return sum;
}

MemoryReport memory_report(const NamedLinop& A) {
  A.type();
  TreeMap tree;
  MemoryMap data, derived;
  tree.collect(A);
  {
    const HeldContainers held(tree.containers(), "memory_report");
    tree.read(data);
  }
  for (const Tensor& value : tree.derived_values()) add(derived, value);
  MemoryReport report;
  const auto entry_of = [&](Device device) -> MemoryReport::Entry& {
    for (MemoryReport::Entry& entry : report.devices) {
      if (entry.device == device) return entry;
    }
    report.devices.push_back({.device = device});
    return report.devices.back();
  };
  for (const MemoryMap::Group& group : data.groups()) {
    MemoryReport::Entry& entry = entry_of(group.device);
    entry.bytes += group.buffer;
    ++entry.storages;
  }
  for (const MemoryMap::Group& group : derived.groups()) {
    MemoryReport::Entry& entry = entry_of(group.device);
    entry.bytes += group.buffer;
    entry.derived += group.buffer;
    ++entry.storages;
  }
  return report;
}

}  // namespace palimpsest
