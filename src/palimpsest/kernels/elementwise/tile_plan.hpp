// SPDX-License-Identifier: Apache-2.0
// Internal: what happens to a tile of an elementwise program, in which order and where.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"

namespace palimpsest {

/// Where the elements of a register are while a tile is computed.
enum class Place : std::uint8_t {
  slot,         // of scratch
  memory,       // where the caller's array has them
  accumulator,  // nowhere: the next instruction takes them over
  constant,     // one block of scratch that serves for all
};

/// The steps of a program for one tile. It holds no memory of its own and takes little time to
/// make.
///
/// Instructions that the machines of tile_code.hpp know become verbs; neighbours that run on one
/// machine make one step, so that a value passes from one to the next without memory. Before that
/// a conjugate that only a product needs becomes part of it, and so does a product that is only
/// added to, or subtracted from, the result before it; a comparison that only a choice needs moves
/// next to it, and no bools are stored. None of this changes a bit of a result.
class TilePlan {
 public:
  static constexpr int kMaxRegisters = ElementwiseProgram::kMaxRegisters;
  static constexpr int kMaxConstants = 8;
  /// Room for one of them.
  static constexpr index_t kConstantBytes = kTileBlock * 16;

  /// An instruction after folding.
  struct Instruction {
    ScalarOp op;
    std::int16_t number;  // in the program
    std::int16_t destination;
    std::array<std::int16_t, kMaxArity> sources;
    std::int8_t machine;  // 0: none
    bool conj_0, conj_1;  // of a product: this factor is conjugated
    bool minus;           // of fma: what is added is -sources[0] sources[1]
  };
  /// A run of verbs, a scalar kernel, or a cast.
  struct Step {
    TileMachine machine;
    ScalarKernel kernel;
    CopyRow convert;
    int first, n;  // verbs; else `first` is the instruction
  };

  explicit TilePlan(const ElementwiseProgram& program);
  /// Goes on with another copy of the program.
  void follow(const ElementwiseProgram& copy) { program_ = &copy; }
  const ElementwiseProgram& program() const { return *program_; }

  /// A bound of the slots that all placements need.
  int most_slots() const;
  /// The slots that the present one needs.
  int slots() const;
  /// Forgets what was placed: tiles can be tried in several sizes.
  void begin_placing();
  /// The place of an input that is dense and of its register's dtype, or is the same for all
  /// elements.
  void place_input(int input, bool dense, bool still);
  /// The last instruction that reads an input; 0: none.
  int last_read(int input) const;
  /// Says that an output could be written where it lies, from instruction `first` on: the last one
  /// that reads an input in its memory; 0 where no input is there. Inputs come first. Whether it
  /// will is for place_of() to tell.
  void place_output(int output, bool dense, bool streamed, int first);
  /// After all are placed: gives slots to the registers that need one, and writes the code.
  void finish();

  Place place_of(int r) const { return place_[at(r)]; }
  /// The output in whose memory a register lies; -1: none.
  int output_of(int r) const { return output_[at(r)]; }
  int slot_of(int r) const { return slot_[at(r)]; }
  /// The number of an input that is the same for all elements and needs room for one block only,
  /// -1: none. There are at most kMaxConstants of them.
  int constant_of(int r) const { return constant_[at(r)]; }
  bool streams() const { return streams_; }
  const TileMachines& machines() const { return machines_; }

  std::span<const Step> steps() const { return {steps_.data(), at(n_steps_)}; }
  std::span<const Instruction> instructions() const { return {instructions_.data(), at(n_)}; }
  const TileVerb* verbs() const { return verbs_.data(); }
  /// Runs all steps for n elements; register r begins at registers[r].
  void run(const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const;
  /// Fills register r, of an input that is the same for all elements, for tiles of up to n
  /// elements, and those of its casts. `copy` brings the one at `value` to the register's dtype.
  void spread(int r, const std::byte* value, CopyRow copy,
              const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool is_constant(int r) const { return place_[at(r)] == Place::constant; }
  /// The entries of the program's registers: for a small array the others would take longest.
  template <class T>
  void fill(std::array<T, kMaxRegisters>& entries, std::type_identity_t<T> value) const {
    std::fill_n(entries.begin(), program_->n_registers(), value);
  }
  int machine_for(ScalarOp op, DType result, std::span<const std::int16_t> sources) const;
  void count_uses();
  void fold_conjugates();
  void fold_products();
  void join_choices();
  void remove_folded();
  void keep_in_accumulator();
  bool only_machines_read(int r) const;
  bool make_constant(int r);
  int assign_slots(bool everywhere, std::array<std::int16_t, kMaxRegisters>& slot) const;
  void write_code();
  void write(const Instruction& step, int& held);
  void write_product(const Instruction& step, int held);
  void write_sum_of_product(const Instruction& step, int held);
  void write_in_order(const Instruction& step, int held, Verb verb, Verb reversed);
  void bring(int r, int held);
  void put(Verb verb, int x = -1, int y = -1);
  bool put_with_last(Verb verb, int x);
  void store(int r);

  const ElementwiseProgram* program_;
  TileMachines machines_;
  int n_ = 0, n_steps_ = 0, n_verbs_ = 0;
  bool streams_ = false;
  std::array<Instruction, kMaxRegisters> instructions_;
  std::array<std::int16_t, kMaxRegisters> uses_;  // by instructions
  std::array<bool, kMaxRegisters> is_input_, is_output_, still_, streamed_;
  std::array<Place, kMaxRegisters> place_;
  std::array<std::int16_t, kMaxRegisters> output_, slot_, constant_;
  int n_constants_ = 0;
  // The cast of an input that is the same for all elements, and where its result was without that.
  struct Hoisted {
    int from, to;
    Place place;
  };
  std::array<Hoisted, kMaxConstants> hoisted_;
  int n_hoisted_ = 0;
  std::array<Step, kMaxRegisters> steps_;
  std::array<TileVerb, 4 * kMaxRegisters> verbs_;
};

}  // namespace palimpsest
