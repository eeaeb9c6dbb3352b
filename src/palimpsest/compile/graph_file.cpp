// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/graph_file.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/parameter_text.hpp"

namespace palimpsest {
namespace {

using io_detail::CheckedJson;
using io_detail::Json;

class GraphWriter {
 public:
  GraphWriter(const FunctionGraph& graph, ArchiveWriter& archive)
      : graph_(graph), archive_(archive) {}

  Json write() {
    for (const Variable& v : graph_.inputs()) add_root(v);
    Json nodes = Json::array();
    for (const Apply& node : graph_.toposort()) nodes.push_back(written_node(node));
    // An output may be a constant that no node reads: it gets its number here.
    Json inputs = numbers(graph_.inputs()), outputs = numbers(graph_.outputs());
    Json json = {{"variables", std::move(variables_)}, {"nodes", std::move(nodes)}};
    json["inputs"] = std::move(inputs);
    json["outputs"] = std::move(outputs);
    json["protected"] = Json::array();
    json["last"] = Json::array();
    for (const Variable& v : graph_.inputs()) {
      json["protected"].push_back(graph_.is_protected(v));
      json["last"].push_back(graph_.is_overwritten_last(v));
    }
    return json;
  }

 private:
  Json described(const Variable& v) const {
    Json json = {{"type", written(v.type())}};
    if (!v.name().empty()) json["name"] = v.name();
    if (v.tags().indestructible) json["indestructible"] = true;
    if (!v.tags().nan_guard) json["nan_guard"] = false;
    return json;
  }
  std::size_t add(const Variable& v, Json&& json) {
    numbers_[v.node()] = variables_.size();
    variables_.push_back(std::move(json));
    return variables_.size() - 1;
  }
  std::size_t add_root(const Variable& v) {
    Json json = described(v);
    if (v.is_constant()) json["tensor"] = archive_.add(v.node()->value);
    return add(v, std::move(json));
  }
  std::size_t number(const Variable& v) {
    const auto it = numbers_.find(v.node());
    return it != numbers_.end() ? it->second : add_root(v);
  }
  Json numbers(std::span<const Variable> list) {
    Json json = Json::array();
    for (const Variable& v : list) json.push_back(number(v));
    return json;
  }
  Json written_node(const Apply& node) {
    Json json = written_op(node);
    const StackTrace* const origin = node.node()->built_at.get();
    if (origin && !origin->rewrite().empty()) json["rewrite"] = origin->rewrite();
    json["inputs"] = numbers(node.inputs());
    json["outputs"] = Json::array();
    for (const Variable& v : node.outputs()) {
      Json result = described(v);
      result["is_result"] = true;
      json["outputs"].push_back(add(v, std::move(result)));
    }
    return json;
  }
  Json written_op(const Apply& node) {
    if (const auto* loop = dynamic_cast<const ops::Loop*>(&node.op())) {
      return {{"op", loop->name()}, {"loop", written_loop(*loop)}};
    }
    const std::string name = node.op().name(), parameters = node.op().parameters();
    try {
      restore_op(name, parameters);
    } catch (const Error& error) {
      throw NotSupported("[save] op " + node.op().str() +
                         " could not be loaded again: " + error.what());
    }
    return {{"op", name}, {"parameters", parameters}};
  }
  Json written_loop(const ops::Loop& loop) {
    const ops::LoopParts& parts = loop.structure();
    Json json = {{"reads", Json::array()}, {"states", Json::array()}};
    for (const auto& read : parts.reads) {
      json["reads"].push_back(
          {{"offset", read.offset}, {"reversed", read.reversed}, {"tail", read.tail}});
    }
    for (const auto& state : parts.states) {
      json["states"].push_back({{"rows", state.rows},
                                {"lags", state.lags},
                                {"has_history", state.has_history},
                                {"has_last", state.has_last},
                                {"overwrites_init", state.overwrites_init}});
    }
    json["n_captured"] = parts.captured.size();
    json["steps"] = parts.count.defined() ? Json() : Json(ops::text_of({parts.steps}));
    json["n_step_arrays"] = parts.step_arrays.size();
    json["has_count"] = parts.count.defined();
    json["keeps_room"] = parts.keeps_room;
    json["until"] = parts.until.defined();
    const FunctionGraph body(loop.body_inputs(), loop.body_outputs());
    json["body"] = GraphWriter(body, archive_).write();
    return json;
  }

