// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/device.hpp"

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Device, ParsesWhatItPrints) {
  for (const char* text : {"cpu", "cpu:1", "cpu:63", "opencl:0", "opencl:1", "cuda:0", "cuda:7"}) {
    EXPECT_EQ(Device::parse(text).str(), text);
  }
  EXPECT_EQ(Device::parse("cpu:0"), Device{});
  EXPECT_EQ(Device::parse("cuda"), (Device{DeviceType::cuda, 0}));
  EXPECT_EQ(Device::parse("opencl"), (Device{DeviceType::opencl, 0}));
}

TEST(Device, RefusesOtherNames) {
  for (const char* text :
       {"", "gpu", "cpu:", "cpu:-1", "cpu:x", "cpu:1x", "cpu:99999", ":1", "CPU"}) {
    expect_error<ValueError>(
        [text] { Device::parse(text); },
        "got '" + std::string(text) + "', expected a name such as cpu, cpu:1, opencl:0 or cuda:0");
  }
}

}  // namespace
}  // namespace palimpsest
