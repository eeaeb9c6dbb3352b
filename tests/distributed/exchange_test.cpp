// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/distributed/distributed_fft.hpp"
#include "palimpsest/distributed/exchange_operators.hpp"
#include "palimpsest/distributed/move_parts.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/linop/operators/sum_reduce.hpp"
#include "palimpsest/linop/testing/testing.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/radon.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

// The halo computed from the whole array on this rank alone.
Tensor with_halo(const Tensor& whole, PartRange part, const HaloOptions& options) {
  const index_t n = whole.shape(0);
  Extents shape = whole.shape();
  shape[0] = part.size() == 0 ? 0 : options.before + part.size() + options.after;
  Tensor result = Tensor::zeros(shape, whole.dtype());
  for (index_t i = 0; i < shape[0]; ++i) {
    const index_t g = part.start - options.before + i;
    const bool is_outside = g < 0 || g >= n;
    if (is_outside && options.boundary == HaloBoundary::zero) continue;
    const index_t source = options.boundary == HaloBoundary::periodic
                               ? (g % n + n) % n
                               : std::clamp<index_t>(g, 0, n - 1);
    result.select(0, i).copy_from(whole.select(0, source));
  }
  return result;
}

std::vector<HaloOptions> halos() {
  std::vector<HaloOptions> all_of_them;
  for (const HaloBoundary boundary :
       {HaloBoundary::zero, HaloBoundary::periodic, HaloBoundary::nearest}) {
    for (const auto& [before, after] :
         {std::pair<index_t, index_t>{1, 1}, {0, 2}, {3, 0}, {7, 5}}) {
      all_of_them.push_back({.before = before, .after = after, .boundary = boundary});
    }
  }
  return all_of_them;
}

TEST(Halo, GivesWhatNeighboursHold) {
  const Team team = Team::world();
  for (const index_t n : {1, 2, 3, 9, 16}) {
    const Tensor whole = random_values({n, 3}, DType::complex64, 1);
    const PartRange part = part_range(n, team.rank(), team.size());
    const Tensor mine = whole.narrow(0, part.start, part.size()).contiguous();
    for (const HaloOptions& options : halos()) {
      const NamedLinop H = Halo("N M", "N", n, team, "rank", options);
      EXPECT_TRUE(equal(H(mine), with_halo(whole, part, options))) << n << " " << options.before;
    }
  }
}

TEST(Halo, AdjointAddsWhatIsInTheHaloToItsOwner) {
  const Team team = Team::world();
  for (const index_t n : {1, 2, 5, 13}) {
    const PartRange part = part_range(n, team.rank(), team.size());
    for (const HaloOptions& options : halos()) {
      const NamedLinop H = Halo("N M", "N", n, team, "rank", options);
      const DimMap sizes{{"N", part.size()}, {"M", 2}};
      EXPECT_TRUE(is_adjoint(H.with_sizes(sizes), DType::complex128));
      EXPECT_TRUE(is_adjoint(H.with_sizes(sizes), DType::float32));
    }
  }
}

TEST(Halo, SendsWhatThePlanAnnounces) {
  const Team team = Team::world();
  const index_t n = 23;
  const PartRange part = part_range(n, team.rank(), team.size());
  for (const HaloOptions& options : halos()) {
    const NamedLinop H = Halo("N", "N", n, team, "rank", options);
    const Traffic announced = traffic_of(H.plan(type_of(DType::float64, {part.size()})));
    const Traffic before = sent_messages();
    MemoryScope scope;
    H(Tensor::ones({part.size()}));
    EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
    EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
  }
}

