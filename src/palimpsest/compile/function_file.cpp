// SPDX-License-Identifier: Apache-2.0
// The content of an archive of functions:
//
//     {"containers": [{"name", "type", "strict", "allow_downcast", "tensor"} or {"given"}],
//      "functions": [{"name", "allow_gc", "profile", "config", "graph", "arguments", "implicit",
//                     "containers", "n_container_inputs", "outputs", "is_single", "updated",
//                     "mode", "trust_input", "budget"}]}
//
// Of shared variables: {"containers": [..], "variables": [number of its container, ..]}. Of a
// graph: the graph. For graphs and types see graph_file.hpp.
#include "palimpsest/compile/function_file.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/base/failure.hpp"
#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/compile/compile.hpp"
#include "palimpsest/compile/graph_file.hpp"
#include "palimpsest/ops/registry.hpp"
#include "palimpsest/run/function_state.hpp"
#include "palimpsest/run/stretched_values.hpp"
#include "palimpsest/tensor/checked_json.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

using io_detail::CheckedJson;
using io_detail::Json;
using Cells = std::vector<std::shared_ptr<Container>>;

constexpr std::string_view kKind = "functions", kSharedKind = "shared variables",
                           kGraphKind = "graph";

// All cells of some functions, each once, locked for reading while this lives.
class HeldCells {
 public:
  explicit HeldCells(std::span<const Function> functions) {
    for (const Function& f : functions) {
      for (const auto& cell : f.shared_variables()) add(cell);
    }
    held_.emplace(cells_, "save");
  }
  explicit HeldCells(std::span<const SharedVariable> variables) {
    for (const SharedVariable& v : variables) {
      if (!v.defined()) throw ValueError("[save_shared] got an undefined variable");
      add(v.container_ptr());
    }
    held_.emplace(cells_, "save");
  }
  const Cells& cells() const { return cells_; }
  int index_of(const std::shared_ptr<Container>& cell) const { return *index_.find(cell.get()); }

 private:
  void add(const std::shared_ptr<Container>& cell) {
    const auto [at, is_new] = index_.try_emplace(cell.get(), static_cast<int>(cells_.size()));
    if (is_new) cells_.push_back(cell);
  }

  Cells cells_;
  PointerMap<const Container, int> index_;
  std::optional<HeldContainers> held_;
};

// -- writing --------------------------------------------------------------------------------------

Json written_choice(const std::optional<bool>& value) { return value ? Json(*value) : Json(); }

// The caller holds it.
Json written_cell(const Container& cell, ArchiveWriter& archive) {
  return {{"name", cell.name()},
          {"type", written(cell.type())},
          {"strict", cell.strict()},
          {"allow_downcast", written_choice(cell.allow_downcast())},
          {"tensor", archive.add(cell.held_value())}};
}

class FunctionWriter {
 public:
  explicit FunctionWriter(std::span<const Function> functions)
      : functions_(functions), cells_(functions) {}

  // Calls finish(archive, content) while the containers are held. Appends the containers to
  // `left_out` instead of writing them, unless that is null.
  template <class Finish>
  auto write(Finish finish, Cells* left_out = nullptr) {
    ops::register_library_ops();
    Json content = {{"containers", Json::array()}, {"functions", Json::array()}};
    for (const auto& cell : cells_.cells()) {
      if (left_out) {
        Json given = {{"given", left_out->size()}};
        content["containers"].push_back(std::move(given));
        left_out->push_back(cell);
      } else {
        content["containers"].push_back(written_cell(*cell, archive_));
      }
    }
    for (const Function& f : functions_) content["functions"].push_back(written_function(f));
    return finish(archive_, io_detail::text_of_json(content));
  }

