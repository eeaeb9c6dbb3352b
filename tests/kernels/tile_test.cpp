// SPDX-License-Identifier: Apache-2.0
// Vector code compared with scalar loops, bit for bit, on every instruction set of this processor.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/arrays.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/elementwise/tile_plan.hpp"
#include "support/cache_size.hpp"

namespace palimpsest::testing {
namespace {

using Doubles = std::vector<double>;

// The bits of all numbers; all NaN count as equal.
template <class T>
void append_bits(const unsigned char* at, std::size_t bytes, std::vector<std::uint64_t>& out) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T value;
    std::memcpy(&value, at + i, sizeof(T));
    out.push_back(std::isnan(value) ? ~std::uint64_t{0} : std::bit_cast<Bits>(value));
  }
}

std::vector<std::uint64_t> bits(const Array& array) {
  std::vector<std::uint64_t> all;
  for (index_t i = 0; i < array.count(); ++i) {
    const auto* at = static_cast<const unsigned char*>(array.address(i));
    const std::size_t item = item_size(array.dtype());
    switch (array.dtype()) {
      case DType::float32:
      case DType::complex64:
        append_bits<float>(at, item, all);
        break;
      case DType::float64:
      case DType::complex128:
        append_bits<double>(at, item, all);
        break;
      default:
        for (std::size_t b = 0; b < item; ++b) all.push_back(at[b]);
    }
  }
  return all;
}

// Normal numbers with a few special values.
void fill_strange(Array& array, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Doubles strange{0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, -1e-310,
                        0.5, 1.5,  -2.5,     3.4e38,    1e300,        1.0,   -1.0};
  std::normal_distribution<double> normal;
  const auto draw = [&] {
    const auto kind = static_cast<std::size_t>(uniform(random, 0, 60));
    return kind < strange.size() ? strange[kind] : normal(random);
  };
  for (index_t i = 0; i < array.count(); ++i) {
    const double re = draw();
    array.set_value(i, {re, is_complex(array.dtype()) ? draw() : 0});
  }
}

bool is_single(DType t) { return t == DType::float32 || t == DType::complex64; }

// A comparison of two real registers, sometimes with a second reader.
int random_comparison(Random& random, ElementwiseProgram& program,
                      const std::vector<int>& registers) {
  static const std::vector<ScalarOp> ops{ScalarOp::eq, ScalarOp::ne, ScalarOp::lt,
                                         ScalarOp::le, ScalarOp::gt, ScalarOp::ge};
  const auto op = ops[static_cast<std::size_t>(uniform(random, 0, 5))];
  const auto pick = [&] {
    const int r = registers[static_cast<std::size_t>(
        uniform(random, 0, static_cast<index_t>(registers.size()) - 1))];
    return is_complex(program.dtype_of_register(r)) ? program.apply(ScalarOp::real, {r}) : r;
  };
  const int first = pick(), second = pick();
  const int compared = program.apply(op, {first, second});
  if (uniform(random, 0, 3) == 0) program.apply(ScalarOp::logical_not, {compared});
  return compared;
}

