// SPDX-License-Identifier: Apache-2.0
// Translates a program for tiles.
//
// 1. In a tile an input is read before anything is written to its memory, so an output may share
//    the memory of an input. An output that is computed before the last read of that input goes
//    through a slot. Folding moves reads to later instructions; the rule applies to the program
//    after folding.
// 2. A step of verbs takes a tile block by block. Its blocks have equal numbers of elements, so
//    offsets depend on the element size: a slot serves registers of one size only.
#include "palimpsest/kernels/elementwise/tile_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

namespace palimpsest {
namespace {

enum Machine : int { kNone, kReal32, kComplex64, kReal64, kComplex128 };

// The numbers that a machine computes with.
DType numbers_of(int machine) {
  constexpr DType kDTypes[] = {DType::float32, DType::complex64, DType::float64, DType::complex128};
  return kDTypes[static_cast<std::size_t>(machine - kReal32)];
}

// Properties of a dtype that machines depend on.
enum Trait : unsigned { kSingle = 1, kDouble = 2, kOfReals = 4, kOfComplex = 8 };
unsigned traits(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return kSingle | kOfReals;
    case DType::float64:
      return kDouble | kOfReals;
    case DType::complex64:
      return kSingle | kOfComplex;
    case DType::complex128:
      return kDouble | kOfComplex;
    default:
      return 0;
  }
}

// The verb of an op, and the machines that compute it: those of real numbers, of complex ones, or
// both. Ops without a verb take several, which write() chooses. Comparisons of real numbers are
// computed where a choice follows.
struct OpVerbs {
  unsigned machines = 0;
  std::optional<Verb> verb = {};
  std::optional<Verb> reversed = {};  // with the second operand in the accumulator
};
constexpr auto kVerbsOfOps = [] {
  constexpr unsigned kBoth = kOfReals | kOfComplex;
  std::array<OpVerbs, std::size_t{kScalarOpCount}> table{};
  const auto row = [&](ScalarOp op) -> OpVerbs& { return table[static_cast<std::size_t>(op)]; };
  row(ScalarOp::add) = {kBoth, Verb::add, Verb::add};
  row(ScalarOp::sub) = {kBoth, Verb::subtract, Verb::subtract_from};
  row(ScalarOp::div) = {kBoth, Verb::divide, Verb::divide_into};
  row(ScalarOp::minimum) = {kOfReals, Verb::minimum, Verb::minimum_after};
  row(ScalarOp::maximum) = {kOfReals, Verb::maximum, Verb::maximum_after};
  row(ScalarOp::lt) = {0, Verb::less};
  row(ScalarOp::le) = {0, Verb::less_equal};
  row(ScalarOp::eq) = {0, Verb::equal};
  row(ScalarOp::neg) = {kBoth, Verb::negate};
  row(ScalarOp::abs) = {kOfReals, Verb::absolute};
  row(ScalarOp::reciprocal) = {kBoth, Verb::reciprocal};
  row(ScalarOp::sign) = {kBoth, Verb::sign};
  row(ScalarOp::square) = {kBoth, Verb::square};
  row(ScalarOp::sqrt) = {kOfReals, Verb::root};
  row(ScalarOp::round) = {kOfReals, Verb::round};
  row(ScalarOp::conj) = {kOfComplex, Verb::conj};
  row(ScalarOp::imag) = {kOfComplex, Verb::imaginary};
  for (const ScalarOp op : {ScalarOp::mul, ScalarOp::fma, ScalarOp::abs2, ScalarOp::where}) {
    row(op) = {kBoth};
  }
  row(ScalarOp::clip) = {kOfReals};
  for (const ScalarOp op : {ScalarOp::make_complex, ScalarOp::real, ScalarOp::identity}) {
    row(op) = {kOfComplex};
  }
  return table;
}();
const OpVerbs& verbs_of(ScalarOp op) { return kVerbsOfOps[static_cast<std::size_t>(op)]; }

bool is_comparison(ScalarOp op) {
  switch (op) {
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::lt:
    case ScalarOp::le:
    case ScalarOp::gt:
    case ScalarOp::ge:
      return true;
    default:
      return false;
  }
}

// Can the machine take operand k from the accumulator?
bool may_be_held(const TilePlan::Instruction& step, std::size_t k) {
  switch (step.op) {
    case ScalarOp::clip:
    case ScalarOp::eq:
    case ScalarOp::lt:
    case ScalarOp::le:
      return k == 0;
    case ScalarOp::make_complex:
      return false;
    default:
      return true;
  }
}

bool holds_real(const ElementwiseProgram& program, int r) {
  return !is_complex(program.dtype_of_register(r));
}

}  // namespace

