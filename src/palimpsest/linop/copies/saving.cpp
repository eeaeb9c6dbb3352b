// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/copies/saving.hpp"

#include <algorithm>
#include <unordered_map>

#include "palimpsest/linop/copies/manifest.hpp"
#include "palimpsest/linop/copies/tree_map.hpp"
#include "palimpsest/linop/core/derived.hpp"

namespace palimpsest {
namespace {

using manifest::Json;
using manifest::written;

void check_can_be_saved(const NamedLinop& A) {
  if (A.node()->data.user) {
    throw FormatError(who(A) +
                      "save: it is made of a closure, which has no name to be found by. Try to "
                      "register a LinopType");
  }
  if (find_linop(A.type().name) != &A.type()) {
    throw FormatError(who(A) + "save: unknown type '" + A.type().name +
                      "'. Try PALIMPSEST_REGISTER_LINOP");
  }
}

using Originals = std::unordered_map<const Container*, std::shared_ptr<Container>>;

class OperatorWriter {
 public:
  OperatorWriter() = default;
  // Does not write the values of variables with an original, but appends that to `left_out`.
  OperatorWriter(Originals originals, std::vector<std::shared_ptr<Container>>& left_out)
      : originals_(std::move(originals)), left_out_(&left_out) {}

  // `nodes` have variables of their own, over no more than they use.
  Json write(const std::vector<NamedLinop>& nodes, const NamedLinop& root) {
    Json all = Json::array();
    for (const NamedLinop& node : nodes) {
      all.push_back(written_node(node));
      numbers_.emplace(node.node().get(), numbers_.size());
    }
    return {{"root", numbers_.at(root.node().get())},
            {"nodes", std::move(all)},
            {"variables", std::move(variables_)}};
  }
  const ArchiveWriter& archive() const { return archive_; }

 private:
  Json written_node(const NamedLinop& A) {
    Json json = {{"type", A.type().name}, {"version", A.type().version}};
    if (A.is_flipped()) json["adjoint"] = true;
    if (A.node()->data.self_adjoint) json["self_adjoint"] = true;
    json["name"] = A.name();
    json["ishape"] = written(A.ishape());
    json["oshape"] = written(A.oshape());
    json["shapes"] = Json::array();
    for (const auto& [name, value] : with_sizes_in(A.shape(), {}).others()) {
      json["shapes"].push_back(Json::array({name, written(value)}));
    }
    json["sizes"] = written(A.recorded_sizes());
    json["params"] = Json::array();
    for (const auto& [name, p] : A.params()) {
      if (!follows_from_others(A, name, p))
        json["params"].push_back(Json::array({name, written_parameter(p)}));
    }
    json["attributes"] = Json::array();
    for (const auto& [name, a] : A.attrs()) {
      json["attributes"].push_back(Json::array({name, written(a, archive_)}));
    }
    json["children"] = Json::array();
    std::vector<std::size_t> children;
    for (const NamedLinop& child : A.linops()) {
      children.push_back(numbers_.at(child.node().get()));
      json["children"].push_back(children.back());
    }
    if (!sizes_.add(children)) {
      throw FormatError(who(A) + "save: the tree is too deep, or has too many parts");
    }
    return json;
  }

  Json written_parameter(const Parameter& p) {
    if (!p.present()) return nullptr;
    const Container* container = p.variable().container_ptr().get();
    const auto [at, is_new] = variable_numbers_.try_emplace(container, variables_.size());
    if (is_new) {
      Json json = {{"trainable", p.is_trainable()}};
      const auto original = originals_.find(container);
      if (original != originals_.end()) {
        json["given"] = left_out_->size();
        left_out_->push_back(original->second);
      } else {
        json["tensor"] =
            archive_.add(p.variable().get_value({.borrow = true, .return_internal_type = true}));
      }
      if (!p.variable().name().empty()) json["name"] = p.variable().name();
      variables_.push_back(std::move(json));
    } else if (p.is_trainable()) {
      variables_[at->second]["trainable"] = true;
    }
    return {{"variable", at->second}, {"view", p.is_view() ? written(p.layout()) : Json()}};
  }

  ArchiveWriter archive_{std::string(manifest::kKind)};
  Json variables_ = Json::array();
  std::unordered_map<const LinopNode*, std::size_t> numbers_;
  std::unordered_map<const Container*, std::size_t> variable_numbers_;
  manifest::TreeSize sizes_;
  Originals originals_;
  std::vector<std::shared_ptr<Container>>* left_out_ = nullptr;
};

// Calls finish(archive, content) with the operator as it is now. `left_out` is null to write all
// values.
template <class Finish>
auto write(const NamedLinop& original, std::vector<std::shared_ptr<Container>>* left_out,
           Finish finish) {
  original.type();
  const NamedLinop A = original.to(Device{});
  TreeMap tree;
  tree.collect(A);
  for (const NamedLinop& node : tree.nodes()) {
    check_can_be_saved(node);
    for (const auto& [name, p] : node.params()) {
      if (p.present() && !follows_from_others(node, name, p)) p.refresh();
    }
  }
  MemoryMap memory;
  {
    const HeldContainers held(tree.containers(), "save");
    tree.read(memory);
    const auto groups = memory.groups();
    const bool is_sparse = std::any_of(groups.begin(), groups.end(), [](const auto& group) {
      return 2 * group.used < group.span;
    });
    // Copies where more than half of the span is gaps: a file would hold the gaps too.
    is_sparse ? memory.copy() : memory.lazy_copy();
  }
  TreeMap copies;
  copies.collect(tree.mapped(memory, A));
  OperatorWriter writer =
      left_out ? OperatorWriter(tree.whole_copies(), *left_out) : OperatorWriter();
  const Json content = writer.write(copies.nodes(), copies.nodes().back());
  std::string text;
  try {
    text = io_detail::text_of_json(content);
  } catch (const FormatError& error) {
    throw FormatError(who(A) + "save: " + error.what());
  }
  return finish(writer.archive(), text);
}

}  // namespace

void save(const NamedLinop& A, const std::string& path) {
  write(A, nullptr, [&](const ArchiveWriter& archive, const std::string& content) {
    archive.save(path, content);
  });
}

std::vector<std::byte> to_bytes(const NamedLinop& A) {
  return write(A, nullptr, [](const ArchiveWriter& archive, const std::string& content) {
    return archive.to_bytes(content);
  });
}

std::vector<std::byte> to_bytes(const NamedLinop& A,
                                std::vector<std::shared_ptr<Container>>& left_out) {
  return write(A, &left_out, [](const ArchiveWriter& archive, const std::string& content) {
    return archive.to_bytes(content);
  });
}

}  // namespace palimpsest
