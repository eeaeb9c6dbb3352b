// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Config, StartsWithTheDocumentedDefaults) {
  const Config c;
  EXPECT_EQ(c.mode, "FastRun");
  EXPECT_EQ(c.default_float, DType::float64);
  EXPECT_FALSE(c.budget);
  EXPECT_EQ(c.on_unused_input, Reaction::raise);
  EXPECT_EQ(c.on_opt_error, Reaction::warn);
  EXPECT_FALSE(c.allow_gc);
  EXPECT_EQ(c.exception_verbosity, Verbosity::low);
  EXPECT_FALSE(c.profile);
  EXPECT_EQ(c.function_cache, 16);
  EXPECT_EQ(c.parallel_grain, 32768);
  EXPECT_EQ(c.to_dense_limit, index_t{1} << 30);
  EXPECT_TRUE(c.reduce_identity_in_normal && c.cache_adjoint_normal && c.shape_inference);
  EXPECT_FALSE(c.log_device_transfers);
}

TEST(Config, EveryKeyIsReadAsItIsWritten) {
  Config c;
  for (const std::string& key : Config::keys()) {
    Config copy = c;
    copy.set(key, c.get(key));
    EXPECT_EQ(copy, c) << key;
  }
  c.set("default_float", "float32");
  EXPECT_EQ(c.default_float, DType::float32);
  c.set("budget", "4096");
  EXPECT_EQ(c.budget, 4096);
  c.set("budget", "none");
  EXPECT_FALSE(c.budget);
  c.set("on_unused_input", "ignore");
  EXPECT_EQ(c.on_unused_input, Reaction::ignore);
  c.set("rewrites_excluding", "fusion:inplace");
  EXPECT_EQ(c.rewrites_excluding, (std::vector<std::string>{"fusion", "inplace"}));
  EXPECT_EQ(c.get("rewrites_excluding"), "fusion:inplace");
}

TEST(Config, GroupsHaveADotInTheirKeys) {
  Config c;
  EXPECT_EQ(c.get("debug.patience"), "10");
  EXPECT_EQ(c.get("debug.preallocated"), "previous:strided");
  c.set("nan_guard.big", "2.5e3");
  EXPECT_EQ(c.nan_guard_big, 2500.0);
  EXPECT_EQ(c.get("nan_guard.big"), "2500");
  EXPECT_TRUE(
      c.with_flags("nan_guard.nan_is_error=false,debug.poison=false").nan_guard_inf_is_error);
  expect_error<ValueError>([&] { c.set("nan_guard.big", "much"); },
                           "[config nan_guard.big] got 'much', expected a number");
  expect_error<ValueError>([&] { c.set("debug_patience", "1"); }, "Try 'debug.patience'");
}

TEST(Config, UnknownKeyNamesTheNearestOne) {
  Config c;
  expect_error<ValueError>([&] { c.set("defalt_float", "float32"); }, "Invalid config key");
  expect_error<ValueError>([&] { c.set("defalt_float", "float32"); }, "Try 'default_float'");
  expect_error<ValueError>([&] { static_cast<void>(c.get("allow_cg")); }, "Try 'allow_gc'");
}

TEST(Config, ValuesThatAreNoneAreRefused) {
  Config c;
  expect_error<ValueError>([&] { c.set("allow_gc", "yes"); }, "[config allow_gc] got 'yes'");
  expect_error<ValueError>([&] { c.set("budget", "12x"); }, "expected an integer");
  expect_error<ValueError>([&] { c.set("on_unused_input", "shout"); }, "raise, warn, ignore");
  expect_error<ValueError>([&] { c.set("default_float", "real"); }, "[dtype]");
  EXPECT_EQ(c, Config());
}

TEST(Config, FlagsAreAppliedInOrder) {
  const Config c = Config().with_flags("allow_gc=true,,default_float=float32,allow_gc=false");
  EXPECT_FALSE(c.allow_gc);
  EXPECT_EQ(c.default_float, DType::float32);
  expect_error<ValueError>([] { static_cast<void>(Config().with_flags("allow_gc")); },
                           "expected key=value");
}

TEST(Config, ScopesNestAndEndWithExceptions) {
  {
    const ConfigScope outer({.default_float = DType::float32});
    try {
      const ConfigScope inner({.allow_gc = true});
      EXPECT_EQ(config().default_float, DType::float32);
      EXPECT_TRUE(config().allow_gc);
      throw ValueError("out");
    } catch (const ValueError&) {
    }
    EXPECT_FALSE(config().allow_gc);
    EXPECT_EQ(config().default_float, DType::float32);
  }
  EXPECT_EQ(config().default_float, DType::float64);
}

TEST(Config, ScopesHoldForTheirThreadOnly) {
  const ConfigScope scope({.default_float = DType::float32});
  const auto mine = shared_config();
  std::thread([&] {
    EXPECT_EQ(config().default_float, DType::float64);
    const ConfigScope adopted(mine);
    EXPECT_EQ(config().default_float, DType::float32);
  }).join();
  expect_error<ValueError>([] { const ConfigScope none(std::shared_ptr<const Config>{}); },
                           "empty handle");
}

TEST(Config, DefaultIsReplacedAsAWholeForThreadsOutsideOfScopes) {
  const Config before = config();
  const auto kept = shared_config();
  Config changed = before;
  changed.to_dense_limit = 77;
  set_default_config(changed);
  EXPECT_EQ(config().to_dense_limit, 77);
  std::thread([] { EXPECT_EQ(config().to_dense_limit, 77); }).join();
  set_default_config(before);
  EXPECT_EQ(config(), before);
  EXPECT_EQ(*kept, before);
}

TEST(ConfigDeathTest, DefaultComesFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("PALIMPSEST_FLAGS", "default_float=float32,allow_gc=true", 1);
        const bool is_set = config().default_float == DType::float32 && config().allow_gc;
        std::exit(is_set ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("PALIMPSEST_FLAGS", "no_such_key=1", 1);
        try {
          config();
        } catch (const ValueError& error) {
          std::cerr << error.what();
          std::exit(0);
        }
        std::exit(1);
      },
      ::testing::ExitedWithCode(0), "Invalid config key");
}

}  // namespace
}  // namespace palimpsest