// A random program over real and complex numbers, including casts and ops that only scalar loops
// have.
ElementwiseProgram random_program(Random& random, int n_inputs, int n_ops, int n_outputs) {
  static const std::vector<ScalarOp> ops{
      ScalarOp::add,   ScalarOp::sub,     ScalarOp::mul,        ScalarOp::fma,
      ScalarOp::mul,   ScalarOp::add,     ScalarOp::conj,       ScalarOp::conj,
      ScalarOp::neg,   ScalarOp::square,  ScalarOp::abs2,       ScalarOp::real,
      ScalarOp::imag,  ScalarOp::div,     ScalarOp::reciprocal, ScalarOp::abs,
      ScalarOp::sqrt,  ScalarOp::minimum, ScalarOp::maximum,    ScalarOp::clip,
      ScalarOp::round, ScalarOp::sign,    ScalarOp::where,      ScalarOp::make_complex};
  static const std::vector<DType> dtypes{DType::float32, DType::float64, DType::complex64,
                                         DType::complex128};
  ElementwiseProgram program;
  const DType main = dtypes[static_cast<std::size_t>(uniform(random, 0, 3))];
  std::vector<int> registers;
  for (int i = 0; i < n_inputs; ++i) {
    const bool other = uniform(random, 0, 4) == 0;
    registers.push_back(
        program.input(other ? dtypes[static_cast<std::size_t>(uniform(random, 0, 3))] : main));
  }
  const int condition = uniform(random, 0, 1) == 0 ? program.input(DType::bool_) : -1;
  for (int tries = 0; tries < 10 * n_ops && static_cast<int>(program.instructions().size()) < n_ops;
       ++tries) {
    const ScalarOp op =
        ops[static_cast<std::size_t>(uniform(random, 0, static_cast<index_t>(ops.size()) - 1))];
    std::vector<int> sources;
    for (int k = 0; k < arity(op); ++k) {
      // Prefers the last results, as in chains.
      const auto n = static_cast<index_t>(registers.size());
      const index_t pick = uniform(random, 0, 1) == 0 ? n - 1 : uniform(random, 0, n - 1);
      sources.push_back(registers[static_cast<std::size_t>(pick)]);
    }
    if (op == ScalarOp::where && condition >= 0) sources[0] = condition;
    if (op == ScalarOp::where && program.n_registers() < 90 && uniform(random, 0, 1) == 0) {
      sources[0] = random_comparison(random, program, registers);
    }
    bool legal = true;
    for (const int s : sources) {
      const DType t = program.dtype_of_register(s);
      const bool ordered =
          op == ScalarOp::minimum || op == ScalarOp::maximum || op == ScalarOp::clip;
      if ((ordered || op == ScalarOp::make_complex) && is_complex(t)) legal = false;
      if (!is_bool(t) && is_single(t) != is_single(program.dtype_of_register(sources.back())) &&
          uniform(random, 0, 3) != 0) {
        legal = false;
      }
    }
    if (legal && program.n_registers() < 100) registers.push_back(program.apply(op, sources));
  }
  program.output(registers.back());
  for (int k = 1; k < n_outputs; ++k) {
    program.output(registers[static_cast<std::size_t>(
        uniform(random, n_inputs, static_cast<index_t>(registers.size()) - 1))]);
  }
  return program;
}

struct Case {
  ElementwiseProgram program;
  std::vector<Array> inputs;
  bool in_place = false;
};

// The outputs, and the inputs after the run, on one instruction set.
std::vector<std::vector<std::uint64_t>> run_on(std::int64_t target, const Case& c,
                                               const Extents& extents) {
  const TargetScope scope(target);
  std::vector<Array> inputs = c.inputs, outputs;
  std::vector<ConstView> in;
  std::vector<MutableView> out;
  for (const Array& x : inputs) in.push_back(x.view());
  bool taken = !c.in_place;
  outputs.reserve(c.program.outputs().size());
  for (const int r : c.program.outputs()) {
    const DType dtype = c.program.dtype_of_register(r);
    outputs.emplace_back(dtype, extents);
    if (!taken && dtype == inputs[0].dtype() && inputs[0].strides() == outputs.back().strides()) {
      taken = true;
      out.push_back(inputs[0].mutable_view());
    } else {
      out.push_back(outputs.back().mutable_view());
    }
  }
  run_elementwise(c.program, in, out);
  std::vector<std::vector<std::uint64_t>> all;
  for (const Array& x : inputs) all.push_back(bits(x));
  for (const Array& x : outputs) all.push_back(bits(x));
  return all;
}

