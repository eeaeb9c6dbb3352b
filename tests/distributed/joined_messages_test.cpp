// SPDX-License-Identifier: Apache-2.0
// Independent sums over ranks in a graph travel in one message.
#include <gtest/gtest.h>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest::testing {
namespace {

using distributed_detail::all_reduce;

Tensor values_of(int rank, const Extents& shape, DType dtype) {
  if (is_floating(dtype) || is_complex(dtype)) {
    return random_values(shape, dtype, static_cast<std::uint64_t>(rank) + 7);
  }
  return Tensor::full<std::int64_t>(shape, rank + 1).to(dtype);
}

Tensor sum_of_ranks(int n, const Extents& shape, DType dtype) {
  Tensor sum = values_of(0, shape, dtype).clone();
  for (int r = 1; r < n; ++r) sum = function({}, constant(sum) + values_of(r, shape, dtype))();
  return sum;
}

struct Array {
  DType dtype;
  Extents shape;
};

Variable input_of(const Array& a) { return tensor(a.dtype, {a.shape.begin(), a.shape.end()}, "x"); }

index_t synchronisations(const Function& f, const std::vector<Array>& arrays) {
  std::vector<TensorType> types;
  for (const Array& a : arrays) types.push_back(type_of(a.dtype, a.shape));
  return traffic_of(f.plan(types)).synchronisations;
}

TEST(JoinedMessages, OfSumsSideBySideAreOneWithTheSameBits) {
  const Team team = Team::world();
  // An array of 12 bytes comes first: the next ones must be aligned to their element size.
  const std::vector<Array> arrays{{DType::float32, {3}},       {DType::float64, {}},
                                  {DType::complex64, {2, 2}},  {DType::int32, {}},
                                  {DType::complex128, {0, 3}}, {DType::complex128, {5}},
                                  {DType::int64, {7}}};
  std::vector<In> inputs;
  std::vector<Variable> sums;
  std::vector<Tensor> values;
  std::vector<TensorType> types;
  for (const Array& a : arrays) {
    const Variable x = input_of(a);
    inputs.emplace_back(x);
    sums.push_back(all_reduce(x, team, {"rank"}));
    values.push_back(values_of(team.rank(), a.shape, a.dtype));
    types.push_back(type_of(a.dtype, a.shape));
  }
  const Function f = function(inputs, sums);
  const Plan plan = f.plan(types);
  const Traffic announced = traffic_of(plan);
  EXPECT_EQ(announced.messages, team.size() - 1);
  EXPECT_EQ(announced.synchronisations, team.size() == 1 ? 0 : 1);
  EXPECT_EQ(announced.bytes, (team.size() - 1) * (12 + 8 + 32 + 4 + 80 + 56));
  const Traffic before = sent_messages();
  MemoryScope scope;
  const Results results = f.call(std::vector<Argument>(values.begin(), values.end()));
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
  EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    EXPECT_TRUE(equal(results[k], sum_of_ranks(team.size(), arrays[k].shape, arrays[k].dtype)))
        << k;
  }
}

TEST(JoinedMessages, NeedNothingOfEachOtherAndAreSmall) {
  const Team team = Team::world();
  if (team.size() == 1) return;
  const Array vector{DType::float64, {10}}, large{DType::float64, {2000}};
  const Variable x = input_of(vector), y = input_of(large);
  const auto sum = [&](const Variable& v) { return all_reduce(v, team, {"rank"}); };
  // The second sum depends on the first.
  const Function chained = function({x}, sum(x * sum(ops::sum(x))));
  EXPECT_EQ(synchronisations(chained, {vector}), 2);
  // A sum at once, and one in parts.
  const Function mixed = function({x, y}, {sum(x), sum(y)});
  EXPECT_EQ(synchronisations(mixed, {vector, large}), 3);
  // The same value twice.
  const Function twice = function({x}, sum(x) * sum(x));
  EXPECT_EQ(synchronisations(twice, {vector}), 1);
  // Three sums; the last depends on the first.
  const Variable first = sum(ops::sum(x));
  const Function three = function({x}, {first, sum(ops::prod(x)), sum(x * first)});
  EXPECT_EQ(synchronisations(three, {vector}), 2);
}

TEST(JoinedMessages, AreOfTheSameRanks) {
  if (Team::world().size() != 4) return;
  const Team team({{"a", 2}, {"b", 2}});
  const Array number{DType::float64, {}};
  const Variable x = input_of(number);
  const Function f = function({x}, {all_reduce(x, team, {"a"}), all_reduce(x * 2.0, team, {"b"})});
  EXPECT_EQ(synchronisations(f, {number}), 2);
  const double rank = team.rank();
  const Results sums = f(Tensor::full({}, rank));
  EXPECT_EQ(sums[0].item<double>(), 2 * team.coordinate("b") + 2);
  EXPECT_EQ(sums[1].item<double>(), 2 * (4 * team.coordinate("a") + 1));
}

// A rank without coils finds both results to be zero; the others do not.
TEST(JoinedMessages, AreTheSameOnRanksWithEmptyParts) {
  const Team team = Team::world();
  for (const index_t n : {index_t{4}, index_t{40}}) {
    const NamedLinop A = sense(3, n, 30, DType::complex128).N();
    const NamedLinop maps = Dense(Parameter(random_values({2, n, 30}, DType::complex128, 5)),
                                  {"C", "Nx", "Ny"}, {"Nx", "Ny"}, {"C", "Nx", "Ny"});
    const NamedLinop B = maps.N();
    const NamedLinop together =
        distribute(sense(3, n, 30, DType::complex128), team, {{"C", "rank"}}).N() +
        distribute(maps, team, {{"C", "rank"}}).N();
    const Tensor x = random_values({n, 30}, DType::complex128, 9);
    EXPECT_LT(distance(together(x), (A + B)(x)), 1e-12);
    const Variable v = tensor(DType::complex128, {n, 30}, "v");
    const auto image = [&](index_t coils) {
      return distribute(sense(coils, n, 30, DType::complex128), team, {{"C", "rank"}}).N()(v);
    };
    const Function f = function({v}, {image(1), image(2), image(3)});
    const Results images = f(x);
    for (index_t coils = 1; coils <= 3; ++coils) {
      EXPECT_LT(distance(images[static_cast<std::size_t>(coils - 1)],
                         sense(coils, n, 30, DType::complex128).N()(x)),
                1e-12);
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
