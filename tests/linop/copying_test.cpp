// SPDX-License-Identifier: Apache-2.0
// Shallow and deep copies, moves and conversions: what they share.
#include "palimpsest/linop/copies/copying.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "linop/linop_support.hpp"
#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;
using testing::values;

const Device kOther{DeviceType::cpu, 1};

// An identity that holds any parameters.
const LinopType kHolder{
    .name = "copying_test.Holder",
    .functions = {.fn = [](const NamedLinop&, const Variable& x) { return x; }}};
PALIMPSEST_REGISTER_LINOP(kHolder);

NamedLinop holder(Parameters parameters, Attributes attributes = {}) {
  return make_linop(kHolder, NamedShape("A"), std::move(parameters), std::move(attributes));
}

std::vector<double> reals(const Parameter& p) {
  return p.value().to(DType::float64).to_vector<double>();
}
Tensor counted(Extents shape) {
  return Tensor::arange(element_count(shape)).to(DType::float64).reshape(shape);
}
std::int64_t live(Device device = {}) {
  return static_cast<std::int64_t>(Allocator::of(device).stats().live_bytes);
}
Storage storage_of(const Parameter& p) {
  return p.variable().get_value({.borrow = true}).storage();
}

// -- shallow copies -------------------------------------------------------------------------------

TEST(ShallowCopy, SharesItsDataAndNothingElse) {
  const NamedLinop A = Diagonal(random({4}), "N");
  NamedLinop B = A.copy();
  EXPECT_FALSE(B.is(A));
  EXPECT_TRUE(identical(A, B));
  EXPECT_TRUE(B.param("weight").is(A.param("weight")));
  B.rename({{"N", "M"}});
  B.set_param("other", Parameter(random({2})));
  B.set_attr("note", "mine");
  EXPECT_EQ(A.str(), "Diagonal(N -> N)");
  EXPECT_FALSE(A.has_param("other") || A.has_attr("note"));
  EXPECT_EQ(B.H().str(), "Diagonal.H(M -> M)");
  Parameter weight = B.param("weight");
  weight.set_value(Tensor::ones({4}, DType::complex128));
  EXPECT_EQ(values(A(random({4}))), values(random({4})));
}

TEST(ShallowCopy, OfContainersLeavesChildrenToOthers) {
  const NamedLinop D = Diagonal(random({4}), "N");
  const NamedLinop A = Chain(D, D);
  NamedLinop B = A.copy();
  EXPECT_TRUE(B[0].is(D) && B[1].is(D));
  B.rename({{"N", "M"}});
  EXPECT_EQ(D.str(), "Diagonal(N -> N)");
  EXPECT_TRUE(A[0].is(D));
  EXPECT_TRUE(B[0].param("weight").is(D.param("weight")));
}

TEST(ShallowCopy, OfAnAdjointOrANormalHasItsOwnAdjoint) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  NamedLinop H = A.H().copy();
  H.rename({{"M", "K"}});
  EXPECT_EQ(H.H().str(), "Dense(N -> K)");
  EXPECT_EQ(A.str(), "Dense(N -> M)");
  EXPECT_FALSE(H.H().is(A));
  const Tensor x = random({2});
  EXPECT_TRUE(equal(H.H()(x), A(x)));
  const NamedLinop N = A.N().copy();
  EXPECT_TRUE(N.H().is(N));
  EXPECT_TRUE(equal(N(x), A.N()(x)));
}

// -- deep copies ----------------------------------------------------------------------------------

class DeepCopy : public ::testing::TestWithParam<Copy> {};
INSTANTIATE_TEST_SUITE_P(Both, DeepCopy, ::testing::Values(Copy::lazy, Copy::eager),
                         [](const auto& instance) {
                           return instance.param == Copy::lazy ? "Lazy" : "Eager";
                         });

TEST_P(DeepCopy, IsIndependentInBothDirections) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M").with_sizes({}).named("mine");
  const NamedLinop B = A.deepcopy(GetParam());
  const Tensor x = random({2}), y = A(x);
  EXPECT_FALSE(B.is(A) || B.param("weight").is(A.param("weight")));
  EXPECT_EQ(B.str(), A.str());
  EXPECT_TRUE(equal(B(x), y));
  Parameter a = A.param("weight"), b = B.param("weight");
  b.modify([](Tensor& t) { t.fill(0); });
  EXPECT_TRUE(equal(A(x), y));
  b.set_value(a.value());
  a.modify([](Tensor& t) { t.fill(0); });
  EXPECT_TRUE(equal(B(x), y));
  EXPECT_FALSE(a.shares_storage(b));
}

TEST_P(DeepCopy, KeepsNodesAndVariablesThatOccurTwice) {
  const Parameter w = random({4});
  const NamedLinop D = Diagonal(w, "N"), E = Diagonal(w, "N");
  const NamedLinop B = Chain(D, D, E, D.H()).deepcopy(GetParam());
  EXPECT_TRUE(B[0].is(B[1]));
  EXPECT_FALSE(B[0].is(B[2]));
  EXPECT_TRUE(B[0].param("weight").is(B[2].param("weight")));
  // A complex weight of an operator and its adjoint is one variable.
  EXPECT_TRUE(B[3].param("weight").is(B[0].param("weight")));
  EXPECT_FALSE(B[0].param("weight").is(w));
  EXPECT_TRUE(equal(B(random({4})), Chain(D, D, E, D.H())(random({4}))));
}