TEST(Tile, EveryInstructionSetGivesTheBitsOfTheScalarLoops) {
  Random random(31);
  const std::vector<index_t> lengths{1,   2,   3,   4,   7,   8,    9,    15,   16,  17,
                                     31,  32,  33,  63,  64,  65,   127,  128,  129, 255,
                                     256, 257, 511, 513, 777, 1023, 1024, 1025, 2500};
  for (int trial = 0; trial < 600; ++trial) {
    const index_t n = lengths[static_cast<std::size_t>(trial) % lengths.size()];
    const Extents extents = trial % 7 == 0 ? Extents{3, n} : Extents{n};
    Case c;
    const int n_numbers = static_cast<int>(uniform(random, 1, 5));
    c.program = random_program(random, n_numbers, static_cast<int>(uniform(random, 1, 14)),
                               static_cast<int>(uniform(random, 1, 3)));
    c.in_place = trial % 3 == 0;
    for (int i = 0; i < c.program.n_inputs(); ++i) {
      const DType dtype =
          c.program.dtype_of_register(c.program.inputs()[static_cast<std::size_t>(i)]);
      const index_t kind = c.in_place && i == 0 ? 0 : uniform(random, 0, 7);
      Strides strides = contiguous_strides(extents);
      if (kind == 1) std::fill(strides.begin(), strides.end(), 0);
      if (kind == 2) {
        for (index_t& s : strides) s *= -1;
      }
      if (kind == 3) strides.back() = 0;
      if (kind == 4) {
        for (index_t& s : strides) s *= 2;
      }
      c.inputs.emplace_back(dtype, extents, strides, kind == 5 ? 1 : 0);
      fill_strange(c.inputs.back(), random);
    }
    const auto expected = run_on(0, c, extents);
    for (const std::int64_t target : vector_targets()) {
      ASSERT_EQ(run_on(target, c, extents), expected)
          << "trial " << trial << " target " << hwy::TargetName(target) << " n " << n;
    }
  }
}

// A condition that is the same for all elements, alone and after arithmetic; the result is in new
// memory or in either array.
TEST(Tile, OneConditionForAllChoosesAnArray) {
  Random random(35);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const bool is_first : {true, false}) {
      for (const bool is_computed : {true, false}) {
        for (const int place : {0, 1, 2}) {
          ElementwiseProgram program;
          const int condition = program.input(DType::bool_);
          const int a = program.input(dtype), b = program.input(dtype);
          const int first = is_computed ? program.apply(ScalarOp::add, {a, b}) : a;
          program.output(program.apply(ScalarOp::where, {condition, first, b}));
          const Extents extents{3001};
          Array flag(DType::bool_, extents, Strides{0}), x(dtype, extents), y(dtype, extents);
          Array z(dtype, extents);
          flag.set_value(0, is_first ? 1 : 0);
          x.fill(random);
          y.fill(random);
          const Array old_x = x, old_y = y;
          Array& out = place == 0 ? z : place == 1 ? x : y;
          run_elementwise(program, std::array{flag.view(), x.view(), y.view()},
                          std::array{out.mutable_view()});
          for (index_t i = 0; i < 3001; ++i) {
            Array expected(dtype, {1});
            expected.set_value(0, is_first ? old_x.value(i) + (is_computed ? old_y.value(i) : 0.0)
                                           : old_y.value(i));
            ASSERT_EQ(out.value(i), expected.value(0)) << i;
          }
        }
      }
    }
  }
}

TEST(Tile, TestsReachEveryInstructionSet) {
  std::set<TileMachine> machines;
  {
    const TargetScope scope(0);
    EXPECT_EQ(tile_machines().real32, nullptr);
  }
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    machines.insert(tile_machines().real32);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(machines.size(), vector_targets().size());
#endif
}

TEST(Tile, ProductsAreRoundedBeforeTheyAreAdded) {
  // With one rounding the result would be -2^-46, with two it is 0.
  const float a = 1 + std::ldexp(1.0F, -12), square = a * a;
  for (const std::int64_t target : vector_targets()) {
    const TargetScope scope(target);
    ElementwiseProgram program;
    const int x = program.input(DType::float32), y = program.input(DType::float32);
    program.output(program.apply(ScalarOp::sub, {program.apply(ScalarOp::mul, {x, x}), y}));
    program.output(program.apply(ScalarOp::fma, {x, x, program.apply(ScalarOp::neg, {y})}));
    Array in(DType::float32, {40}), minus(DType::float32, {40}), one(DType::float32, {40}),
        two(DType::float32, {40});
    for (index_t i = 0; i < 40; ++i) {
      in.set(i, a);
      minus.set(i, square);
    }
    run_elementwise(program, std::array{in.view(), minus.view()},
                    std::array{one.mutable_view(), two.mutable_view()});
    for (index_t i = 0; i < 40; ++i) {
      EXPECT_EQ(one.get<float>(i), 0);
      EXPECT_EQ(two.get<float>(i), 0);
    }
  }
}

