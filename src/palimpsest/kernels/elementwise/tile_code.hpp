// SPDX-License-Identifier: Apache-2.0
// Internal: straight-line code that runs on vectors, block by block within a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// One step of a machine that has one accumulator, a, of several vectors, and operands x and y in
/// memory. Products and sums are rounded one by one, on every processor.
enum class Verb : std::uint8_t {
  load,               // a = x
  store,              // x = a
  stream,             // x = a, past the caches
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
  sign,         // a / |a|, 0 of 0
  choose,       // a where y, a bool, holds, else x
  choose_from,  // x where it holds, else a
  // Real numbers only.
  root,
  absolute,
  round,          // halves to even
  less,           // a = all bits where a < x, else none
  less_equal,     // of a <= x
  equal,          // of a == x
  select,         // a = x where a has bits, else y
  minimum,        // of a and x, in this order: minimum() of scalar_op.hpp is not symmetric
  minimum_after,  // of x and a
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
  bool still_x, still_y;  // one block serves for all, one bool of a choice
  std::int16_t x, y;      // numbers of registers
};
inline bool is_choice(const TileVerb& verb) {
  return verb.verb == Verb::choose || verb.verb == Verb::choose_from;
}

/// Runs `n_verbs` verbs for n elements; register r begins at addresses[r]. Each block of elements
/// goes through all verbs before the next: what is read may be overwritten by a store that does not
/// come before it in the code.
using TileMachine = void (*)(const TileVerb* code, int n_verbs, std::byte* const* addresses,
                             index_t n);

/// Largest number of elements of a vector, and of a block.
inline constexpr index_t kTileLanes = 16, kTileBlock = 256;

/// The machines of the processor at hand, null where it has no vectors.
struct RealTileMachines {
  TileMachine real32 = nullptr, real64 = nullptr;
  /// n copies of an element of `item` bytes, a power of two up to 16. Whole vectors are stored:
  /// loads that span several stores would wait until those have left the processor.
  void (*fill)(const std::byte* element, std::size_t item, std::byte* to, index_t n) = nullptr;
  /// Bytes of a block: no more are read of what is the same for all blocks.
  index_t block_bytes = 0;
  /// Waits until what was streamed has arrived.
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