TEST_P(DeepCopy, StartsWithEmptyCachesAndKeepsFlags) {
  const NamedLinop A = Diagonal(Parameter::trainable(random({3})), "N");
  A.N();
  const NamedLinop H = A.H();
  const NamedLinop B = H.deepcopy(GetParam());
  EXPECT_TRUE(B.is_flipped());
  EXPECT_FALSE(B.H().is(A));
  EXPECT_TRUE(B.H().H().is(B));
  EXPECT_TRUE(B.param("weight").is_trainable());
  EXPECT_FALSE(Diagonal(random({3}), "N").deepcopy().param("weight").is_trainable());
  EXPECT_TRUE(equal(B(random({3})), H(random({3}))));
}

TEST_P(DeepCopy, KeepsWhatOverlaps) {
  const Tensor all = counted({10});
  const std::vector<Parameter> p =
      parameters({all.narrow(0, 0, 6), all.narrow(0, 4, 4), all.narrow(0, 0, 6)});
  EXPECT_TRUE(p[0].variable().is(p[1].variable()));
  EXPECT_TRUE(p[0].is(p[2]));
  const NamedLinop A = holder({{"a", p[0]}, {"b", p[1]}});
  const NamedLinop B = A.deepcopy(GetParam());
  Parameter a = B.param("a");
  a.modify([](Tensor& t) { t.fill(7); });
  EXPECT_EQ(reals(B.param("b")), std::vector<double>({7, 7, 6, 7}));
  EXPECT_EQ(reals(A.param("b")), std::vector<double>({4, 5, 6, 7}));
  EXPECT_EQ(all.to_vector<double>(), counted({10}).to_vector<double>());
}

