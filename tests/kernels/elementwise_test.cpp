// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/elementwise/elementwise.hpp"

#include <cmath>
#include <numeric>

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

void run_op(ScalarOp op, const std::vector<const Array*>& inputs, Array& out) {
  std::vector<DType> dtypes;
  std::vector<ConstView> views;
  for (const Array* x : inputs) {
    dtypes.push_back(x->dtype());
    views.push_back(x->view());
  }
  run_elementwise(ElementwiseProgram(op, dtypes), views, std::array{out.mutable_view()});
}

// The result of strided_copy for an exact value.
std::complex<double> converted(std::complex<double> value, DType via, DType to) {
  Array a(via, {}), b(to, {});
  a.set_value(0, value);
  strided_copy(a.view(), b.mutable_view());
  return b.value(0);
}

TEST(Elementwise, AnyLayoutsAndDtypesGiveTheNaiveResult) {
  Random random(11);
  for (int trial = 0; trial < 400; ++trial) {
    const Extents extents = random_extents(random, 8, 12);
    const Array a = random_array(random, random_dtype(random), extents, true);
    const Array b = random_array(random, random_dtype(random), extents, true);
    const DType promoted = promote(a.dtype(), b.dtype());
    Array out =
        random_array(random, trial % 2 == 0 ? promoted : random_dtype(random), extents, false);
    run_op(ScalarOp::add, {&a, &b}, out);
    for (index_t i = 0; i < out.count(); ++i) {
      const auto expected = converted(a.value(i) + b.value(i), promoted, out.dtype());
      ASSERT_EQ(out.value(i), expected)
          << "trial " << trial << " extents " << to_string(extents) << " out "
          << to_string(out.strides()) << " a " << to_string(a.strides()) << name_of(a.dtype())
          << " b " << to_string(b.strides()) << name_of(b.dtype()) << " i " << i;
    }
  }
}

TEST(Elementwise, LongAxesAreTiledWithoutSeams) {
  Random random(12);
  for (const index_t n : {1, 15, 16, 17, 1023, 1024, 1025, 2049, 5000}) {
    for (const bool transposed : {false, true}) {
      const Extents extents{3, n};
      const Array a = [&] {
        Array x(DType::float64, extents, transposed ? Strides{1, 3} : Strides{n, 1});
        x.fill(random);
        return x;
      }();
      const Array b = [&] {
        Array x(DType::float64, extents, {1, 0});
        x.fill(random);
        return x;
      }();
      Array out(DType::float64, extents);
      run_op(ScalarOp::mul, {&a, &b}, out);
      for (index_t i = 0; i < out.count(); ++i) {
        ASSERT_EQ(out.get<double>(i), a.get<double>(i) * b.get<double>(i)) << n;
      }
    }
  }
}

// Rows long enough for separate tiles, with operands that are constant over rows, within a row, or
// over all elements.
TEST(Elementwise, OperandsThatAreAlikeInRowsGiveWhatCopiesOfThemGive) {
  Random random(14);
  for (const ScalarOp op : {ScalarOp::add, ScalarOp::pow, ScalarOp::lt}) {
    for (const Extents& extents : {Extents{5, 1023}, Extents{5, 1024}, Extents{3, 20001},
                                   Extents{2, 3, 1500}, Extents{40, 3000}}) {
      const auto strides = [&](bool by_row, bool in_row) {
        Strides made(extents.size(), 0);
        index_t step = in_row ? extents.back() : 1;
        for (std::size_t axis = extents.size() - 1; axis-- > 0; step *= extents[axis]) {
          made[axis] = by_row ? step : 0;
        }
        made.back() = in_row ? 1 : 0;
        return made;
      };
      const std::vector<Strides> kinds{strides(true, true), strides(false, true),
                                       strides(true, false), strides(false, false)};
      for (const Strides& first : kinds) {
        for (const Strides& second : kinds) {
          Array a(DType::float32, extents, first), b(DType::float32, extents, second);
          a.fill(random);
          b.fill(random);
          Array whole_a(DType::float32, extents), whole_b(DType::float32, extents);
          strided_copy(a.view(), whole_a.mutable_view());
          strided_copy(b.view(), whole_b.mutable_view());
          const DType result = op == ScalarOp::lt ? DType::bool_ : DType::float32;
          Array out(result, extents), expected(result, extents);
          run_op(op, {&a, &b}, out);
          run_op(op, {&whole_a, &whole_b}, expected);
          ASSERT_EQ(elements(out), elements(expected))
              << to_string(extents) << ' ' << to_string(first) << ' ' << to_string(second);
        }
      }
    }
  }
}

