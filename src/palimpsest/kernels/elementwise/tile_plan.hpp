// SPDX-License-Identifier: Apache-2.0
// Internal: the steps of an elementwise program for one tile, their order and operands.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/elementwise/scalar_kernels.hpp"
#include "palimpsest/kernels/elementwise/tile_code.hpp"

namespace palimpsest {

/// Place of the elements of a register during a tile.
enum class RegisterPlace : std::uint8_t {
  slot,         // in scratch
  memory,       // in the caller's array
  accumulator,  // in the accumulator: the next instruction uses them
  constant,     // one block of scratch, the same for all blocks
};

/// Memory that is asked for before it is used.
enum class AskFor : std::uint8_t {
  nothing,     // all arrays are in a core's first cache
  results,     // in its other cache: stores wait for their lines in turn, so that 1e5 float32 sums
               // take 13 us; 11 if lines of the result are asked for, no less for the terms'
  everything,  // in the last cache or in memory
};

/// The steps of a program for one tile. Owns no memory and is quick to make.
///
/// Instructions that the machines of tile_code.hpp support become verbs. Neighbours on the same
/// machine form one step, so that values pass between them without memory. Before that,
/// instructions are folded if their result has one use: a conjugate into a product; a product into
/// the sum or difference with the result before it; a comparison next to its choice, so that no
/// bools are stored. Results keep their bits.
class TilePlan {
 public:
  static constexpr int kMaxRegisters = ElementwiseProgram::kMaxRegisters;
  static constexpr int kMaxConstants = 8;
  /// Bytes of the block of one constant.
  static constexpr index_t kConstantBytes = kTileBlock * 16;

  /// An instruction after folding.
  struct Instruction {
    ScalarOp op;
    std::int16_t number;  // index in the program
    std::int16_t destination;
    std::array<std::int16_t, kMaxArity> sources;
    std::int8_t machine;  // 0: none
    bool conj_0, conj_1;  // this factor of a product is conjugated
    bool minus;           // fma subtracts: the term is -sources[0] sources[1]
  };
  /// A run of verbs, a scalar kernel, or a cast.
  struct Step {
    TileMachine machine;
    ScalarKernel kernel;
    CopyRow convert;
    int first, n;  // verbs; for a kernel or cast `first` is the instruction
  };

  explicit TilePlan(const ElementwiseProgram& program);
  /// Switches to another copy of the program.
  void follow(const ElementwiseProgram& copy) { program_ = &copy; }
  const ElementwiseProgram& program() const { return *program_; }

  /// An upper bound of slots() for all placements.
  int most_slots() const;
  /// The number of slots of the current placement.
  int slots() const;
  /// Clears the placement: tiles can be tried in several sizes.
  void begin_placing();
  /// Places an input. `dense`: with dense elements of the register's dtype; `still`: the same for
  /// all elements.
  void place_input(int input, bool dense, bool still);
  /// The last instruction that reads an input; 0: none.
  int last_read(int input) const;
  /// Places an output, after all inputs. It may be written to its array from instruction `first`
  /// on: the last one that reads an input in the same memory; 0 if there is none. place_of() tells
  /// whether it will be.
  void place_output(int output, bool dense, bool streamed, int first);
  /// Assigns slots and writes the code, which asks for memory before it is used. Called after all
  /// are placed.
  void finish(AskFor asked);

  RegisterPlace place_of(int r) const { return place_[at(r)]; }
  /// The output in whose array a register lies; -1: none.
  int output_of(int r) const { return output_[at(r)]; }
  int slot_of(int r) const { return slot_[at(r)]; }
  /// The number of the constant block of an input that is the same for all elements; -1: none. At
  /// most kMaxConstants.
  int constant_of(int r) const { return constant_[at(r)]; }
  bool streams() const { return streams_; }
  const TileMachines& machines() const { return machines_; }

  std::span<const Step> steps() const { return {steps_.data(), at(n_steps_)}; }
  std::span<const Instruction> instructions() const { return {instructions_.data(), at(n_)}; }
  const TileVerb* verbs() const { return verbs_.data(); }
  /// Runs all steps for n elements; register r begins at registers[r].
  void run(const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const;
  /// Fills the constant block of input register r, and those of its casts, for tiles of up to n
  /// elements. `copy` converts the element at `value` to the register's dtype.
  void spread(int r, const std::byte* value, CopyRow copy,
              const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool is_constant(int r) const { return place_[at(r)] == RegisterPlace::constant; }
  /// A copy of the entries that the program uses: for small arrays copying all would dominate the
  /// time.
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
  void write_code(AskFor asked);
  void ask_for_operands(int first, AskFor asked);
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
  std::array<std::int16_t, kMaxRegisters> uses_;  // number of uses by instructions
  std::array<bool, kMaxRegisters> is_input_, is_output_, still_, streamed_, is_asked_for_;
  std::array<RegisterPlace, kMaxRegisters> place_;
  std::array<std::int16_t, kMaxRegisters> output_, slot_, constant_;
  int n_constants_ = 0;
  // The cast of a constant input, and its previous place.
  struct Hoisted {
    int from, to;
    RegisterPlace place;
  };
  std::array<Hoisted, kMaxConstants> hoisted_;
  int n_hoisted_ = 0;
  std::array<Step, kMaxRegisters> steps_;
  std::array<TileVerb, 5 * kMaxRegisters> verbs_;
};

}  // namespace palimpsest
