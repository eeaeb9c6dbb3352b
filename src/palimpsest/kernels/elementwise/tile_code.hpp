// SPDX-License-Identifier: Apache-2.0
// Internal: straight-line code executed by vectors, block by block within a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// A step of a machine. It has one accumulator a, of several vectors, and operands x and y in
/// memory. Products and sums are rounded separately on every processor.
enum class Verb : std::uint8_t {
  load,         // a = x
  store,        // x = a
  stream,       // x = a, past the caches
  ask_to_read,  // asks for memory that x reaches soon
  ask_to_write,
  add,                // a + x
  subtract,           // a - x
  subtract_from,      // x - a
  multiply,           // a x
  multiply_add,       // a + x y
  multiply_subtract,  // a - x y
  product,            // a = x y
  negate,
  square,
  divide,       // a / x
  divide_into,  // x / a
  reciprocal,   // 1 / a
  sign,         // a / |a|; 0 for a = 0
  choose,       // a where the bool y holds, else x
  choose_from,  // x where the bool y holds, else a
  // Real numbers only.
  root,
  absolute,
  round,          // halves to even
  less,           // a = mask of a < x: all bits set where true
  less_equal,     // mask of a <= x
  equal,          // mask of a == x
  select,         // a = x where the mask is set, else y
  minimum,        // minimum(a, x); the order counts: minimum() of scalar_op.hpp is not symmetric
  minimum_after,  // minimum(x, a)
  maximum,
  maximum_after,
  multiply_then_add,            // a x + y
  multiply_then_subtract,       // a x - y
  multiply_then_subtract_from,  // y - a x
  // Complex numbers only.
  load_real,               // a = x + 0i, x real
  load_parts,              // a = x + iy, both real
  store_real,              // x = real part, x real
  multiply_conj,           // a conj(x)
  conj_multiply,           // conj(a) x
  product_conj,            // a = x conj(y)
  multiply_conj_add,       // a + x conj(y)
  multiply_conj_subtract,  // a - x conj(y)
  conj,
  magnitude2,  // a = |a|^2 + 0i
  imaginary,   // a = imaginary part + 0i
};

struct TileVerb {
  Verb verb;
  bool still_x, still_y;  // one block of x, y serves all blocks; one bool of a choice
  std::int16_t x, y;      // register numbers
};
inline bool is_choice(const TileVerb& verb) {
  return verb.verb == Verb::choose || verb.verb == Verb::choose_from;
}

/// Runs `n_verbs` verbs for n elements; register r begins at addresses[r]. Each block of elements
/// goes through all verbs before the next block. So a store may overwrite operands of earlier
/// verbs, not of later ones.
using TileMachine = void (*)(const TileVerb* code, int n_verbs, std::byte* const* addresses,
                             index_t n);

/// Maximum number of elements of a vector and of a block.
inline constexpr index_t kTileLanes = 16, kTileBlock = 256;
/// Bytes between an element at work and the memory that is asked for: the processor's own
/// prefetcher stays closer to loads than the last cache answers, and ends with each page. Sums and
/// functions of 4 MB arrays take 0.65 to 0.9 of the time without it.
inline constexpr index_t kAskAhead = 2048;

/// The machines for this processor; null without vector instructions.
struct RealTileMachines {
  TileMachine real32 = nullptr, real64 = nullptr;
  /// n copies of an element of `item` bytes, a power of two up to 16. Stores whole vectors: a load
  /// that spans several stores waits until they reach the cache.
  void (*fill)(const std::byte* element, std::size_t item, std::byte* to, index_t n) = nullptr;
  /// Bytes of a block. Of an operand that is the same for all blocks no more are read.
  index_t block_bytes = 0;
  /// Waits until streaming stores have completed.
  void (*finish_streams)() = nullptr;
};
struct ComplexTileMachines {
  TileMachine complex64 = nullptr, complex128 = nullptr;
};
RealTileMachines real_tile_machines();
ComplexTileMachines complex_tile_machines();

struct TileMachines : RealTileMachines, ComplexTileMachines {};
inline TileMachines tile_machines() { return {real_tile_machines(), complex_tile_machines()}; }

}  // namespace palimpsest
