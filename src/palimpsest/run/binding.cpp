// SPDX-License-Identifier: Apache-2.0
// The first part of a call: which value belongs to which input. Nothing has an effect yet.
#include <algorithm>
#include <cassert>

#include "palimpsest/base/per_thread.hpp"
#include "palimpsest/run/call.hpp"

namespace palimpsest {
namespace {

std::string quoted_names(const Program& program) {
  std::string text;
  std::size_t nameless = 0;
  for (const ArgumentSpec& spec : program.arguments) {
    if (spec.name.empty()) {
      ++nameless;
    } else {
      text += (text.empty() ? "'" : ", '") + spec.name + "'";
    }
  }
  if (text.empty()) text = "none by name";
  return nameless == 0 ? text : text + " (and " + std::to_string(nameless) + " without a name)";
}

std::string described(const Keyword& keyword) {
  return keyword.variable.defined() ? keyword.variable.str() : "'" + keyword.name + "'";
}

// Lists that the calls of this thread have used.
constexpr std::size_t kMostLists = 8;
struct Lists {
  Lists() { free.reserve(kMostLists); }
  std::vector<std::vector<Tensor>> free;
};

}  // namespace

const Tensor* MadeTensors::add(Tensor made, std::size_t most) {
  if (list_.capacity() == 0) {
    Lists& lists = of_this_thread<Lists>();
    if (!lists.free.empty()) {
      list_ = std::move(lists.free.back());
      lists.free.pop_back();
    }
  }
  if (list_.empty()) list_.reserve(most);
  assert(list_.size() < list_.capacity());
  return &list_.emplace_back(std::move(made));
}

MadeTensors::~MadeTensors() {
  if (list_.capacity() == 0) return;
  list_.clear();
  Lists& lists = of_this_thread<Lists>();
  if (lists.free.size() < kMostLists) lists.free.push_back(std::move(list_));
}

Call::Call(const FunctionState& impl)
    : impl_(impl),
      program_(*impl.program),
      given_(program_.arguments.size()),
      bound_(program_.n_inputs()),
      is_held_(impl.cell_count()) {}

void Call::keep(std::size_t input, Tensor made) {
  // An input may be converted or cloned, and then be copied because it is overwritten.
  bound_[input] = {made_.add(std::move(made), 2 * program_.n_inputs()), true, false, false};
}

std::size_t Call::argument_for(const Keyword& keyword) const {
  const auto matches = [&](const auto& spec) {
    return keyword.variable.defined() ? spec.variable == keyword.variable
                                      : !spec.name.empty() && spec.name == keyword.name;
  };
  const auto& specs = program_.arguments;
  const auto found = std::find_if(specs.begin(), specs.end(), matches);
  const std::string who = "[" + impl_.who() + "] ";
  if (found == specs.end()) {
    const auto& hidden = program_.implicit;
    if (std::any_of(hidden.begin(), hidden.end(), matches)) {
      throw TypeError(who + "got a value for " + described(keyword) +
                      ", which is implicit. Try container(..).set_value");
    }
    throw TypeError(who + "unknown keyword: got " + described(keyword) + ", expected one of " +
                    quoted_names(program_));
  }
  if (std::find_if(found + 1, specs.end(), matches) != specs.end()) {
    throw TypeError(who + "keyword " + described(keyword) +
                    " names two inputs. Try kw(variable, value)");
  }
  return static_cast<std::size_t>(found - specs.begin());
}

void Call::bind(std::span<const Argument> arguments) {
  const std::string_view expected_order = "positional arguments come before keywords";
  std::size_t n_positional = 0;
  bool seen_keyword = false;
  for (const Argument& argument : arguments) {
    std::size_t i = n_positional;
    if (const Keyword* const keyword = argument.keyword()) {
      seen_keyword = true;
      i = argument_for(*keyword);
      if (given_[i].is_given()) {
        throw TypeError("[" + impl_.who() + "] " + described(*keyword) + " is given twice");
      }
    } else {
      if (seen_keyword) throw TypeError("[" + impl_.who() + "] " + std::string(expected_order));
      if (++n_positional > given_.size()) continue;  // counted for the message below
    }
    given_[i] = {argument.tensor(), argument.value()};
  }
  if (n_positional > given_.size()) {
    throw TypeError("[" + impl_.who() + "] too many arguments: got " +
                    std::to_string(n_positional) + ", expected at most " +
                    std::to_string(given_.size()));
  }
  filter_arguments();
}

void Call::bind(std::span<const Tensor> arguments) {
  if (arguments.size() > given_.size()) {
    throw TypeError("[" + impl_.who() + "] too many arguments: got " +
                    std::to_string(arguments.size()) + ", expected at most " +
                    std::to_string(given_.size()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) given_[i].tensor = &arguments[i];
  filter_arguments();
}

void Call::check_nothing_missing() const {
  std::size_t n_given = 0, n_needed = 0;
  std::string missing;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (given_[i].is_given()) ++n_given;
    if (program_.arguments[i].container >= 0) continue;
    ++n_needed;
    if (given_[i].is_given()) continue;
    const ArgumentSpec& spec = program_.arguments[i];
    missing += (missing.empty() ? "" : ", ") + std::to_string(i) +
               (spec.name.empty() ? "" : " '" + spec.name + "'");
  }
  if (missing.empty()) return;
  throw TypeError("[" + impl_.who() + "] got " + std::to_string(n_given) + " arguments, expected " +
                  std::to_string(n_needed) + ": missing " + missing);
}

void Call::filter_arguments() {
  bool is_complete = true;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const ArgumentSpec& spec = program_.arguments[i];
    const Tensor* const tensor = given_[i].tensor;
    if (tensor && tensor->defined() && passes_unchanged(spec.type, *tensor)) {
      bound_[i].tensor = tensor;
    } else if (!given_[i].is_given()) {
      is_complete = is_complete && spec.container >= 0;
    } else if (program_.trust_input) {
      const Value value = tensor ? Value(*tensor) : *given_[i].value;
      filter(spec.type, value, {.strict = true}, impl_.who(i));  // throws the error about it
      keep(i, value.tensor());
    }
  }
  if (!is_complete) check_nothing_missing();
  // Conversions allocate, so they come when everything else is known to be right. They follow the
  // config that the function was compiled with.
  std::optional<ConfigScope> scope;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (bound_[i].tensor || !given_[i].is_given()) continue;
    if (!scope) scope.emplace(program_.config);
    const ArgumentSpec& spec = program_.arguments[i];
    const Tensor* const tensor = given_[i].tensor;
    const Value value = tensor ? Value(*tensor) : *given_[i].value;
    Tensor made = filter(spec.type, value, spec.filter, impl_.who(i));
    const bool is_made = value.is_weak() || !shares_storage(made, value.tensor());
    report_.entry_copy_bytes += is_made ? made.nbytes() : 0;
    keep(i, std::move(made));
    bound_[i].is_private = is_made;
  }
}

}  // namespace palimpsest