TilePlan::TilePlan(const ElementwiseProgram& program)
    : program_(&program), machines_(tile_machines()) {
  fill(is_input_, false);
  fill(is_output_, false);
  fill(still_, false);
  fill(streamed_, false);
  fill(place_, RegisterPlace::slot);
  fill(output_, -1);
  fill(slot_, -1);
  fill(constant_, -1);
  for (const int r : program.inputs()) is_input_[at(r)] = true;
  for (const int r : program.outputs()) is_output_[at(r)] = true;
  const auto steps = program.instructions();
  n_ = static_cast<int>(steps.size());
  for (int i = 0; i < n_; ++i) {
    const auto& step = steps[at(i)];
    Instruction& here = instructions_[at(i)];
    here = {
        step.op, static_cast<std::int16_t>(i), step.destination, step.sources, kNone, false, false,
        false};
    here.machine = static_cast<std::int8_t>(machine_for(step.op, step.dtype, step.sources));
  }
  count_uses();
  fold_conjugates();
  fold_products();
  join_choices();
  count_uses();
  keep_in_accumulator();
}

int TilePlan::last_read(int input) const {
  const auto r = static_cast<std::int16_t>(program_->inputs()[at(input)]);
  for (int i = n_ - 1; i > 0; --i) {
    const auto& sources = instructions_[at(i)].sources;
    if (std::find(sources.begin(), sources.end(), r) != sources.end()) return i;
  }
  return 0;
}

int TilePlan::machine_for(ScalarOp op, DType result, std::span<const std::int16_t> sources) const {
  if (machines_.real32 == nullptr) return kNone;
  const unsigned made = traits(result);
  unsigned all = ~0U;
  const bool chooses = op == ScalarOp::where;
  if (chooses && !is_bool(program_->dtype_of_register(sources[0]))) return kNone;
  for (const std::int16_t s : chooses ? sources.subspan(1) : sources) {
    if (s >= 0) all &= traits(program_->dtype_of_register(s));
  }
  const unsigned precision = all & made & (kSingle | kDouble);
  if (precision == 0) return kNone;
  if ((all & made & kOfReals) != 0) {
    if ((verbs_of(op).machines & kOfReals) == 0) return kNone;
    return precision == kSingle ? kReal32 : kReal64;
  }
  if ((verbs_of(op).machines & kOfComplex) == 0) return kNone;
  const bool mixes = op == ScalarOp::make_complex || op == ScalarOp::identity;
  if ((all & kOfComplex) == 0 && !mixes) return kNone;
  return precision == kSingle ? kComplex64 : kComplex128;
}

void TilePlan::count_uses() {
  fill(uses_, 0);
  for (int i = 0; i < n_; ++i) {
    for (const std::int16_t s : instructions_[at(i)].sources) {
      if (s >= 0) ++uses_[at(s)];
    }
  }
}

void TilePlan::remove_folded() {
  const auto end = std::remove_if(instructions_.begin(), instructions_.begin() + n_,
                                  [](const Instruction& step) { return step.destination < 0; });
  n_ = static_cast<int>(end - instructions_.begin());
}

