// SPDX-License-Identifier: Apache-2.0
// Options of In and Out.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

using testing::vector_of;

struct InTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  SharedVariable s = shared(vector_of({1, 2}), {.name = "s"});
};

// -- name, autoname ------------------------------------------------------------------------------

TEST_F(InTest, NameIsTheKeywordElseTheVariablesName) {
  const Function f = function({In(x, {.name = "image"}), y}, x - y);
  EXPECT_EQ(f(kw("y", vector_of({1})), kw("image", vector_of({5}))).tensor().item<double>(), 4.0);
  expect_error<TypeError>([&] { f(kw("x", vector_of({1}))); }, "unknown keyword: got 'x'");
}

TEST_F(InTest, WithoutAutonameAnInputHasNoKeyword) {
  const Function f = function({In(x, {.autoname = false}), y}, x - y);
  expect_error<TypeError>([&] { f(kw("x", vector_of({1}))); },
                          "expected one of 'y' (and 1 without a name)");
  EXPECT_EQ(f(kw(x, vector_of({3})), kw(y, vector_of({1}))).tensor().item<double>(), 2.0);
}

// -- value, implicit -----------------------------------------------------------------------------

TEST_F(InTest, ContainerAsValueIsUsedAndCannotBePassed) {
  const Function f = function({x, In(y, {.value = s.container()})}, x + y);
  EXPECT_EQ(f(vector_of({10, 20})).tensor().to_vector<double>(), (std::vector<double>{11, 22}));
  s.set_value(vector_of({0, 0}));
  EXPECT_EQ(f(vector_of({10, 20})).tensor().to_vector<double>(), (std::vector<double>{10, 20}));
  expect_error<TypeError>(
      [&] {
        f(vector_of({1, 1}), kw("y", vector_of({1, 1})));
      },
      "got a value for 'y', which is implicit");
  expect_error<TypeError>([&] { f(vector_of({1, 1}), vector_of({1, 1})); }, "too many arguments");
  EXPECT_EQ(&f.container(y), &s.container());
  EXPECT_EQ(&f.container("y"), &s.container());
}

