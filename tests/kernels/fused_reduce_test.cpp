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

// Reduces the stored, dense result of a program.
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
      // Sometimes inputs are converted.
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

// An element per row of x: with long rows a block ends at the end of its row.
TEST(FusedReduce, OneElementForEachRow) {
  Random random(64);
  for (const Extents& extents : {Extents{6, 5, 255}, Extents{6, 5, 256}, Extents{3, 4, 3000}}) {
    for (const Axes& axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 1}, Axes{0, 2}, Axes{0, 1, 2}}) {
      for (const Strides& steps : {Strides{0, 1, 0}, Strides{1, 0, 0}, Strides{1, 7, 0}}) {
        for (const bool is_read_by_a_function : {false, true}) {
          Array x(DType::float32, extents), y(DType::float32, extents, {1, extents[0], 70});
          Array row(DType::float32, extents, steps);
          for (Array* const a : {&x, &y, &row}) a->fill_normal(random);
          ElementwiseProgram program;
          const int a = program.input(DType::float32), b = program.input(DType::float32);
          const int c = program.input(DType::float32);
          const int sum = program.apply(ScalarOp::sub, {program.apply(ScalarOp::add, {a, b}), c});
          program.output(
              is_read_by_a_function
                  ? program.apply(ScalarOp::mul, {sum, program.apply(ScalarOp::exp, {c})})
                  : sum);
          const std::array views{x.view(), y.view(), row.view()};
          Array expected(DType::float32, without(extents, axes));
          Array got(DType::float32, without(extents, axes));
          reduce_in_two_steps(ReduceOp::sum, program, views, axes, expected.mutable_view());
          run_fused_reduce(ReduceOp::sum, program, views, axes, got.mutable_view());
          ASSERT_EQ(std::memcmp(got.memory(), expected.memory(), got.bytes()), 0)
              << to_string(extents) << to_string(axes) << to_string(steps);
        }
      }
    }
  }
}

// The maximum number of inputs with the largest elements is computed in short blocks.
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

// -- programs that store some of what they make and sum up the rest -------------------------------

struct StoredAndSummed {
  ElementwiseProgram program;
  std::size_t n_stored = 0;
  std::vector<SumOfOutputs> sums;
};

StoredAndSummed random_sums(Random& random, const std::vector<DType>& inputs) {
  StoredAndSummed made;
  made.program = random_program(random, inputs);
  const ElementwiseProgram all = std::exchange(made.program, ElementwiseProgram());
  std::vector<int> registers;
  for (const DType dtype : inputs) registers.push_back(made.program.input(dtype));
  made.program.append(all, registers);  // without its output
  const auto any = [&] {
    return static_cast<int>(uniform(random, 0, made.program.n_registers() - 1));
  };
  made.n_stored = static_cast<std::size_t>(uniform(random, 0, 2));
  for (std::size_t k = 0; k < made.n_stored; ++k) made.program.output(any());
  for (index_t i = uniform(random, made.n_stored == 0 ? 1 : 0, 3); i > 0; --i) {
    const int a = any(), b = any();
    const DType dtype = made.program.dtype_of_register(a);
    if (!is_inexact(dtype)) continue;
    SumOfOutputs sum{static_cast<SumOfOutputs::Kind>(uniform(random, 0, 3))};
    const bool is_product = sum.kind >= SumOfOutputs::Kind::product;
    if (is_product && made.program.dtype_of_register(b) != dtype) continue;
    sum.a = static_cast<int>(made.program.outputs().size());
    made.program.output(a);
    if (is_product) {
      sum.b = static_cast<int>(made.program.outputs().size());
      made.program.output(b);
    }
    made.sums.push_back(sum);
  }
  return made;
}

void sum_up(const SumOfOutputs& sum, const std::vector<Array>& outputs, const MutableView& out) {
  const ConstView a = outputs[static_cast<std::size_t>(sum.a)].view();
  const ConstView b = outputs[static_cast<std::size_t>(sum.b)].view();
  Axes axes;
  for (std::size_t k = 0; k < a.rank(); ++k) axes.push_back(static_cast<index_t>(k));
  switch (sum.kind) {
    case SumOfOutputs::Kind::plain:
      return run_reduce(ReduceOp::sum, a, axes, out);
    case SumOfOutputs::Kind::norm2:
      return run_norm2(a, out);
    case SumOfOutputs::Kind::product:
    case SumOfOutputs::Kind::conj_product:
      return run_inner(a, sum.kind == SumOfOutputs::Kind::conj_product, b, out);
  }
}

bool is_stretched(const Array& x) {
  for (std::size_t k = 0; k < x.extents().size(); ++k) {
    if (x.extents()[k] > 1 && x.strides()[k] == 0) return true;
  }
  return false;
}