TEST(Redistribute, MovesPartsAndBack) {
  const Team team = Team::world();
  const Dims dims("T Y X");
  const std::vector<Placement> placements{{}, {{"T", "rank"}}, {{"Y", "rank"}}, {{"X", "rank"}}};
  for (const Extents& shape : {Extents{7, 5, 3}, Extents{1, 2, 9}, Extents{0, 4, 2}}) {
    const Tensor whole = random_values(shape, DType::complex64, 2);
    for (const Placement& from : placements) {
      for (const Placement& to : placements) {
        const NamedLinop R = Redistribute(dims, shape, team, from, to);
        const Tensor mine = DTensor::part_of(whole, dims, team, from).local().contiguous();
        const Tensor moved = R(mine);
        EXPECT_TRUE(equal(moved, DTensor::part_of(whole, dims, team, to).local()));
        EXPECT_TRUE(equal(R.H()(moved), mine));
      }
    }
  }
}

TEST(Redistribute, RefusesWhatIsNoPartOfTheArray) {
  for (const Team& team : {Team::world(), Team::pretend({{"rank", 1}})}) {
    const NamedLinop R = Redistribute("Y X", {4, 6}, team, {{"Y", "rank"}}, {{"X", "rank"}});
    const index_t rows = part_range(4, team.rank(), team.size()).size(),
                  columns = part_range(6, team.rank(), team.size()).size();
    EXPECT_EQ(R.output_shape({rows, 6}), (Extents{4, columns}));
    EXPECT_EQ(R.H().output_shape({4, columns}), (Extents{rows, 6}));
    for (const Extents& wrong : {Extents{rows + 1, 6}, Extents{rows, 5}}) {
      EXPECT_THROW(R.output_shape(wrong), ShapeError);
      EXPECT_THROW(R(Tensor::ones(wrong, DType::float32)), ShapeError);
    }
    EXPECT_THROW(R.H().output_shape({4, columns + 1}), ShapeError);
  }
}

TEST(Exchanges, PassTheDotTest) {
  const Team team = Team::world();
  const Extents shape{6, 5};
  const Placement rows{{"Y", "rank"}}, columns{{"X", "rank"}};
  const auto own = [&](index_t n) { return part_range(n, team.rank(), team.size()).size(); };
  const std::vector<std::pair<NamedLinop, Extents>> exchanges{
      {AllReduce("Y X", team, {"rank"}), shape},
      {Broadcast("Y X", team, {"rank"}), shape},
      {Scatter("Y X", shape, team, rows), shape},
      {Gather("Y X", shape, team, columns), {6, own(5)}},
      {Redistribute("Y X", shape, team, rows, columns), {own(6), 5}},
  };
  for (const auto& [A, extents] : exchanges) {
    for (const DType dtype : {DType::float32, DType::complex128}) {
      EXPECT_TRUE(is_adjoint(A, dtype, extents)) << A.str();
      EXPECT_TRUE(dot_test(A, {.extents = extents, .dtype = dtype}).ok) << A.str();
    }
    EXPECT_TRUE(A.H().H().is(A));
  }
}

TEST(Exchanges, OfTwoAxesOfATeam) {
  if (Team::world().size() != 4) return;  // the shape of four ranks
  const Team team({{"a", 2}, {"b", 2}});
  const Extents shape{5, 3, 4};
  const Dims dims("T Y X");
  const Tensor whole = random_values(shape, DType::float32, 3);
  const std::vector<Placement> placements{
      {{"T", "a"}}, {{"T", "b"}}, {{"T", "a"}, {"Y", "b"}}, {{"X", "a"}, {"T", "b"}}, {}};
  for (const Placement& from : placements) {
    for (const Placement& to : placements) {
      const NamedLinop R = Redistribute(dims, shape, team, from, to);
      const Tensor mine = DTensor::part_of(whole, dims, team, from).local().contiguous();
      EXPECT_TRUE(equal(R(mine), DTensor::part_of(whole, dims, team, to).local()))
          << from.str() << " to " << to.str();
      const auto seed = [&](const Placement& placement) {
        int seed_of_place = 0;
        for (const auto& [d, axis] : placement.entries()) {
          seed_of_place += team.coordinate(axis) * (axis == "a" ? 10 : 1);
        }
        return seed_of_place;
      };
      EXPECT_TRUE(is_adjoint(R, DType::float32, mine.shape(), std::pair(seed(from), seed(to))));
    }
  }
}