TEST(Elementwise, TransposedOperandsOfThreeAxes) {
  Random random(13);
  const Extents extents{70, 5, 65};
  for (const Strides& strides : {Strides{1, 70, 350}, Strides{1, 4550, 70}, Strides{325, 1, 5}}) {
    Array a(DType::complex64, extents, strides), b(DType::float32, extents);
    a.fill(random);
    b.fill(random);
    Array out(DType::complex64, extents);
    run_op(ScalarOp::mul, {&a, &b}, out);
    for (index_t i = 0; i < out.count(); ++i) {
      ASSERT_EQ(out.value(i), a.value(i) * b.value(i).real());
    }
  }
}

TEST(Elementwise, GapsBetweenElementsAreNotWritten) {
  Random random(14);
  for (int trial = 0; trial < 100; ++trial) {
    const Extents extents = random_extents(random, 4, 40);
    const Array a = random_array(random, DType::float32, extents, true);
    Array out(DType::float32, extents, random_strides(random, extents, false));
    run_op(ScalarOp::neg, {&a}, out);
    ASSERT_TRUE(out.gaps_are_intact());
  }
}

TEST(Elementwise, EmptyArraysAreLeftAlone) {
  const Array a(DType::float32, {3, 0, 2});
  Array out(DType::float32, {3, 0, 2});
  run_op(ScalarOp::exp, {&a}, out);
  EXPECT_TRUE(out.gaps_are_intact());
}

TEST(Elementwise, OneElementOfNoAxes) {
  Array a(DType::int32, {}), out(DType::int32, {});
  a.set<std::int32_t>(0, 21);
  run_op(ScalarOp::add, {&a, &a}, out);
  EXPECT_EQ(out.get<std::int32_t>(0), 42);
}

TEST(Elementwise, InputsMayBeOverwrittenByTheOutput) {
  Random random(15);
  for (int trial = 0; trial < 200; ++trial) {
    const Extents extents = random_extents(random, 5, 60);
    Array a(DType::complex128, extents, random_strides(random, extents, false));
    a.fill(random);
    const Array old = a;
    const Array b = random_array(random, DType::complex64, extents, true);
    const std::array dtypes{a.dtype(), b.dtype()};
    run_elementwise(ElementwiseProgram(ScalarOp::sub, dtypes), std::array{a.view(), b.view()},
                    std::array{a.mutable_view()});
    for (index_t i = 0; i < a.count(); ++i) ASSERT_EQ(a.value(i), old.value(i) - b.value(i));
    ASSERT_TRUE(a.gaps_are_intact());
  }
}

TEST(Elementwise, InPlaceWithAnotherDtypeOfTheSameSize) {
  Array a(DType::int64, {3000});
  for (index_t i = 0; i < a.count(); ++i) a.set<std::int64_t>(i, i - 1000);
  ElementwiseProgram program;
  const int x = program.input(DType::int64);
  program.output(program.apply(ScalarOp::div, {x, program.apply(ScalarOp::sub, {x, x})}));
  // x / 0 as float64, written over the int64 input.
  const MutableView out{a.address(0), DType::float64, a.extents(), a.strides()};
  run_elementwise(program, std::array{a.view()}, std::array{out});
  for (index_t i = 0; i < a.count(); ++i) {
    double value;
    std::memcpy(&value, a.address(i), sizeof value);
    ASSERT_EQ(std::isnan(value), i == 1000);
    if (i != 1000) {
      ASSERT_EQ(value, i < 1000 ? -INFINITY : INFINITY);
    }
  }
}

TEST(Elementwise, OutputsMayExchangeTheirInputs) {
  ElementwiseProgram program;
  const int a = program.input(DType::float64), b = program.input(DType::float64);
  program.output(b);
  program.output(a);
  Array x(DType::float64, {5000}), y(DType::float64, {5000});
  for (index_t i = 0; i < 5000; ++i) {
    x.set<double>(i, static_cast<double>(i));
    y.set<double>(i, static_cast<double>(-i));
  }
  run_elementwise(program, std::array{x.view(), y.view()},
                  std::array{x.mutable_view(), y.mutable_view()});
  for (index_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(x.get<double>(i), -i);
    ASSERT_EQ(y.get<double>(i), i);
  }
}

