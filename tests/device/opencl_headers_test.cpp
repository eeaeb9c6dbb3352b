// SPDX-License-Identifier: Apache-2.0
// Prototypes and constants of the adapter are those of the headers of OpenCL.
#include <gtest/gtest.h>

#include <type_traits>

#include "palimpsest/device/opencl/opencl_api.hpp"

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

// Alignments of the types of OpenCL are no part of a prototype.
#pragma GCC diagnostic ignored "-Wignored-attributes"
#pragma GCC diagnostic ignored "-Wold-style-cast"

namespace palimpsest::opencl {
namespace {

TEST(OpenClHeaders, HaveThePrototypesOfTheAdapter) {
#define EXPECT_PROTOTYPE(Result, name, parameters) \
  EXPECT_TRUE((std::is_same_v<decltype(Api::name), decltype(&::name)>)) << #name;
  PALIMPSEST_OPENCL_FUNCTIONS(EXPECT_PROTOTYPE)
#undef EXPECT_PROTOTYPE
}

TEST(OpenClHeaders, HaveTheConstantsOfTheAdapter) {
#define EXPECT_CONSTANT(name, macro, value) EXPECT_EQ(name, static_cast<UInt>(macro)) << #macro;
  PALIMPSEST_OPENCL_CONSTANTS(EXPECT_CONSTANT)
#undef EXPECT_CONSTANT
}

TEST(OpenClHeaders, HaveTheNamesOfErrors) {
#define EXPECT_NAME(code) EXPECT_EQ(error_name(code), #code " (" + std::to_string(code) + ")");
  EXPECT_NAME(CL_OUT_OF_RESOURCES)
  EXPECT_NAME(CL_BUILD_PROGRAM_FAILURE)
  EXPECT_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
  EXPECT_NAME(CL_INVALID_VALUE)
  EXPECT_NAME(CL_INVALID_KERNEL_ARGS)
  EXPECT_NAME(CL_INVALID_BUFFER_SIZE)
#undef EXPECT_NAME
  EXPECT_EQ(error_name(-9999), "error (-9999)");
}

}  // namespace
}  // namespace palimpsest::opencl

#endif
