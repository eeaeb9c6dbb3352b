// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/arrays.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {
namespace {

using namespace testing;

Axes some_axes(Random& random, std::size_t rank) {
  Axes axes;
  for (std::size_t k = 0; k < rank; ++k) {
    if (uniform(random, 0, 1) == 1) axes.push_back(static_cast<index_t>(k));
  }
  return axes;
}

Extents without(const Extents& extents, const Axes& axes) {
  Extents kept;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(k))) {
      kept.push_back(extents[k]);
    }
  }
  return kept;
}

// Up to six instructions over the inputs and each other.
ElementwiseProgram random_program(Random& random, const std::vector<DType>& inputs) {
  ElementwiseProgram program;
  for (const DType dtype : inputs) program.input(dtype);
  static constexpr ScalarOp kOps[] = {ScalarOp::add, ScalarOp::sub,  ScalarOp::mul,
                                      ScalarOp::mul, ScalarOp::conj, ScalarOp::neg};
  int result = program.n_registers() - 1;
  for (index_t i = uniform(random, 0, 6); i > 0; --i) {
    const auto any = [&] {
      return static_cast<int>(uniform(random, 0, program.n_registers() - 1));
    };
    ScalarOp op = kOps[uniform(random, 0, 5)];
    if (!is_inexact(program.dtype_of_register(result))) op = ScalarOp::mul;
    result = arity(op) == 2 ? program.apply(op, {result, any()}) : program.apply(op, {result});
  }
  program.output(result);
  return program;
}

// Of the result of a program that lies dense in memory.
void reduce_in_two_steps(ReduceOp op, const ElementwiseProgram& program,
                         std::span<const ConstView> inputs, const Axes& axes,
                         const MutableView& out) {
  const Extents extents(inputs[0].extents.begin(), inputs[0].extents.end());
  Array made(program.dtype_of_register(program.outputs()[0]), extents);
  run_elementwise(program, inputs, std::array{made.mutable_view()});
  run_reduce(op, made.view(), axes, out);
}

TEST(FusedReduce, GivesTheBitsOfTwoSteps) {
  Random random(61);
  for (int trial = 0; trial < 2000; ++trial) {
    const Extents extents = random_extents(random, 8, trial % 3 == 0 ? 700 : 12);
    std::vector<DType> dtypes;
    std::vector<Array> arrays;
    std::vector<ConstView> views;
    for (index_t i = uniform(random, 1, 4); i > 0; --i) {
      const bool floating = uniform(random, 0, 3) > 0;
      const DType dtype = floating
                              ? (uniform(random, 0, 1) == 0 ? DType::float32 : DType::complex64)
                              : random_dtype(random);
      arrays.push_back(random_array(random, dtype, extents, true));
      if (is_inexact(dtype)) arrays.back().fill_normal(random);
      // Sometimes converted on the way in.
      const bool converts = uniform(random, 0, 7) == 0 && !is_complex(dtype);
      dtypes.push_back(converts ? DType::float64 : dtype);
    }
    for (const Array& x : arrays) views.push_back(x.view());
    const ElementwiseProgram program = random_program(random, dtypes);
    const DType made = program.dtype_of_register(program.outputs()[0]);
    auto op = static_cast<ReduceOp>(uniform(random, 0, 5));
    if (is_complex(made) && (op == ReduceOp::max || op == ReduceOp::min)) op = ReduceOp::sum;
    const Axes axes = some_axes(random, extents.size());
    const Extents kept = without(extents, axes);
    const DType result = result_dtype(op, made);
    Array expected(result, kept), got(result, kept);
    reduce_in_two_steps(op, program, views, axes, expected.mutable_view());
    run_fused_reduce(op, program, views, axes, got.mutable_view());
    ASSERT_EQ(std::memcmp(got.memory(), expected.memory(), got.bytes()), 0)
        << trial << " " << name_of(op) << " " << name_of(made) << to_string(extents)
        << to_string(axes);
  }
}

TEST(FusedReduce, LongOnesWithEveryNumberOfThreads) {
  Random random(62);
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}, Axes{0, 2}, Axes{2}, Axes{0, 1, 2}}) {
    for (const DType dtype : {DType::float32, DType::complex128}) {
      const Extents extents{37, 41, 130};
      Array x(dtype, extents), y(dtype, extents, random_strides(random, extents, false));
      Array row(dtype, extents, Strides{0, 1, 0});
      x.fill_normal(random);
      y.fill_normal(random);
      row.fill_normal(random);
      ElementwiseProgram program;
      const int a = program.input(dtype), b = program.input(dtype), c = program.input(dtype);
      const int product = program.apply(ScalarOp::mul, {a, program.apply(ScalarOp::conj, {b})});
      program.output(program.apply(ScalarOp::sub, {product, c}));
      const std::array views{x.view(), y.view(), row.view()};
      Array expected(dtype, without(extents, axes));
      reduce_in_two_steps(ReduceOp::sum, program, views, axes, expected.mutable_view());
      for (const std::size_t threads : {1, 2, 4}) {
        const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
        Array got(dtype, without(extents, axes));
        run_fused_reduce(ReduceOp::sum, program, views, axes, got.mutable_view());
        EXPECT_EQ(std::memcmp(got.memory(), expected.memory(), got.bytes()), 0)
            << to_string(axes) << name_of(dtype) << threads;
      }
    }
  }
}

// What has most inputs and the largest elements is computed in short pieces.
TEST(FusedReduce, ManyInputs) {
  Random random(63);
  const Extents extents{5, 300};
  ElementwiseProgram program;
  std::vector<Array> arrays;
  std::vector<ConstView> views;
  for (int i = 0; i < ElementwiseProgram::kMaxInputs; ++i) {
    program.input(DType::complex128);
    arrays.push_back(random_array(random, DType::complex128, extents, false));
    arrays.back().fill_normal(random);
  }
  for (const Array& x : arrays) views.push_back(x.view());
  int sum = 0;
  for (int i = 1; i < program.n_inputs(); ++i) {
    sum = program.apply(i % 2 == 0 ? ScalarOp::add : ScalarOp::mul, {sum, i});
  }
  program.output(sum);
  Array expected(DType::complex128, {5}), got(DType::complex128, {5});
  reduce_in_two_steps(ReduceOp::sum, program, views, {1}, expected.mutable_view());
  run_fused_reduce(ReduceOp::sum, program, views, Axes{1}, got.mutable_view());
  EXPECT_EQ(std::memcmp(got.memory(), expected.memory(), got.bytes()), 0);
}

}  // namespace
}  // namespace palimpsest
