// SPDX-License-Identifier: Apache-2.0
// Every op is restored from its name and parameters; all other texts are refused.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/registry.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::Applied;
using testing::expect_error;
using testing::for_each_sample;

void expect_restored(const Op& op) {
  const OpPtr again = restore_op(op.name(), op.parameters());
  EXPECT_EQ(again->str(), op.str());
  EXPECT_TRUE(typeid(*again) == typeid(op)) << op.str();
}

// Calls f with the op of each sample and with its variants in place.
void for_each_op(const std::function<void(const Op&, const Apply&)>& f) {
  for_each_sample([&](const Applied& a) {
    f(a.node.op(), a.node);
    const auto n = static_cast<int>(a.node.input_count());
    for (int i = 0; i < n; ++i) {
      if (const OpPtr variant = a.node.op().inplace_on_inputs(a.node, {i})) f(*variant, a.node);
    }
  });
}

TEST(OpRestore, EveryOpOfTheRegistryAndItsVariantsInPlace) {
  ops::register_library_ops();
  std::set<std::string> names;
  for_each_op([&](const Op& op, const Apply&) {
    SCOPED_TRACE(op.str());
    expect_restored(op);
    names.insert(op.name());
  });
  EXPECT_GT(names.size(), 100u);
  EXPECT_TRUE(names.contains("AddInPlace"));
  EXPECT_TRUE(names.contains("FftInPlace"));
}

TEST(OpRestore, RestoredOpComputesTheSame) {
  ops::register_library_ops();
  for_each_sample([](const Applied& a) {
    SCOPED_TRACE(a.node.op().str());
    const OpPtr again = restore_op(a.node.op().name(), a.node.op().parameters());
    const Apply node = again->make_node(a.node.inputs());
    ASSERT_EQ(node.output_count(), a.node.output_count());
    EXPECT_EQ(node.output(0).type(), a.node.output(0).type());
  });
}

TEST(OpRestore, UnknownNamesAndTextsAreNamed) {
  ops::register_library_ops();
  expect_error<IoError>([] { restore_op("Nothing", ""); }, "unknown op 'Nothing'");
  expect_error<FormatError>([] { restore_op("Sum", "axes=(0, "); }, "Sum{axes=(0, }");
  expect_error<FormatError>([] { restore_op("Sum", "axes=(0,), more"); }, "expected the end");
  expect_error<FormatError>([] { restore_op("Sum", "axes=(1, 0)"); }, "sorted");
  expect_error<FormatError>([] { restore_op("Sum", "axes=(0 )"); }, "Sum");
  expect_error<FormatError>([] { restore_op("Add", "float64, float32 -> float64 "); }, "Add");
  expect_error<FormatError>([] { restore_op("Reshape", "shape=(2 +,)"); }, "operands");
  expect_error<FormatError>([] { restore_op("Roll", "shift=1, axis=1, shift=1, axis=0"); },
                            "sorted");
  expect_error<ValueError>([] { register_op("Sum", {}); }, "'Sum' is registered");
}

// A damaged text gives an op with exactly this text, or an error.
TEST(OpRestore, DamagedTextsAreRefused) {
  ops::register_library_ops();
  std::vector<std::pair<std::string, std::string>> texts;
  for_each_op([&](const Op& op, const Apply&) { texts.emplace_back(op.name(), op.parameters()); });
  std::mt19937 random(17);
  static constexpr std::string_view kLikely = "0123456789()[],; =-:rifn";
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto& [name, good] = texts[random() % texts.size()];
    std::string text = good;
    for (unsigned k = 0, edits = 1 + random() % 3; k < edits; ++k) {
      const std::size_t at = random() % (text.size() + 1);
      const char c = kLikely[random() % kLikely.size()];
      switch (random() % 3) {
        case 0:
          text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), c);
          break;
        case 1:
          if (at < text.size()) text.erase(at, 1);
          break;
        default:
          if (at < text.size()) text[at] = c;
      }
    }
    try {
      EXPECT_EQ(restore_op(name, text)->parameters(), text);
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace palimpsest
