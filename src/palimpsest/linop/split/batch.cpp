// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/batch.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/operators/to_device.hpp"

namespace palimpsest {
namespace {

std::string error_about(const ND& d) { return "[split_linop] dim '" + d.str() + "': "; }

index_t known_size(const NamedLinop& A, const ND& d) {
  if (const auto n = A.size(d)) return *n;
  throw ShapeError(who(A) + "split_linop: size of dim '" + d.str() +
                   "' is unknown. Try with_sizes, or .sizes of create_batched_linop");
}

void check_sizes(const NamedLinop& A, const TileSizes& sizes) {
  const Dims dims = A.dims();
  Dims seen;
  for (const auto& [d, n] : sizes) {
    if (!dims.contains(d)) {
      throw ValueError(error_about(d) + "the operator has no such dimension: expected some of " +
                       dims.str());
    }
    if (seen.contains(d)) throw ValueError(error_about(d) + "given twice");
    if (n < 1) {
      throw ValueError(error_about(d) + "size of a tile: got " + std::to_string(n) +
                       ", expected at least 1");
    }
    seen.push_back(d);
  }
}

// The next position in a grid, row-major; false after the last.
bool advance(Extents& index, const Extents& shape) {
  for (std::size_t k = index.size(); k-- > 0;) {
    if (++index[k] < shape[k]) return true;
    index[k] = 0;
  }
  return false;
}

// A tile that knows its size along every dimension that was cut.
NamedLinop with_tile_sizes(const NamedLinop& A, const Tile& tile) {
  DimMap missing;
  for (const auto& [d, range] : tile) {
    if (!A.dims().contains(d) || A.size(d)) continue;
    missing.emplace(d, *range.stop - *range.start);
  }
  return missing.empty() ? A : A.with_sizes(missing);
}

// One dimension of a grid put together.
NamedLinop joined(std::vector<NamedLinop> parts, const NamedLinop& A, const ND& d) {
  if (parts.size() == 1) return parts[0];
  const bool in = A.ishape().contains(d), out = A.oshape().contains(d);
  if (!in && !out) return Add(std::move(parts));
  const auto role = [&](bool has) { return has ? std::optional<ND>(d) : std::nullopt; };
  return Concat(std::move(parts), {.in = role(in), .out = role(out)});
}

// The tiles of a grid put together, the last dimension first.
NamedLinop reassembled(const NamedLinop& A, const SplitGrid& grid, const TileSizes& sizes) {
  std::vector<NamedLinop> parts = grid.tiles;
  for (std::size_t k = sizes.size(); k-- > 0;) {
    const auto n = static_cast<std::size_t>(grid.shape[k]);
    std::vector<NamedLinop> longer;
    for (std::size_t i = 0; i < parts.size(); i += n) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i);
      longer.push_back(joined({begin, begin + static_cast<std::ptrdiff_t>(n)}, A, sizes[k].first));
    }
    parts = std::move(longer);
  }
  return parts[0];
}

// Where the data of an operator are: the first parameter says.
std::optional<Device> device_of(const NamedLinop& A) {
  for (const auto& [name, p] : A.params()) {
    if (p.present()) return p.type().device;
  }
  for (const NamedLinop& child : A.linops()) {
    if (const auto device = device_of(child)) return device;
  }
  return std::nullopt;
}

// The tiles of each device are placed there through one map, so that what they share stays shared.
void place(std::vector<NamedLinop>& tiles, const std::vector<Device>& devices) {
  std::vector<Device> done;
  for (const Device device : devices) {
    if (std::find(done.begin(), done.end(), device) != done.end()) continue;
    done.push_back(device);
    TreeMap tree({.moves = true, .device = device});
    MemoryMap memory(/*compact=*/true);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (devices[i] == device) tree.collect(tiles[i]);
    }
    {
      const HeldContainers held(tree.containers(), "create_batched_linop");
      tree.read(memory);
      memory.to(device);
    }
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (devices[i] == device) tiles[i] = tree.mapped(memory, tiles[i]);
    }
  }
}

NamedLinop batched(const NamedLinop& A, std::span<const BatchSpec> specs, Device where) {
  if (specs.empty()) return A;
  const BatchSpec& spec = specs[0];
  const Device base = spec.base_device.value_or(where);
  SplitGrid grid = split_linop(A, spec.sizes);
  std::vector<Device> devices;
  Extents index(grid.shape.size(), 0);
  for (std::size_t i = 0; i < grid.tiles.size(); ++i) {
    devices.push_back(spec.devices.empty() ? base : spec.devices.at(index));
    advance(index, grid.shape);
  }
  if (!spec.devices.empty()) place(grid.tiles, devices);
  for (std::size_t i = 0; i < grid.tiles.size(); ++i) {
    NamedLinop& tile = grid.tiles[i];
    tile = batched(tile, specs.subspan(1), devices[i]);
    if (devices[i] == base) continue;
    tile = Chain(ToDevice(base, devices[i], tile.ishape()), tile,
                 ToDevice(devices[i], base, tile.oshape()));
  }
  return reassembled(A, grid, spec.sizes);
}

}  // namespace

DeviceGrid::DeviceGrid(Extents shape, std::vector<Device> devices)
    : shape_(std::move(shape)), devices_(std::move(devices)) {
  const bool fits =
      !shape_.empty() && static_cast<index_t>(devices_.size()) == element_count(shape_);
  if (fits && !devices_.empty()) return;
  throw ValueError("[DeviceGrid] got " + std::to_string(devices_.size()) +
                   " devices, expected as many as the shape " + to_string(shape_) +
                   " has, and one");
}

Device DeviceGrid::at(const Extents& index) const {
  if (index.size() < shape_.size()) {
    throw ValueError("[DeviceGrid] got a tile grid of " + std::to_string(index.size()) +
                     " axes, expected at least " + std::to_string(shape_.size()));
  }
  const std::size_t skipped = index.size() - shape_.size();
  index_t position = 0;
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    position = position * shape_[k] + index[skipped + k] % shape_[k];
  }
  return devices_[static_cast<std::size_t>(position)];
}

SplitGrid split_linop(const NamedLinop& A, const TileSizes& sizes) {
  check_sizes(A, sizes);
  SplitGrid grid;
  for (const auto& [d, n] : sizes) grid.shape.push_back((known_size(A, d) + n - 1) / n);
  if (element_count(grid.shape) == 0) {
    throw ValueError("[split_linop] a dimension has no elements: got " + A.str());
  }
  Extents index(sizes.size(), 0);
  do {
    Tile tile;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto& [d, n] = sizes[k];
      const index_t start = index[k] * n;
      tile.emplace(d, slice(start, std::min(start + n, *A.size(d))));
    }
    grid.tiles.push_back(with_tile_sizes(A.split(tile), tile));
    grid.input_slices.push_back(tile_within(tile, A.ishape()));
    grid.output_slices.push_back(tile_within(tile, A.oshape()));
  } while (advance(index, grid.shape));
  return grid;
}

NamedLinop create_batched_linop(const NamedLinop& A, const std::vector<BatchSpec>& specs,
                                const BatchOptions& options) {
  DimMap missing;
  for (const auto& [d, n] : options.sizes) {
    if (!A.size(d)) missing.emplace(d, n);
  }
  const NamedLinop sized = missing.empty() ? A : A.with_sizes(missing);
  return batched(sized, specs, device_of(A).value_or(Device{}));
}

NamedLinop create_batched_linop(const NamedLinop& A, const BatchSpec& spec,
                                const BatchOptions& options) {
  return create_batched_linop(A, std::vector<BatchSpec>{spec}, options);
}

}  // namespace palimpsest