// Folds a conjugate into the product that uses it, if that is its only use, as one factor.
void TilePlan::fold_conjugates() {
  for (int i = 0; i < n_; ++i) {
    Instruction& conj = instructions_[at(i)];
    const int r = conj.destination;
    if (conj.op != ScalarOp::conj || conj.machine == kNone) continue;
    if (uses_[at(r)] != 1 || is_output_[at(r)]) continue;
    for (int j = i + 1; j < n_; ++j) {
      Instruction& user = instructions_[at(j)];
      if (std::find(user.sources.begin(), user.sources.end(), r) == user.sources.end()) continue;
      const bool is_product = user.op == ScalarOp::mul || user.op == ScalarOp::fma;
      const bool first = user.sources[0] == r, second = user.sources[1] == r;
      if (!is_product || user.machine != conj.machine || user.conj_0 || user.conj_1) break;
      if (!first && !second) break;
      user.conj_0 = first;
      user.conj_1 = second;
      user.sources[first ? 0 : 1] = conj.sources[0];
      conj.destination = -1;
      break;
    }
  }
  remove_folded();
}

// Folds t = x y, between p = ... and p + t or p - t, into the latter: p stays in the accumulator.
void TilePlan::fold_products() {
  for (int i = 1; i + 1 < n_; ++i) {
    Instruction& product = instructions_[at(i)];
    const Instruction& before = instructions_[at(i - 1)];
    Instruction& user = instructions_[at(i + 1)];
    const int r = product.destination, p = before.destination;
    if (product.op != ScalarOp::mul || product.machine == kNone || p < 0) continue;
    if (before.machine != product.machine || user.machine != product.machine) continue;
    if (uses_[at(r)] != 1 || is_output_[at(r)]) continue;
    const bool adds = user.op == ScalarOp::add && user.sources[0] == p && user.sources[1] == r;
    const bool added = user.op == ScalarOp::add && user.sources[0] == r && user.sources[1] == p;
    const bool subtracts = user.op == ScalarOp::sub && user.sources[0] == p && user.sources[1] == r;
    if (!(adds || added || subtracts)) continue;
    user.op = ScalarOp::fma;
    user.sources = {product.sources[0], product.sources[1], static_cast<std::int16_t>(p)};
    user.conj_0 = product.conj_0;
    user.conj_1 = product.conj_1;
    user.minus = subtracts;
    product.destination = -1;
  }
  remove_folded();
}

// Moves a comparison of real numbers in front of the choice that uses it, if that is its only use
// and chooses numbers of the same dtype: its result stays in the accumulator.
void TilePlan::join_choices() {
  for (int i = 0; i + 1 < n_; ++i) {
    const int r = instructions_[at(i)].destination;
    if (!is_comparison(instructions_[at(i)].op) || uses_[at(r)] != 1 || is_output_[at(r)]) continue;
    const auto sources = std::span(instructions_[at(i)].sources).first(2);
    const int machine =
        machine_for(ScalarOp::sub, program_->dtype_of_register(sources[0]), sources);
    if (machine != kReal32 && machine != kReal64) continue;
    int j = i + 1;
    while (j < n_ && instructions_[at(j)].sources[0] != r) ++j;
    if (j == n_ || instructions_[at(j)].op != ScalarOp::where) continue;
    if (instructions_[at(j)].machine != machine) continue;
    const auto first = instructions_.begin();
    std::rotate(first + i, first + i + 1, first + j);
    Instruction& comparison = instructions_[at(j - 1)];
    comparison.machine = static_cast<std::int8_t>(machine);
    if (comparison.op == ScalarOp::ne) {
      comparison.op = ScalarOp::eq;
      std::swap(instructions_[at(j)].sources[1], instructions_[at(j)].sources[2]);
    } else if (comparison.op == ScalarOp::gt || comparison.op == ScalarOp::ge) {
      comparison.op = comparison.op == ScalarOp::gt ? ScalarOp::lt : ScalarOp::le;
      std::swap(comparison.sources[0], comparison.sources[1]);
    }
    if (j > i + 1) --i;  // the next instruction moved to this place
  }
}

// Keeps results that only the next instruction of the same machine uses in the accumulator.
void TilePlan::keep_in_accumulator() {
  for (int i = 0; i + 1 < n_; ++i) {
    const Instruction& step = instructions_[at(i)];
    const Instruction& next = instructions_[at(i + 1)];
    const int r = step.destination;
    if (step.machine == kNone || next.machine != step.machine) continue;
    if (uses_[at(r)] != 1 || is_output_[at(r)]) continue;
    const bool complex = step.machine == kComplex64 || step.machine == kComplex128;
    if (complex && holds_real(*program_, r)) continue;
    for (std::size_t k = 0; k < next.sources.size(); ++k) {
      if (next.sources[k] == r && may_be_held(next, k)) place_[at(r)] = RegisterPlace::accumulator;
    }
  }
}