// x| for numbers whose squares overflow or underflow, among others, and x / |x|.
TEST(Tile, MagnitudesNeitherOverflowNorVanish) {
  struct Known {
    std::complex<double> x;
    double magnitude;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Known> doubles{{{3e200, -4e200}, 5e200},
                                   {{3e-200, 4e-200}, 5e-200},
                                   {{0, 0}, 0},
                                   {{3, 4}, 5},
                                   {{1e-300, 0}, 1e-300},
                                   {{-5e-324, 0}, 5e-324},
                                   {{0, -1e308}, 1e308},
                                   {{infinity, 1}, infinity},
                                   {{-1, -infinity}, infinity},
                                   {{infinity, -infinity}, infinity},
                                   {{1.5e308, 1.5e308}, infinity}};
  const std::vector<Known> singles{{{3e30, -4e30}, 5e30},
                                   {{3e-30, 4e-30}, 5e-30},
                                   {{0, 0}, 0},
                                   {{-infinity, 0}, infinity},
                                   {{3e38, 3e38}, infinity}};
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    const auto& known = dtype == DType::complex64 ? singles : doubles;
    const double eps = dtype == DType::complex64 ? 1.2e-7 : 2.3e-16;
    const DType real = dtype == DType::complex64 ? DType::float32 : DType::float64;
    ElementwiseProgram program;
    const int x = program.input(dtype);
    program.output(program.apply(ScalarOp::abs, {x}));
    program.output(program.apply(ScalarOp::sign, {x}));
    const index_t n = 61;
    Array in(dtype, {n}), size(real, {n}), sign(dtype, {n});
    const auto at = [&](index_t i) { return known[static_cast<std::size_t>(i) % known.size()]; };
    for (index_t i = 0; i < n; ++i) in.set_value(i, at(i).x);
    std::vector<std::int64_t> targets = vector_targets();
    targets.push_back(0);
    for (const std::int64_t target : targets) {
      const TargetScope scope(target);
      run_elementwise(program, std::array{in.view()},
                      std::array{size.mutable_view(), sign.mutable_view()});
      for (index_t i = 0; i < n; ++i) {
        const double expected = at(i).magnitude;
        const double got = size.value(i).real();
        EXPECT_LE(std::abs(std::abs(sign.value(i)) - (expected == 0 ? 0 : 1)), 4 * eps) << at(i).x;
        if (expected > 0) {
          EXPECT_NEAR(std::arg(sign.value(i)), std::arg(at(i).x), 4 * eps) << at(i).x;
        }
        if (std::isinf(expected)) {
          EXPECT_EQ(got, expected);
          continue;
        }
        EXPECT_LE(std::abs(got - expected), 2 * eps * expected) << at(i).x;
      }
    }
  }
}

TEST(Tile, StreamedOutputsHoldTheSameBits) {
  Random random(32);
  for (const DType dtype : {DType::float32, DType::complex64, DType::float64, DType::complex128}) {
    for (const index_t shift : {0, 1}) {
      ElementwiseProgram program;
      const int x = program.input(dtype), y = program.input(dtype);
      const int product = program.apply(ScalarOp::mul, {x, y});
      program.output(product);
      program.output(program.apply(ScalarOp::add, {product, x}));
      Array a(dtype, {5003}, {1}, 1), b(dtype, {5003});
      a.fill(random);
      b.fill(random);
      const auto run = [&](index_t bytes) {
        set_streaming_bytes(bytes);
        Array out(dtype, {5003}, {1}, shift), other(dtype, {5003}, {1}, shift);
        run_elementwise(program, std::array{a.view(), b.view()},
                        std::array{out.mutable_view(), other.mutable_view()});
        set_streaming_bytes(0);
        EXPECT_TRUE(out.gaps_are_intact());
        EXPECT_TRUE(other.gaps_are_intact());
        return std::pair(bits(out), bits(other));
      };
      EXPECT_EQ(run(1), run(index_t{1} << 40));
    }
  }
}