 private:
  Json written_function(const Function& f) {
    const FunctionState& impl = f.impl();
    const Program& program = *impl.program;
    Json json = {{"name", impl.name},
                 {"allow_gc", impl.pool->allows_gc()},
                 {"profile", impl.profiler != nullptr}};
    json["config"] = Json::object();
    for (const std::string& key : Config::keys()) json["config"][key] = program.config->get(key);
    json["graph"] = written(program.graph, archive_);
    json["arguments"] = Json::array();
    for (const ArgumentSpec& a : program.arguments) {
      json["arguments"].push_back({{"name", a.name},
                                   {"type", written(a.type)},
                                   {"container", a.container},
                                   {"strict", a.filter.strict},
                                   {"allow_downcast", written_choice(a.filter.allow_downcast)},
                                   {"is_mutable", a.is_mutable},
                                   {"borrow", a.borrow}});
    }
    json["implicit"] = Json::array();
    for (const ImplicitSpec& s : program.implicit) {
      json["implicit"].push_back({{"name", s.name}, {"container", s.container}});
    }
    json["containers"] = Json::array();
    for (std::size_t c = 0; c < program.containers.size(); ++c) {
      json["containers"].push_back({{"cell", cells_.index_of(impl.containers[c])},
                                    {"is_updated", program.containers[c].is_updated},
                                    {"is_lent", program.containers[c].is_lent}});
    }
    json["n_container_inputs"] = program.n_container_inputs;
    json["outputs"] = Json::array();
    for (const OutOptions& out : program.outputs) {
      json["outputs"].push_back(
          {{"borrow", out.borrow}, {"return_internal_type", out.return_internal_type}});
    }
    json["is_single"] = program.is_single;
    json["updated"] = program.updated;
    json["mode"] = std::string(program.mode.name());
    json["places_joins"] = program.places_joins;
    json["keeps_bits"] = program.keeps_bits;
    json["trust_input"] = program.trust_input;
    json["budget"] = program.budget ? Json(*program.budget) : Json();
    return json;
  }

  std::span<const Function> functions_;
  HeldCells cells_;
  ArchiveWriter archive_{std::string(kKind)};
};

// -- reading --------------------------------------------------------------------------------------

std::optional<bool> choice_of(const CheckedJson& json) {
  return json.is_null() ? std::optional<bool>() : json.flag();
}

std::shared_ptr<Container> cell_of(const CheckedJson& json, const Archive& archive) {
  const Tensor& value = archive.tensor(static_cast<std::size_t>(json.at("tensor").size_value()));
  const KeepStretchedValues keep;
  try {
    return std::make_shared<Container>(
        type_of(json.at("type")), value,
        ContainerOptions{.name = json.at("name").text(),
                         .borrow = true,
                         .strict = json.at("strict").flag(),
                         .allow_downcast = choice_of(json.at("allow_downcast"))});
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    json.fail(std::string("cannot be made: ") + error.what());
  }
}

void check_kind(const Archive& archive, std::string_view file, std::string_view kind) {
  if (archive.kind() == kind) return;
  io_detail::fail_format(file, "kind: got " + io_detail::quoted(archive.kind()) + ", expected '" +
                                   std::string(kind) + "'");
}

class FunctionReader {
 public:
  FunctionReader(const Archive& archive, std::string_view file,
                 std::span<const std::shared_ptr<Container>> given = {})
      : archive_(archive),
        given_(given),
        file_(file),
        content_(io_detail::parse_json(archive.content())),
        root_(content_, file_, "the content") {}

