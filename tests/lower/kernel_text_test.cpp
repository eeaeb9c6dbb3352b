// SPDX-License-Identifier: Apache-2.0
// The texts of kernels of all op samples, for a device that need not be here.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "lower/lowered.hpp"
#include "palimpsest/device/cuda/cuda_backend.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::lowered;
using testing::some_device;

std::map<std::string, KernelText> all_texts() {
  std::map<std::string, KernelText> texts;
  testing::for_each_sample([&](const testing::Applied& a) {
    const auto step = lowered(a, some_device());
    if (!step) return;
    for (const PlannedLaunch& launch : step->launches) {
      const auto [at, is_new] = texts.emplace(launch.text->name, *launch.text);
      EXPECT_EQ(at->second.text, launch.text->text) << "two texts of one name";
    }
  });
  return texts;
}

// `Add, Mul`: the names of a set.
std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

TEST(KernelText, PageListsTheOpsThatHaveKernels) {
  std::map<std::string, std::pair<bool, bool>> found;  // with kernels, without
  testing::for_each_sample([&](const testing::Applied& a) {
    auto& [text, host] = found[a.node.op().name()];
    (lowered(a, some_device()) ? text : host) = true;
  });
  std::set<std::string> kernels, both, host;
  for (const auto& [name, where] : found) {
    (!where.second ? kernels : where.first ? both : host).insert(name);
  }
  std::ifstream file(PALIMPSEST_SOURCE_DIR "/docs/devices.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const std::string& row :
       {"| kernels | " + listed(kernels) + " |",
        "| kernels for some operands, else the host | " + listed(both) + " |",
        "| the host | " + listed(host) + " |"}) {
    EXPECT_NE(page.str().find(row), std::string::npos) << "docs/devices.md lacks the row\n" << row;
  }
}

// The text that docs/devices.md shows.
TEST(KernelText, OfAFusedStepIsThatOfThePage) {
  ElementwiseProgram program;
  const int m = program.input(DType::complex64), x = program.input(DType::complex64);
  const int conj = program.apply(ScalarOp::conj, {m});
  const int product = program.apply(ScalarOp::mul, {conj, x});
  const int z = program.input(DType::complex64), half = program.input(DType::complex64);
  const int scaled = program.apply(ScalarOp::mul, {z, half});
  program.output(program.apply(ScalarOp::add, {product, scaled}));
  const auto op = std::make_shared<ops::Elementwise>(program);
  std::vector<Variable> inputs(3, make_input({DType::complex64, {64, 64}, {}}, "x"));
  inputs.push_back(constant(Tensor::full({1, 1}, std::complex<float>(0.5F))));
  const std::vector<Tensor> values{
      Tensor::zeros({64, 64}, DType::complex64), Tensor::zeros({64, 64}, DType::complex64),
      Tensor::zeros({64, 64}, DType::complex64), inputs[3].constant_value()};
  const auto step = lowered({"", inputs, op->make_node(inputs), values}, some_device());
  ASSERT_TRUE(step);
  std::ifstream file(PALIMPSEST_SOURCE_DIR "/tests/lower/fused_complex.txt");
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ("// SPDX-License-Identifier: Apache-2.0\n" + step->launches.at(0).text->text,
            expected.str());
}

// `GLOBAL u8* a0, i64 a0_at, i64 n0`
std::string parameters_of(const std::string& text) {
  const std::size_t first = text.find(")(", text.find("KERNEL(")) + 2;
  return text.substr(first, text.find(") {", first) - first);
}

TEST(KernelText, IsStable) {
  const std::map<std::string, KernelText> once = all_texts(), again = all_texts();
  EXPECT_GT(once.size(), 200u);
  ASSERT_EQ(once.size(), again.size());
  for (const auto& [name, text] : once) {
    ASSERT_TRUE(again.contains(name)) << name;
    EXPECT_EQ(text.kernels, std::vector<std::string>{name});
  }
}

// The rules of the language that no compiler checks.
TEST(KernelText, KeepsTheRulesOfTheLanguage) {
  const std::regex parameter(R"((GLOBAL u8\* a\d+|i64 (a\d+_at|n\d+|x\d+)|f64 x\d+(_im)?))");
  const std::regex forbidden(
      R"(\b(template|class|struct|goto|double|float|long|size_t|unsigned|atomic\w*)\b)");
  const std::regex local(R"(LOCAL (\w+) \w+\[(\d+)\];)");
  for (const auto& [name, text] : all_texts()) {
    SCOPED_TRACE(text.text);
    EXPECT_FALSE(std::regex_search(text.text, forbidden));
    std::istringstream parameters(parameters_of(text.text));
    int count = 0;
    for (std::string one; std::getline(parameters, one, ','); ++count) {
      one.erase(0, one.find_first_not_of(' '));
      EXPECT_TRUE(std::regex_match(one, parameter)) << one;
    }
    EXPECT_LE(count, 128);
    std::size_t bytes = 0;
    const auto begin = std::sregex_iterator(text.text.begin(), text.text.end(), local);
    for (auto it = begin; it != std::sregex_iterator(); ++it) {
      bytes += 16 * std::stoul((*it)[2]);
    }
    EXPECT_LE(bytes, 32'768u);
    // A barrier is reached by all items or by none: no `if` is around it.
    std::vector<bool> is_if;
    std::istringstream lines(text.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("BARRIER") != std::string::npos) {
        EXPECT_EQ(std::ranges::count(is_if, true), 0) << line;
      }
      if (line.ends_with("{")) is_if.push_back(line.find("if (") != std::string::npos);
      if (line.find_first_not_of(' ') != std::string::npos && line.ends_with("}") &&
          !is_if.empty()) {
        is_if.pop_back();
      }
    }
  }
}

TEST(KernelText, NeedsNoFloat64WhereADeviceHasNone) {
  const std::regex wide(R"(\b(f64|c64)\b)");
  testing::for_each_sample([&](const testing::Applied& a) {
    const auto step = lowered(a, some_device(false));
    if (!step) return;
    for (const PlannedLaunch& launch : step->launches) {
      EXPECT_FALSE(std::regex_search(launch.text->text, wide)) << launch.text->text;
    }
  });
}

TEST(KernelText, CompilesForCuda) {
  dlopen(NVRTC_OF_TOOLKIT, RTLD_NOW | RTLD_LOCAL);  // found by its name from now on
  std::string why;
  if (cuda::load_nvrtc(&why) == nullptr) GTEST_SKIP() << why;
  const int step = testing::length_factor() > 1 ? 1 : 8;
  int number = 0;
  for (const auto& [name, text] : all_texts()) {
    if (number++ % step != 0) continue;
    SCOPED_TRACE(text.text);
    EXPECT_GT(cuda::compile(text, "sm_90", "cuda:0").size(), 1000u);
  }
}

}  // namespace
}  // namespace palimpsest