TEST(Tile, MemoryThatIsAskedForHoldsTheSameBits) {
  Random random(34);
  for (const DType dtype : {DType::float32, DType::complex64, DType::float64, DType::complex128}) {
    ElementwiseProgram program;
    const int x = program.input(dtype), y = program.input(dtype), s = program.input(dtype);
    const int product = program.apply(ScalarOp::mul, {x, program.apply(ScalarOp::exp, {y})});
    program.output(program.apply(ScalarOp::add, {product, program.apply(ScalarOp::mul, {x, s})}));
    program.output(program.apply(ScalarOp::sub, {product, y}));
    Array a(dtype, {7, 719}, {719, 1}, 1), b(dtype, {7, 719}), one(dtype, {7, 719}, {0, 0});
    for (Array* array : {&a, &b, &one}) array->fill(random);
    const auto run = [&](index_t cache_bytes) {
      set_core_cache_bytes(cache_bytes);
      Array out(dtype, {7, 719}, {719, 1}, 1), other(dtype, {7, 719}, {800, 1});
      run_elementwise(program, std::array{a.view(), b.view(), one.view()},
                      std::array{out.mutable_view(), other.mutable_view()});
      set_core_cache_bytes(0);
      EXPECT_TRUE(out.gaps_are_intact());
      EXPECT_TRUE(other.gaps_are_intact());
      return std::pair(bits(out), bits(other));
    };
    EXPECT_EQ(run(1), run(index_t{1} << 40));
  }
}

TEST(Tile, ResultsDoNotDependOnThreads) {
  Random random(33);
  ElementwiseProgram program;
  const int a = program.input(DType::complex64), b = program.input(DType::complex64),
            s = program.input(DType::complex64), c = program.input(DType::complex64);
  const int product = program.apply(ScalarOp::mul, {a, program.apply(ScalarOp::conj, {b})});
  program.output(program.apply(ScalarOp::add, {product, program.apply(ScalarOp::mul, {s, c})}));
  Array x(DType::complex64, {300001}), y(DType::complex64, {300001}, {1}, 1),
      z(DType::complex64, {300001}), scale(DType::complex64, {300001}, {0});
  for (Array* array : {&x, &y, &z, &scale}) array->fill_normal(random);
  expect_same_on_threads([&] {
    Array out(DType::complex64, {300001});
    run_elementwise(program, std::array{x.view(), y.view(), scale.view(), z.view()},
                    std::array{out.mutable_view()});
    return elements(out);
  });
}

// The plan of a program whose operands are all dense. In place, an output may lie on any input.
class Planned {
 public:
  explicit Planned(const ElementwiseProgram& program, bool in_place = false,
                   AskFor asked = AskFor::nothing)
      : plan(program) {
    for (int i = 0; i < program.n_inputs(); ++i) plan.place_input(i, true, false);
    int last_read = 0;
    for (int i = 0; i < program.n_inputs(); ++i) {
      last_read = std::max(last_read, plan.last_read(i));
    }
    for (int k = 0; k < static_cast<int>(program.outputs().size()); ++k) {
      plan.place_output(k, true, false, in_place ? last_read : 0);
    }
    plan.finish(asked);
  }
  std::vector<Verb> verbs() const {
    std::vector<Verb> all;
    for (const auto& step : plan.steps()) {
      for (int i = 0; i < step.n; ++i) all.push_back(plan.verbs()[step.first + i].verb);
    }
    return all;
  }
  TilePlan plan;
};