TEST_F(InTest, ContainerAsValueMayBeOverriddenWhenItIsNotImplicit) {
  const Function f = function({x, In(y, {.value = s.container(), .implicit = false})}, x + y);
  EXPECT_EQ(f(vector_of({0, 0})).tensor().to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(f(vector_of({0, 0}), vector_of({7, 8})).tensor().to_vector<double>(),
            (std::vector<double>{7, 8}));
  // The passed value was for one call only.
  EXPECT_EQ(f(vector_of({0, 0})).tensor().to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(InTest, TensorAsValueGetsAContainerOfItsOwn) {
  Tensor t = vector_of({1, 2});
  const Function f = function({x, In(y, {.value = t})}, x + y);
  t.fill(100.0);
  EXPECT_EQ(f(vector_of({0, 0})).tensor().to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(f(vector_of({0, 0}), kw(y, vector_of({5, 5}))).tensor().to_vector<double>(),
            (std::vector<double>{5, 5}));
  f.container("y").set_value(vector_of({3, 4}));
  EXPECT_EQ(f(vector_of({0, 0})).tensor().to_vector<double>(), (std::vector<double>{3, 4}));
  expect_error<ValueError>([&] { f.container(x); }, "x has none");
  expect_error<ValueError>([&] { f.container("z"); }, "'z': got the name of no input with a value");
}

TEST_F(InTest, NumberAsValueIsFiltered) {
  const Variable a = make_input({DType::float64, {}, {}}, "a");
  const Function f = function({In(a, {.value = 3})}, a * 2.0);
  EXPECT_EQ(f().tensor().item<double>(), 6.0);
  EXPECT_EQ(f(4).tensor().item<double>(), 8.0);
  expect_error<ShapeError>([&] { function({In(a, {.value = vector_of({1})})}, a); }, "got (1,)");
}

TEST_F(InTest, ContainerOfAnotherTypeIsATypeError) {
  const SharedVariable other = shared(3.0);
  expect_error<TypeError>([&] { function({In(x, {.value = other.container()})}, x); },
                          "got a container of float64 ()");
}

TEST_F(InTest, ImplicitWithoutValueIsATypeError) {
  expect_error<TypeError>([&] { function({In(x, {.implicit = true})}, x); },
                          "[input x] implicit = true needs a value");
}

TEST_F(InTest, ImplicitTensorCannotBePassed) {
  const Function f = function({In(x, {.value = vector_of({4}), .implicit = true})}, x);
  EXPECT_EQ(f().tensor().item<double>(), 4.0);
  expect_error<TypeError>([&] { f(vector_of({1})); }, "too many arguments: got 1");
}

// -- update --------------------------------------------------------------------------------------

TEST_F(InTest, UpdateIsStoredInTheContainerAfterTheCall) {
  const Function f = function({x, In(y, {.value = vector_of({0, 0}), .update = x + y})}, y * 1.0);
  f(vector_of({1, 2}));
  EXPECT_EQ(f(vector_of({1, 2})).tensor().to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(f.container("y").value().to_vector<double>(), (std::vector<double>{2, 4}));
}

TEST_F(InTest, UpdateOfAnImplicitInputRunsInTheContainersMemory) {
  const Function f = function({x, In(y, {.value = s.container(), .update = x + y})}, Outputs());
  const void* address = s.container().value().raw_data();
  f(vector_of({1, 1}));
  EXPECT_EQ(s.container().value().raw_data(), address);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{2, 3}));
}

TEST_F(InTest, UpdateOfADefaultRunsInTheContainersMemoryUnlessAValueIsGiven) {
  const Function f =
      function({x, In(y, {.value = s.container(), .update = x + y, .implicit = false})}, Outputs());
  const Storage storage = s.container().value().storage();
  const void* address = s.container().value().raw_data();
  f(vector_of({1, 1}));
  EXPECT_TRUE(s.container().value().storage().is(storage));
  EXPECT_EQ(s.container().value().raw_data(), address);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{2, 3}));
  Tensor given = vector_of({10, 20});
  f(vector_of({1, 1}), given);  // lent, since there is an update
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{11, 21}));
  EXPECT_FALSE(shares_storage(s.container().value(), given));
  given.fill(0.0);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{11, 21}));
}

TEST_F(InTest, ValueForAContainerInputDoesNotChangeTheContainer) {
  const Function f =
      function({In(y, {.value = s.container(), .is_mutable = true, .implicit = false})}, y + 1.0);
  const Storage storage = s.container().value().storage();
  EXPECT_EQ(f().tensor().to_vector<double>(), (std::vector<double>{2, 3}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_TRUE(s.container().value().storage().is(storage));
}

TEST_F(InTest, UpdateThatDoesNotFitIsATypeError) {
  expect_error<TypeError>(
      [&] { function({In(y, {.value = vector_of({0}), .update = ops::sum(y)})}, y); },
      "update of y");
  expect_error<TypeError>([&] { function({In(y, {.update = y + 1.0})}, y); },
                          "an update needs a value to persist");
}

// -- is_mutable, borrow --------------------------------------------------------------------------

TEST_F(InTest, MutableArgumentIsOverwritten) {
  Tensor a = vector_of({1, 2});
  const void* address = a.raw_data();
  const Function f = function({In(x, {.is_mutable = true})}, Out(x + 1.0, {.borrow = true}));
  const Tensor r = f(a);
  EXPECT_EQ(r.raw_data(), address);
  EXPECT_TRUE(shares_storage(r, a));
}

TEST_F(InTest, BorrowAloneDonatesTheArgument) {
  Tensor a = vector_of({1, 2});
  const Function f = function({In(x, {.borrow = true})}, Out(x + 1.0, {.borrow = true}));
  EXPECT_TRUE(shares_storage(Tensor(f(a)), a));
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{2, 3}));
}

