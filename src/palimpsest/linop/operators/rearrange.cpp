// SPDX-License-Identifier: Apache-2.0
// A pattern is kept as two lists of groups of parts. Part i is the i-th name on the left; -1 is the
// ellipsis, always a group of its own.
#include "palimpsest/linop/operators/rearrange.hpp"

#include <algorithm>
#include <cctype>

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

constexpr index_t kEllipsis = -1;
using Groups = std::vector<std::vector<index_t>>;

struct Pattern {
  Groups in, out;
  Extents sizes;  // of the parts; kUnknown
};

Attribute groups_attribute(const Groups& groups) {
  Attribute::List list;
  for (const auto& group : groups) {
    list.emplace_back(Attribute(std::span<const index_t>(group)));
  }
  return list;
}

Groups groups_of(const Attribute& attribute) {
  Groups groups;
  for (const Attribute& group : attribute.as_list()) {
    const Extents parts = group.as_integers();
    groups.emplace_back(parts.begin(), parts.end());
  }
  return groups;
}

Pattern pattern_of_type(const NamedLinop& A) {
  return {groups_of(A.attr("in")), groups_of(A.attr("out")), A.attr("sizes").as_integers()};
}

index_t product_of(const std::vector<index_t>& group, const Extents& sizes) {
  index_t product = 1;
  for (index_t part : group) product *= sizes[static_cast<std::size_t>(part)];
  return product;
}

// Fills in the one unknown size of a group of n elements.
void complete(const NamedLinop& A, const ND& d, const std::vector<index_t>& group, index_t n,
              Extents& sizes) {
  index_t known = 1, unknown = kEllipsis;
  for (index_t part : group) {
    const index_t size = sizes[static_cast<std::size_t>(part)];
    if (size == kUnknown) {
      unknown = part;
    } else {
      known *= size;
    }
  }
  const bool fits = unknown == kEllipsis ? known == n : known > 0 && n % known == 0;
  if (!fits) {
    throw ShapeError(who(A) + "size of dim '" + d.str() + "': got " + std::to_string(n) +
                     ", expected one that is " +
                     (unknown == kEllipsis ? "equal to " : "divisible by ") +
                     std::to_string(known));
  }
  if (unknown != kEllipsis) sizes[static_cast<std::size_t>(unknown)] = n / known;
}

// The axes of every part after ungrouping: part -1 has those of the ellipsis.
struct Ungrouped {
  Extents extents;
  std::vector<Axes> axes;  // of part i; the ellipsis last
};

Ungrouped ungroup(const NamedLinop& A, const Dims& names, const Groups& groups, Pattern& p,
                  const Extents& shape) {
  Ungrouped result;
  result.axes.resize(p.sizes.size() + 1);
  const std::size_t hidden = shape.size() + 1 - groups.size();
  std::size_t axis = 0;
  const auto append = [&](std::size_t slot, index_t extent) {
    result.axes[slot].push_back(static_cast<index_t>(result.extents.size()));
    result.extents.push_back(extent);
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    if (group.size() == 1 && group[0] == kEllipsis) {
      for (std::size_t k = 0; k < hidden; ++k) append(p.sizes.size(), shape[axis++]);
      continue;
    }
    // Behind the ellipsis counted from the end: it may be spelled out.
    const std::size_t at = axis == i ? i : names.size() + i - groups.size();
    complete(A, names[at], group, shape[axis++], p.sizes);
    for (index_t part : group) {
      append(static_cast<std::size_t>(part), p.sizes[static_cast<std::size_t>(part)]);
    }
  }
  return result;
}

Variable rearranged(const NamedLinop& A, const Dims& names, Pattern p, const Variable& x) {
  const Ungrouped parts = ungroup(A, names, p.in, p, x.type().shape);
  Axes order;
  Extents extents;
  for (const auto& group : p.out) {
    index_t size = 1;
    const bool is_run = group.size() == 1 && group[0] == kEllipsis;
    for (index_t part : group) {
      const std::size_t slot = is_run ? p.sizes.size() : static_cast<std::size_t>(part);
      for (index_t axis : parts.axes[slot]) {
        const index_t n = parts.extents[static_cast<std::size_t>(axis)];
        order.push_back(axis);
        size *= n;
        if (is_run) extents.push_back(n);
      }
    }
    if (!is_run) extents.push_back(size);
  }
  return ops::reshape(ops::transpose(ops::reshape(x, parts.extents), std::move(order)),
                      std::move(extents));
}