  const FunctionGraph& graph_;
  ArchiveWriter& archive_;
  Json variables_ = Json::array();
  std::unordered_map<const VariableNode*, std::size_t> numbers_;
};

class GraphReader {
 public:
  GraphReader(const CheckedJson& json, const Archive& archive) : json_(json), archive_(archive) {}

  FunctionGraph read() {
    const CheckedJson variables = json_.at("variables"), nodes = json_.at("nodes");
    variables_.resize(variables.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) read_node(nodes.element(n, "node"));
    const std::vector<Variable> inputs = list(json_.at("inputs")),
                                outputs = list(json_.at("outputs"));
    for (const Variable& v : inputs) {
      if (!v.is_root() || v.is_constant()) json_.fail("has an output or a constant as input");
      if (std::count(inputs.begin(), inputs.end(), v) > 1) json_.fail("has an input twice");
    }
    try {
      FunctionGraph graph(inputs, outputs, {.clone = false});
      const CheckedJson guarded = json_.at("protected"), last = json_.at("last");
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (guarded.element(i, "protected").flag()) graph.protect(graph.inputs()[i]);
        if (last.element(i, "last").flag()) graph.overwrite_last(graph.inputs()[i]);
      }
      graph.validate();
      return graph;
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      json_.fail(std::string("is not a graph: ") + error.what());
    }
  }

 private:
  // Roots are made when they are first used; results exist once their node is read.
  const Variable& variable(const CheckedJson& number) {
    Variable& v = variables_[number.index(variables_.size())];
    if (v.defined()) return v;
    const std::size_t i = number.index(variables_.size());
    const CheckedJson json = json_.at("variables").element(i, "variable");
    if (json.has("is_result")) json.fail("is read before it is computed");
    const std::string name = json.has("name") ? json.at("name").text() : std::string();
    if (json.has("tensor")) {
      const Tensor& value =
          archive_.tensor(static_cast<std::size_t>(json.at("tensor").size_value()));
      v = detail::lent_constant(value, name);  // in the pages of this file, which is replaced whole
    } else {
      v = make_input(type_of(json.at("type")), name);
    }
    set_tags(v, json);
    return v;
  }
  static void set_tags(const Variable& v, const CheckedJson& json) {
    if (json.has("indestructible")) {
      v.node()->tags.indestructible = json.at("indestructible").flag();
    }
    if (json.has("nan_guard")) v.node()->tags.nan_guard = json.at("nan_guard").flag();
  }
  std::vector<Variable> list(const CheckedJson& json) {
    std::vector<Variable> result;
    for (std::size_t i = 0; i < json.size(); ++i) {
      result.push_back(variable(json.element(i, "entry")));
    }
    return result;
  }

  void read_node(const CheckedJson& json) {
    const std::vector<Variable> inputs = list(json.at("inputs"));
    const CheckedJson outputs = json.at("outputs");
    Apply node;
    try {
      node =
          json.has("loop")
              ? loop_of(json.at("loop"), inputs)
              : restore_op(json.at("op").text(), json.at("parameters").text())->make_node(inputs);
    } catch (const IoError&) {
      throw;
    } catch (const Error& error) {
      json.fail(std::string("cannot be made: ") + error.what());
    }
    if (json.has("rewrite")) {
      node.node()->built_at =
          std::make_shared<const StackTrace>(StackTrace().introduced_by(json.at("rewrite").text()));
    }
    if (outputs.size() != node.output_count()) outputs.fail("has another length than the op");
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      const std::size_t number = outputs.element(k, "output").index(variables_.size());
      if (variables_[number].defined()) outputs.fail("names a variable that is there already");
      const CheckedJson described = json_.at("variables").element(number, "variable");
      const Variable made = node.output(k);
      if (described.has("name")) made.node()->name = described.at("name").text();
      set_tags(made, described);
      variables_[number] = made;
    }
  }

