// SPDX-License-Identifier: Apache-2.0
// Matching compared with its definition: every ordered pair of shapes of up to three tokens over
// {A, B, ..., ()}, with L(s) enumerated up to length six over three names.
#include <gtest/gtest.h>

#include <bitset>
#include <set>
#include <string>
#include <vector>

#include "palimpsest/named/alignment.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kLongest = 6;
constexpr std::size_t kSequences = 1 + 3 + 9 + 27 + 81 + 243 + 729;
using Language = std::bitset<kSequences>;
using Tokens = std::vector<ND>;

std::vector<Tokens> sequences(const Tokens& alphabet, std::size_t longest) {
  std::vector<Tokens> all{{}};
  for (std::size_t first = 0, length = 0; length < longest; ++length) {
    const std::size_t last = all.size();
    for (std::size_t k = first; k < last; ++k) {
      for (const ND& d : alphabet) {
        all.push_back(all[k]);
        all.back().push_back(d);
      }
    }
    first = last;
  }
  return all;
}

bool stands_for(std::span<const ND> shape, std::span<const ND> names) {
  if (shape.empty()) return names.empty();
  if (shape[0].is_ellipsis()) {
    return stands_for(shape.subspan(1), names) ||
           (!names.empty() && stands_for(shape, names.subspan(1)));
  }
  return !names.empty() && (shape[0].is_any() || shape[0] == names[0]) &&
         stands_for(shape.subspan(1), names.subspan(1));
}

Language language_of(std::span<const ND> shape) {
  static const std::vector<Tokens> all = sequences({"A", "B", "C"}, kLongest);
  Language language;
  for (std::size_t k = 0; k < all.size(); ++k) language[k] = stands_for(shape, all[k]);
  return language;
}

// All refinements as texts, by following every path.
std::set<std::string> refinements(std::span<const ND> s, std::span<const ND> t, bool open) {
  std::set<std::string> all;
  const auto include = [&](std::span<const ND> rest_s, std::span<const ND> rest_t, std::string text,
                           bool after) {
    if (text == "..." && open) text.clear();
    for (const std::string& rest : refinements(rest_s, rest_t, after)) {
      all.insert(text + (text.empty() || rest.empty() ? "" : " ") + rest);
    }
  };
  const bool s_open = !s.empty() && s[0].is_ellipsis(), t_open = !t.empty() && t[0].is_ellipsis();
  if (s.empty() && t.empty()) return {""};
  if (s_open && t_open) {
    include(s.subspan(1), t, "...", true);
    include(s, t.subspan(1), "...", true);
  } else if (s_open) {
    include(s.subspan(1), t, "", open);
    if (!t.empty()) include(s, t.subspan(1), t[0].str(), false);
  } else if (t_open) {
    include(s, t.subspan(1), "", open);
    if (!s.empty()) include(s.subspan(1), t, s[0].str(), false);
  } else if (!s.empty() && !t.empty() && (s[0] == t[0] || s[0].is_any() || t[0].is_any())) {
    include(s.subspan(1), t.subspan(1), (s[0].is_any() ? t[0] : s[0]).str(), false);
  }
  return all;
}

TEST(Matching, AgreesWithEnumerationOnEveryPair) {
  const std::vector<Tokens> shapes = sequences({"A", "B", "...", "()"}, 3);
  ASSERT_EQ(shapes.size() * shapes.size(), 7225u);
  std::vector<Language> languages;
  for (const Tokens& shape : shapes) languages.push_back(language_of(shape));

  int n_match = 0, n_unique = 0;
  for (std::size_t a = 0; a < shapes.size(); ++a) {
    for (std::size_t b = 0; b < shapes.size(); ++b) {
      const Dims s(shapes[a]), t(shapes[b]);
      const std::string pair = s.str() + " | " + t.str();
      const Language common = languages[a] & languages[b];
      const Match found = match(s, t);
      EXPECT_EQ(isequal(s, t), common.any()) << pair;
      EXPECT_EQ(found.ok, common.any()) << pair;

      const std::set<std::string> refined = refinements(s, t, false);
      Language united;
      for (const std::string& text : refined) united |= language_of(Dim(text));
      EXPECT_EQ(united, common) << pair;
      EXPECT_EQ(found.unique, refined.size() == 1) << pair;
      EXPECT_EQ(found.refined, found.unique ? Dim(*refined.begin()) : Dims()) << pair;

      const Dims resolved = resolve_wildcards(s, t);
      EXPECT_EQ(resolved, s.has_wildcard() && found.unique ? found.refined : s) << pair;
      EXPECT_TRUE(!found.ok || t.has_wildcard() || resolved == t) << pair;
      EXPECT_EQ(named::align(s, t).has_value(), iscompatible(s, t)) << pair;
      n_match += found.ok ? 1 : 0;
      n_unique += found.unique ? 1 : 0;
    }
  }
  EXPECT_EQ(n_match, 4511);
  EXPECT_EQ(n_unique, 3658);
}

}  // namespace
}  // namespace palimpsest
