// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/copies/manifest.hpp"

#include <cmath>

#include "palimpsest/named/inner_dimension.hpp"

namespace palimpsest::manifest {
namespace {

// More than an array has axes, since some shapes name several arrays.
constexpr std::size_t kMaxNames = 4 * kMaxRank;
constexpr std::int64_t kMaxVisited = 1'000'000, kMaxTotal = 20'000'000;

// JSON has no infinities.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_of(const CheckedJson& json) {
  if (json.raw().is_number()) return json.raw().get<double>();
  const std::string& text = json.text();
  if (text == "nan") return std::nan("");
  if (text != "inf" && text != "-inf") json.fail("is not a number");
  return text == "inf" ? INFINITY : -INFINITY;
}

NamedDimension dim_of(const CheckedJson& json) {
  try {
    return stored_dimension(json.text());
  } catch (const ValueError& error) {
    json.fail(std::string("names no dimension: ") + error.what());
  }
}

Extents integers_of(const CheckedJson& json) {
  if (json.size() > kMaxRank) json.fail("has too many axes");
  Extents result;
  for (std::size_t k = 0; k < json.size(); ++k) {
    result.push_back(json.element(k, "axis").integer());
  }
  return result;
}

Json list_of(std::span<const index_t> values) {
  return Json(std::vector<index_t>(values.begin(), values.end()));
}

}  // namespace

Json written(const Dims& dims) {
  Json json = Json::array();
  for (const NamedDimension& d : dims) json.push_back(d.str());
  return json;
}

Json written(const DimMap& sizes) {
  Json json = Json::array();
  for (const auto& [d, n] : sizes) json.push_back(Json::array({d.str(), n}));
  return json;
}

Json written(const ShapeValue& value) {
  if (value.dims()) return written(*value.dims());
  if (value.dim()) return value.dim()->str();
  return {{"map", written(*value.map())}};
}

Json written(const ElementLayout& layout) {
  return {{"dtype", std::string(name_of(layout.dtype))},
          {"shape", list_of(layout.shape)},
          {"strides", list_of(layout.strides)},
          {"offset", layout.offset}};
}

Json written(const Attribute& a, ArchiveWriter& archive) {
  switch (a.kind()) {
    case Attribute::Kind::absent:
      return nullptr;
    case Attribute::Kind::boolean:
      return a.as_bool();
    case Attribute::Kind::integer:
      return a.as_integer();
    case Attribute::Kind::real:
      return {{"real", number(a.as_real())}};
    case Attribute::Kind::complex:
      return {
          {"complex", Json::array({number(a.as_complex().real()), number(a.as_complex().imag())})}};
    case Attribute::Kind::string:
      return {{"string", a.as_string()}};
    case Attribute::Kind::dims:
      return {{"dims", written(a.as_dims())}};
    case Attribute::Kind::device:
      return {{"device", a.as_device().str()}};
    case Attribute::Kind::tensor:
      return {{"tensor", archive.add(a.as_tensor())}};
    case Attribute::Kind::list:
      break;
  }
  Json json = Json::array();
  for (const Attribute& entry : a.as_list()) json.push_back(written(entry, archive));
  return json;
}

Dims dims_of(const CheckedJson& json) {
  if (json.size() > kMaxNames) json.fail("has too many names");
  Dims dims;
  for (std::size_t k = 0; k < json.size(); ++k) dims.push_back(dim_of(json.element(k, "name")));
  return dims;
}

DimMap sizes_of(const CheckedJson& json) {
  if (json.size() > kMaxNames) json.fail("has too many names");
  DimMap sizes;
  for (std::size_t k = 0; k < json.size(); ++k) {
    const CheckedJson entry = json.element(k, "size");
    if (entry.size() != 2) entry.fail("is not a pair");
    sizes.emplace(dim_of(entry.element(0, "name")), entry.element(1, "number").size_value());
  }
  return sizes;
}

ShapeValue shape_value_of(const CheckedJson& json) {
  if (json.raw().is_array()) return dims_of(json);
  if (json.raw().is_string()) return dim_of(json);
  return sizes_of(json.at("map"));
}

ElementLayout layout_of(const CheckedJson& json) {
  ElementLayout layout;
  const CheckedJson dtype = json.at("dtype");
  try {
    layout.dtype = parse_dtype(dtype.text());
  } catch (const ValueError& error) {
    dtype.fail(std::string("is not a dtype: ") + error.what());
  }
  layout.shape = integers_of(json.at("shape"));
  layout.strides = integers_of(json.at("strides"));
  layout.offset = json.at("offset").size_value();
  if (layout.shape.size() != layout.strides.size()) json.fail("has shape and strides of two ranks");
  if (layout.offset > (index_t{1} << 40)) json.fail("begins outside its storage");
  // Far below the overflow of their products. The variable's own check finds elements outside of
  // it.
  constexpr index_t kLimit = index_t{1} << 40;
  for (std::size_t k = 0; k < layout.shape.size(); ++k) {
    if (layout.shape[k] < 0 || layout.shape[k] > kLimit) json.fail("has an extent out of range");
    if (std::abs(layout.strides[k]) > (index_t{1} << 20) * layout.shape[k] + kLimit) {
      json.fail("has a stride outside its storage");
    }
  }
  index_t reach = layout.offset;
  for (std::size_t k = 0; k < layout.shape.size(); ++k) {
    const index_t steps = layout.shape[k] - 1, stride = std::abs(layout.strides[k]);
    if (steps <= 0 || stride == 0) continue;
    if (stride > kLimit / steps) json.fail("reaches outside its storage");
    reach += steps * stride;
  }
  if (reach > 16 * kLimit) json.fail("reaches outside its storage");
  return layout;
}

Attribute attribute_of(const CheckedJson& json, const Archive& archive) {
  const Json& raw = json.raw();
  if (raw.is_null()) return {};
  if (raw.is_boolean()) return json.flag();
  if (raw.is_number()) return json.integer();
  if (raw.is_array()) {
    Attribute::List list;
    for (std::size_t k = 0; k < json.size(); ++k) {
      list.push_back(attribute_of(json.element(k, "entry"), archive));
    }
    return list;
  }
  if (json.has("real")) return number_of(json.at("real"));
  if (json.has("string")) return json.at("string").text();
  if (json.has("dims")) return dims_of(json.at("dims"));
  if (json.has("tensor")) {
    return archive.tensor(static_cast<std::size_t>(json.at("tensor").size_value()));
  }
  if (json.has("complex")) {
    const CheckedJson parts = json.at("complex");
    if (parts.size() != 2) parts.fail("is not a pair");
    return std::complex<double>(number_of(parts.element(0, "part")),
                                number_of(parts.element(1, "part")));
  }
  if (!json.has("device")) json.fail("is not an attribute");
  try {
    return Device::parse(json.at("device").text());
  } catch (const ValueError& error) {
    json.fail(std::string("names no device: ") + error.what());
  }
}

bool TreeSize::add(std::span<const std::size_t> children) {
  std::int64_t size = 1;
  for (const std::size_t child : children) size += sizes_[child];
  size = std::min(size, kMaxVisited + 1);
  sizes_.push_back(size);
  total_ += children.empty() ? 1 : size;
  return size <= kMaxVisited && total_ <= kMaxTotal;
}

}  // namespace palimpsest::manifest
