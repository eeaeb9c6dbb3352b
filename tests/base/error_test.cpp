// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/error.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace palimpsest {
namespace {

template <class Below, class Above>
constexpr bool is_below = std::is_convertible_v<const Below*, const Above*>;

static_assert(is_below<Error, std::runtime_error>);
static_assert(is_below<ShapeError, ValueError> && is_below<NameError, ValueError> &&
              is_below<OverflowError, ValueError> && is_below<UnusedInputError, ValueError> &&
              is_below<DisconnectedError, ValueError> && is_below<ValueError, Error>);
static_assert(is_below<DTypeError, TypeError> && is_below<DeviceError, TypeError> &&
              is_below<TypeError, Error> && !is_below<TypeError, ValueError>);
static_assert(is_below<FormatError, IoError> && is_below<IoError, Error>);
static_assert(is_below<BudgetError, OutOfMemory> && is_below<OutOfMemory, Error>);

template <class... Errors>
constexpr bool all_are_direct = (is_below<Errors, Error> && ...) &&
                                !(is_below<Errors, ValueError> || ...) &&
                                !(is_below<Errors, TypeError> || ...);
static_assert(all_are_direct<AliasError, SplitError, NotLinearError, MissingInputError, CycleError,
                             ReplaceError, StateError, OpError, NotSupported, InternalError>);

TEST(Error, IsCaughtAsWhatItIsBelow) {
  try {
    throw BudgetError("[plan] needs 12 bytes: got a budget of 8");
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "[plan] needs 12 bytes: got a budget of 8");
  }
  EXPECT_THROW(throw ShapeError("x"), ValueError);
  EXPECT_THROW(throw FormatError("x"), std::runtime_error);
}

TEST(Error, NotesAreAppendedAndTheClassStays) {
  try {
    try {
      throw ShapeError("[f] shapes differ");
    } catch (Error& error) {
      error.add_note("step 3: Add");
      error.add_note("inputs: a, b");
      throw;
    }
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[f] shapes differ\n  step 3: Add\n  inputs: a, b");
  }
}

}  // namespace
}  // namespace palimpsest