struct Along {
  std::string name;
  NamedLinop A;
  Extents shape;
  Placement placement;
};

std::vector<Along> operators_along_cuts() {
  std::vector<Along> cases;
  const auto add = [&](const std::string& name, const NamedLinop& A, const Extents& shape,
                       const Placement& placement) {
    DimMap sizes;
    for (std::size_t k = 0; k < shape.size(); ++k) sizes[A.ishape()[k]] = shape[k];
    cases.push_back({name, A.with_sizes(sizes), shape, placement});
  };
  for (const auto boundary :
       {DifferenceBoundary::periodic, DifferenceBoundary::neumann, DifferenceBoundary::zero}) {
    for (const auto direction : {DifferenceDirection::forward, DifferenceDirection::backward}) {
      for (const index_t n : {2, 3, 8}) {
        add("difference of " + std::to_string(n),
            FiniteDifference("Y X", "Y",
                             {.boundary = boundary, .spacing = 0.5, .direction = direction}),
            {n, 3}, {{"Y", "rank"}});
      }
    }
    add("gradient", Gradient("Y X", "Y X", {.boundary = boundary}), {7, 5}, {{"Y", "rank"}});
  }
  for (const auto boundary : {Boundary::zeros, Boundary::circular}) {
    for (const auto method : {ConvolutionMethod::direct, ConvolutionMethod::fft}) {
      for (const Extents& kernel : {Extents{3, 2}, Extents{4, 5}}) {
        const Parameter h(random_values(kernel, DType::complex128, 5));
        add("convolution",
            Convolution(
                h, {.batch = "C", .grid = Dims("Ny Nx"), .boundary = boundary, .method = method}),
            {2, 9, 8}, {{"Ny", "rank"}});
        add("convolution along the other",
            Convolution(
                h, {.batch = "C", .grid = Dims("Ny Nx"), .boundary = boundary, .method = method}),
            {2, 6, 7}, {{"Nx", "rank"}});
      }
    }
  }
  // The result has other names, and may know its sizes itself.
  for (const auto boundary : {Boundary::zeros, Boundary::circular}) {
    const Parameter h(random_values({3}, DType::complex128, 5));
    const NamedLinop C =
        Convolution(h, {.batch = "C", .grid = Dims("Nx"), .out = Dims("Z"), .boundary = boundary});
    for (const index_t n : {1, 8}) {
      add("convolution to another name", C, {2, n}, {{"Nx", "rank"}});
      add("convolution, its result placed", C, {2, n}, {{"Z", "rank"}});
      add("convolution of known sizes", C.with_sizes({{"Nx", n}, {"Z", n}}), {2, n},
          {{"Nx", "rank"}});
      add("adjoint convolution", C.H(), {2, n}, {{"Z", "rank"}});
      add("two convolutions",
          Chain(C, C.renamed({{"Nx", "Z1"}, {"Z", "Y"}}).renamed({{"Z1", "Z"}})), {2, n},
          {{"Nx", "rank"}});
    }
  }
  const Tensor angles = Tensor::from<double>({0.3, 1.1, 2.0});
  for (const index_t slices : {2, 7}) {
    add("sinograms of slices", Radon(angles, {6, 8}, {.n_detectors = 9, .batch = "B"}),
        {slices, 6, 8}, {{"Nx", "rank"}});
  }
  add("wavelets of frames", Wavelet("T Y X", "Y X", {.family = "db2", .levels = 2}), {3, 8, 9},
      {{"Y", "rank"}});
  add("wavelets of an image", Wavelet("Y X", "Y X", {.family = "db2", .levels = 2}), {7, 8},
      {{"X", "rank"}});
  return cases;
}