// Runs both ways on copies of the inputs; the first stored array may be in the memory of an input.
void expect_same_bits(Random& random, const StoredAndSummed& made, const std::vector<Array>& inputs,
                      const std::string& what) {
  const ElementwiseProgram& program = made.program;
  std::vector<ConstView> views;
  for (const Array& x : inputs) views.push_back(x.view());
  std::vector<Array> outputs;
  std::vector<MutableView> output_views;
  for (const int r : program.outputs()) {
    outputs.emplace_back(program.dtype_of_register(r), inputs[0].extents());
  }
  for (Array& y : outputs) output_views.push_back(y.mutable_view());
  run_elementwise(program, views, output_views);

  std::vector<Array> copies(inputs.begin(), inputs.end()), stored, sums;
  std::vector<MutableView> array_views, sum_views;
  views.clear();
  for (const Array& x : copies) views.push_back(x.view());
  for (std::size_t k = 0; k < made.n_stored; ++k) {
    const DType dtype = outputs[k].dtype();
    const std::size_t i = static_cast<std::size_t>(uniform(random, 0, 3)) % copies.size();
    const bool in_place = k == 0 && copies[i].dtype() == dtype && !is_stretched(copies[i]);
    stored.push_back(random_array(random, dtype, inputs[0].extents(), false));
    array_views.push_back(in_place ? copies[i].mutable_view() : MutableView());
  }
  for (std::size_t k = 0; k < made.n_stored; ++k) {
    if (array_views[k].data == nullptr) array_views[k] = stored[k].mutable_view();
  }
  for (const SumOfOutputs& sum : made.sums) sums.emplace_back(sum_dtype(sum, program), Extents());
  for (Array& y : sums) sum_views.push_back(y.mutable_view());
  run_elementwise_sums(program, made.sums, views, array_views, sum_views);

  for (std::size_t k = 0; k < made.n_stored; ++k) {
    Array dense(outputs[k].dtype(), outputs[k].extents());
    strided_copy(array_views[k], dense.mutable_view());
    ASSERT_EQ(std::memcmp(dense.memory(), outputs[k].memory(), dense.bytes()), 0)
        << what << " array " << k;
  }
  for (std::size_t s = 0; s < sums.size(); ++s) {
    Array expected(sums[s].dtype(), Extents());
    sum_up(made.sums[s], outputs, expected.mutable_view());
    ASSERT_EQ(std::memcmp(sums[s].memory(), expected.memory(), expected.bytes()), 0)
        << what << " sum " << s << " of kind " << static_cast<int>(made.sums[s].kind);
  }
}

TEST(ElementwiseSums, GiveTheBitsOfOneStepAfterTheOther) {
  Random random(64);
  for (int trial = 0; trial < 2000; ++trial) {
    const Extents extents = random_extents(random, 6, trial % 3 == 0 ? 700 : 12);
    std::vector<DType> dtypes;
    std::vector<Array> arrays;
    for (index_t i = uniform(random, 1, 4); i > 0; --i) {
      const DType dtype = uniform(random, 0, 4) == 0   ? random_dtype(random)
                          : uniform(random, 0, 1) == 0 ? DType::float32
                                                       : DType::complex64;
      arrays.push_back(random_array(random, dtype, extents, true));
      if (is_inexact(dtype)) arrays.back().fill_normal(random);
      const bool converts = uniform(random, 0, 7) == 0 && !is_complex(dtype);
      dtypes.push_back(converts ? DType::float64 : dtype);
    }
    const StoredAndSummed made = random_sums(random, dtypes);
    if (made.program.outputs().empty()) continue;
    expect_same_bits(random, made, arrays, std::to_string(trial) + to_string(extents));
    if (HasFatalFailure()) return;
  }
}

TEST(ElementwiseSums, OfManyElementsWithEveryNumberOfThreads) {
  Random random(65);
  for (const Extents& extents : {Extents{300000}, Extents{70, 41, 130}, Extents{32768}}) {
    for (const std::size_t threads : {1, 2, 4}) {
      const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
      std::vector<Array> arrays;
      for (int i = 0; i < 3; ++i) {
        arrays.emplace_back(DType::complex64, extents);
        arrays.back().fill_normal(random);
      }
      StoredAndSummed made;
      ElementwiseProgram& p = made.program;
      for (int i = 0; i < 3; ++i) p.input(DType::complex64);
      const int difference = p.apply(ScalarOp::sub, {0, 1});
      const int sum = p.apply(ScalarOp::add, {difference, 2});
      for (const int r : {difference, sum, difference, 2, sum}) p.output(r);
      made.n_stored = 1;
      made.sums = {{SumOfOutputs::Kind::norm2, 1},
                   {SumOfOutputs::Kind::conj_product, 2, 3},
                   {SumOfOutputs::Kind::plain, 4}};
      expect_same_bits(random, made, arrays, to_string(extents) + std::to_string(threads));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace palimpsest
