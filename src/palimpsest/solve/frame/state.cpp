// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/state.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/base/error.hpp"

namespace palimpsest {

void StateList::add(const std::string& name, const Space& space, Init init) {
  const bool is_there = std::any_of(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.name == name; });
  if (is_there) throw ValueError("state: there are two of the name '" + name + "'");
  entries_.push_back({name, space, init});
}

void StateList::add(const std::string& name, const TensorType& type, Init init) {
  add(name, Space(type), init);
}

void StateList::add_key(const std::string& name) {
  add(name, TensorType{DType::uint64, {2}, {}}, Init::key());
}

void StateList::add_all(const std::string& prefix, const StateList& of) {
  for (const Entry& entry : of.entries_) add(prefix + "." + entry.name, entry.space, entry.init);
}

struct StateScope::Data {
  std::vector<StateList::Entry> entries;
  std::vector<Variable> values, updates;
};

StateScope::StateScope(const StateList& state, std::vector<Variable> values)
    : data_(std::make_shared<Data>()) {
  data_->entries = state.entries();
  data_->values = std::move(values);
  data_->updates.resize(data_->entries.size());
}

std::size_t StateScope::index_of(std::string_view name) const {
  const std::string full = prefix_ + std::string(name);
  const auto& entries = data_->entries;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.name == full; });
  if (found == entries.end()) throw NameError("state: there is no '" + full + "'");
  return static_cast<std::size_t>(found - entries.begin());
}

bool StateScope::has(std::string_view name) const {
  const std::string full = prefix_ + std::string(name);
  return std::any_of(data_->entries.begin(), data_->entries.end(),
                     [&](const auto& entry) { return entry.name == full; });
}

const Variable& StateScope::operator[](std::string_view name) const {
  return data_->values[index_of(name)];
}

void StateScope::set(std::string_view name, const Variable& value) {
  const std::size_t i = index_of(name);
  const TensorType &got = value.type(), &expected = data_->values[i].type();
  const std::string who = "state '" + data_->entries[i].name + "': got ";
  if (got.shape != expected.shape) {
    throw ShapeError(who + "shape " + to_string(got.shape) + ", expected " +
                     to_string(expected.shape));
  }
  if (got.dtype != expected.dtype) {
    throw DTypeError(who + std::string(name_of(got.dtype)) + ", expected " +
                     std::string(name_of(expected.dtype)));
  }
  data_->updates[i] = value;
}

const Variable& StateScope::latest(std::string_view name) const {
  const std::size_t i = index_of(name);
  return data_->updates[i].defined() ? data_->updates[i] : data_->values[i];
}

bool StateScope::is_set(std::string_view name) const {
  return data_->updates[index_of(name)].defined();
}

const Space& StateScope::space_of(std::string_view name) const {
  return data_->entries[index_of(name)].space;
}

StateScope StateScope::within(std::string_view prefix) const {
  StateScope part = *this;
  part.prefix_ += std::string(prefix) + ".";
  return part;
}

const std::vector<Variable>& StateScope::updates() const { return data_->updates; }

}  // namespace palimpsest