void TilePlan::begin_placing() {
  n_constants_ = 0;
  fill(output_, -1);
  fill(constant_, -1);
  while (n_hoisted_ > 0) {
    const Hoisted& cast = hoisted_[at(--n_hoisted_)];
    place_[at(cast.to)] = cast.place;
  }
  for (const int r : program_->outputs()) place_[at(r)] = RegisterPlace::slot;
}

bool TilePlan::only_machines_read(int r) const {
  if (machines_.real32 == nullptr || is_output_[at(r)]) return false;
  for (int i = 0; i < n_; ++i) {
    const Instruction& step = instructions_[at(i)];
    if (step.machine != kNone) continue;
    if (std::find(step.sources.begin(), step.sources.end(), r) != step.sources.end()) return false;
  }
  return true;
}

void TilePlan::place_input(int input, bool dense, bool still) {
  const int r = program_->inputs()[at(input)];
  still_[at(r)] = still;
  place_[at(r)] = dense && !still ? RegisterPlace::memory : RegisterPlace::slot;
  if (!still || !only_machines_read(r)) return;
  if (!make_constant(r)) return;
  // Casts of constant inputs are computed once, not per tile.
  for (int i = 0; i < n_ && n_hoisted_ < kMaxConstants; ++i) {
    const Instruction& step = instructions_[at(i)];
    const int to = step.destination;
    if (step.op != ScalarOp::identity || step.sources[0] != r || !only_machines_read(to)) continue;
    const RegisterPlace before = place_[at(to)];
    if (make_constant(to)) hoisted_[at(n_hoisted_++)] = {r, to, before};
  }
}

bool TilePlan::make_constant(int r) {
  if (n_constants_ == kMaxConstants) return false;
  place_[at(r)] = RegisterPlace::constant;
  constant_[at(r)] = static_cast<std::int16_t>(n_constants_++);
  return true;
}

void TilePlan::place_output(int output, bool dense, bool streamed, int first) {
  const int r = program_->outputs()[at(output)];
  if (is_input_[at(r)]) {
    // An input that is also an output is read before another output may overwrite it.
    place_[at(r)] = RegisterPlace::slot;
    return;
  }
  if (!dense || output_[at(r)] >= 0) return;
  for (int i = first; i < n_; ++i) {
    if (instructions_[at(i)].destination != r) continue;
    place_[at(r)] = RegisterPlace::memory;
    output_[at(r)] = static_cast<std::int16_t>(output);
    streamed_[at(r)] = streamed && uses_[at(r)] == 0;
  }
}

int TilePlan::most_slots() const {
  std::array<std::int16_t, kMaxRegisters> slot;
  return assign_slots(true, slot);
}

int TilePlan::slots() const {
  std::array<std::int16_t, kMaxRegisters> slot;
  return assign_slots(false, slot);
}

// Gives each register that needs one the lowest slot of its size that is free during its life.
// Returns the number of slots. `everywhere`: assumes that no register lies in a caller's array,
// which bounds the number before tiles are known.
int TilePlan::assign_slots(bool everywhere, std::array<std::int16_t, kMaxRegisters>& slot) const {
  std::array<int, kMaxRegisters> last_use;
  fill(last_use, -1);
  for (int i = 0; i < n_; ++i) {
    for (const std::int16_t s : instructions_[at(i)].sources) {
      if (s >= 0) last_use[at(s)] = i;
    }
  }
  for (const int r : program_->outputs()) last_use[at(r)] = n_;
  int n_slots = 0;
  std::array<int, kMaxRegisters> free_after;  // by slot: its last user
  std::array<std::size_t, kMaxRegisters> size;
  const auto take = [&](int r, int now) {
    slot[at(r)] = -1;
    if (place_[at(r)] == RegisterPlace::accumulator) return;
    if (!everywhere && place_[at(r)] != RegisterPlace::slot) return;
    const std::size_t item = item_size(program_->dtype_of_register(r));
    int s = 0;
    while (s < n_slots && (free_after[at(s)] >= now || size[at(s)] != item)) ++s;
    n_slots = std::max(n_slots, s + 1);
    free_after[at(s)] = std::max(last_use[at(r)], now);
    size[at(s)] = item;
    slot[at(r)] = static_cast<std::int16_t>(s);
  };
  for (const int r : program_->inputs()) {
    // A register that is loaded once for all tiles keeps its slot.
    if (everywhere || still_[at(r)]) last_use[at(r)] = n_;
    take(r, 0);
  }
  for (int i = 0; i < n_; ++i) take(instructions_[at(i)].destination, i);
  return n_slots;
}

