// SPDX-License-Identifier: Apache-2.0
// The parts of the CUDA adapter that need no device: prototypes, constants, NVRTC.
#if __has_include(<cuda.h>)
#include <cuda.h>
#include <nvrtc.h>
#define PALIMPSEST_HAS_CUDA_H
#endif

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "device/kernel_samples.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/device/cuda/cuda_backend.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::cuda {
namespace {

using palimpsest::testing::expect_error;
using palimpsest::testing::sample_text;

#ifdef PALIMPSEST_HAS_CUDA_H
// Enumerations of the headers are int here.
template <class Ours, class Theirs>
constexpr bool are_alike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    return are_alike<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  } else if constexpr (std::is_void_v<Ours> && std::is_class_v<Theirs>) {
    return std::is_const_v<Ours> == std::is_const_v<Theirs>;  // KernelNode
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int);
  } else {
    return std::is_same_v<Ours, Theirs>;
  }
}

template <class Ours, class Theirs>
struct Prototypes : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Prototypes<R (*)(A...), S (*)(B...)>
    : std::bool_constant<are_alike<R, S>() && (are_alike<A, B>() && ...)> {
};

TEST(CudaHeaders, HaveThePrototypesOfTheAdapter) {
#define EXPECT_PROTOTYPE(name, exported, parameters) \
  EXPECT_TRUE((Prototypes<decltype(Functions::name), decltype(&::exported)>::value)) << #exported;
  {
    using Functions = Driver;
    PALIMPSEST_CUDA_FUNCTIONS(EXPECT_PROTOTYPE)
  }
  {
    using Functions = Nvrtc;
    PALIMPSEST_NVRTC_FUNCTIONS(EXPECT_PROTOTYPE)
  }
#undef EXPECT_PROTOTYPE
}

TEST(CudaHeaders, HaveTheKernelNodeOfTheAdapter) {
  using Theirs = CUDA_KERNEL_NODE_PARAMS;
  EXPECT_EQ(sizeof(KernelNode), sizeof(Theirs));
  EXPECT_EQ(offsetof(KernelNode, groups), offsetof(Theirs, gridDimX));
  EXPECT_EQ(offsetof(KernelNode, items), offsetof(Theirs, blockDimX));
  EXPECT_EQ(offsetof(KernelNode, parameters), offsetof(Theirs, kernelParams));
  EXPECT_EQ(offsetof(KernelNode, context), offsetof(Theirs, ctx));
}

TEST(CudaHeaders, HaveTheConstantsOfTheAdapter) {
#define EXPECT_CONSTANT(name, own, value) EXPECT_EQ(name, static_cast<int>(own)) << #own;
  PALIMPSEST_CUDA_CONSTANTS(EXPECT_CONSTANT)
#undef EXPECT_CONSTANT
}

TEST(CudaHeaders, StubOfTheToolkitExportsTheNames) {
  void* const stub = dlopen(CUDA_STUB, RTLD_LAZY | RTLD_LOCAL);
  if (stub == nullptr) GTEST_SKIP() << "no stub library in the toolkit";
#define EXPECT_EXPORTED(name, exported, parameters) \
  EXPECT_NE(dlsym(stub, #exported), nullptr) << #exported;
  PALIMPSEST_CUDA_FUNCTIONS(EXPECT_EXPORTED)
#undef EXPECT_EXPORTED
}
#endif

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dlopen(NVRTC_OF_TOOLKIT, RTLD_NOW | RTLD_LOCAL);  // found by its name from now on
    std::string why;
    if (load_nvrtc(&why) == nullptr) GTEST_SKIP() << why;
  }
};

TEST_F(NvrtcTest, CompilesTheSampleForEachCard) {
  for (const char* const isa : {"sm_80", "sm_90", "sm_100"}) {
    const std::vector<std::byte> binary = compile(sample_text(), isa, "cuda:0");
    ASSERT_GT(binary.size(), 1000u) << isa;
    EXPECT_EQ(std::memcmp(binary.data(),
                          "\x7f"
                          "ELF",
                          4),
              0)
        << isa;
    EXPECT_EQ(compile(sample_text(), isa, "cuda:0"), binary) << isa;
  }
}

TEST_F(NvrtcTest, NamesTheFirstError) {
  KernelText text = sample_text();
  text.name = "wrong";
  text.text = "KERNEL(f, 1)(i64 n) {\n  no_such_thing = n;\n}\n";
  expect_error<DeviceError>([&] { compile(text, "sm_90", "cuda:0"); },
                            "[wrong] does not compile on cuda:0: wrong(2): error");
}

}  // namespace
}  // namespace palimpsest::cuda
