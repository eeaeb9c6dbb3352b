// SPDX-License-Identifier: Apache-2.0
// Every value of a file is checked: numbers against the data, trees against their size, and every
// node by its type.
#include <algorithm>

#include "palimpsest/base/failure.hpp"
#include "palimpsest/linop/copies/manifest.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/run/stretched_values.hpp"

namespace palimpsest {
namespace {

using manifest::CheckedJson;
using manifest::Json;

constexpr std::size_t kMaxNodes = 1'000'000;

class OperatorReader {
 public:
  OperatorReader(const Archive& archive, std::string_view file,
                 std::span<const std::shared_ptr<Container>> given)
      : archive_(archive),
        given_(given),
        content_(io_detail::parse_json(archive.content())),
        root_(content_, file, "the content") {}

  NamedLinop read(std::string_view file) {
    if (archive_.kind() != manifest::kKind) {
      io_detail::fail_format(
          file, "kind: got " + io_detail::quoted(archive_.kind()) + ", expected 'operator'");
    }
    const CheckedJson variables = root_.at("variables"), nodes = root_.at("nodes");
    if (nodes.size() > kMaxNodes) nodes.fail("has too many nodes");
    for (std::size_t i = 0; i < variables.size(); ++i) {
      variables_.push_back(variable_of(variables.element(i, "variable")));
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes_.push_back(node_of(nodes.element(i, "node")));
    }
    return nodes_[root_.at("root").index(nodes_.size())];
  }

 private:
  Parameter variable_of(const CheckedJson& json) const {
    const bool is_trainable = json.at("trainable").flag();
    try {
      if (json.has("given")) {
        const auto& container = given_[json.at("given").index(given_.size())];
        return Parameter(SharedVariable(container->type(), container)).as_trainable(is_trainable);
      }
      const KeepStretchedValues keep;
      const Tensor& value =
          archive_.tensor(static_cast<std::size_t>(json.at("tensor").size_value()));
      return Parameter(shared(value, {.name = json.has("name") ? json.at("name").text() : "",
                                      .borrow = true,
                                      .strict = true,
                                      .shape = value.shape()}))
          .as_trainable(is_trainable);
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      json.fail(std::string("cannot be made: ") + error.what());
    }
  }

  Parameter parameter_of(const CheckedJson& json) const {
    if (json.is_null()) return {};
    const Parameter& whole = variables_[json.at("variable").index(variables_.size())];
    const CheckedJson view = json.at("view");
    return view.is_null() ? whole : whole.view(manifest::layout_of(view));
  }

  NamedLinop node_of(const CheckedJson& json) {
    try {
      return made(json);
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      json.fail(std::string("cannot be made: ") + error.what());
    } catch (const std::length_error& error) {
      json.fail(std::string("cannot be made: ") + error.what());
    } catch (const std::out_of_range& error) {
      json.fail(std::string("cannot be made: ") + error.what());
    }
  }

  static const LinopType& type_of(const CheckedJson& json) {
    const LinopType* type = find_linop(json.at("type").text());
    if (!type) json.fail("is of an unknown type " + io_detail::quoted(json.at("type").text()));
    if (json.at("version").integer() > type->version) {
      json.fail("is newer than the type '" + type->name + "' here");
    }
    return *type;
  }

  // [[name, value]]
  template <class Read>
  static auto named(const CheckedJson& list, Read read) {
    std::vector<std::pair<std::string, decltype(read(list))>> result;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const CheckedJson entry = list.element(k, "entry");
      if (entry.size() != 2) entry.fail("is not a pair");
      const std::string& name = entry.element(0, "name").text();
      for (const auto& other : result) {
        if (other.first == name) entry.fail("is there twice");
      }
      result.emplace_back(name, read(entry.element(1, name)));
    }
    return result;
  }

