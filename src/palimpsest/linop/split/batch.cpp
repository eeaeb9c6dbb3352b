// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/batch.hpp"

#include <algorithm>
#include <functional>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/operators/to_device.hpp"

namespace palimpsest {
namespace {

std::string error_about_tiles(const ND& d) { return "[split_linop] dim '" + d.str() + "': "; }

index_t known_size(const NamedLinop& A, const ND& d) {
  if (const auto n = A.size(d)) return *n;
  throw ShapeError(who(A) + "split_linop: size of dim '" + d.str() +
                   "' is unknown. Try with_sizes, or .sizes of create_batched_linop");
}

void check_dims(const NamedLinop& A, const Dims& cut) {
  const Dims dims = A.dims();
  Dims seen;
  for (const ND& d : cut) {
    if (!dims.contains(d)) {
      throw ValueError(error_about_tiles(d) +
                       "the operator has no such dimension: expected some of " + dims.str());
    }
    if (seen.contains(d)) throw ValueError(error_about_tiles(d) + "given twice");
    seen.push_back(d);
  }
}

Dims dims_of(const TileBounds& bounds) {
  Dims dims;
  for (const auto& [d, edges] : bounds) dims.push_back(d);
  return dims;
}

Extents grid_shape(const TileBounds& bounds) {
  Extents shape;
  for (const auto& [d, edges] : bounds) shape.push_back(static_cast<index_t>(edges.size()) - 1);
  return shape;
}

TileBounds bounds_of(const NamedLinop& A, const TileSizes& sizes) {
  TileBounds bounds;
  for (const auto& [d, n] : sizes) {
    if (n < 1) {
      throw ValueError(error_about_tiles(d) + "size of a tile: got " + std::to_string(n) +
                       ", expected at least 1");
    }
    bounds.emplace_back(d, Extents());
  }
  check_dims(A, dims_of(bounds));
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const index_t end = known_size(A, sizes[k].first), n = sizes[k].second;
    Extents& edges = bounds[k].second;
    for (index_t at = 0; at < end; at += n) edges.push_back(at);
    edges.push_back(end);
  }
  return bounds;
}

void check_bounds(const NamedLinop& A, const TileBounds& bounds) {
  check_dims(A, dims_of(bounds));
  for (const auto& [d, edges] : bounds) {
    const index_t end = known_size(A, d);
    const bool grow =
        std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
    if (edges.size() > 1 && edges.front() == 0 && edges.back() == end && grow) continue;
    throw ValueError(error_about_tiles(d) + "bounds: got " + to_string(edges) +
                     ", expected numbers that grow from 0 to " + std::to_string(end));
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
  DimMap sizes;
  for (const auto& [d, range] : tile) {
    if (A.dims().contains(d)) sizes.emplace(d, *range.stop - *range.start);
  }
  return completed(A, sizes);
}

// A dimension of a grid put together.
NamedLinop joined_along(std::vector<NamedLinop> parts, const NamedLinop& A, const ND& d) {
  if (parts.size() == 1) return parts[0];
  const bool in = A.ishape().contains(d), out = A.oshape().contains(d);
  if (!in && !out) return Add(std::move(parts));
  const auto role = [&](bool has) { return has ? std::optional<ND>(d) : std::nullopt; };
  return Concat(std::move(parts), {.in = role(in), .out = role(out)});
}

// The tiles of a grid put together, the last dimension first.
NamedLinop reassembled(const NamedLinop& A, const SplitGrid& grid, const Dims& dims) {
  std::vector<NamedLinop> parts = grid.tiles;
  for (std::size_t k = dims.size(); k-- > 0;) {
    const auto n = static_cast<std::size_t>(grid.shape[k]);
    std::vector<NamedLinop> longer;
    for (std::size_t i = 0; i < parts.size(); i += n) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i);
      longer.push_back(joined_along({begin, begin + static_cast<std::ptrdiff_t>(n)}, A, dims[k]));
    }
    parts = std::move(longer);
  }
  return parts[0];
}

// The device of an operator's data: that of its first parameter.
std::optional<Device> device_of(const NamedLinop& A) {
  for (const auto& [name, p] : A.params()) {
    if (p.present()) return p.type().device;
  }
  for (const NamedLinop& child : A.linops()) {
    if (const auto device = device_of(child)) return device;
  }
  return std::nullopt;
}

