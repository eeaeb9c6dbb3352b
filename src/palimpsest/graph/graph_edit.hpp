// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/graph/graph_state.hpp"

namespace palimpsest {

/// Contents of a FunctionGraph. Every change is a step of the log, each with its exact opposite.
class FunctionGraph::Impl {
 public:
  Impl(const FunctionGraph& self, std::vector<Variable> inputs, std::vector<Variable> outputs,
       Options options);

  using NodeInfo = graph_detail::NodeInfo;
  using VarInfo = graph_detail::VarInfo;
  using UseSlot = graph_detail::UseSlot;
  struct Redirection {
    VarInfo* old;
    Variable with;
    std::vector<UseSlot*> slots;
  };

  void replace(Pairs pairs, std::span<const Apply> remove, std::string_view reason, bool validated);
  void redirect(const Use& use, const Variable& with, std::string_view reason);
  void protect(const Variable& v, bool value);
  void overwrite_last(const Variable& v);
  void validate();
  Token checkpoint();
  void revert(Token token);
  void release(Token token);
  void commit();
  void refresh_orderings() { finish(); }
  std::vector<NodeInfo*> sorted() const;
  Use use_of(const UseSlot& slot) const;

  const FunctionGraph* self = nullptr;  // moves along with the graph
  graph_detail::GraphState state;
  std::vector<Variable> inputs, outputs;
  std::vector<std::shared_ptr<Feature>> features;
  std::function<void(const std::string&)> trace;

 private:
  struct Change {
    enum class Kind { create, insert, declare, undeclare, erase, link, unlink, protect, last } kind;
    NodeInfo* node = nullptr;
    UseSlot* slot = nullptr;
    VarInfo* var = nullptr;
    UseSlot *prev = nullptr, *next = nullptr;
    std::uint64_t position = 0;
    bool value = false;
  };

  void import(const Variable& v, const VarInfo* old, NodeInfo* place, std::string_view reason);
  void note_origin(const Apply& fresh, const VarInfo& old, std::string_view reason);
  bool is_new(const Variable& v) const;  // a value of a node that the graph has not got
  void check_root(const Variable& root) const;
  NodeInfo* place_for(const Redirection& r) const;
  void link(UseSlot& slot, const Variable& v);
  void unlink(UseSlot& slot);
  void prune(VarInfo& v, std::string_view reason);
  void apply(std::vector<Redirection>& redirections, std::string_view reason);
  void undo(const Change& change, std::string_view reason);
  void roll_back(std::size_t size, std::string_view reason);
  void finish();
  void transact(std::vector<Redirection>& redirections, std::span<const Apply> remove,
                std::string_view reason, bool validated);
  void update_orderings();
  void changed_input(const UseSlot& slot, const Variable& old, std::string_view reason) const;
  std::string path_to_output(const Variable& v) const;

  std::deque<UseSlot> output_slots_;
  std::vector<Change> log_;
  struct Mark {
    Token token;
    std::size_t size;  // of the log
  };
  std::vector<Mark>::iterator find_mark(Token token);
  std::vector<Mark> marks_;
  Token last_token_ = 0;
  std::uint64_t next_position_ = 0;
  struct Origin {
    std::shared_ptr<const StackTrace> calls, text;  // the same calls, without and with a reason
  } origin_;                                        // of the node that came last
};

}  // namespace palimpsest
