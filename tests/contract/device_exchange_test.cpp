// SPDX-License-Identifier: Apache-2.0
// Memory of accelerators that libraries share within a process: nobody waits for it.
#include <gtest/gtest.h>

#include <cstring>

#include "device/tested_device.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/device/cuda/cuda_api.hpp"
#include "palimpsest/tensor/dlpack.hpp"
#include "support/delaying_backend.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

const Device kThere = testing::tested_device();

TEST(DeviceExchange, GoesOutAndComesBackWithoutAWait) {
  const Device there = testing::delayed(kThere);
  Tensor x = Tensor::arange(6, DType::float32).view({2, 3}).to(there);
  const int waits = testing::delaying_backend(there).waits();
  x.fill(2.0F);
  Tensor back = from_dlpack(to_dlpack(x.select(0, 1)));
  EXPECT_EQ(back.device(), there);
  EXPECT_EQ(back.raw_data(), x.select(0, 1).raw_data()) << "nothing is copied";
  x.fill(3.0F);  // a clone was shown
  Tensor shown = from_dlpack(to_dlpack(x, DlpackAccess::writable));
  shown.fill(4.0F);
  const Tensor sum = back + shown.select(0, 0);
  back = shown = {};
  EXPECT_EQ(testing::delaying_backend(there).waits(), waits);
  EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(3, 6));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(6, 4));
}

TEST(DeviceExchange, OpenClMemoryOfOthersIsRefused) {
  if (kThere.type != DeviceType::opencl) GTEST_SKIP() << "a device of CUDA";
  const Tensor x = Tensor::ones({3}, DType::float32, kThere);
  dlpack::ManagedTensorVersioned* const managed = to_dlpack(x);
  float elsewhere[3] = {};
  void* const data = std::exchange(managed->view.data, elsewhere);
  testing::expect_error<NotSupported>([&] { from_dlpack(managed); }, "memory of another library");
  managed->view.data = data;
  managed->deleter(managed);
}

// Another library, with a stream of its own.
class CudaExchange : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kThere.type != DeviceType::cuda) GTEST_SKIP() << "not a device of CUDA";
    x = Tensor::full<std::int32_t>({64}, 1, kThere);  // loads the driver
    driver = cuda::load_driver(nullptr);
    ASSERT_EQ(driver->cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(driver->cuCtxPushCurrent(context), 0);
    ASSERT_EQ(driver->cuStreamCreate(&stream, cuda::kNonBlocking), 0);
    ASSERT_EQ(driver->cuMemAllocHost(&staged, 256), 0);
  }
  void TearDown() override {
    if (driver == nullptr) return;
    driver->cuMemFreeHost(staged);
    driver->cuStreamDestroy(stream);
    driver->cuCtxPopCurrent(&context);
    driver->cuDevicePrimaryCtxRelease(0);
  }
  std::int64_t handle() const { return reinterpret_cast<std::int64_t>(stream); }
  // The first number at an address, as the other library sees it.
  std::int32_t seen(const void* address) {
    driver->cuMemcpyDtoHAsync(staged, reinterpret_cast<cuda::Address>(address), 256, stream);
    driver->cuStreamSynchronize(stream);
    std::int32_t number = 0;
    std::memcpy(&number, staged, sizeof number);
    return number;
  }

  Tensor x;
  const cuda::Driver* driver = nullptr;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  void* staged = nullptr;
};

TEST_F(CudaExchange, TheReceiversStreamWaitsForTheElementsAndOursForItsWrites) {
  x.fill(std::int32_t{7});
  dlpack::ManagedTensorVersioned* managed = to_dlpack(x, DlpackAccess::writable, handle());
  EXPECT_EQ(managed->view.device.kind, dlpack::kCuda);
  EXPECT_EQ(seen(managed->view.data), 7);
  driver->cuMemsetD8Async(reinterpret_cast<cuda::Address>(managed->view.data), 1, 256, stream);
  managed->deleter(managed);
  EXPECT_EQ(x.to_vector<std::int32_t>()[63], 0x01010101);
  managed = to_dlpack(x, -1);  // asks for no order
  managed->deleter(managed);
  managed = to_dlpack(x);  // the legacy stream
  managed->deleter(managed);
}

struct Lent {
  dlpack::ManagedTensorVersioned managed{};
  std::int64_t extent = 64;
  const cuda::Driver* driver = nullptr;
  bool* is_deleted = nullptr;
};

TEST_F(CudaExchange, MemoryOfAnotherLibraryIsGivenBackBehindItsLastUse) {
  cuda::Address address = 0;
  ASSERT_EQ(driver->cuMemAlloc(&address, 256), 0);
  driver->cuMemsetD8Async(address, 1, 256, stream);
  cuda::Event event = nullptr;  // as a producer does for the stream that it is told
  driver->cuEventCreate(&event, cuda::kWithoutTime);
  driver->cuEventRecord(event, stream);
  driver->cuStreamWaitEvent(reinterpret_cast<cuda::Stream>(*stream_for_dlpack(kThere)), event, 0);
  driver->cuEventDestroy(event);
  bool is_deleted = false;
  Lent lent{.driver = driver, .is_deleted = &is_deleted};
  lent.managed.version = {dlpack::kMajorVersion, 0};
  lent.managed.context = &lent;
  lent.managed.flags = dlpack::kReadOnly;
  lent.managed.view = {reinterpret_cast<void*>(address),
                       {dlpack::kCuda, 0},
                       1,
                       {dlpack::kInt, 32, 1},
                       &lent.extent,
                       nullptr,
                       0};
  lent.managed.deleter = [](dlpack::ManagedTensorVersioned* me) {
    const auto& own = *static_cast<Lent*>(me->context);
    *own.is_deleted = true;
    own.driver->cuMemFree(reinterpret_cast<cuda::Address>(me->view.data));
  };
  Tensor sum;
  {
    const Tensor shown = from_dlpack(&lent.managed);
    EXPECT_EQ(shown.device(), kThere);
    sum = shown + shown;
  }
  EXPECT_FALSE(is_deleted) << "its kernel has not run";
  EXPECT_EQ(sum.to_vector<std::int32_t>()[63], 0x02020202);
  const Tensor more = Tensor::empty({1 << 22}, DType::float32, kThere);
  EXPECT_TRUE(is_deleted);
}

}  // namespace
}  // namespace palimpsest
