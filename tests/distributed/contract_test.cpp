// SPDX-License-Identifier: Apache-2.0
// Every operator sample, cut along every dimension: the ranks together compute the result of the
// undistributed operator, announced messages are sent, and the operator gathered from the ranks is
// the original.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "contract/linop_samples.hpp"
#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/distributed/distributed_fft.hpp"
#include "palimpsest/distributed/gather_operator.hpp"
#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/distributed/team_plan.hpp"

namespace palimpsest::testing {
namespace {

// Names for the axes of an array whose dims may hold an ellipsis.
Dims axis_names(std::size_t rank) {
  std::vector<ND> names;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    names.emplace_back(std::string("X") + static_cast<char>('a' + axis));
  }
  return Dims(std::move(names));
}

// The placement of dims in these names.
Placement on_axes(const Placement& placement, const Dims& dims, const Dims& names) {
  Placement::Entries entries;
  for (const auto& [d, axis] : placement.entries()) {
    std::size_t at = 0;
    for (const ND& e : dims) {
      if (e == d) entries.emplace_back(names[at], axis);
      at += e.is_ellipsis() ? names.size() + 1 - dims.size() : 1;
    }
  }
  return Placement(std::move(entries));
}

struct Side {
  Dims dims;
  Extents extents;
  Placement placement;
};

Tensor part_of(const Tensor& whole, const Side& side, const Team& team) {
  const Dims names = axis_names(whole.rank());
  return DTensor::part_of(whole, names, team, on_axes(side.placement, side.dims, names))
      .local()
      .contiguous();
}

// The gathered result of all ranks; counts messages.
Tensor applied(const NamedLinop& A, const Tensor& x, const Side& from, const Side& to,
               const Team& team) {
  const Tensor mine = part_of(x, from, team);
  const Traffic announced = traffic_of(A.plan(type_of(mine.dtype(), mine.shape())));
  const Traffic before = sent_messages();
  const Tensor y = A(mine);
  EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
  EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
  const Dims names = axis_names(to.extents.size());
  return DTensor::from_local(y, names, to.extents, team, on_axes(to.placement, to.dims, names))
      .gather_to_all();
}

bool has_parts(const NamedLinop& A) {
  return A.has_attr("team") || std::any_of(A.linops().begin(), A.linops().end(), has_parts);
}

class DistributedContract : public ::testing::TestWithParam<LinopSample> {
 protected:
  // With recorded sizes of its input.
  static NamedLinop sized() {
    const NamedLinop A = GetParam().make(DType::complex128);
    DimMap missing;
    for (const auto& [d, n] : GetParam().options.sizes) {
      if (A.dims().contains(d) && !A.size(d)) missing.emplace(d, n);
    }
    return missing.empty() ? A : A.with_sizes(missing);
  }
  // With those of its output too.
  static NamedLinop fully_sized(const NamedLinop& A) {
    const Extents output = A.output_shape(extents_of(A));
    DimMap missing;
    for (std::size_t axis = 0; axis < output.size() && output.size() == A.oshape().size(); ++axis) {
      const ND& d = A.oshape()[axis];
      if (d.is_concrete() && !A.size(d)) missing.emplace(d, output[axis]);
    }
    return missing.empty() ? A : A.with_sizes(missing);
  }

  static Extents extents_of(const NamedLinop& A) {
    const TestOptions& o = GetParam().options;
    if (o.extents) return *o.extents;
    Extents result;
    for (const ND& d : A.ishape()) {
      if (d.is_ellipsis()) {
        for (const index_t n : o.ellipsis) result.push_back(n);
        continue;
      }
      result.push_back(*A.size(d));
    }
    return result;
  }

  // The dimensions along which parts can be requested.
  static std::vector<ND> named_dims(const NamedLinop& A) {
    std::vector<ND> result;
    for (const ND& d : A.dims()) {
      if ((d.is_concrete() || d.is_ordinal()) && A.size(d)) result.push_back(d);
    }
    return result;
  }