TEST(TilePlan, ChainsPassThroughTheAccumulator) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::float32), b = program.input(DType::float32),
            c = program.input(DType::float32);
  const int ab = program.apply(ScalarOp::mul, {a, b});
  program.output(program.apply(ScalarOp::sub, {c, ab}));
  const Planned planned(program);
  EXPECT_EQ(planned.verbs(), (std::vector{Verb::product, Verb::subtract_from, Verb::store}));
  EXPECT_EQ(planned.plan.most_slots(), 4);  // the inputs and the output, if they were not dense
  EXPECT_EQ(planned.plan.place_of(ab), RegisterPlace::accumulator);
}

TEST(TilePlan, LargeArraysAreAskedForOnceEach) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::float32), b = program.input(DType::float32);
  const int sum = program.apply(ScalarOp::add, {a, b});
  program.output(program.apply(ScalarOp::mul, {sum, a}));
  EXPECT_EQ(Planned(program, false, AskFor::everything).verbs(),
            (std::vector{Verb::ask_to_read, Verb::ask_to_read, Verb::ask_to_write, Verb::load,
                         Verb::add, Verb::multiply, Verb::store}));
  EXPECT_EQ(Planned(program, false, AskFor::results).verbs(),
            (std::vector{Verb::ask_to_write, Verb::load, Verb::add, Verb::multiply, Verb::store}));
}

TEST(TilePlan, OfArraysOfTwoSizesThoseOfTheMachineAreAskedFor) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::complex64);
  program.output(program.apply(ScalarOp::abs2, {a}));
  const auto verbs = Planned(program, false, AskFor::everything).verbs();
  EXPECT_EQ(std::count(verbs.begin(), verbs.end(), Verb::ask_to_read), 1);
  EXPECT_EQ(std::count(verbs.begin(), verbs.end(), Verb::ask_to_write), 0);
}

TEST(TilePlan, AProductThatIsAddedToIsOneVerb) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::float64), b = program.input(DType::float64);
  int r = program.apply(ScalarOp::add, {a, b});
  r = program.apply(ScalarOp::sub, {program.apply(ScalarOp::mul, {r, a}), b});
  r = program.apply(ScalarOp::sub, {a, program.apply(ScalarOp::mul, {r, b})});
  program.output(program.apply(ScalarOp::add, {program.apply(ScalarOp::mul, {r, b}), b}));
  EXPECT_EQ(Planned(program).verbs(),
            (std::vector{Verb::load, Verb::add, Verb::multiply_then_subtract,
                         Verb::multiply_then_subtract_from, Verb::multiply_then_add, Verb::store}));
}

TEST(TilePlan, ConjugatesAndProductsAreFolded) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::complex64), b = program.input(DType::complex64),
            s = program.input(DType::complex64), c = program.input(DType::complex64);
  const int left = program.apply(ScalarOp::mul, {a, program.apply(ScalarOp::conj, {b})});
  program.output(program.apply(ScalarOp::add, {left, program.apply(ScalarOp::mul, {s, c})}));
  EXPECT_EQ(Planned(program).verbs(),
            (std::vector{Verb::product_conj, Verb::multiply_add, Verb::store}));
}

TEST(TilePlan, AnOutputBeforeTheLastReadWaitsInASlot) {
  // The conjugate of b moves to the product, behind the first output, so that output may overwrite
  // b.
  ElementwiseProgram program;
  const int a = program.input(DType::complex128), b = program.input(DType::complex128);
  const int conj = program.apply(ScalarOp::conj, {b});
  const int sum = program.apply(ScalarOp::add, {a, a});
  program.output(sum);
  const int product = program.apply(ScalarOp::mul, {sum, conj});
  program.output(product);
  const Planned planned(program, /*in_place=*/true);
  EXPECT_EQ(planned.plan.place_of(sum), RegisterPlace::slot);
  EXPECT_EQ(planned.plan.place_of(product), RegisterPlace::memory);
  EXPECT_EQ(Planned(program).plan.place_of(sum), RegisterPlace::memory);
  Array x(DType::complex128, {1000}), y(DType::complex128, {1000});
  Random random(34);
  x.fill(random);
  y.fill(random);
  const Array old_x = x, old_y = y;
  run_elementwise(program, std::array{x.view(), y.view()},
                  std::array{y.mutable_view(), x.mutable_view()});
  for (index_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(y.value(i), 2.0 * old_x.value(i));
    ASSERT_EQ(x.value(i), 2.0 * old_x.value(i) * std::conj(old_y.value(i)));
  }
}