// The placement of vectors with these dims, of the input or the output of an operator.
Placement placement_at(const Along& c, const Dims& dims) {
  const std::vector<NamedLinop> parts = flatten(c.A);
  Placement placement = c.placement;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    placement = distributed_detail::placement_before(*part, placement);
  }
  if (dims != c.A.ishape()) {
    for (const NamedLinop& part : parts) {
      placement = distributed_detail::placement_behind(part, placement);
    }
  }
  return placement;
}

TEST(Distribute, OperatorsAlongACutDimensionGiveWhatTheWholeGives) {
  const Team team = Team::world();
  for (const Along& c : operators_along_cuts()) {
    SCOPED_TRACE(c.name + " " + c.A.str());
    const NamedLinop part = distribute(c.A, team, c.placement);
    const Tensor x = random_values(c.shape, DType::complex128, 10);
    const Tensor y = c.A(x);
    // A dimension of the placement that is not in the shape cuts nothing.
    const auto applied = [&](const NamedLinop& P, const Tensor& v, const Dims& from, const Dims& to,
                             const Extents& result) {
      const auto placed = [&](const Dims& dims) { return placement_at(c, dims); };
      const Tensor mine = DTensor::part_of(v, from, team, placed(from)).local().contiguous();
      return DTensor::from_local(P(mine), to, result, team, placed(to)).gather_to_all();
    };
    const Dims &in = c.A.ishape(), &out = c.A.oshape();
    EXPECT_LT(distance(applied(part, x, in, out, y.shape()), y), 1e-13);
    const Tensor z = random_values(y.shape(), DType::complex128, 11);
    EXPECT_LT(distance(applied(part.H(), z, out, in, c.shape), c.A.H()(z)), 1e-13);
    EXPECT_LT(distance(applied(part.N(), x, in, in, c.shape), c.A.N()(x)), 1e-12);
    EXPECT_LT(distance(applied(part.H().N(), z, out, out, y.shape()), c.A.H().N()(z)), 1e-12);
    const Tensor mine = DTensor::part_of(x, in, team, placement_at(c, in)).local();
    EXPECT_TRUE(is_adjoint(part, DType::complex128, mine.shape()));
  }
}

TEST(Distribute, OperatorsAlongACutDimensionSendAndHoldWhatIsAnnounced) {
  const Team team = Team::world();
  if (team.size() == 1) return;  // nothing is exchanged
  for (const Along& c : operators_along_cuts()) {
    SCOPED_TRACE(c.name + " " + c.A.str());
    const TensorType x = type_of(DType::complex128, c.shape);
    const TeamPlan announced = plan_on_team(c.A, Team::pretend({{"rank", team.size()}}),
                                            c.placement, x, Direction::normal);
    const NamedLinop N = distribute(c.A, team, c.placement).N();
    const RankPlan& mine = announced.ranks[static_cast<std::size_t>(team.rank())];
    const Tensor v = DTensor::part_of(random_values(c.shape, x.dtype, 3), c.A.ishape(), team,
                                      placement_at(c, c.A.ishape()))
                         .local()
                         .contiguous();
    N.plan(type_of(v.dtype(), v.shape()));  // compiles, and keeps spectra of kernels
    const Traffic before = sent_messages();
    MemoryScope scope;
    const Tensor y = N(v);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), mine.peak_bytes);
    EXPECT_EQ(sent_messages().bytes - before.bytes, mine.traffic.bytes);
    EXPECT_EQ(sent_messages().messages - before.messages, mine.traffic.messages);
  }
}

// Empty parts have the dtype of the other parts: real vectors through complex operators.
TEST(Distribute, EmptyPartsHaveTheDtypeOfTheWhole) {
  const Team team = Team::world();
  const NamedLinop A = Dense(Parameter(random_values({2, 3}, DType::complex64, 1)), "MN,N->M");
  for (const char* const d : {"M", "N"}) {
    const NamedLinop part = distribute(A, team, {{d, "rank"}});
    const Tensor x = random_values({3}, DType::float32, 4);
    const Tensor mine = DTensor::part_of(x, "N", team, {{d, "rank"}}).local().contiguous();
    const Tensor y = DTensor::from_local(part(mine), "M", {2}, team, {{d, "rank"}}).gather_to_all();
    EXPECT_EQ(y.dtype(), DType::complex64);
    EXPECT_LT(distance(y, A(x)), 1e-6);
  }
}