void TilePlan::finish(AskFor asked) {
  fill(is_asked_for_, false);
  assign_slots(false, slot_);
  write_code(asked);
}

// Merges two verbs into one where the machine has such a verb.
bool TilePlan::put_with_last(Verb verb, int x) {
  const Step& step = steps_[at(n_steps_ - 1)];
  if (n_verbs_ == step.first) return false;
  const bool complex = step.machine == machines_.complex64 || step.machine == machines_.complex128;
  const bool still = x >= 0 && is_constant(x);
  const auto number = static_cast<std::int16_t>(x);
  TileVerb& last = verbs_[at(n_verbs_ - 1)];
  if (last.verb == Verb::load &&
      (verb == Verb::multiply || verb == Verb::multiply_conj || verb == Verb::conj_multiply)) {
    if (complex && still) return false;  // the machine has products with constants
    last.verb = verb == Verb::multiply ? Verb::product : Verb::product_conj;
    if (verb == Verb::conj_multiply) {
      last.y = std::exchange(last.x, number);
      last.still_y = std::exchange(last.still_x, still);
      return true;
    }
  } else if (complex || last.verb != Verb::multiply) {
    return false;
  } else if (verb == Verb::add) {
    last.verb = Verb::multiply_then_add;
  } else if (verb == Verb::subtract) {
    last.verb = Verb::multiply_then_subtract;
  } else if (verb == Verb::subtract_from) {
    last.verb = Verb::multiply_then_subtract_from;
  } else {
    return false;
  }
  last.y = number;
  last.still_y = still;
  return true;
}

void TilePlan::put(Verb verb, int x, int y) {
  if (put_with_last(verb, x)) return;
  TileVerb& v = verbs_[at(n_verbs_++)];
  v = {verb, false, false, 0, 0};
  if (x >= 0) {
    v.x = static_cast<std::int16_t>(x);
    v.still_x = is_constant(x);
  }
  if (y >= 0) {
    v.y = static_cast<std::int16_t>(y);
    v.still_y = is_constant(y);
  }
}

void TilePlan::bring(int r, int held) {
  if (r != held) put(Verb::load, r);
}

void TilePlan::store(int r) {
  if (place_[at(r)] == RegisterPlace::memory && streamed_[at(r)]) {
    put(Verb::stream, r);
    streams_ = true;
  } else {
    put(Verb::store, r);
  }
}

void TilePlan::write_in_order(const Instruction& step, int held, Verb verb, Verb reversed) {
  if (step.sources[1] == held && step.sources[0] != held) {
    put(reversed, step.sources[0]);
    return;
  }
  bring(step.sources[0], held);
  put(verb, step.sources[1]);
}

void TilePlan::write_product(const Instruction& step, int held) {
  const int a = step.sources[0], b = step.sources[1];
  // A constant comes second: the machine has a product by constants.
  const bool from_b =
      (b == held && a != held) || (a != held && b != held && is_constant(a) && !is_constant(b));
  bring(from_b ? b : a, held);
  const int other = from_b ? a : b;
  const bool conj_held = from_b ? step.conj_1 : step.conj_0;
  const bool conj_other = from_b ? step.conj_0 : step.conj_1;
  put(conj_held ? Verb::conj_multiply : (conj_other ? Verb::multiply_conj : Verb::multiply), other);
}

