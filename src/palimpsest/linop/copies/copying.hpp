// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/memory/memory_map.hpp"

namespace PALIMPSEST_API palimpsest {

/// Registers all data of an operator: parameters, tensors in attributes, those of children, and the
/// sources of derived parameters.
/// Errors   ValueError: the copies are made already
void add(MemoryMap& map, const NamedLinop& A);
/// The operator on the counterparts of its data. One node, variable or storage has one counterpart,
/// also in another operator that is mapped through the same map.
/// Errors   ValueError "not registered"; nothing is copied yet
NamedLinop map(const MemoryMap& map, const NamedLinop& A);

/// The containers of the variables that an operator reads, each once; not of derived ones.
std::vector<std::shared_ptr<Container>> variables_of(const NamedLinop& A);
/// A deep copy with given variables in place of variables_of(A), in their order. So objects that
/// are copied one after the other share what the originals share.
/// Errors   ValueError: another number of them; TypeError: one of another type
NamedLinop deepcopy(const NamedLinop& A, std::span<const std::shared_ptr<Container>> variables);

/// Memory of the data of an operator, by device and kind.
struct MemoryReport {
  struct Entry {
    Device device;
    std::int64_t bytes = 0;    ///< in use, every byte counted once
    std::int64_t derived = 0;  ///< of these, in parameters that can be computed again
    int storages = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// An entry per device, in the order of first use.
  std::vector<Entry> devices;
  std::int64_t bytes() const;
};
MemoryReport memory_report(const NamedLinop& A);

/// Another name of A.to(device).
NamedLinop memory_aware_to(const NamedLinop& A, Device device);
NamedLinop memory_aware_to(NamedLinop&& A, Device device);

}  // namespace palimpsest