TEST_F(InTest, BorrowWithoutMutableIsTheWeakerLoan) {
  Tensor a = vector_of({1, 2});
  const Function f =
      function({In(x, {.is_mutable = false, .borrow = true})},
               {Out(x + 1.0, {.borrow = true}), Out(ops::reshape(x, {2, 1}), {.borrow = true})});
  const auto r = f(a);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_FALSE(shares_storage(r[0], a));
  EXPECT_TRUE(shares_storage(r[1], a));
}

TEST_F(InTest, MutableWithoutBorrowIsAValueError) {
  expect_error<ValueError>(
      [&] { function({In(x, {.is_mutable = true, .borrow = false})}, x + 1.0); },
      "[input x] is_mutable = true and borrow = false");
}

// -- strict, allow_downcast ----------------------------------------------------------------------

TEST_F(InTest, StrictInputConvertsNothing) {
  const Function f = function({In(x, {.strict = true})}, x * 2.0);
  EXPECT_NO_THROW(f(vector_of({1})));
  expect_error<DTypeError>([&] { f(Tensor::ones({1}, DType::int32)); },
                           "[function argument 0 'x'] dtype: got int32");
}

TEST_F(InTest, AllowDowncastIsTheInputsElseTheFunctions) {
  const Variable v = make_input({DType::float32, {kUnknown}, {}}, "v");
  const Tensor wide = vector_of({0.1});
  EXPECT_NO_THROW(function({In(v, {.allow_downcast = true})}, v * 2.0)(wide));
  EXPECT_NO_THROW(function({v}, v * 2.0, {.allow_input_downcast = true})(wide));
  const Function refuses =
      function({In(v, {.allow_downcast = false})}, v * 2.0, {.allow_input_downcast = true});
  expect_error<DTypeError>([&] { refuses(wide); }, "float64");
}

TEST_F(InTest, ConvertedArgumentIsAPrivateCopyThatMayBeOverwritten) {
  const Function f = function({In(x, {.is_mutable = true})}, x + 1.0);
  const Tensor ints = Tensor::ones({2}, DType::int32);
  EXPECT_EQ(f(ints).tensor().to_vector<double>(), (std::vector<double>{2, 2}));
  EXPECT_EQ(ints.to_vector<int>(), (std::vector<int>{1, 1}));
}

// -- Out -----------------------------------------------------------------------------------------

TEST_F(InTest, ResultsGoWhereTheArgumentsLiveUnlessTheInternalOnesAreAskedFor) {
  const Device device = Device::parse("cpu:1");
  const Variable v = make_input({DType::float64, {kUnknown}, device}, "v");
  const Function f =
      function({v}, {Out(v * 2.0), Out(v * 3.0, {.return_internal_type = true}), Out(v)});
  const auto r = f(vector_of({1, 2}));  // moved to the device and back
  EXPECT_EQ(r[0].device(), Device{});
  EXPECT_EQ(r[1].device(), device);
  EXPECT_EQ(r[2].device(), Device{});
  EXPECT_EQ(r[0].to_vector<double>(), (std::vector<double>{2, 4}));
  EXPECT_EQ(r[1].to_vector<double>(), (std::vector<double>{3, 6}));
  EXPECT_EQ(f(vector_of({1, 2}).to(device))[0].device(), device);
  const Function strict = function({In(v, {.strict = true})}, v * 2.0);
  expect_error<DeviceError>([&] { strict(vector_of({1})); }, "expected cpu:1");
}

TEST_F(InTest, ResultsOfArgumentsFromSeveralDevicesStayWhereTheyAreComputed) {
  const Device far = Device::parse("cpu:1"), farther = Device::parse("cpu:2");
  const Variable v = dvector("v"), w = dvector("w");
  const Function f = function({v, w}, v + w);
  const auto device_of_result = [&](Device a, Device b) {
    return f(vector_of({1, 2}).to(a), vector_of({3, 4}).to(b))[0].device();
  };
  EXPECT_EQ(device_of_result({}, {}), Device{});
  EXPECT_EQ(device_of_result(far, far), far);
  EXPECT_EQ(device_of_result(far, farther), Device{});
  EXPECT_EQ(device_of_result({}, far), Device{});
  EXPECT_EQ(device_of_result(far, {}), Device{});
}

}  // namespace
}  // namespace palimpsest