  std::vector<Function> read() {
    check_kind(archive_, file_, kKind);
    ops::register_library_ops();
    const CheckedJson cells = root_.at("containers"), functions = root_.at("functions");
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const CheckedJson cell = cells.element(c, "container");
      cells_.push_back(cell.has("given") ? given_[cell.at("given").index(given_.size())]
                                         : cell_of(cell, archive_));
    }
    std::vector<Function> result;
    for (std::size_t i = 0; i < functions.size(); ++i) {
      result.push_back(function_of(functions.element(i, "function")));
    }
    return result;
  }

 private:
  std::shared_ptr<const Config> config_of(const CheckedJson& json) const {
    auto config = std::make_shared<Config>();
    if (!json.raw().is_object()) json.fail("is not an object");
    const std::vector<std::string> known = Config::keys();
    for (const auto& [key, value] : json.raw().items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        continue;  // of another version
      try {
        config->set(key, json.at(key.c_str()).text());
      } catch (const ValueError& error) {
        json.fail(error.what());
      }
    }
    return config;
  }

  int container_index(const CheckedJson& json, const Program& program, bool may_be_none) const {
    if (may_be_none && json.integer() == -1) return -1;
    return static_cast<int>(json.index(program.containers.size()));
  }

  Function function_of(const CheckedJson& json) const {
    auto program = make_program(graph_of(json.at("graph"), archive_));
    Cells cells = read_containers(json.at("containers"), *program);
    read_inputs(json, cells, *program);
    read_outputs(json, cells, *program);
    program->mode = mode_of(json.at("mode"));
    program->places_joins = json.at("places_joins").flag();
    program->keeps_bits = json.at("keeps_bits").flag();
    program->trust_input = json.at("trust_input").flag();
    if (!json.at("budget").is_null()) program->budget = json.at("budget").integer();
    program->config = config_of(json.at("config"));
    check_overwritten(*program, json);
    auto impl = std::make_shared<FunctionState>(std::move(program), std::move(cells),
                                                json.at("name").text(), json.at("profile").flag());
    impl->pool->set_allow_gc(json.at("allow_gc").flag());
    return Function(std::move(impl));
  }

  Cells read_containers(const CheckedJson& containers, Program& program) const {
    Cells cells;
    PointerSet<const Container> distinct;
    for (std::size_t c = 0; c < containers.size(); ++c) {
      const CheckedJson entry = containers.element(c, "container");
      const auto& cell = cells_[entry.at("cell").index(cells_.size())];
      if (!distinct.insert(cell.get())) entry.fail("is used twice");
      program.containers.push_back({cell->type(),
                                    cell->name(),
                                    {SharedVariable(cell->type(), cell).var()},
                                    entry.at("is_updated").flag(),
                                    entry.at("is_lent").flag()});
      cells.push_back(cell);
    }
    return cells;
  }

  void read_inputs(const CheckedJson& json, const Cells& cells, Program& program) const {
    const std::vector<Variable>& inputs = program.graph.inputs();
    const CheckedJson arguments = json.at("arguments"), implicit = json.at("implicit");
    program.n_container_inputs = json.at("n_container_inputs").index(cells.size() + 1);
    if (arguments.size() + program.n_container_inputs != inputs.size()) {
      json.fail("has another number of inputs than its graph");
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const CheckedJson a = arguments.element(i, "argument");
      ArgumentSpec spec;
      spec.variable = inputs[i];
      spec.type = type_of(a.at("type"));
      if (!(spec.type == spec.variable.type())) a.fail("is of another type than in the graph");
      spec.name = a.at("name").text();
      spec.container = container_index(a.at("container"), program, true);
      spec.filter = {a.at("strict").flag(), choice_of(a.at("allow_downcast"))};
      spec.is_mutable = a.at("is_mutable").flag();
      spec.borrow = a.at("borrow").flag();
      program.arguments.push_back(std::move(spec));
    }
    for (std::size_t c = 0; c < program.n_container_inputs; ++c) {
      const TensorType& in_graph = inputs[arguments.size() + c].type();
      if (!(in_graph == cells[c]->type())) json.fail("has a container of another type");
    }
    for (std::size_t i = 0; i < implicit.size(); ++i) {
      const CheckedJson entry = implicit.element(i, "implicit input");
      const int c = container_index(entry.at("container"), program, false);
      program.implicit.push_back({program.containers[static_cast<std::size_t>(c)].variables[0],
                                  entry.at("name").text(), c});
    }
  }

  static void read_outputs(const CheckedJson& json, const Cells& cells, Program& program) {
    const CheckedJson outputs = json.at("outputs"), updated = json.at("updated");
    if (outputs.size() + updated.size() != program.graph.outputs().size()) {
      json.fail("has another number of outputs than its graph");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const CheckedJson out = outputs.element(i, "output");
      program.outputs.push_back({out.at("borrow").flag(), out.at("return_internal_type").flag()});
    }
    for (std::size_t u = 0; u < updated.size(); ++u) {
      const auto c = updated.element(u, "update").index(cells.size());
      const TensorType& value = program.graph.outputs()[outputs.size() + u].type();
      if (!cells[c]->type().is_super(value) && !value.is_super(cells[c]->type())) {
        updated.fail("stores a value of another type");
      }
      if (!program.containers[c].is_updated) updated.fail("names a container that is not updated");
      program.updated.push_back(static_cast<int>(c));
    }
    program.is_single = json.at("is_single").flag();
    if (program.is_single && outputs.size() != 1) json.fail("has no single output");
  }

  // Checks that a file overwrites only inputs that function() would allow to be overwritten.
  void check_overwritten(Program& program, const CheckedJson& json) const {
    program.finish();
    for (std::size_t i = 0; i < program.n_inputs(); ++i) {
      if (!program.overwritten[i]) continue;
      const bool may = i < program.arguments.size()
                           ? program.arguments[i].is_mutable
                           : program.containers[i - program.arguments.size()].is_updated;
      if (!may) json.fail("overwrites an input that is not lent");
    }
  }

  static Mode mode_of(const CheckedJson& json) {
    for (Mode::Base base : {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite}) {
      if (name_of(base) == json.text()) return base;
    }
    json.fail("is not a mode");
  }

  const Archive& archive_;
  std::span<const std::shared_ptr<Container>> given_;
  std::string file_;
  Json content_;
  CheckedJson root_;
  Cells cells_;
};

}  // namespace

void save_functions(const std::string& path, std::span<const Function> functions) {
  FunctionWriter(functions).write([&](const ArchiveWriter& archive, const std::string& content) {
    archive.save(path, content);
  });
}