// Moves the tiles of each device through one map, so that shared data stay shared.
void place_on_devices(std::vector<NamedLinop>& tiles, const std::vector<Device>& devices) {
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

// The tile where its input and its result are to be.
NamedLinop between_copies(const NamedLinop& tile, const TileDevices& at) {
  std::vector<NamedLinop> parts;
  if (at.input != at.compute) parts.push_back(ToDevice(at.input, at.compute, tile.ishape()));
  parts.push_back(tile);
  if (at.compute != at.output) parts.push_back(ToDevice(at.compute, at.output, tile.oshape()));
  return parts.size() == 1 ? tile : Chain(std::move(parts));
}

NamedLinop batched(const NamedLinop& A, std::span<const BatchSpec> specs, Device where) {
  if (specs.empty()) return A;
  const BatchSpec& spec = specs[0];
  const Device base = spec.base_device.value_or(where);
  const TileBounds bounds = bounds_of(A, spec.sizes);
  SplitGrid grid = split_linop_at(A, bounds);
  std::vector<Device> devices;
  Extents index(grid.shape.size(), 0);
  for (std::size_t i = 0; i < grid.tiles.size(); ++i) {
    devices.push_back(spec.devices.empty() ? base : spec.devices.at(index));
    advance(index, grid.shape);
  }
  if (!spec.devices.empty()) place_on_devices(grid.tiles, devices);
  for (std::size_t i = 0; i < grid.tiles.size(); ++i) {
    const NamedLinop tile = batched(grid.tiles[i], specs.subspan(1), devices[i]);
    grid.tiles[i] = between_copies(tile, {base, devices[i], base});
  }
  return reassembled(A, grid, dims_of(bounds));
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
  return split_linop_at(A, bounds_of(A, sizes));
}

SplitGrid split_linop_at(const NamedLinop& A, const TileBounds& bounds) {
  check_bounds(A, bounds);
  SplitGrid grid;
  grid.shape = grid_shape(bounds);
  Extents index(bounds.size(), 0);
  do {
    Tile tile;
    for (std::size_t k = 0; k < bounds.size(); ++k) {
      const auto& [d, edges] = bounds[k];
      const auto i = static_cast<std::size_t>(index[k]);
      tile.emplace(d, slice(edges[i], edges[i + 1]));
    }
    grid.tiles.push_back(with_tile_sizes(A.split(tile), tile));
    grid.input_slices.push_back(tile_within(tile, A.ishape()));
    grid.output_slices.push_back(tile_within(tile, A.oshape()));
  } while (advance(index, grid.shape));
  return grid;
}

NamedLinop create_batched_linop(const NamedLinop& A, const std::vector<BatchSpec>& specs,
                                const BatchOptions& options) {
  return batched(completed(A, options.sizes), specs, device_of(A).value_or(Device{}));
}

NamedLinop create_batched_linop(const NamedLinop& A, const BatchSpec& spec,
                                const BatchOptions& options) {
  return create_batched_linop(A, std::vector<BatchSpec>{spec}, options);
}

Device& TileDevices::at(TileRole role) {
  if (role == TileRole::input) return input;
  return role == TileRole::compute ? compute : output;
}

TilingStrategy& TilingStrategy::place_all(Device device) {
  roles.assign(static_cast<std::size_t>(element_count(grid_shape(bounds))),
               {device, device, device});
  return *this;
}

TilingStrategy& TilingStrategy::distribute(const ND& d, TileRole role) {
  const Dims dims = dims_of(bounds);
  const auto found = std::find(dims.begin(), dims.end(), d);
  if (found == dims.end()) {
    throw ValueError("[TilingStrategy] bounds: got " + d.str() + ", expected some of " +
                     dims.str());
  }
  if (devices.empty()) throw ValueError("[TilingStrategy] devices: got none, expected some");
  if (roles.empty()) place_all(devices.front());
  const auto k = static_cast<std::size_t>(found - dims.begin());
  const Extents shape = grid_shape(bounds);
  Extents index(shape.size(), 0);
  for (TileDevices& tile : roles) {
    tile.at(role) = devices[static_cast<std::size_t>(index[k]) % devices.size()];
    advance(index, shape);
  }
  return *this;
}

TilingStrategy& TilingStrategy::copy_role(TileRole from, TileRole to) {
  for (TileDevices& tile : roles) tile.at(to) = tile.at(from);
  return *this;
}

NamedLinop create_batched_linop(const NamedLinop& A, const TilingStrategy& strategy,
                                const BatchOptions& options) {
  const NamedLinop sized = completed(A, options.sizes);
  SplitGrid grid = split_linop_at(sized, strategy.bounds);
  const std::size_t n = grid.tiles.size();
  if (!strategy.roles.empty() && strategy.roles.size() != n) {
    throw ValueError("[create_batched_linop] roles: got " + std::to_string(strategy.roles.size()) +
                     ", expected " + std::to_string(n) + ", one for each tile");
  }
  if (!strategy.roles.empty()) {
    std::vector<Device> devices;
    for (const TileDevices& tile : strategy.roles) devices.push_back(tile.compute);
    place_on_devices(grid.tiles, devices);
    for (std::size_t i = 0; i < n; ++i) {
      grid.tiles[i] = between_copies(grid.tiles[i], strategy.roles[i]);
    }
  }
  return reassembled(sized, grid, dims_of(strategy.bounds));
}

}  // namespace palimpsest
