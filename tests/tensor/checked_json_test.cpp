// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/checked_json.hpp"

#include <gtest/gtest.h>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::io_detail {
namespace {

TEST(Json, WritesTheTextThatItRead) {
  for (const char* text :
       {"null", "true", "false", "0", "-5", "18446744073709551615", "0.1", "-2.5e-300", "[]", "{}",
        R"("")", R"("a\"\\\n\u0001ü")", R"([1,[],{"a":null},-2.0])",
        R"({"z":{"y":[true,{"x":1}]},"a":2,"m":[[],[[]]]})"}) {
    EXPECT_EQ(text_of_json(parse_json(text)), text);
  }
  EXPECT_EQ(text_of_json(parse_json(R"({"a":[1,{}]})"), 2),
            "{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
}

TEST(Json, OtherTextsAreDiscarded) {
  for (const char* text : {"", "{", "[1,]", "{1:2}", "nul", "1 2", "1e999", "\"\xFF\""}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  }
  const auto nested = [](std::size_t depth) {
    return parse_json(std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_TRUE(nested(1000).is_array());
  EXPECT_TRUE(nested(1001).is_discarded());
  EXPECT_TRUE(nested(1'000'000).is_discarded());
}

TEST(Json, TextsThatAreNotUtf8AreRefused) {
  testing::expect_error<FormatError>([] { text_of_json(Json("\xFF")); }, "a text is not UTF-8");
}

}  // namespace
}  // namespace palimpsest::io_detail