TEST(Elementwise, AllInputsOfATileAreReadBeforeAnyOutputIsWritten) {
  // out0 = a + b over a, out1 = a * b over b: both need the old a and b.
  ElementwiseProgram program;
  const int a = program.input(DType::float32), b = program.input(DType::float32);
  program.output(program.apply(ScalarOp::add, {a, b}));
  program.output(program.apply(ScalarOp::mul, {a, b}));
  for (const Strides& strides : {Strides{1}, Strides{3}, Strides{-1}}) {
    Array x(DType::float32, {4000}, strides), y(DType::float32, {4000}, strides);
    Random random(16);
    x.fill(random);
    y.fill(random);
    const Array old_x = x, old_y = y;
    run_elementwise(program, std::array{x.view(), y.view()},
                    std::array{x.mutable_view(), y.mutable_view()});
    for (index_t i = 0; i < 4000; ++i) {
      ASSERT_EQ(x.get<float>(i), old_x.get<float>(i) + old_y.get<float>(i));
      ASSERT_EQ(y.get<float>(i), old_x.get<float>(i) * old_y.get<float>(i));
    }
  }
}

TEST(Elementwise, OneRegisterMayBeSeveralOutputs) {
  ElementwiseProgram program;
  const int a = program.input(DType::int32);
  const int twice = program.apply(ScalarOp::add, {a, a});
  program.output(twice);
  program.output(twice);
  program.output(a);
  Array x(DType::int32, {10}), y(DType::int32, {10}), z(DType::float64, {10}, {2}),
      w(DType::int32, {10});
  for (int i = 0; i < 10; ++i) x.set<std::int32_t>(i, i);
  run_elementwise(program, std::array{x.view()},
                  std::array{y.mutable_view(), z.mutable_view(), w.mutable_view()});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(y.get<std::int32_t>(i), 2 * i);
    EXPECT_EQ(z.get<double>(i), 2 * i);
    EXPECT_EQ(w.get<std::int32_t>(i), i);
  }
}

TEST(Elementwise, LongProgramsWithManyLiveRegisters) {
  // The sum of 40 distinct multiples of x, all alive at once.
  ElementwiseProgram program;
  const int x = program.input(DType::complex128);
  std::vector<int> multiples{x};
  for (int k = 1; k < 40; ++k) {
    multiples.push_back(program.apply(ScalarOp::add, {multiples.back(), x}));
  }
  int sum = multiples[0];
  for (std::size_t k = multiples.size(); k-- > 1;) {
    sum = program.apply(ScalarOp::add, {sum, multiples[k]});
  }
  program.output(sum);
  Random random(17);
  const Array a = random_array(random, DType::complex128, {37, 41}, true);
  Array out(DType::complex128, {37, 41});
  run_elementwise(program, std::array{a.view()}, std::array{out.mutable_view()});
  for (index_t i = 0; i < out.count(); ++i) ASSERT_EQ(out.value(i), 820.0 * a.value(i));
}

TEST(Elementwise, ManyInputsAndOutputs) {
  ElementwiseProgram program;
  std::vector<Array> arrays;
  std::vector<ConstView> inputs;
  std::vector<int> registers;
  arrays.reserve(64);
  for (int k = 0; k < ElementwiseProgram::kMaxInputs; ++k) {
    registers.push_back(program.input(DType::int64));
    arrays.emplace_back(DType::int64, Extents{7}, k % 3 == 0 ? Strides{0} : Strides{k % 3});
    for (index_t i = 0; i < 7; ++i) arrays.back().set<std::int64_t>(i, k + (k % 3 == 0 ? 0 : i));
    inputs.push_back(arrays.back().view());
  }
  std::vector<MutableView> outputs;
  for (int k = 0; k < ElementwiseProgram::kMaxOutputs; ++k) {
    const auto j = static_cast<std::size_t>(3 * k);
    program.output(program.apply(ScalarOp::sub, {registers[j + 1], registers[j]}));
    arrays.emplace_back(DType::int64, Extents{7});
    outputs.push_back(arrays.back().mutable_view());
  }
  run_elementwise(program, inputs, outputs);
  for (std::size_t k = 48; k < 64; ++k) {
    for (index_t i = 0; i < 7; ++i) EXPECT_EQ(arrays[k].get<std::int64_t>(i), 1 + i);
  }
}