  // `extents`: of the input of A.
  static void expect_same(const NamedLinop& A, const Extents& extents, const Team& team,
                          const Placement& placement);
};

void DistributedContract::expect_same(const NamedLinop& A, const Extents& extents, const Team& team,
                                      const Placement& placement) {
  SCOPED_TRACE(placement.str());
  NamedLinop part;
  std::string refusal = "none";
  try {
    part = distribute(A, team, placement);
  } catch (const SplitError&) {
    refusal = "split";
  } catch (const ShapeError& error) {
    // An inner dimension without a recorded size.
    EXPECT_NE(std::string(error.what()).find("is unknown"), std::string::npos) << error.what();
    refusal = "shape";
  }
  for (const std::string& other : distributed_detail::gather_texts(team, refusal)) {
    ASSERT_EQ(other, refusal) << "ranks differ";
  }
  if (refusal != "none") return;
  Placement before = placement;
  const std::vector<NamedLinop> children = flatten(A);
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    before = distributed_detail::placement_before(*child, before);
  }
  Placement behind = before;
  for (const NamedLinop& child : children) {
    behind = distributed_detail::placement_behind(child, behind);
  }
  const Tensor x = random_values(extents, DType::complex128, 3);
  const Tensor Ax = A(x);
  const Tensor y = random_values(Ax.shape(), Ax.dtype(), 4);
  const Side in{A.ishape(), extents, before}, out{A.oshape(), Ax.shape(), behind};
  EXPECT_LT(distance(applied(part, x, in, out, team), Ax), 1e-11);
  EXPECT_LT(distance(applied(part.H(), y, out, in, team), A.H()(y)), 1e-11);
  // A Toeplitz normal operator is that of the exact transform; parts may compose theirs.
  const bool is_exact = GetParam().name.find("Toeplitz") == std::string::npos;
  const double of_normal = is_exact ? 1e-11 : 1e-5;
  EXPECT_LT(distance(applied(part.N(), x, in, in, team), A.N()(x)), of_normal);
  // Files do not store devices, and unnamed dimensions do not tell along which they are joined.
  const Dims dims = A.dims();
  const bool has_nameless =
      std::any_of(dims.begin(), dims.end(), [](const ND& d) { return d.is_ordinal(); });
  if (GetParam().name == "OnAnotherDevice") return;
  if (GetParam().name.find("SimpleLinop") == 0) return;  // closures are not saved
  if (has_nameless && placement.entries().size() > 1) return;
  for (const bool is_normal : {false, true}) {
    const NamedLinop B = is_normal ? part.N() : part;
    if (!has_parts(B)) continue;  // N of a transform is a number times identity
    const auto whole = gather_operator(B);
    EXPECT_EQ(whole.has_value(), team.rank() == 0);
    if (!whole) continue;
    // An error on one rank only must not block the others.
    EXPECT_NO_THROW({
      EXPECT_LT(distance((*whole)(x), is_normal ? A.N()(x) : Ax), is_normal ? of_normal : 1e-11)
          << *whole;
      if (!is_normal) {
        EXPECT_LT(distance(whole->H()(y), A.H()(y)), 1e-11) << *whole;
      }
    }) << *whole;
  }
}

bool is_long() { return std::getenv("PALIMPSEST_LONG") != nullptr; }

// All dimensions on two ranks, one of each operator on others; in long runs all of them.
TEST_P(DistributedContract, HoldsAlongEveryDimension) {
  const NamedLinop A = sized(), B = fully_sized(A);
  const std::vector<ND> dims = named_dims(B);
  const bool takes_all = is_long() || Team::world().size() == 2;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::size_t turn = k + GetParam().name.size();
    if (!takes_all && turn % dims.size() != 0) continue;
    // By turns with the sizes of the output, if the others are enough.
    const bool is_full = turn % 2 == 0 || !A.size(dims[k]);
    expect_same(is_full ? B : A, extents_of(A), Team::world(), Placement({{dims[k], "rank"}}));
  }
}

// Every other dimension, to halve the time.
TEST_P(DistributedContract, HoldsForTheAdjoint) {
  if (!is_long()) return;
  const NamedLinop A = sized();
  const std::vector<ND> dims = named_dims(A);
  for (std::size_t k = GetParam().name.size() % 2; k < dims.size(); k += 2) {
    NamedLinop B = A.H();
    DimMap missing;
    const Extents output = A(Tensor::zeros(extents_of(A), DType::complex128)).shape();
    for (std::size_t axis = 0; axis < output.size() && output.size() == B.ishape().size(); ++axis) {
      const ND& d = B.ishape()[axis];
      if (d.is_concrete() && !B.size(d)) missing.emplace(d, output[axis]);
    }
    if (!missing.empty()) B = B.with_sizes(missing);
    expect_same(B, output, Team::world(), Placement({{dims[k], "rank"}}));
  }
}

// Two dimensions at once.
TEST_P(DistributedContract, HoldsOnTwoAxes) {
  const Team world = Team::world();
  if (world.size() != 4 || !is_long()) return;
  const NamedLinop A = sized();
  const std::vector<ND> dims = named_dims(A);
  const Team team = world.reshaped({{"a", 2}, {"b", 2}});
  if (dims.size() < 2) return;
  const std::size_t first = GetParam().name.size() % dims.size();
  expect_same(A, extents_of(A), team,
              Placement({{dims[first], "b"}, {dims[(first + 1) % dims.size()], "a"}}));
}

INSTANTIATE_TEST_SUITE_P(Samples, DistributedContract, ::testing::ValuesIn(linop_samples()),
                         [](const auto& sample) { return sample.param.name; });

}  // namespace
}  // namespace palimpsest::testing