Variable rearrange_fn(const NamedLinop& A, const Variable& x) {
  return rearranged(A, A.is_flipped() ? A.oshape() : A.ishape(), pattern_of_type(A), x);
}
Variable rearrange_adj_fn(const NamedLinop& A, const Variable& y) {
  Pattern p = pattern_of_type(A);
  std::swap(p.in, p.out);
  return rearranged(A, A.is_flipped() ? A.ishape() : A.oshape(), std::move(p), y);
}
std::optional<index_t> rearrange_size(const NamedLinop& A, const ND& d) {
  Pattern p = pattern_of_type(A);
  if (A.is_flipped()) std::swap(p.in, p.out);
  const auto on_side = [&](const Dims& dims, const Groups& groups) -> std::optional<index_t> {
    const auto position = dims.index_of(d);
    if (!position || dims.size() != groups.size()) return std::nullopt;
    const auto& group = groups[*position];
    for (index_t part : group) {
      if (part == kEllipsis || p.sizes[static_cast<std::size_t>(part)] == kUnknown) {
        return std::nullopt;
      }
    }
    return product_of(group, p.sizes);
  };
  if (const auto n = on_side(A.ishape(), p.in)) return n;
  return on_side(A.oshape(), p.out);
}

// Only a dimension outside of groups on both sides can be cut; one with two names is cut alike in
// both.
NamedLinop rearrange_split(const NamedLinop& A, const Tile& tile) {
  const Pattern p = pattern_of_type(A);
  Extents sizes = p.sizes;
  const auto group_of = [](const Dims& dims, const Groups& groups, const ND& d) {
    const auto i = dims.index_of(d);
    return i && dims.size() == groups.size() ? groups[*i] : std::vector<index_t>{};
  };
  const auto name_of_part = [](const Dims& dims, const Groups& groups, index_t part) -> ND {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] == std::vector<index_t>{part}) return dims[i];
    }
    return ND::ellipsis();  // in a group
  };
  for (const auto& [d, range] : tile) {
    auto group = group_of(A.ishape(), p.in, d);
    if (group.empty()) group = group_of(A.oshape(), p.out, d);
    // A dimension that an ellipsis stood for before it was spelled out.
    if (group.empty() && A.ishape().contains(d) && A.oshape().contains(d)) continue;
    if (group.size() != 1 || group[0] == kEllipsis) refuse_split(A, d, "it is grouped");
    for (const ND& name :
         {name_of_part(A.ishape(), p.in, group[0]), name_of_part(A.oshape(), p.out, group[0])}) {
      if (name.is_ellipsis()) refuse_split(A, d, "it is grouped on one side");
      const auto mine = range_of(tile, d), other = range_of(tile, name);
      if (other && other->start == mine->start && other->stop == mine->stop) continue;
      refuse_split(A, d, "it is one dimension with '" + name.str() + "', to be cut alike");
    }
    index_t& size = sizes[static_cast<std::size_t>(group[0])];
    if (size != kUnknown) size = *range.stop - *range.start;
  }
  LinopData data = tile_data(A, tile);
  put_attr(data, "sizes", Attribute(sizes));
  return from_data(std::move(data));
}

// -- parsing -------------------------------------------------------------------------------------

[[noreturn]] void refuse_pattern(std::string_view pattern, const std::string& what) {
  throw ValueError("[Rearrange] pattern '" + std::string(pattern) + "': " + what);
}

// The groups of one side as names.
std::vector<Dims> parsed_side(std::string_view pattern, std::string_view side) {
  std::vector<Dims> groups;
  while (!side.empty()) {
    const std::size_t open = side.find('(');
    const std::string_view plain = side.substr(0, open);
    for (const ND& d : Dims(plain)) groups.emplace_back(d);
    if (open == std::string_view::npos) break;
    const std::size_t close = side.find(')', open);
    if (close == std::string_view::npos) refuse_pattern(pattern, "a parenthesis is not closed");
    const Dims group(side.substr(open + 1, close - open - 1));
    if (group.empty() || group.has_wildcard())
      refuse_pattern(pattern, "expected names in parentheses");
    groups.push_back(group);
    side.remove_prefix(close + 1);
  }
  return groups;
}

