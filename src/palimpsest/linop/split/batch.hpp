// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Dimensions in order, and the size of a tile along each.
using TileSizes = std::vector<std::pair<ND, index_t>>;

/// An operator cut into a grid of tiles: one axis per dimension, row-major, the last tile of an
/// axis maybe shorter.
struct SplitGrid {
  Extents shape;                    ///< number of tiles along each dimension
  std::vector<NamedLinop> tiles;    ///< of the operator
  std::vector<Tile> input_slices;   ///< the part of the input for each
  std::vector<Tile> output_slices;  ///< which part of the output each gives, or adds to
};

/// Cuts an operator into tiles of these sizes.
///
/// Errors   ValueError: a dimension that the operator does not have, or given twice, a size below
///          1; ShapeError "is unknown"; SplitError
SplitGrid split_linop(const NamedLinop& A, const TileSizes& sizes);

/// Dimensions in order, and where the tiles along each begin and end: 0, .., the size.
using TileBounds = std::vector<std::pair<ND, Extents>>;
/// Cuts an operator at these places.
///
/// Errors   ValueError "bounds": they do not begin at 0, end at the size, or grow; those of
///          split_linop()
SplitGrid split_linop_at(const NamedLinop& A, const TileBounds& bounds);

/// Devices for a grid of tiles: a list with one or more axes that belong to the last axes of the
/// grid and are repeated cyclically along each. Two devices on a grid of 3 x 5: each row is 0 1 0 1
/// 0.
class DeviceGrid {
 public:
  DeviceGrid() = default;
  DeviceGrid(std::initializer_list<Device> devices)
      : DeviceGrid({static_cast<index_t>(devices.size())}, std::vector<Device>(devices)) {}
  /// Row-major. ValueError: another number of devices than the shape says, or none.
  DeviceGrid(Extents shape, std::vector<Device> devices);

  bool empty() const { return devices_.empty(); }
  /// The device of a tile. The index has an axis for each axis of the tile grid. ValueError: it has
  /// fewer than the list.
  Device at(const Extents& index) const;

 private:
  Extents shape_;
  std::vector<Device> devices_;
};

/// A level of cutting: an immutable value.
struct BatchSpec {
  TileSizes sizes;
  /// Devices that compute the tiles; empty: those of their parameters.
  DeviceGrid devices = {};
  /// Device of inputs and results. Unset: that of the operator's parameters.
  std::optional<Device> base_device = {};
};
struct BatchOptions {
  /// Sizes of dimensions that the operator does not know.
  DimMap sizes = {};
};

/// The operator cut into tiles and put together again, so that a plan needs memory for few tiles at
/// a time: cut by the first spec, each tile by the next, and so on. Along a dimension of both
/// shapes tiles are blocks of a diagonal, of the output they are joined, of the input or of neither
/// added.
///
/// Math     equal to A up to rounding of sums
/// Aliases  parameters are views of those of A: nothing is copied. With devices, each tile that is
///          not on its device gets parameters of its own there, of the bytes that it uses, between
///          copies of input and result
/// Errors   those of split_linop(); OutOfMemory: a device has no room, and nothing has changed
NamedLinop create_batched_linop(const NamedLinop& A, const std::vector<BatchSpec>& specs,
                                const BatchOptions& options = {});
NamedLinop create_batched_linop(const NamedLinop& A, const BatchSpec& spec,
                                const BatchOptions& options = {});

/// The three devices of a tile: of its input, of its computation, and of its result.
enum class TileRole : std::uint8_t { input, compute, output };
struct TileDevices {
  Device input = {}, compute = {}, output = {};
  Device& at(TileRole role);
};

/// Tiles between given edges, each with three devices of its own: where BatchSpec has tiles of one
/// size on a cyclic list of devices. Edges are known beforehand, so that tiles can be balanced by
/// hand.
struct TilingStrategy {
  TileBounds bounds;
  /// Devices that distribute() assigns to tiles.
  std::vector<Device> devices = {};
  /// Devices of the tiles, row-major; empty: each tile is on the device of the operator's
  /// parameters.
  std::vector<TileDevices> roles = {};

  /// A device for all roles of all tiles.
  TilingStrategy& place_all(Device device);
  /// The tiles along d get the devices in turn, in one role. ValueError "devices": the list is
  /// empty; "bounds": d is not cut
  TilingStrategy& distribute(const ND& d, TileRole role = TileRole::compute);
  /// Gives each tile's device of one role to another role.
  TilingStrategy& copy_role(TileRole from, TileRole to);
};
/// Does as with a BatchSpec. A tile stands between copies where its devices differ.
///
/// Errors   ValueError "roles": another number than there are tiles; those of split_linop_at()
NamedLinop create_batched_linop(const NamedLinop& A, const TilingStrategy& strategy,
                                const BatchOptions& options = {});

}  // namespace palimpsest
