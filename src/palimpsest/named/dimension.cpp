// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/dimension.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <mutex>
#include <ostream>
#include <shared_mutex>
#include <unordered_map>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/named/inner_dimension.hpp"
#include "palimpsest/named/token.hpp"

namespace palimpsest {

namespace named {
namespace {

constinit const Entry kEllipsis{"...", "...", -1, Kind::ellipsis};

// Invariants: 1. one entry per text; 2. entries and their texts never move and are never freed, so
// that dimensions may be used by static objects and by threads that outlive main.
class Table {
 public:
  Table() {
    entries_.emplace(kAnonymousAny.text, &kAnonymousAny);
    entries_.emplace(kEllipsis.text, &kEllipsis);
  }

  const Entry* find(std::string_view text) const {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(text);
    return found == entries_.end() ? nullptr : found->second;
  }

  // `text` is one well-formed token in its one spelling.
  const Entry* insert(std::string_view text) {
    const std::unique_lock lock(mutex_);
    if (const auto found = entries_.find(text); found != entries_.end()) return found->second;
    const std::string_view kept = texts_.emplace_back(text);
    const Entry& made = storage_.emplace_back(make(kept));
    return entries_.emplace(kept, &made).first->second;
  }

 private:
  static Entry make(std::string_view text) {
    Entry entry{text, text, -1, Kind::concrete};
    std::string_view digits;
    if (text[0] == '(') {
      entry.kind = Kind::any;
      entry.base = "()";
      digits = text.substr(1, text.size() - 2);
    } else {
      const std::size_t count = index_digits(text);
      entry.base.remove_suffix(count);
      digits = text.substr(text.size() - count);
    }
    std::from_chars(digits.data(), digits.data() + digits.size(), entry.index);
    return entry;
  }

  mutable SharedMutex mutex_;
  std::deque<std::string> texts_;
  std::deque<Entry> storage_;
  std::unordered_map<std::string_view, const Entry*> entries_;
};

Table& table() {
  return immortal([] { return Table(); });
}

// Text that is not exactly one token is a ValueError; so is that of an inner_dimension() unless it
// may be one.
void check_single(std::string_view text, bool may_be_inner = false) {
  const std::string who = "[NamedDimension(" + quoted(text) + ")] ";
  if (text.empty()) {
    throw ValueError(who + "a dimension has no name: got an empty text, expected one token");
  }
  const auto reject_separator = [&](std::size_t position) {
    if (!is_separator(text[position])) return;
    throw ValueError(who + "unexpected character at position " + std::to_string(position) +
                     ": got " + quoted(text.substr(position, 1)) +
                     ", expected one dimension without separators. Try Dim(text) for several");
  };
  reject_separator(0);
  const std::size_t end = token_end(text, 0);
  if (end == text.size()) {
    const std::size_t mark = text.find('~');
    if (mark == std::string_view::npos || may_be_inner) return;
    throw ValueError(who + "'~' at position " + std::to_string(mark) +
                     " is for dimensions inside derived operators: got " + quoted(text) +
                     ", expected a name without it");
  }
  reject_separator(end);
  if (is_upper(text[end])) {
    throw ValueError(who + "an upper-case letter starts a new dimension at position " +
                     std::to_string(end) + ": got " + quoted(text.substr(end, 1)) +
                     ", expected one dimension. Try Dim(text) for several");
  }
  token_end(text, end);  // the rest may be malformed itself
  throw ValueError(who + "a second dimension starts at position " + std::to_string(end) + ": got " +
                   quoted(text.substr(end)) +
                   ", expected one dimension. Try Dim(text) for several");
}

}  // namespace

// Constant-initialized, as static objects elsewhere may be made first.
constinit const Entry kAnonymousAny{"()", "()", -1, Kind::any};

}  // namespace named

const named::Entry* NamedDimension::lookup(std::string_view text) {
  text = canonical(text);
  if (const named::Entry* found = named::table().find(text)) return found;
  named::check_single(text);
  return named::table().insert(text);
}

NamedDimension::NamedDimension(std::string_view base, int index) {
  const std::string who =
      "[NamedDimension(" + named::quoted(base) + ", " + std::to_string(index) + ")] ";
  if (index < 0) {
    throw ValueError(who + "negative index: got " + std::to_string(index) + ", expected 0 or more");
  }
  const NamedDimension bare(base);
  if (bare.is_wildcard()) {
    throw ValueError(who + "a wildcard has no index: got " + named::quoted(base) +
                     ", expected a name");
  }
  if (bare.index()) {
    throw ValueError(who + "the base ends in a digit: got " + named::quoted(base) + ", expected " +
                     named::quoted(bare.base()));
  }
  entry_ = lookup(std::string(base) + std::to_string(index));
}

NamedDimension NamedDimension::ellipsis() { return NamedDimension(&named::kEllipsis); }

NamedDimension NamedDimension::any(int ordinal) {
  if (ordinal < 0) {
    throw ValueError("[NamedDimension::any] negative ordinal: got " + std::to_string(ordinal) +
                     ", expected 0 or more");
  }
  if (ordinal == 0) return NamedDimension();
  return NamedDimension("(" + std::to_string(ordinal) + ")");
}

NamedDimension NamedDimension::operator+(int k) const {
  if (is_wildcard() || k == 0) return *this;
  const std::int64_t sum = std::int64_t{index().value_or(0)} + k;
  const auto complain = [&](const char* what) {
    return "[" + str() + " + " + std::to_string(k) + "] " + what + ": got " + std::to_string(sum) +
           ", expected 0 to 2147483647";
  };
  if (sum < 0) throw ValueError(complain("the index would be below zero"));
  if (sum > std::numeric_limits<std::int32_t>::max()) {
    throw OverflowError(complain("the index does not fit in 31 bits"));
  }
  if (base().find('~') != std::string_view::npos) {
    return stored_dimension(std::string(base()) + std::to_string(sum));
  }
  return NamedDimension(base(), static_cast<int>(sum));
}

NamedDimension NamedDimension::fresh(std::span<const NamedDimension> avoid) const {
  NamedDimension result = *this;
  if (is_wildcard()) return result;
  while (std::find(avoid.begin(), avoid.end(), result) != avoid.end()) result = result + 1;
  return result;
}

PALIMPSEST_API std::strong_ordering operator<=>(const NamedDimension& a, const NamedDimension& b) {
  if (a.entry_ == b.entry_) return std::strong_ordering::equal;
  const int order = a.base().compare(b.base());
  if (order != 0) return order < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
  return a.entry_->index <=> b.entry_->index;
}

NamedDimension inner_dimension(const NamedDimension& d, std::int64_t extent, char mark) {
  const std::string number = d.index() ? std::to_string(*d.index()) : "";
  const std::string name = d.is_concrete() ? d.str() : "any" + number;
  return stored_dimension(name + "~" + std::to_string(extent) + mark);
}

NamedDimension stored_dimension(std::string_view text) {
  named::check_single(text, true);
  return NamedDimension(named::table().insert(NamedDimension::canonical(text))->text);
}

std::ostream& operator<<(std::ostream& stream, const NamedDimension& d) {
  return stream << d.text();
}

}  // namespace palimpsest