// A real constant is converted to complex once, and the machine scales by it.
TEST(TilePlan, WhatIsTheSameForAllIsCastOnce) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int step = program.input(DType::float32), x = program.input(DType::complex64),
            y = program.input(DType::complex64);
  const int moved = program.apply(ScalarOp::mul, {step, x});
  program.output(program.apply(ScalarOp::sub, {y, moved}));
  TilePlan plan(program);
  for (const bool still : {false, true, false}) {
    plan.begin_placing();
    plan.place_input(0, true, still);
    plan.place_input(1, true, false);
    plan.place_input(2, true, false);
    plan.place_output(0, true, false, 0);
    const int cast = program.instructions()[0].destination;
    EXPECT_EQ(plan.place_of(cast) == RegisterPlace::constant, still);
  }
  Random random(36);
  for (const index_t n : {1, 7, 255, 3000}) {
    Array s(DType::float32, {n}, Strides{0}), a(DType::complex64, {n}), b(DType::complex64, {n});
    for (Array* array : {&s, &a, &b}) array->fill(random);
    Array out(DType::complex64, {n}), dense(DType::float32, {n}), expected(DType::complex64, {n});
    for (index_t i = 0; i < n; ++i) dense.set_value(i, s.value(0));
    run_elementwise(program, std::array{s.view(), a.view(), b.view()},
                    std::array{out.mutable_view()});
    run_elementwise(program, std::array{dense.view(), a.view(), b.view()},
                    std::array{expected.mutable_view()});
    ASSERT_EQ(bits(out), bits(expected)) << n;
  }
}

// A comparison is the last step before its choice, as less or less_equal, and stores no bools.
TEST(TilePlan, AComparisonAndItsChoicePassThroughTheAccumulator) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int a = program.input(DType::float32), b = program.input(DType::float32);
  const int above = program.apply(ScalarOp::gt, {a, b});
  const int minus = program.apply(ScalarOp::neg, {a});
  program.output(program.apply(ScalarOp::where, {above, minus, b}));
  EXPECT_EQ(Planned(program).verbs(),
            (std::vector{Verb::load, Verb::negate, Verb::store, Verb::load, Verb::less,
                         Verb::select, Verb::store}));
  EXPECT_EQ(Planned(program).plan.steps().size(), 1U);
  program.output(above);  // a second reader
  EXPECT_EQ(Planned(program).verbs(),
            (std::vector{Verb::load, Verb::negate, Verb::choose, Verb::store}));
}

// A guarded update writes its result without a copy.
TEST(TilePlan, AChoiceIsAVerb) {
  if (tile_machines().real32 == nullptr) GTEST_SKIP() << "no vectors";
  ElementwiseProgram program;
  const int condition = program.input(DType::bool_);
  const int a = program.input(DType::complex64), b = program.input(DType::complex64);
  const int sum = program.apply(ScalarOp::add, {a, b});
  program.output(program.apply(ScalarOp::where, {condition, sum, a}));
  program.output(program.apply(ScalarOp::where, {condition, b, sum}));
  EXPECT_EQ(Planned(program).verbs(),
            (std::vector{Verb::load, Verb::add, Verb::store, Verb::choose, Verb::store, Verb::load,
                         Verb::choose, Verb::store}));
  ElementwiseProgram second;
  const int c = second.input(DType::bool_), x = second.input(DType::float32);
  second.output(second.apply(ScalarOp::where, {c, x, second.apply(ScalarOp::neg, {x})}));
  EXPECT_EQ(Planned(second).verbs(),
            (std::vector{Verb::load, Verb::negate, Verb::choose_from, Verb::store}));
}

}  // namespace
}  // namespace palimpsest::testing