void TilePlan::write_sum_of_product(const Instruction& step, int held) {
  int a = step.sources[0], b = step.sources[1];
  const int c = step.sources[2];
  if (c != held || held < 0) {
    assert(!step.minus && "a difference follows what it subtracts from");
    write_product(step, held);
    put(Verb::add, c);
    return;
  }
  if (step.conj_0) {
    put(step.minus ? Verb::multiply_conj_subtract : Verb::multiply_conj_add, b, a);
  } else if (step.conj_1) {
    put(step.minus ? Verb::multiply_conj_subtract : Verb::multiply_conj_add, a, b);
  } else {
    if (is_constant(b)) std::swap(a, b);
    put(step.minus ? Verb::multiply_subtract : Verb::multiply_add, a, b);
  }
}

// Writes the verbs of an instruction. `held`: the register in the accumulator; -1: none of use.
void TilePlan::write(const Instruction& step, int& held) {
  const auto& sources = step.sources;
  const int r = step.destination;
  const bool complex = step.machine == kComplex64 || step.machine == kComplex128;
  const OpVerbs& verbs = verbs_of(step.op);
  if (verbs.reversed) {
    write_in_order(step, held, *verbs.verb, *verbs.reversed);
  } else if (verbs.verb) {
    bring(sources[0], held);
    put(*verbs.verb, sources[1]);
  } else if (step.op == ScalarOp::abs2) {
    bring(sources[0], held);
    put(complex ? Verb::magnitude2 : Verb::square);
  } else if (step.op == ScalarOp::mul) {
    write_product(step, held);
  } else if (step.op == ScalarOp::fma) {
    write_sum_of_product(step, held);
  } else if (step.op == ScalarOp::clip) {
    bring(sources[0], held);
    put(Verb::maximum, sources[1]);
    put(Verb::minimum, sources[2]);
  } else if (step.op == ScalarOp::where && sources[0] == held) {
    put(Verb::select, sources[1], sources[2]);
  } else if (step.op == ScalarOp::where) {
    const bool second_held = sources[2] == held && sources[1] != held;
    bring(sources[second_held ? 2 : 1], held);
    put(second_held ? Verb::choose_from : Verb::choose, sources[second_held ? 1 : 2], sources[0]);
    verbs_[at(n_verbs_ - 1)].still_y = still_[at(sources[0])];
  } else if (step.op == ScalarOp::make_complex) {
    put(Verb::load_parts, sources[0], sources[1]);
  } else if (holds_real(*program_, sources[0])) {  // real parts, casts between real and complex
    put(Verb::load_real, sources[0]);
  } else {
    bring(sources[0], held);
  }
  if (complex && holds_real(*program_, r)) {
    put(Verb::store_real, r);
    held = -1;
    return;
  }
  if (place_[at(r)] != RegisterPlace::accumulator) store(r);
  held = r;
}

// Asks for the arrays of the run of verbs that begins with an instruction, once each. Operands of
// another size than the run's numbers are left out.
void TilePlan::ask_for_operands(int first, AskFor asked) {
  const int machine = instructions_[at(first)].machine;
  const DType dtype = numbers_of(machine);
  const auto ask = [&](Verb verb, int r) {
    if (r < 0 || place_[at(r)] != RegisterPlace::memory || streamed_[at(r)]) return;
    if (program_->dtype_of_register(r) != dtype || is_asked_for_[at(r)]) return;
    is_asked_for_[at(r)] = true;
    put(verb, r);
  };
  for (int i = first; i < n_ && instructions_[at(i)].machine == machine; ++i) {
    if (asked == AskFor::everything) {
      for (const std::int16_t s : instructions_[at(i)].sources) ask(Verb::ask_to_read, s);
    }
    ask(Verb::ask_to_write, instructions_[at(i)].destination);
  }
}