// A rank without a part still takes part in the exchanges before and after.
TEST(Distribute, RanksWithEmptyPartsStayInStep) {
  const Team team = Team::world();
  const DType c = DType::complex128;
  const NamedLinop F = Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}});
  const NamedLinop W = Diagonal(Parameter(random_values({2, 3}, c, 7)), {"C", "Ky", "Kx"},
                                {.weight_shape = Dims("Ky Kx")});
  const NamedLinop A =
      Chain(F, W).with_sizes({{"C", 5}, {"Ny", 2}, {"Nx", 3}, {"Ky", 2}, {"Kx", 3}});
  const NamedLinop part = distribute(A, team, {{"Ny", "rank"}});
  const Tensor x = random_values({5, 2, 3}, c, 9);
  const Tensor mine = DTensor::part_of(x, A.ishape(), team, {{"Ny", "rank"}}).local().contiguous();
  const Tensor y = DTensor::from_local(part(mine), A.oshape(), {5, 2, 3}, team, {{"Ky", "rank"}})
                       .gather_to_all();
  EXPECT_LT(distance(y, A(x)), 1e-13);
}

TEST(Exchanges, RefuseWhatDoesNotFit) {
  const Team team = Team::pretend({{"rank", 3}});
  expect_error<NameError>([&] { Halo("N M", "Q", 4, team, "rank"); }, "[Halo] d: got Q");
  expect_error<NameError>([&] { Halo("N M", "N", 4, team, "other"); }, "axis");
  expect_error<ValueError>([&] { Halo("N M", "N", 4, team, "rank", {.before = -1}); },
                           "at least 0");
  expect_error<NameError>([&] { AllReduce("N", team, {"other"}); }, "axis");
  expect_error<ShapeError>([&] { Scatter("Y X", {4}, team, {{"Y", "rank"}}); }, "got 1 extents");
  expect_error<NameError>([&] { Scatter("Y X", {4, 5}, team, {{"Z", "rank"}}); }, "got Z");
  const NamedLinop R = Redistribute("Y X", {4, 5}, team, {{"Y", "rank"}}, {{"X", "rank"}});
  expect_error<ShapeError>(
      [&] {
        R.plan(type_of(DType::float64, {3, 5}));
      },
      "expected 2 along axis 0, the part of rank 0");
  expect_error<ShapeError>(
      [&] {
        R.plan(type_of(DType::float64, {2, 6}));
      },
      "expected 5 along axis 1");
  expect_error<ShapeError>(
      [&] { Halo("N", "N", 7, team, "rank").H().plan(type_of(DType::float64, {9})); },
      "with the halo");
  expect_error<SplitError>(
      [&] {
        AllReduce("N", team, {"rank"}).split({{"N", slice(0, 1)}});
      },
      "other ranks");
}

TEST(Exchanges, OfIntegersMoveAndAreNotAdded) {
  const Team team = Team::world();
  const PartRange part = part_range(9, team.rank(), team.size());
  const Tensor whole = Tensor::arange(9);
  const distributed_detail::CutAxis cut{0, 9, "rank"};
  const Variable x = tensor(DType::int64, {part.size()}, "x");
  const Function gather = function({x}, distributed_detail::redistribute(x, team, {cut}, {}));
  EXPECT_TRUE(equal(gather(whole.narrow(0, part.start, part.size()).contiguous()), whole));
  const Variable y = tensor(DType::int64, {part.size() + 2}, "y");
  if (part.size() == 0) return;
  expect_error<DTypeError>(
      [&] {
        distributed_detail::halo_adjoint(y, team, cut, 1, 1, distributed_detail::HaloEdge::zero);
      },
      "floating or complex");
}

}  // namespace
}  // namespace palimpsest::testing