ND name_of_group(const Dims& group) {
  if (group.size() == 1) return group[0];
  std::string name;
  for (const ND& d : group) name += d.str();
  for (std::size_t i = 1; i < name.size(); ++i) {
    name[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return name;
}

struct Side {
  Groups groups;
  Dims names;
};

Side resolved(std::string_view pattern, const std::vector<Dims>& groups, const Dims& parts) {
  Side side;
  Dims seen;
  for (const Dims& group : groups) {
    std::vector<index_t> numbers;
    for (const ND& d : group) {
      if (d.is_any()) refuse_pattern(pattern, "expected names");
      if (seen.contains(d)) refuse_pattern(pattern, "'" + d.str() + "' stands twice on one side");
      const auto i = parts.index_of(d);
      if (!i && !d.is_ellipsis())
        refuse_pattern(pattern, "'" + d.str() + "' stands on one side only");
      seen.push_back(d);
      numbers.push_back(d.is_ellipsis() ? kEllipsis : static_cast<index_t>(*i));
    }
    side.groups.push_back(std::move(numbers));
    side.names.push_back(name_of_group(group));
  }
  return side;
}

// Checks the pattern of a file, since that of a factory is right: each part once on each side, the
// ellipsis alone.
void check_rearrange(const NamedLinop& A) {
  const Pattern p = pattern_of_type(A);
  const auto fits = [&](const Groups& groups, const Dims& dims) {
    std::vector<int> seen(p.sizes.size(), 0);
    std::size_t runs = 0;
    for (const auto& group : groups) {
      for (const index_t part : group) {
        if (part == kEllipsis && group.size() == 1) {
          ++runs;
          continue;
        }
        if (part < 0 || part >= static_cast<index_t>(seen.size())) return false;
        ++seen[static_cast<std::size_t>(part)];
      }
    }
    const bool once = std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; });
    const bool fits_names =
        runs == 1 ? dims.size() + 1 >= groups.size() : runs == 0 && dims.size() == groups.size();
    return once && fits_names;
  };
  const bool flips = A.is_flipped();
  if (fits(p.in, flips ? A.oshape() : A.ishape()) && fits(p.out, flips ? A.ishape() : A.oshape())) {
    return;
  }
  throw ShapeError(who(A) + "the pattern does not belong to the shape: got " + A.shape().str());
}

Dims names_or(const std::optional<Dims>& given, const Dims& names, const char* what) {
  if (!given) return names;
  if (given->size() == names.size()) return *given;
  throw ValueError(std::string("[Rearrange] ") + what + ": got names " + given->str() +
                   ", expected " + std::to_string(names.size()) + ", one per axis or group");
}

}  // namespace

const LinopType& linop_types::rearrange() {
  return PALIMPSEST_LINOP_TYPE(.name = "Rearrange",
                               .functions = {.fn = rearrange_fn,
                                             .adj_fn = rearrange_adj_fn,
                                             .normal_fn = unchanged,
                                             .split = rearrange_split,
                                             .size = rearrange_size},
                               .adj_normal_fn = unchanged, .normal = unitary_normal,
                               .check = check_rearrange);
}

NamedLinop Rearrange(std::string_view pattern, RearrangeOptions options) {
  const std::size_t arrow_at = pattern.find("->");
  if (arrow_at == std::string_view::npos) refuse_pattern(pattern, "expected 'in -> out'");
  const auto left = parsed_side(pattern, pattern.substr(0, arrow_at));
  const auto right = parsed_side(pattern, pattern.substr(arrow_at + 2));
  Dims parts;
  bool has_run = false;
  for (const Dims& group : left) {
    for (const ND& d : group) {
      has_run = has_run || d.is_ellipsis();
      if (d.is_concrete() && !parts.contains(d)) parts.push_back(d);
    }
  }
  const Side in = resolved(pattern, left, parts), out = resolved(pattern, right, parts);
  std::size_t found = 0;
  for (const auto& group : out.groups) found += group.size();
  if (found != parts.size() + (has_run ? 1 : 0))
    refuse_pattern(pattern, "the sides have different names");

  Extents sizes(parts.size(), kUnknown);
  for (const auto& [d, n] : options.sizes) {
    const auto i = parts.index_of(d);
    if (!i)
      refuse_pattern(pattern, "size of dim '" + d.str() + "': expected one of " + parts.str());
    if (n < 1) refuse_pattern(pattern, "size of dim '" + d.str() + "': got " + std::to_string(n));
    sizes[*i] = n;
  }
  for (const Groups& groups : {in.groups, out.groups}) {
    for (const auto& group : groups) {
      const auto unknown = std::count_if(group.begin(), group.end(), [&](index_t part) {
        return part != kEllipsis && sizes[static_cast<std::size_t>(part)] == kUnknown;
      });
      if (unknown > 1)
        refuse_pattern(pattern, "size: more than one is unknown in a group. Try .sizes");
    }
  }
  return make_linop(
      linop_types::rearrange(),
      NamedShape(names_or(options.in, in.names, "in"), names_or(options.out, out.names, "out")), {},
      {{"in", groups_attribute(in.groups)},
       {"out", groups_attribute(out.groups)},
       {"sizes", Attribute(sizes)}});
}

}  // namespace palimpsest