  Apply loop_of(const CheckedJson& json, const std::vector<Variable>& inputs) const {
    ops::LoopParts parts;
    const FunctionGraph body = GraphReader(json.at("body"), archive_).read();
    std::size_t next = 0, next_inner = 0, next_result = 0;
    const auto outer = [&] {
      if (next >= inputs.size()) json.fail("has more parts than its node has inputs");
      return inputs[next++];
    };
    const auto inner = [&] {
      if (next_inner >= body.inputs().size()) json.fail("has more parts than its body has inputs");
      return body.inputs()[next_inner++];
    };
    const auto result = [&] {
      if (next_result >= body.outputs().size()) json.fail("has fewer results than parts");
      return body.outputs()[next_result++];
    };
    const CheckedJson reads = json.at("reads"), states = json.at("states");
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const CheckedJson read = reads.element(i, "read");
      const index_t tail = read.at("tail").integer();
      if (tail < 0 && tail != kUnknown) read.fail("has a negative tail");
      parts.reads.push_back(
          {outer(), read.at("offset").size_value(), read.at("reversed").flag(), tail, inner()});
    }
    for (std::size_t k = 0; k < states.size(); ++k) {
      const CheckedJson state = states.element(k, "state"), lags = state.at("lags");
      ops::LoopParts::State made;
      made.init = outer();
      made.rows = state.at("rows").size_value();
      for (std::size_t i = 0; i < lags.size(); ++i) {
        made.lags.push_back(lags.element(i, "lag").size_value());
        if (made.lags.back() < 1 || made.lags.back() > made.rows) lags.fail("asks for no row");
        made.inner.push_back(inner());
      }
      if (made.inner.empty()) state.fail("has no lag");
      made.next = result();
      made.has_history = state.at("has_history").flag();
      made.has_last = state.at("has_last").flag();
      made.overwrites_init = state.at("overwrites_init").flag();
      parts.states.push_back(std::move(made));
    }
    const index_t n_captured = json.at("n_captured").size_value();
    for (index_t j = 0; j < n_captured; ++j) parts.captured.push_back({outer(), inner()});
    const index_t n_arrays = json.at("n_step_arrays").size_value();
    for (index_t j = 0; j < n_arrays; ++j) parts.step_arrays.push_back(outer());
    if (json.at("has_count").flag()) {
      parts.count = outer();
    } else {
      ops::ExtentPrograms programs = ops::ParameterText(json.at("steps").text()).programs();
      if (programs.size() != 1) json.fail("has no one number of steps");
      parts.steps = std::move(programs[0]);
    }
    parts.keeps_room = json.at("keeps_room").flag();
    if (next != inputs.size() || next_inner != body.inputs().size()) {
      json.fail("has fewer parts than inputs");
    }
    const std::size_t n_last = json.at("until").flag() ? 1 : 0;
    while (next_result + n_last < body.outputs().size()) parts.mapped.push_back(result());
    if (n_last > 0) parts.until = result();
    return with_own_body(std::move(parts));
  }
  // Variables of a graph belong to it.
  static Apply with_own_body(ops::LoopParts parts) {
    const std::vector<Variable> inner = parts.inner_inputs();
    std::vector<Variable> fresh;
    for (const Variable& v : inner) fresh.push_back(make_input(v.type(), v.name()));
    const std::vector<Variable> results = clone_graph(parts.inner_outputs(), inner, fresh);
    std::size_t in = 0, out = 0;
    for (auto& read : parts.reads) read.inner = fresh[in++];
    for (auto& state : parts.states) {
      for (Variable& v : state.inner) v = fresh[in++];
      state.next = results[out++];
    }
    for (auto& value : parts.captured) value.inner = fresh[in++];
    for (Variable& v : parts.mapped) v = results[out++];
    if (parts.until.defined()) parts.until = results[out++];
    return ops::Loop::make(std::move(parts));
  }

  CheckedJson json_;
  const Archive& archive_;
  std::vector<Variable> variables_;
};

}  // namespace

Json written(const TensorType& type) {
  Json shape = Json::array();
  for (index_t extent : type.shape) shape.push_back(extent == kUnknown ? Json() : Json(extent));
  Json json = {{"dtype", std::string(name_of(type.dtype))}, {"shape", std::move(shape)}};
  if (type.device != Device{}) json["device"] = type.device.str();
  return json;
}

TensorType type_of(const CheckedJson& json) {
  TensorType type;
  const CheckedJson dtype = json.at("dtype"), shape = json.at("shape");
  try {
    type.dtype = parse_dtype(dtype.text());
    if (json.has("device")) type.device = Device::parse(json.at("device").text());
  } catch (const ValueError& error) {
    json.fail(std::string("names an unknown type or device: ") + error.what());
  }
  if (shape.size() > kMaxRank) shape.fail("has too many axes");
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const CheckedJson extent = shape.element(k, "axis");
    type.shape.push_back(extent.is_null() ? kUnknown : extent.size_value());
  }
  return type;
}

Json written(const FunctionGraph& graph, ArchiveWriter& archive) {
  return GraphWriter(graph, archive).write();
}

FunctionGraph graph_of(const CheckedJson& json, const Archive& archive) {
  return GraphReader(json, archive).read();
}

}  // namespace palimpsest
