// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/dims.hpp"

#include <algorithm>
#include <ostream>

#include "palimpsest/base/error.hpp"
#include "palimpsest/named/token.hpp"

namespace palimpsest {

Dims Dims::parse(std::string_view text) {
  Dims result;
  std::size_t position = 0;
  while (position < text.size()) {
    if (named::is_separator(text[position])) {
      ++position;
      continue;
    }
    const std::size_t end = named::token_end(text, position);
    result.push_back(text.substr(position, end - position));
    position = end;
  }
  return result;
}

void Dims::append(const NamedDimension* first, const NamedDimension* last) {
  tokens_.reserve(tokens_.size() + static_cast<std::size_t>(last - first));
  for (; first != last; ++first) push_back(*first);
}

void Dims::push_back(const NamedDimension& d) {
  if (d.is_ellipsis() && !empty() && back().is_ellipsis()) return;
  tokens_.push_back(d);
}

std::optional<std::size_t> Dims::index_of(const NamedDimension& d) const {
  const auto found = std::find(begin(), end(), d);
  if (found == end()) return std::nullopt;
  return static_cast<std::size_t>(found - begin());
}

std::size_t Dims::count(const NamedDimension& d) const {
  return static_cast<std::size_t>(std::count(begin(), end(), d));
}

bool Dims::has_wildcard() const {
  return std::any_of(begin(), end(), [](const NamedDimension& d) { return d.is_wildcard(); });
}

Dims Dims::slice(std::size_t first, std::size_t last) const {
  return Dims(std::span(begin() + first, begin() + last));
}

Dims Dims::without(const NamedDimension& d) const { return replaced(d, Dims()); }

Dims Dims::renamed(const Renaming& names) const {
  Dims result;
  for (const NamedDimension& token : *this) {
    const auto found = names.find(token);
    result.push_back(found == names.end() ? token : found->second);
  }
  return result;
}

Dims Dims::replaced(const NamedDimension& d, const Dims& replacement) const {
  Dims result;
  for (const NamedDimension& token : *this) {
    if (token == d) {
      result += replacement;
    } else {
      result.push_back(token);
    }
  }
  return result;
}

std::string Dims::str() const {
  std::string text = "(";
  for (const NamedDimension& d : *this) {
    if (text.size() > 1) text += ", ";
    text += d.text();
  }
  return text + ")";
}

Dims& Dims::operator+=(const Dims& other) {
  if (this == &other) return *this += Dims(other);
  append(other.begin(), other.end());
  return *this;
}

Dims Dim(std::string_view text) { return Dims(text); }

Dims spatial_dims(int n, bool kspace) {
  if (n < 1 || n > 3) {
    throw ValueError("[spatial_dims] number of dimensions: got " + std::to_string(n) +
                     ", expected 1, 2 or 3. Try numbered(\"N\", n)");
  }
  return (kspace ? Dim("KxKyKz") : Dim("NxNyNz")).slice(0, static_cast<std::size_t>(n));
}

Dims numbered(std::string_view base, int n) {
  if (n < 0) {
    throw ValueError("[numbered] number of dimensions: got " + std::to_string(n) +
                     ", expected 0 or more");
  }
  Dims result;
  for (int i = 1; i <= n; ++i) result.push_back(NamedDimension(base, i));
  return result;
}

Partition partition(const Dims& dims, const NamedDimension& d) {
  const auto at = dims.index_of(d);
  if (!at) return {dims, {}, {}};
  return {dims.slice(0, *at), Dims(d), dims.slice(*at + 1, dims.size())};
}

Dims unite(const Dims& a, const Dims& b) {
  Dims result;
  for (const Dims* dims : {&a, &b}) {
    for (const NamedDimension& d : *dims) {
      if (!result.contains(d)) result.push_back(d);
    }
  }
  return result;
}

std::string arrow(const Dims& from, const Dims& to) { return from.str() + " -> " + to.str(); }

std::ostream& operator<<(std::ostream& stream, const Dims& dims) { return stream << dims.str(); }

}  // namespace palimpsest
