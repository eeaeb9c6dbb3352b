// SPDX-License-Identifier: Apache-2.0
// Mistakes with devices. Those of drivers, compilers and files: tests/device/.
#include <gtest/gtest.h>

#include "device/tested_device.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/tensor/dlpack.hpp"
#include "support/delaying_backend.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

const Device kThere = testing::tested_device();
const std::string kName = kThere.str();

// A device like the tested one that lacks something.
class Lacking final : public testing::DelayingBackend {
 public:
  enum What { float64, staging };
  explicit Lacking(What what)
      : DelayingBackend(backend_of(kThere)), what_(what), facts_(backend_of(kThere).facts()) {
    facts_.has_float64 = what != float64;
  }
  const DeviceFacts& facts() const override { return facts_; }
  std::byte* obtain_staging(std::size_t bytes) noexcept override {
    return what_ == staging ? nullptr : DelayingBackend::obtain_staging(bytes);
  }

 private:
  What what_;
  DeviceFacts facts_;
};

Device lacking(Lacking::What what) {
  const Device made{kThere.type, static_cast<std::int16_t>(90 + what)};
  add_backend(made, std::make_shared<Lacking>(what));
  return made;
}

TEST(DeviceErrors, ArraysOfFloat64NeedADeviceThatHasThem) {
  const Device there = lacking(Lacking::float64);
  const auto doubled = [&](DType dtype) {
    const Variable x = make_input({dtype, {3}, there}, "x");
    return function({x}, {x + x});
  };
  const auto plan = [&](DType dtype) {
    const TensorType x{dtype, {3}, there};
    doubled(dtype).plan({&x, 1});
  };
  expect_error<DeviceError>([&] { plan(DType::float64); },
                            "[Mul] " + there.str() + " has no float64. Try float32");
  expect_error<DeviceError>([&] { plan(DType::complex128); },
                            "[Mul] " + there.str() + " has no float64. Try complex64");
  const Tensor ones = Tensor::ones({3}, DType::float32);
  EXPECT_TRUE(equal(on_host(doubled(DType::float32)(ones.to(there))[0]), ones + ones));
}

// Sums of float32 are numbers of float64, which the host computes.
TEST(DeviceErrors, SolversOfFloat32NeedNoFloat64) {
  const Device there = lacking(Lacking::float64);
  const NamedLinop D = Diagonal(Tensor::full<float>({9}, 2), "N");
  const Tensor b = Tensor::random_normal({9}, DType::float32, {3});
  const SolveResult got = conjugate_gradients(D.to(there), b.to(there), {.max_iterations = 3});
  EXPECT_EQ(got.x.device(), there);
  EXPECT_TRUE(equal(on_host(got.x), conjugate_gradients(D, b, {.max_iterations = 3}).x));
}

TEST(DeviceErrors, StagingMemoryEnds) {
  const Device there = lacking(Lacking::staging);
  expect_error<OutOfMemory>([&] { Tensor::ones({4}, DType::float32).to(there); },
                            "asked 16 bytes for staging of " + there.str());
}

TEST(DeviceErrors, OperandsElsewhere) {
  const Variable x = make_input({DType::float64, {3}, kThere}, "x");
  const Variable other = make_input({DType::float64, {3}, {}}, "other");
  expect_error<DeviceError>([&] { x + other; },
                            "inputs on several devices: got " + kName + " and cpu");
  const Tensor far = Tensor::ones({3}, DType::float64, kThere);
  const std::string elsewhere = "got cpu, expected " + kName + ". Try to(";
  const Function f = function({x}, {x + 1.0});
  Tensor here = Tensor::zeros({3});
  expect_error<DeviceError>([&] { f.call_into({&here, 1}, far); }, elsewhere);
  const Function strict = function({In(x, {.strict = true})}, {x + 1.0});
  expect_error<DeviceError>([&] { strict(here); }, elsewhere);
  const NamedLinop A = Diagonal(Tensor::ones({3}, DType::float64), "N");
  expect_error<DeviceError>([&] { A(far); }, "parameter 'weight' is on cpu, x on " + kName);
  const Function watched = function({x}, {x + 1.0}, {.mode = NanGuardMode()});
  expect_error<NotSupported>([&] { watched(far); }, "Try mode FastRun");
}

TEST(DeviceErrors, TheHostReachesNothingThere) {
  const Tensor far = Tensor::ones({3}, DType::float64, kThere);
  const std::string text = "the host cannot reach " + kName + ". Try to(Device{})";
  expect_error<DeviceError>([&] { far.data<double>(); }, text);
  expect_error<DeviceError>([&] { far.view_of(); }, text);
  expect_error<DeviceError>([&] { far.at<double>({0}); }, text);
}

TEST(DeviceErrors, ABudgetTooSmallNamesTheSmallestOne) {
  const NamedLinop A =
      Dense(Tensor::random_normal({8, 6, 5}, DType::complex64, {1}), "CNyNx,NyNx->CNyNx")
          .to(kThere);
  const TensorType x{DType::complex64, {6, 5}, kThere};
  const index_t smallest = smallest_budget(A, x);
  expect_error<BudgetError>(
      [&] { split_to_budget(A, x, smallest - 1); },
      "the smallest budget on " + kName + " found is " + std::to_string(smallest) + " bytes");
  const BudgetSplit split = split_to_budget(A, x, smallest);
  const Tensor value = Tensor::random_normal({6, 5}, DType::complex64, {2}).to(kThere);
  EXPECT_TRUE(equal(on_host(split.op(value)), on_host(A(value))));
}

TEST(DeviceErrors, StreamsThatAReceiverCannotHave) {
  const Tensor here = Tensor::ones({3}), far = here.to(kThere);
  expect_error<ValueError>([&] { to_dlpack(here, 1); }, "stream: got 1, expected none on cpu");
  const std::int64_t wrong = kThere.type == DeviceType::cuda ? 0 : 1;
  expect_error<ValueError>([&] { to_dlpack(far, wrong); }, "stream: got " + std::to_string(wrong));
}

}  // namespace
}  // namespace palimpsest