void TilePlan::write_code(AskFor asked) {
  int held = -1, machine = kNone;  // held: register in the accumulator; machine: of the last step
  for (int i = 0; i < n_; ++i) {
    const Instruction& step = instructions_[at(i)];
    if (place_[at(step.destination)] == RegisterPlace::constant) continue;  // written by spread()
    const int before = std::exchange(machine, int{step.machine});
    Step& made = steps_[at(n_steps_)];
    if (step.machine == kNone) {
      const auto source = step.sources[step.op == ScalarOp::where ? 1 : 0];
      const DType working = program_->dtype_of_register(source);
      made = {nullptr, nullptr, nullptr, 0, 0};
      made.first = i;
      if (step.op == ScalarOp::identity) {
        made.convert = copy_row_between(working, program_->dtype_of_register(step.destination));
      } else {
        made.kernel = scalar_kernel(step.op, working);
      }
      ++n_steps_;
      continue;
    }
    if (before != step.machine) {
      made = {nullptr, nullptr, nullptr, 0, 0};
      made.first = n_verbs_;
      made.machine = step.machine == kReal32      ? machines_.real32
                     : step.machine == kReal64    ? machines_.real64
                     : step.machine == kComplex64 ? machines_.complex64
                                                  : machines_.complex128;
      held = -1;
      ++n_steps_;
      if (asked != AskFor::nothing) ask_for_operands(i, asked);
    }
    Step& current = steps_[at(n_steps_ - 1)];
    write(step, held);
    current.n = n_verbs_ - current.first;
  }
}

void TilePlan::run(const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const {
  const auto item = [&](int r) {
    return static_cast<index_t>(item_size(program_->dtype_of_register(r)));
  };
  for (const Step& step : steps()) {
    if (step.machine != nullptr) {
      step.machine(verbs() + step.first, step.n, registers.data(), n);
      continue;
    }
    const Instruction& instruction = instructions_[at(step.first)];
    std::byte* out = registers[at(instruction.destination)];
    if (step.convert != nullptr) {
      const int source = instruction.sources[0];
      step.convert(registers[at(source)], item(source), out, item(instruction.destination), n);
      continue;
    }
    if (instruction.op == ScalarOp::where && still_[at(instruction.sources[0])]) {
      // A condition for all elements, such as that of a guarded step: copies, or does nothing if
      // in place.
      const bool yes = *registers[at(instruction.sources[0])] != std::byte{0};
      const std::byte* const chosen = registers[at(instruction.sources[yes ? 1 : 2])];
      const index_t bytes = n * item(instruction.destination);
      if (chosen != out) std::memcpy(out, chosen, static_cast<std::size_t>(bytes));
      continue;
    }
    std::array<const std::byte*, kMaxArity> sources{};
    for (std::size_t s = 0; s < sources.size(); ++s) {
      if (instruction.sources[s] >= 0) sources[s] = registers[at(instruction.sources[s])];
    }
    step.kernel(sources.data(), out, n);
  }
}

void TilePlan::spread(int r, const std::byte* value, CopyRow copy,
                      const std::array<std::byte*, kMaxRegisters>& registers, index_t n) const {
  const DType dtype = program_->dtype_of_register(r);
  // Converts one element: for small arrays, converting a block would dominate the time.
  const auto fill = [&](const std::byte* from, CopyRow convert, int to) {
    const DType type = program_->dtype_of_register(to);
    const auto item = static_cast<index_t>(item_size(type));
    alignas(16) std::array<std::byte, 16> made;
    convert(from, 0, made.data(), item, 1);
    if (constant_of(to) >= 0) {
      const index_t block = std::min(machines_.block_bytes / item, n);
      machines_.fill(made.data(), item_size(type), registers[at(to)], block);
    } else if (machines_.fill != nullptr) {
      machines_.fill(made.data(), item_size(type), registers[at(to)], n);
    } else {
      copy_row_between(type, type)(made.data(), 0, registers[at(to)], item, n);
    }
  };
  fill(value, copy, r);
  for (int k = 0; k < n_hoisted_; ++k) {
    const Hoisted& cast = hoisted_[at(k)];
    if (cast.from != r) continue;
    fill(registers[at(r)], copy_row_between(dtype, program_->dtype_of_register(cast.to)), cast.to);
  }
}

}  // namespace palimpsest