  NamedLinop made(const CheckedJson& json) {
    const LinopType& type = type_of(json);
    LinopData data;
    data.type = &type;
    data.functions = type.functions;
    data.adj_normal_fn = type.adj_normal_fn;
    if (json.has("adjoint") && json.at("adjoint").flag()) exchange_functions(data);
    data.self_adjoint = json.has("self_adjoint") && json.at("self_adjoint").flag();
    data.name = json.at("name").text();
    NamedShape::Others others = named(json.at("shapes"), manifest::shape_value_of);
    data.shape = with_sizes_in(NamedShape(manifest::dims_of(json.at("ishape")),
                                          manifest::dims_of(json.at("oshape")), others),
                               manifest::sizes_of(json.at("sizes")));
    data.params =
        named(json.at("params"), [&](const CheckedJson& value) { return parameter_of(value); });
    data.attrs = named(json.at("attributes"), [&](const CheckedJson& value) {
      return manifest::attribute_of(value, archive_);
    });
    check_axes(json, data);
    const CheckedJson children = json.at("children");
    std::vector<std::size_t> numbers;
    for (std::size_t k = 0; k < children.size(); ++k) {
      numbers.push_back(children.element(k, "child").index(nodes_.size()));
      data.children.push_back(nodes_[numbers.back()]);
    }
    if (!sizes_.add(numbers)) json.fail("is part of too deep a tree, or of one of too many parts");
    if (!type.assemble && !data.children.empty()) json.fail("has children but is not a container");
    if (type.assemble) check_assembled(json, data);
    return from_arguments(std::move(data));
  }

  static std::vector<index_t> integers_in(const Attribute& a) {
    if (a.kind() == Attribute::Kind::integer) return {a.as_integer()};
    std::vector<index_t> result;
    if (a.kind() != Attribute::Kind::list) return result;
    for (const Attribute& entry : a.as_list()) {
      if (entry.kind() == Attribute::Kind::integer) result.push_back(entry.as_integer());
    }
    return result;
  }

  // Axes are those that the shapes name, each once; lists per axis have the same length.
  static void check_axes(const CheckedJson& json, const LinopData& data) {
    // An ellipsis stands for any number of axes.
    const bool is_open = data.shape.ishape().count(ND::ellipsis()) > 0 ||
                         data.shape.oshape().count(ND::ellipsis()) > 0;
    const auto n = static_cast<index_t>(
        is_open ? kMaxRank : std::max(data.shape.ishape().size(), data.shape.oshape().size()));
    std::size_t n_axes = 0;
    for (const auto& [name, a] : data.attrs) {
      if (!name.starts_with("axes") && name != "axis") continue;
      std::vector<index_t> axes = integers_in(a);
      if (name == "axes") n_axes = axes.size();
      std::sort(axes.begin(), axes.end());
      const bool is_repeated = std::adjacent_find(axes.begin(), axes.end()) != axes.end();
      const bool is_outside = !axes.empty() && (axes.front() < -n || axes.back() >= n);
      if (is_repeated || is_outside) json.fail("has axes that its shapes have not: " + a.str());
    }
    for (const auto& [name, a] : data.attrs) {
      const bool is_per_axis = name == "starts" || name == "stops" || name == "counts";
      if (is_per_axis && integers_in(a).size() != n_axes) {
        json.fail("has another number of " + name + " than of axes");
      }
    }
  }

  // A container has the shape that its children give it.
  static void check_assembled(const CheckedJson& json, const LinopData& data) {
    std::vector<NamedLinop> children = data.children;
    const NamedShape::Others others = with_sizes_in(data.shape, {}).others();
    const NamedShape shape = data.type->assemble(children, {.others = others, .attrs = data.attrs});
    const NamedShape expected = data.flipped ? shape.H() : shape;
    if (expected.ishape() == data.shape.ishape() && expected.oshape() == data.shape.oshape())
      return;
    json.fail("has the shape " + data.shape.str() + ", but its children have " + expected.str());
  }

  const Archive& archive_;
  std::span<const std::shared_ptr<Container>> given_;
  Json content_;
  CheckedJson root_;
  std::vector<Parameter> variables_;
  std::vector<NamedLinop> nodes_;
  manifest::TreeSize sizes_;
};

NamedLinop read_operator(const Archive& archive, std::string_view file,
                         std::span<const std::shared_ptr<Container>> given = {}) {
  // Derived values are computed on first use.
  const DeferredDerivations deferred;
  return OperatorReader(archive, file, given).read(file);
}

}  // namespace

NamedLinop load(const std::string& path, const ArchiveOptions& options) {
  return read_operator(Archive::load(path, options), path);
}

NamedLinop from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options) {
  return read_operator(Archive::from_bytes(bytes, options, "operator"), "operator");
}

NamedLinop from_bytes(std::span<const std::byte> bytes,
                      std::span<const std::shared_ptr<Container>> given) {
  return read_operator(Archive::from_bytes(bytes, {}, "operator"), "operator", given);
}

}  // namespace palimpsest