TEST_P(DeepCopy, OfATileTakesTheBytesOfTheTile) {
  const Parameter whole = counted({1000});
  const NamedLinop tile = holder({{"a", whole.view({slice(10, 20)})}});
  MemoryMap map;
  add(map, tile);
  EXPECT_EQ(map.groups().size(), 1U);
  EXPECT_EQ(map.groups()[0].used, 80);
  EXPECT_LE(map.bytes(), 80 + 63);
  const NamedLinop B = tile.deepcopy(GetParam());
  EXPECT_EQ(reals(B.param("a")), std::vector<double>({10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_LE(storage_of(B.param("a")).nbytes(), 80U + 63U);
  // Of a box within a matrix, the span from its first to its last element is copied, with the same
  // strides.
  const Parameter matrix = counted({20, 30});
  const NamedLinop box = holder({{"a", matrix.view({slice(2, 4), slice(5, 8)})}});
  const NamedLinop C = box.deepcopy(GetParam());
  EXPECT_EQ(reals(C.param("a")), std::vector<double>({65, 66, 67, 95, 96, 97}));
  EXPECT_EQ(C.param("a").layout().strides, (Strides{30, 1}));
  EXPECT_LE(storage_of(C.param("a")).nbytes(), 33U * 8 + 63);
  EXPECT_TRUE(C.param("a").is_view());
}

TEST_P(DeepCopy, KeepsDistancesOfDisjointViewsThatUseHalf) {
  const Parameter whole = counted({1000});
  const NamedLinop A =
      holder({{"a", whole.view({slice(0, 10)})}, {"b", whole.view({slice(20, 30)})}});
  MemoryMap map;
  add(map, A);
  EXPECT_EQ(map.bytes(), 240);
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_TRUE(B.param("a").variable().is(B.param("b").variable()));
  EXPECT_EQ(B.param("b").layout().offset - B.param("a").layout().offset, 20);
  EXPECT_EQ(reals(B.param("b"))[0], 20);
}

TEST_P(DeepCopy, LeavesOutGapsThatAreMostOfIt) {
  const Parameter whole = counted({10000});
  const NamedLinop A =
      holder({{"a", whole.view({slice(0, 10)})}, {"b", whole.view({slice(9000, 9010)})}});
  MemoryMap map;
  add(map, A);
  EXPECT_LE(map.bytes(), 160 + 64);
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_EQ(reals(B.param("b"))[9], 9009);
  EXPECT_TRUE(B.param("a").variable().is(B.param("b").variable()));
  if (GetParam() == Copy::eager) {
    EXPECT_LE(storage_of(B.param("a")).nbytes(), 160U + 64U);
  }
}

TEST_P(DeepCopy, OfAWholeAndATileOfItIsOneBuffer) {
  const Parameter whole = counted({100});
  const NamedLinop A = holder({{"a", whole.view({slice(10, 20)})}, {"b", whole}});
  MemoryMap map;
  add(map, A);
  EXPECT_EQ(map.bytes(), 800);
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_TRUE(B.param("a").variable().is(B.param("b").variable()));
  Parameter tile = B.param("a");
  tile.set_value(Tensor::zeros({10}));
  EXPECT_EQ(reals(B.param("b"))[15], 0);
  EXPECT_EQ(reals(whole)[15], 15);
}

TEST_P(DeepCopy, KeepsDtypesOfViews) {
  const Tensor z = random({6}, DType::complex64);
  const Tensor parts = z.bitcast(DType::float32), bytes = z.bitcast(DType::uint8);
  const std::vector<Parameter> p = parameters({z, parts, bytes});
  const NamedLinop A = holder({{"z", p[0]}, {"parts", p[1]}, {"bytes", p[2]}});
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_EQ(B.param("parts").dtype(), DType::float32);
  EXPECT_TRUE(equal(B.param("z").value(), z));
  EXPECT_TRUE(equal(B.param("bytes").value(), bytes));
  Parameter real = B.param("parts");
  real.modify([](Tensor& t) { t.fill(1); });
  EXPECT_EQ(values(B.param("z").value()), std::vector<testing::Complex>(6, {1, 1}));
  EXPECT_TRUE(equal(A.param("z").value(), z));
}

TEST_P(DeepCopy, KeepsStridesOfEverySign) {
  const Tensor t = counted({4, 6});
  const auto attribute = [](const NamedLinop& A) { return A.attr("t").as_tensor(); };
  const std::vector<Tensor> views{t.transpose(0, 1), t(slice({}, {}, -2)), t.select(1, 3),
                                  Tensor::scalar<double>(3).expand({5, 2})};
  for (const Tensor& view : views) {
    const NamedLinop B = holder({}, {{"t", view}}).deepcopy(GetParam());
    EXPECT_EQ(attribute(B).strides(), view.strides());
    EXPECT_TRUE(equal(attribute(B), view));
    EXPECT_FALSE(shares_storage(attribute(B), view));
  }
  MemoryMap map;
  add(map, holder({}, {{"t", views[3]}}));
  EXPECT_EQ(map.bytes(), 8);
  // The same for views of a parameter.
  const Parameter p = t;
  const NamedLinop A =
      holder({{"back", p.view({slice({}, {}, -1), slice(0, 6, 2)})},
              {"still", p.view(ElementLayout{DType::float64, {3, 2}, {0, 5}, 7})}});
  const NamedLinop B = A.deepcopy(GetParam());
  for (const char* name : {"back", "still"}) {
    EXPECT_EQ(B.param(name).layout().strides, A.param(name).layout().strides);
    EXPECT_TRUE(equal(B.param(name).value(), A.param(name).value()));
  }
}

TEST_P(DeepCopy, OfNothingTakesNothing) {
  const Parameter none = Tensor::zeros({0, 3, 224});
  const NamedLinop A =
      holder({{"none", none}, {"absent", Parameter()}}, {{"missing", Attribute()}});
  MemoryMap map;
  add(map, A);
  EXPECT_EQ(map.bytes(), 0);
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_EQ(B.param("none").shape(), (Extents{0, 3, 224}));
  EXPECT_EQ(B.param("none").value().strides(), none.value().strides());
  EXPECT_FALSE(B.param("absent").present());
  EXPECT_TRUE(B.attr("missing").absent());
  // An empty view does not extend the used span.
  const Parameter whole = counted({100});
  MemoryMap tile;
  add(tile, holder({{"a", whole.view({slice(0, 4)})}, {"b", whole.view({slice(90, 90)})}}));
  EXPECT_EQ(tile.bytes(), 32);
  const NamedLinop empty = Chain(Fft(1), Identity());
  const NamedLinop copy = empty.deepcopy(GetParam());
  EXPECT_FALSE(copy.is(empty) || copy[0].is(empty[0]));
}

TEST_P(DeepCopy, CopiesTensorsInAttributesAndLists) {
  const Tensor t = counted({8});
  const NamedLinop A = holder(
      {{"p", Parameter::borrow(t)}},
      {{"t", t.narrow(0, 2, 3)}, {"list", Attribute::List{1, Attribute(t.narrow(0, 0, 4))}}});
  const NamedLinop B = A.deepcopy(GetParam());
  const Tensor inner = B.attr("list").as_list()[1].as_tensor();
  EXPECT_TRUE(equal(inner, t.narrow(0, 0, 4)));
  EXPECT_TRUE(shares_storage(inner, B.attr("t").as_tensor()));
  // In the same sharing as the parameter, which no longer shares with the caller's tensor.
  EXPECT_TRUE(shares_storage(inner, B.param("p").variable().get_value({.borrow = true})));
  Parameter p = B.param("p");
  p.modify([](Tensor& value) { value.fill(-1); });
  EXPECT_EQ(inner.to_vector<double>(), std::vector<double>(4, -1));
  EXPECT_EQ(t.to_vector<double>(), counted({8}).to_vector<double>());
  Tensor mine = t;
  mine.fill(5);
  EXPECT_EQ(reals(A.param("p")), std::vector<double>(8, 5));
  EXPECT_EQ(reals(B.param("p")), std::vector<double>(8, -1));
}

TEST_P(DeepCopy, RecomputesDerivedValuesFromItsOwnVariables) {
  const Parameter w = random({3, 3});
  const NamedLinop A = Dense(w, "MN,N->M");
  const NamedLinop both = Chain(A, A.H(), A.N().renamed({}));
  ASSERT_TRUE(both[2].param("weight").is_derived());
  const NamedLinop B = both.deepcopy(GetParam());
  ASSERT_TRUE(B[2].param("weight").is_derived());
  const Tensor x = random({3});
  EXPECT_TRUE(equal(B(x), both(x)));
  // The Gram weight follows the copy's weight, not the original's.
  const Tensor before = both(x);
  Parameter mine = B[0].param("weight");
  mine.set_value(random({3, 3}, DType::complex128, 8));
  const NamedLinop C = Dense(random({3, 3}, DType::complex128, 8), "MN,N->M");
  EXPECT_LE(testing::difference(B(x), Chain(C, C.H(), C.N())(x)), 1e-14);
  EXPECT_TRUE(equal(both(x), before));
}

TEST_P(DeepCopy, OfADerivedTileTakesThePartOfItsSource) {
  const Parameter w = random({64, 64});
  const NamedLinop tile = Dense(w.view({slice(3, 5), slice(0, 2)}), "MN,N->M");
  const NamedLinop N = tile.N();
  ASSERT_TRUE(N.param("weight").is_derived());
  MemoryMap map;
  add(map, N);
  EXPECT_LE(map.bytes(), (64 + 2) * 16 + 63);
  const Tensor x = random({2});
  EXPECT_TRUE(equal(N.deepcopy(GetParam())(x), N(x)));
  Parameter mine = w;
  mine.modify([](Tensor& t) { t.fill(0); });
  EXPECT_EQ(values(N(x)), std::vector<testing::Complex>(2));
}

TEST_P(DeepCopy, OfAMappedFileIsOrdinaryMemoryOnceItIsCopied) {
  // The file is of this process alone: both cases may run at the same time.
  const std::string path =
      ::testing::TempDir() + "palimpsest_mapped_" + std::to_string(getpid()) + ".bin";
  const Tensor values = counted({600});
  {
    AtomicFile file(path);
    file.write(values.raw_data(), 4800);
    file.commit();
  }
  const Tensor whole(Storage::from_file(path, 0, 4800), DType::float64, {600}, {1}, 0);
  const auto is_mapped = [&](const NamedLinop& L) {
    return storage_of(L.param("a")).shares_data(whole.storage());
  };
  const NamedLinop A = holder({{"a", Parameter(whole).view({slice(100, 200)})}});
  ASSERT_TRUE(is_mapped(A));
  const std::int64_t before = live();
  const NamedLinop B = A.deepcopy(GetParam());
  const bool is_lazy = GetParam() == Copy::lazy;
  EXPECT_EQ(is_mapped(B), is_lazy);
  EXPECT_LE(live() - before, is_lazy ? 0 : 800 + 63);
  EXPECT_EQ(reals(B.param("a")), reals(A.param("a")));
  Parameter mine = B.param("a");
  mine.modify([](Tensor& t) { t.fill(-1); });
  EXPECT_FALSE(is_mapped(B));
  EXPECT_LE(live() - before, 800 + 63);
  EXPECT_EQ(reals(A.param("a"))[0], 100);
  std::filesystem::remove(path);
}

TEST_P(DeepCopy, OfReadOnlyMemoryCanBeWritten) {
  std::vector<double> memory(50, 1.0);
  const Tensor lent = Tensor::from_blob(memory.data(), DType::float64, {50}, {1}, {}, false);
  const NamedLinop A = holder({{"a", Parameter::borrow(lent)}}, {{"t", lent.narrow(0, 3, 4)}});
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_EQ(storage_of(B.param("a")).shares_data(lent.storage()), GetParam() == Copy::lazy);
  EXPECT_TRUE(
      shares_storage(B.attr("t").as_tensor(), B.param("a").variable().get_value({.borrow = true})));
  Parameter mine = B.param("a");
  mine.modify([](Tensor& t) { t.fill(2); });
  EXPECT_EQ(memory, std::vector<double>(50, 1.0));
  EXPECT_EQ(B.attr("t").as_tensor().to_vector<double>(), std::vector<double>(4, 2));
}

TEST_P(DeepCopy, OfMemoryWhoseAddressWasGivenAwayIsACopy) {
  Tensor t = counted({40});
  Storage storage = t.storage();
  const Storage::Pin pin = storage.pin();
  const NamedLinop A = holder({{"a", Parameter::borrow(t)}});
  const NamedLinop B = A.deepcopy(GetParam());
  EXPECT_FALSE(storage_of(B.param("a")).shares_data(t.storage()));
  t.fill(-1);
  EXPECT_EQ(reals(B.param("a")), counted({40}).to_vector<double>());
}

TEST_P(DeepCopy, OfSeveralDevicesLeavesEveryStorageWhereItIs) {
  const Device third{DeviceType::cpu, 2};
  const Parameter here = counted({100}), there = counted({100}).to(kOther);
  const Tensor attribute = counted({30}).to(third);
  const NamedLinop A = Chain(holder({{"a", here.view({slice(0, 10)})}, {"b", here}}),
                             holder({{"a", there.view({slice(10, 20)})}}, {{"t", attribute}}),
                             holder({{"a", there.view({slice(15, 30)})}}));
  const std::int64_t before[] = {live(), live(kOther), live(third)};
  const NamedLinop B = A.deepcopy(GetParam());
  if (GetParam() == Copy::eager) {
    EXPECT_EQ(live() - before[0], 800);
    EXPECT_LE(live(kOther) - before[1], 160 + 63);
    EXPECT_EQ(live(third) - before[2], 240);
  }
  EXPECT_EQ(B[0].param("a").type().device, Device{});
  EXPECT_EQ(B[1].param("a").type().device, kOther);
  EXPECT_EQ(B[1].attr("t").as_tensor().device(), third);
  EXPECT_TRUE(B[1].param("a").variable().is(B[2].param("a").variable()));
  Parameter tile = B[1].param("a");
  tile.modify([](Tensor& t) { t.fill(-1); });
  EXPECT_EQ(B[2].param("a").value().to(Device{}).to_vector<double>()[0], -1);
  EXPECT_EQ(A[2].param("a").value().to(Device{}).to_vector<double>()[0], 15);
}

TEST_P(DeepCopy, OfVeryDeepTreesNeedsNoStack) {
  NamedLinop A = Identity("A");
  for (int i = 0; i < 200000; ++i) {
    LinopData data;
    data.type = &Chain(Identity("A")).type();
    data.functions = data.type->functions;
    data.name = "Chain";
    data.shape = NamedShape("A");
    data.children = {A};
    A = from_data(std::move(data));
  }
  NamedLinop B = A.deepcopy(GetParam());
  EXPECT_FALSE(B.is(A));
  A = NamedLinop();
  int depth = 0;
  for (NamedLinop at = B; at.linop_count() > 0; at = NamedLinop(at[0].node())) ++depth;
  EXPECT_EQ(depth, 200000);
}

TEST(DeepCopies, LazyOnesCopyNothingUntilOneSideIsWritten) {
  const NamedLinop A = Chain(Dense(random({64, 64}), "MN,N->M"), Diagonal(random({64}), "M"));
  const CopyStats stats;
  const MemoryScope scope;
  const NamedLinop B = A.deepcopy();
  EXPECT_EQ(scope.allocated_bytes(), 0U);
  EXPECT_EQ(stats.counts().bytes_copied(), 0U);
  Parameter weight = B[0].param("weight");
  weight.modify([](Tensor& t) { t.set<double>({0, 0}, 1); });
  EXPECT_EQ(stats.counts().copied_bytes, 64U * 64 * 16);
  EXPECT_EQ(scope.live_bytes(), 64 * 64 * 16);
}

TEST(DeepCopies, EagerOnesTakeExactlyWhatTheMapAnnounced) {
  const Parameter w = random({40, 50});
  const NamedLinop A =
      Chain(Dense(w.view({slice(3, 20), slice(5, 11)}), "MN,N->M"), Diagonal(random({17}), "M"));
  MemoryMap map;
  add(map, A);
  const std::int64_t announced = map.bytes();
  const std::int64_t before = live();
  const NamedLinop B = A.deepcopy(Copy::eager);
  EXPECT_EQ(live() - before, announced);
  const Tensor x = random({6});
  EXPECT_TRUE(equal(B(x), A(x)));
}

TEST(DeepCopies, LazyClonesOfOneAnotherShareTheirCopy) {
  const Tensor t = random({100});
  // Two variables on one block of data.
  const NamedLinop A = Chain(Diagonal(t, "N"), Diagonal(t, "N"));
  const std::int64_t before = live();
  const NamedLinop B = A.deepcopy(Copy::eager);
  EXPECT_EQ(live() - before, 1600);
  EXPECT_FALSE(B[0].param("weight").is(B[1].param("weight")));
  Parameter w = B[0].param("weight");
  w.modify([](Tensor& value) { value.fill(0); });
  EXPECT_TRUE(equal(B[1].param("weight").value(), t));
}

TEST(DeepCopies, NothingHappensWhenMemoryRunsOut) {
  const NamedLinop A = Chain(Dense(random({8, 8}), "MN,N->M"), Diagonal(random({8}), "M"));
  const Tensor x = random({8}), y = A(x);
  const std::int64_t before = live();
  for (std::uint64_t n = 0; n < 2; ++n) {
    const FailingAllocator failing(n);
    EXPECT_THROW(A.deepcopy(Copy::eager), OutOfMemory);
  }
  EXPECT_EQ(live(), before);
  EXPECT_TRUE(equal(A(x), y));
}

TEST(DeepCopies, OfSourcesThatAreHeldAreErrors) {
  const NamedLinop A = Diagonal(random({8}), "M");
  Parameter w = A.param("weight");
  expect_error<StateError>([&] { w.modify([&](Tensor&) { A.deepcopy(); }); }, "deepcopy");
}

// -- maps -----------------------------------------------------------------------------------------

TEST(LinopMap, KeepsTheTopologyAcrossOperators) {
  const Parameter w = random({4});
  const NamedLinop A = Diagonal(w, "N"), B = Chain(A, Diagonal(w, "N"));
  MemoryMap memory;
  add(memory, A);
  add(memory, B);
  memory.copy();
  const NamedLinop a = map(memory, A), b = map(memory, B);
  EXPECT_TRUE(b[0].is(a));
  EXPECT_TRUE(b[1].param("weight").is(a.param("weight")));
  EXPECT_TRUE(map(memory, A).is(a));
  // Tensors of the same map still share with the operators.
  const Tensor lent = random({3});
  const NamedLinop H = holder({}, {{"t", lent}});
  MemoryMap more;
  add(more, H);
  add(more, lent.narrow(0, 1, 2));
  more.lazy_copy();
  EXPECT_TRUE(same_storage(map(more, H).attr("t").as_tensor(), map(more, lent.narrow(0, 1, 2))));
}

TEST(DeepCopies, OnGivenVariablesShareThem) {
  const NamedLinop A = Dense(Tensor::ones({2, 2}), "MN,N->M");
  const auto variables = variables_of(A);
  ASSERT_EQ(variables.size(), 1U);
  const auto other = std::make_shared<Container>(variables[0]->type(), Tensor::full({2, 2}, 3.0));
  using Containers = std::vector<std::shared_ptr<Container>>;
  const Containers given{other};
  const NamedLinop B = deepcopy(A, given), C = deepcopy(A.H(), given);
  EXPECT_EQ(B.param("weight").variable().container_ptr(), other);
  EXPECT_TRUE(B.param("weight").is(C.param("weight")));
  EXPECT_TRUE(equal(B(Tensor::ones({2})), Tensor::full({2}, 6.0)));
  EXPECT_THROW(deepcopy(A, Containers{}), ValueError);
  const auto wrong =
      std::make_shared<Container>(TensorType{DType::float64, {3}, {}}, Tensor::ones({3}));
  EXPECT_THROW(deepcopy(A, Containers{wrong}), TypeError);
  // The same for bytes without values.
  Containers left_out;
  const std::vector<std::byte> bytes = to_bytes(A, left_out);
  EXPECT_EQ(left_out, variables);
  const NamedLinop D = from_bytes(bytes, given);
  EXPECT_EQ(D.param("weight").variable().container_ptr(), other);
  EXPECT_THROW(from_bytes(bytes), FormatError);
}

TEST(LinopMap, SaysWhatIsWrong) {
  const NamedLinop A = Diagonal(random({4}), "N"), other = Diagonal(random({4}), "N");
  MemoryMap memory;
  add(memory, A);
  expect_error<ValueError>([&] { map(memory, A); }, "nothing is copied");
  memory.lazy_copy();
  expect_error<ValueError>([&] { map(memory, other); }, "not registered");
  expect_error<ValueError>([&] { add(memory, other); }, "not registered: the copies are made");
  MemoryMap empty;
  expect_error<ValueError>([&] { map(empty, A); }, "not registered");
  expect_error<ValueError>([&] { add(empty, NamedLinop()); }, "undefined");
}

TEST(LinopMap, ReportsWhereBytesAre) {
  const Tensor t = random({10});
  const NamedLinop A = Chain(Diagonal(t, "N"), Diagonal(t, "N"), Diagonal(random({10}), "N"));
  const MemoryReport report = memory_report(A);
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_EQ(report.bytes(), 320);  // memory shared by two variables counts once
  EXPECT_EQ(report.devices[0].derived, 0);
  const NamedLinop N = Dense(random({4, 4}), "MN,N->M").N();
  EXPECT_EQ(memory_report(N).bytes(), 512);
  EXPECT_EQ(memory_report(N).devices[0].derived, 256);
  EXPECT_EQ(memory_report(Fft(2)).bytes(), 0);
}

// -- moves ----------------------------------------------------------------------------------------

TEST(Moving, LeavesTheSourceAndWorksThere) {
  const NamedLinop A = Chain(Dense(random({3, 4}), "MN,N->M"), Diagonal(random({3}), "M"));
  const Tensor x = random({4}), y = A(x);
  const NamedLinop B = A.to(kOther);
  EXPECT_EQ(B[0].param("weight").type().device, kOther);
  EXPECT_EQ(B.str(), A.str());
  const Tensor there = B(x.to(kOther));
  EXPECT_EQ(there.device(), kOther);
  EXPECT_TRUE(equal(there.to(Device{}), y));
  EXPECT_TRUE(equal(A(x), y));
  expect_error<DeviceError>([&] { B(x); }, "device");
  EXPECT_TRUE(B.to(kOther).is(B));
  EXPECT_TRUE(A.to(Device{}).is(A));
  EXPECT_TRUE(equal(memory_aware_to(B, Device{})(x), y));
}

TEST(Moving, TakesOnlyWhatIsElsewhere) {
  const Parameter here = random({4}), there = random({4}).to(kOther);
  const NamedLinop D = Diagonal(there, "N");
  const NamedLinop A = Chain(Diagonal(here, "N"), D, Scalar(2, "N"));
  const std::int64_t before = live(kOther);
  const NamedLinop B = A.to(kOther);
  EXPECT_EQ(live(kOther) - before, 64);
  EXPECT_TRUE(B[1].is(D));
  EXPECT_TRUE(B[1].param("weight").is(there));
  EXPECT_TRUE(B[2].is(A[2]));
  EXPECT_FALSE(B[0].is(A[0]));
}

TEST(Moving, BringsAdjointAndNormalWithoutFurtherCopies) {
  const NamedLinop A = Chain(Dense(random({3, 3}), "MN,N->M"), Diagonal(random({3}), "M"));
  A.N();
  A.H();
  A[0].N();
  ASSERT_TRUE(A[0].N().param("weight").is_derived());
  const NamedLinop B = A.to(kOther);
  const std::int64_t before = live(kOther);
  const CopyStats stats;
  const NamedLinop H = B.H(), N = B.N(), gram = B[0].N();
  EXPECT_EQ(live(kOther), before);
  EXPECT_EQ(stats.counts().bytes_copied(), 0U);
  EXPECT_TRUE(H.H().is(B));
  EXPECT_TRUE(B.H().is(H) && B.N().is(N));
  EXPECT_TRUE(gram.param("weight").is_derived());
  EXPECT_FALSE(gram.param("weight").is_stale());
  EXPECT_EQ(gram.param("weight").type().device, kOther);
  EXPECT_TRUE(H[1].param("weight").is(B[0].param("weight")));
  const Tensor x = random({3});
  EXPECT_TRUE(equal(N(x.to(kOther)).to(Device{}), A.N()(x)));
  EXPECT_TRUE(equal(H(x.to(kOther)).to(Device{}), A.H()(x)));
  // The derived value follows the moved weight.
  Parameter w = B[0].param("weight");
  w.set_value(Tensor::zeros({3, 3}, DType::complex128, kOther));
  EXPECT_EQ(values(gram(x.to(kOther)).to(Device{})), std::vector<testing::Complex>(3));
}

TEST(Moving, AnAdjointBringsItsOriginal) {
  const NamedLinop A = Dense(random({3, 2}), "MN,N->M");
  const NamedLinop H = A.H();
  const NamedLinop there = H.to(kOther);
  EXPECT_TRUE(there.H().H().is(there));
  EXPECT_TRUE(there.H().param("weight").is(there.param("weight")));
  const Tensor x = random({2});
  EXPECT_TRUE(equal(there.H()(x.to(kOther)).to(Device{}), A(x)));
}

TEST(Moving, GivesBackTheSourceOfAnRvalueWhileItCopies) {
  const index_t n = 1000;
  std::vector<NamedLinop> parts;
  for (int i = 0; i < 8; ++i)
    parts.push_back(
        Diagonal(random({n}, DType::complex128, static_cast<std::uint64_t>(20 + i)), "N"));
  NamedLinop A = Chain(parts);
  parts.clear();
  const Tensor x = random({n}), y = A(x);
  const std::int64_t here = live();
  const NamedLinop B = std::move(A).to(kOther);
  EXPECT_FALSE(A.defined());
  EXPECT_EQ(here - live(), 8 * n * 16);
  EXPECT_TRUE(equal(B(x.to(kOther)).to(Device{}), y));
  // Data held by others stay, and they keep them.
  const NamedLinop kept = Diagonal(random({n}), "N");
  NamedLinop C = Chain(kept, Diagonal(random({n}), "N"));
  const std::int64_t before = live();
  const NamedLinop D = memory_aware_to(std::move(C), kOther);
  EXPECT_EQ(before - live(), n * 16);
  EXPECT_TRUE(equal(kept.param("weight").value(), random({n})));
  EXPECT_EQ(D.linop_count(), 2U);
}

TEST(Moving, WithoutRoomLeavesEverythingWhole) {
  NamedLinop A = Chain(Diagonal(random({1000}), "N"), Diagonal(random({1000}), "N"));
  const Tensor x = random({1000}), y = A(x);
  const auto live_there = Allocator::of(kOther).stats().live_bytes;
  const MemoryLimit limit(kOther, live_there + 20000);
  EXPECT_THROW(A.to(kOther), OutOfMemory);
  EXPECT_THROW(std::move(A).to(kOther), OutOfMemory);
  ASSERT_TRUE(A.defined());
  EXPECT_TRUE(equal(A(x), y));
  EXPECT_EQ(Allocator::of(kOther).stats().live_bytes, live_there);
}

TEST(Moving, OfATileTakesOnlyTheTile) {
  const Parameter w = random({100, 100});
  const NamedLinop tile = Dense(w.view({slice(10, 12), slice(0, 100)}), "MN,N->M");
  const std::int64_t before = live(kOther);
  const NamedLinop B = tile.to(kOther);
  EXPECT_LE(live(kOther) - before, 200 * 16 + 63);
  const Tensor x = random({100});
  EXPECT_TRUE(equal(B(x.to(kOther)).to(Device{}), tile(x)));
}

// -- precision ------------------------------------------------------------------------------------

TEST(Precision, IsConvertedOnceAndKeepsWhatIsShared) {
  const Parameter w = random({4});
  const NamedLinop D = Diagonal(w, "N");
  const NamedLinop A = Chain(D, D, Diagonal(w, "N"), Diagonal(random({4}, DType::float64), "N"));
  const NamedLinop B = A.to(DType::complex64);
  EXPECT_TRUE(B[0].is(B[1]));
  EXPECT_TRUE(B[2].param("weight").is(B[0].param("weight")));
  EXPECT_EQ(B[0].param("weight").dtype(), DType::complex64);
  EXPECT_EQ(B[3].param("weight").dtype(), DType::float32);
  const Tensor x = random({4});
  EXPECT_LE(testing::difference(B(x.to(DType::complex64)), A(x)), 1e-6);
  EXPECT_TRUE(B.to(DType::float32).is(B));
  EXPECT_TRUE(A.to(DType::float64).is(A));
  EXPECT_EQ(A[0].param("weight").dtype(), DType::complex128);
  // Numbers are not rounded.
  EXPECT_EQ(Scalar(0.1, "N").to(DType::float32).attr("alpha").as_real(), 0.1);
}

TEST(Precision, KeepsViewsAndLeavesIntegers) {
  const Tensor z = random({6});
  const std::vector<Parameter> p = parameters({z, z.bitcast(DType::float64), z.narrow(0, 2, 3)});
  const NamedLinop A = holder({{"z", p[0]}, {"parts", p[1]}, {"part", p[2]}},
                              {{"index", Tensor::from<index_t>({1, 2})}, {"t", random({2})}});
  const NamedLinop B = A.to(DType::float32);
  EXPECT_TRUE(B.param("z").variable().is(B.param("parts").variable()));
  EXPECT_EQ(B.param("parts").dtype(), DType::float32);
  EXPECT_TRUE(equal(B.param("z").value(), z.to(DType::complex64)));
  EXPECT_TRUE(equal(B.param("part").value(), z.narrow(0, 2, 3).to(DType::complex64)));
  EXPECT_EQ(B.param("part").layout().offset - B.param("z").layout().offset, 2);
  EXPECT_EQ(B.attr("index").as_tensor().dtype(), DType::int64);
  EXPECT_EQ(B.attr("t").as_tensor().dtype(), DType::complex64);
  const Parameter whole = counted({50});
  const NamedLinop tile = holder({{"a", whole.view({slice(10, 20, 3)})}}).to(DType::float32);
  EXPECT_EQ(reals(tile.param("a")), std::vector<double>({10, 13, 16, 19}));
}

TEST(Precision, OfWhatIsReadAsBytesIsRefused) {
  const Tensor z = random({6});
  const std::vector<Parameter> p = parameters({z, z.bitcast(DType::uint8)});
  const NamedLinop A = holder({{"z", p[0]}, {"bytes", p[1]}});
  expect_error<DTypeError>([&] { A.to(DType::float32); }, "reinterpreted");
  expect_error<DTypeError>([&] { A.to(DType::int32); }, "floating");
}

TEST(Precision, OfDerivedValuesFollows) {
  const NamedLinop A = Nufft(random({9, 1}, DType::float64), {8}, "K");
  const NamedLinop B = A.to(DType::float32);
  const Tensor x = random({8});
  EXPECT_LE(testing::difference(B(x.to(DType::complex64)), A(x)), 1e-4);
  EXPECT_LE(testing::difference(B.N()(x.to(DType::complex64)), A.N()(x)), 1e-4);
  const NamedLinop G = Dense(random({3, 3}), "MN,N->M").N();
  EXPECT_LE(testing::difference(G.to(DType::float32)(random({3}, DType::complex64)),
                                G(random({3}, DType::complex64).to(DType::complex128))),
            1e-6);
}

// -- gradients and threads
// --------------------------------------------------------------------------

TEST(Gradients, ReachTheVariableThroughViewsCopiesKeepTheirs) {
  const Parameter w = Parameter::trainable(random({4, 3}));
  const NamedLinop tile = Dense(w.view({slice(1, 3), slice(0, 3)}), "MN,N->M");
  EXPECT_TRUE(tile.param("weight").is_trainable());
  const NamedLinop copy = tile.deepcopy();
  const Variable x = constant(random({3}));
  const auto gradient = [&](const NamedLinop& A, const Variable& with) {
    const Variable y = A(x);
    const Variable loss = ops::sum(ops::abs2(y), {}) * 0.5;
    return grad(loss, with, {.disconnected = Disconnected::zero});
  };
  const Tensor g = function({}, {Out(gradient(tile, w.var()))})()[0];
  EXPECT_EQ(g.shape(), (Extents{4, 3}));
  EXPECT_EQ(values(g.narrow(0, 0, 1)), std::vector<testing::Complex>(3));
  // y conj(x) in the rows of the tile.
  const auto y = values(tile(random({3}))), xs = values(random({3}));
  for (index_t i = 0; i < 2; ++i) {
    for (index_t j = 0; j < 3; ++j) {
      const auto expected =
          y[static_cast<std::size_t>(i)] * std::conj(xs[static_cast<std::size_t>(j)]);
      EXPECT_LE(std::abs(g.at<testing::Complex>({i + 1, j}) - expected), 1e-12);
    }
  }
  const Tensor none = function({}, {Out(gradient(copy, w.var()))})()[0];
  EXPECT_EQ(values(none), std::vector<testing::Complex>(12));
}

TEST(Threads, CopiesSeeTheOldValueOrTheNewOne) {
  const NamedLinop A = Diagonal(Tensor::zeros({2000}), "N");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Parameter w = A.param("weight");
    for (int i = 1; !stop; ++i) w.modify([&](Tensor& t) { t.fill(i % 100); });
  });
  for (int i = 0; i < 200; ++i) {
    const NamedLinop B = A.deepcopy(i % 2 == 0 ? Copy::lazy : Copy::eager);
    const std::vector<double> v = reals(B.param("weight"));
    for (const double e : v) ASSERT_EQ(e, v[0]);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace palimpsest