std::vector<std::byte> functions_to_bytes(std::span<const Function> functions) {
  return FunctionWriter(functions).write(
      [](const ArchiveWriter& archive, const std::string& content) {
        return archive.to_bytes(content);
      });
}

std::vector<Function> load_functions(const std::string& path, const ArchiveOptions& options) {
  const Archive archive = Archive::load(path, options);
  return FunctionReader(archive, path).read();
}

std::vector<Function> functions_from_bytes(std::span<const std::byte> bytes) {
  const Archive archive = Archive::from_bytes(bytes, {}, "functions");
  return FunctionReader(archive, "functions").read();
}

std::vector<std::byte> functions_to_bytes(std::span<const Function> functions,
                                          std::vector<std::shared_ptr<Container>>& left_out) {
  return FunctionWriter(functions).write(
      [](const ArchiveWriter& archive, const std::string& content) {
        return archive.to_bytes(content);
      },
      &left_out);
}

std::vector<Function> functions_from_bytes(std::span<const std::byte> bytes,
                                           std::span<const std::shared_ptr<Container>> given) {
  const Archive archive = Archive::from_bytes(bytes, {}, "functions");
  return FunctionReader(archive, "functions", given).read();
}

void save_shared(const std::string& path, std::span<const SharedVariable> variables) {
  const HeldCells held(variables);
  ArchiveWriter archive{std::string(kSharedKind)};
  Json content = {{"containers", Json::array()}, {"variables", Json::array()}};
  for (const auto& cell : held.cells()) {
    content["containers"].push_back(written_cell(*cell, archive));
  }
  for (const SharedVariable& v : variables) {
    content["variables"].push_back(held.index_of(v.container_ptr()));
  }
  archive.save(path, io_detail::text_of_json(content));
}

std::vector<SharedVariable> load_shared(const std::string& path, const ArchiveOptions& options) {
  const Archive archive = Archive::load(path, options);
  check_kind(archive, path, kSharedKind);
  const Json content = io_detail::parse_json(archive.content());
  const CheckedJson root(content, path, "the content");
  const CheckedJson containers = root.at("containers"), variables = root.at("variables");
  Cells cells;
  for (std::size_t c = 0; c < containers.size(); ++c) {
    cells.push_back(cell_of(containers.element(c, "container"), archive));
  }
  std::vector<SharedVariable> result;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& cell = cells[variables.element(i, "variable").index(cells.size())];
    result.emplace_back(cell->type(), cell);
  }
  return result;
}

void save_graph(const std::string& path, const FunctionGraph& graph) {
  ops::register_library_ops();
  ArchiveWriter archive{std::string(kGraphKind)};
  const std::string content = io_detail::text_of_json(written(graph, archive));
  archive.save(path, content);
}

FunctionGraph load_graph(const std::string& path, const ArchiveOptions& options) {
  ops::register_library_ops();
  const Archive archive = Archive::load(path, options);
  check_kind(archive, path, kGraphKind);
  const Json content = io_detail::parse_json(archive.content());
  return graph_of(CheckedJson(content, path, "the content"), archive);
}

void Function::save(const std::string& path) const { save_functions(path, {this, 1}); }

Function Function::load(const std::string& path) {
  std::vector<Function> loaded = load_functions(path);
  if (loaded.size() != 1) {
    throw ValueError("[" + path + "] holds " + std::to_string(loaded.size()) +
                     " functions, expected one. Try load_functions");
  }
  return std::move(loaded[0]);
}

std::vector<Function> deepcopy(std::span<const Function> functions) {
  const HeldCells held(functions);
  MemoryMap map;
  for (const auto& cell : held.cells()) add(map, cell->held_value());
  map.lazy_copy();
  Cells copies;
  const KeepStretchedValues keep;
  for (const auto& cell : held.cells()) {
    copies.push_back(std::make_shared<Container>(
        cell->type(), palimpsest::map(map, cell->held_value()),
        ContainerOptions{cell->name(), true, cell->strict(), cell->allow_downcast()}));
  }
  std::vector<Function> result;
  for (const Function& f : functions) {
    const FunctionState& impl = f.impl();
    Cells cells;
    for (const auto& cell : impl.containers) {
      cells.push_back(copies[static_cast<std::size_t>(held.index_of(cell))]);
    }
    auto copy = std::make_shared<FunctionState>(impl.program, std::move(cells), impl.name,
                                                impl.profiler != nullptr);
    copy->pool->set_allow_gc(impl.pool->allows_gc());
    result.emplace_back(std::move(copy));
  }
  return result;
}

Function deepcopy(const Function& function) {
  return std::move(deepcopy(std::span<const Function>(&function, 1))[0]);
}

}  // namespace palimpsest