TEST(Elementwise, AppendedProgramsRunAsOne) {
  const std::array pair{DType::float32, DType::float32};
  ElementwiseProgram fused(ScalarOp::mul, pair);
  const int product = fused.outputs()[0];
  ElementwiseProgram both;
  const int a = both.input(DType::float32), b = both.input(DType::float32);
  const auto first = both.append(fused, std::array{a, b});
  const auto second =
      both.append(ElementwiseProgram(ScalarOp::exp, std::span(pair).first(1)), first);
  both.output(second[0]);
  EXPECT_EQ(product, 2);
  Random random(18);
  const Array x = random_array(random, DType::float32, {9, 50}, true);
  const Array y = random_array(random, DType::float32, {9, 50}, true);
  Array step(DType::float32, {9, 50}), expected(DType::float32, {9, 50}),
      out(DType::float32, {9, 50});
  run_op(ScalarOp::mul, {&x, &y}, step);
  run_op(ScalarOp::exp, {&step}, expected);
  run_elementwise(both, std::array{x.view(), y.view()}, std::array{out.mutable_view()});
  EXPECT_EQ(elements(out), elements(expected));
}

TEST(Elementwise, ResultsDoNotDependOnThreads) {
  Random random(19);
  Array a(DType::complex64, {300, 1000}), b(DType::float32, {300, 1000}, {1, 300});
  a.fill_normal(random);
  b.fill_normal(random);
  expect_same_on_threads([&] {
    Array out(DType::complex64, {300, 1000});
    run_op(ScalarOp::mul, {&a, &b}, out);
    return elements(out);
  });
  expect_same_on_threads([&] {
    Array inout = a;
    const std::array dtypes{inout.dtype(), b.dtype()};
    run_elementwise(ElementwiseProgram(ScalarOp::div, dtypes), std::array{inout.view(), b.view()},
                    std::array{inout.mutable_view()});
    return elements(inout);
  });
}

TEST(Elementwise, ResultsDoNotDependOnLayoutOrAlignment) {
  Random random(20);
  const Extents extents{11, 13, 17};
  Array a(DType::float32, extents), b(DType::float32, extents);
  a.fill_normal(random);
  b.fill_normal(random);
  for (const ScalarOp op : {ScalarOp::div, ScalarOp::hypot, ScalarOp::pow}) {
    Array expected(DType::float32, extents);
    run_op(op, {&a, &b}, expected);
    for (int trial = 0; trial < 10; ++trial) {
      Array x = random_array(random, DType::float32, extents, false);
      Array y = random_array(random, DType::float32, extents, false);
      Array out = random_array(random, DType::float32, extents, false);
      strided_copy(a.view(), x.mutable_view());
      strided_copy(b.view(), y.mutable_view());
      run_op(op, {&x, &y}, out);
      EXPECT_EQ(elements(out), elements(expected)) << name_of(op);
    }
  }
}

// A condition for all elements, such as that of a guarded step; also where the result overwrites
// a choice.
TEST(RunElementwise, ChoosesByOneConditionForAll) {
  constexpr index_t kCount = 5000;
  const std::array dtypes{DType::bool_, DType::float32, DType::float32};
  const ElementwiseProgram program(ScalarOp::where, dtypes);
  for (const bool yes : {false, true}) {
    Array condition(DType::bool_, {1}), a(DType::float32, {kCount}), b(DType::float32, {kCount});
    condition.set<bool>(0, yes);
    for (index_t i = 0; i < kCount; ++i) {
      a.set<float>(i, static_cast<float>(i));
      b.set<float>(i, static_cast<float>(-i));
    }
    const Extents extents{kCount};
    const Strides still{0};
    const ConstView for_all{condition.view().data, DType::bool_, extents, still};
    Array out(DType::float32, {kCount}), in_a(a), in_b(b),
        backwards(DType::float32, {kCount}, {-1});
    const std::array inputs{for_all, a.view(), b.view()};
    run_elementwise(program, inputs, std::array{out.mutable_view()});
    run_elementwise(program, inputs, std::array{backwards.mutable_view()});
    run_elementwise(program, std::array{for_all, in_a.view(), b.view()},
                    std::array{in_a.mutable_view()});
    run_elementwise(program, std::array{for_all, a.view(), in_b.view()},
                    std::array{in_b.mutable_view()});
    for (index_t i = 0; i < kCount; ++i) {
      const auto expected = static_cast<float>(yes ? i : -i);
      ASSERT_EQ(out.get<float>(i), expected);
      ASSERT_EQ(backwards.get<float>(i), expected);
      ASSERT_EQ(in_a.get<float>(i), expected);
      ASSERT_EQ(in_b.get<float>(i), expected);
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
