// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a definition, and arguments and results of a call.
#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/run/shared.hpp"

namespace PALIMPSEST_API palimpsest {

/// Default of an input, used by calls that give no value: a container, shared with other users of
/// it, or a value, which gets a container of its own.
class InValue {
 public:
  InValue() = default;
  InValue(Container& container) : container_(container.shared_from_this()) {}
  InValue(std::shared_ptr<Container> container) : container_(std::move(container)) {}
  template <class T>
  requires std::convertible_to<T, Value> InValue(T&& value) : value_(std::forward<T>(value)) {}

  const std::shared_ptr<Container>& container() const { return container_; }
  const Value& value() const { return value_; }
  bool defined() const { return container_ != nullptr || value_.defined(); }

 private:
  std::shared_ptr<Container> container_;
  Value value_;
};

struct InOptions {
  /// The keyword for calls; unset: the variable's name.
  std::optional<std::string> name = {};
  InValue value = {};
  /// New value of the container after a call.
  Value update = {};
  /// The function may overwrite the argument. Unset: where there is an update or `borrow` is true.
  std::optional<bool> is_mutable = {};
  /// The argument is lent: results may share its memory. Unset: `is_mutable`.
  std::optional<bool> borrow = {};
  /// Exact dtype, shape and device.
  bool strict = false;
  /// See FilterOptions; unset: the function's allow_input_downcast.
  std::optional<bool> allow_downcast = {};
  /// Calls cannot give it. Unset: where `value` is a container.
  std::optional<bool> implicit = {};
  /// True: an unset name is the variable's.
  bool autoname = true;
};

/// An input of a function.
struct In {
  In(Variable v, InOptions o = {}) : variable(std::move(v)), options(std::move(o)) {}
  In(const SharedVariable& v, InOptions o = {}) : variable(v.var()), options(std::move(o)) {}
  Variable variable;
  InOptions options;
};

struct OutOptions {
  /// The result may lie in memory that the function or the caller has, where a copy would be made
  /// otherwise: in the function's own, it is rewritten at the next call of the same thread.
  bool borrow = false;
  /// True: the result stays on the device where it was computed. False: it goes to the device of
  /// the arguments.
  bool return_internal_type = false;
};

/// An output of a function.
struct Out {
  Out(Variable v, OutOptions o = {}) : variable(std::move(v)), options(o) {}
  Out(const SharedVariable& v, OutOptions o = {}) : variable(v.var()), options(o) {}
  Variable variable;
  OutOptions options;
};

/// An output, or a list of them; the form of a call's results follows.
class Outputs {
 public:
  Outputs() = default;
  Outputs(std::initializer_list<Out> list) : list_(list) {}
  Outputs(std::vector<Out> list) : list_(std::move(list)) {}
  Outputs(const std::vector<Variable>& list) : list_(list.begin(), list.end()) {}
  Outputs(Out one) : list_{std::move(one)}, is_single_(true) {}
  Outputs(const Variable& one) : Outputs(Out(one)) {}
  Outputs(const SharedVariable& one) : Outputs(Out(one)) {}

  std::vector<Out>& list() { return list_; }
  const std::vector<Out>& list() const { return list_; }
  bool is_single() const { return is_single_; }

 private:
  std::vector<Out> list_;
  bool is_single_ = false;
};

/// Memory that a call took.
struct CallReport {
  /// Bytes held at the worst moment above arguments, containers and constants: frame and outputs.
  index_t peak_bytes = 0;
  /// Bytes that only the state of the call forced to be copied (shared containers, destinations
  /// that overlap arguments, and the like).
  index_t entry_copy_bytes = 0;
};

/// An argument by name or by variable; see kw().
struct Keyword {
  std::string name;
  Variable variable;
  Value value;
};
Keyword kw(std::string name, Value value);
Keyword kw(const Variable& variable, Value value);

/// An argument of a call. Refers to the tensor that it was made of.
class Argument {
 public:
  Argument(const Tensor& tensor) : tensor_(&tensor) {}
  Argument(const Keyword& keyword) : keyword_(&keyword), value_(&keyword.value) {}
  template <class T>
  requires(!std::same_as<T, Tensor> && !std::same_as<T, Keyword> &&
           std::convertible_to<const T&, Value>) Argument(const T& value)
      : made_(value), value_(&*made_) {}
  /// Numbers in braces are a tensor of one axis.
  template <Number T>
  Argument(std::initializer_list<T> numbers) : made_(numbers), value_(&*made_) {}
  /// Refers to the same object as `other`; that object must outlive both.
  Argument(const Argument& other)
      : tensor_(other.tensor_), keyword_(other.keyword_), value_(other.value_) {}
  Argument& operator=(const Argument&) = delete;

  /// Null unless it is given as a tensor.
  const Tensor* tensor() const { return tensor_; }
  /// Null where tensor() is not.
  const Value* value() const { return value_; }
  const Keyword* keyword() const { return keyword_; }

 private:
  const Tensor* tensor_ = nullptr;
  const Keyword* keyword_ = nullptr;
  std::optional<Value> made_;
  const Value* value_ = nullptr;
};

/// A number that a result converts to by itself. Of unsigned integers take item<T>().
template <class T>
concept ResultNumber =
    is_std_complex<T> || std::floating_point<T> || std::signed_integral<T> || std::same_as<T, bool>;

/// Results of a call, in the order of the outputs. A single result converts by itself to a tensor,
/// a number or an argument of another call:
///
///     Tensor y = f(x);  double d = f(x);  s.set_value(f(x));  g(f(x));  f(x).item<double>()
///
/// Errors   TypeError, naming the function and how many results there are, unless there is one;
///          conversions to numbers also those of Tensor::item()
class Results {
 public:
  /// `who` names the function in errors.
  explicit Results(std::size_t count, std::shared_ptr<const std::string> who = {})
      : count_(count), who_(std::move(who)) {
    if (count_ > 1) list_.resize(count_);
  }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Tensor* begin() { return count_ > 1 ? list_.data() : &one_; }
  Tensor* end() { return begin() + count_; }
  const Tensor* begin() const { return count_ > 1 ? list_.data() : &one_; }
  const Tensor* end() const { return begin() + count_; }
  Tensor& operator[](std::size_t i) & { return begin()[i]; }
  const Tensor& operator[](std::size_t i) const& { return begin()[i]; }
  Tensor operator[](std::size_t i) && { return std::move(begin()[i]); }

  /// The only result.
  const Tensor& tensor() const& {
    if (count_ != 1) throw_several();
    return one_;
  }
  Tensor tensor() && {
    if (count_ != 1) throw_several();
    return std::move(one_);
  }
  /// The only element of the result, converted.
  template <class T>
  T item() const {
    return tensor().item<T>();
  }
  operator Tensor() const& { return tensor(); }
  operator Tensor() && { return std::move(*this).tensor(); }
  /// A constant.
  operator Variable() const { return constant(tensor()); }
  template <ResultNumber T>
  operator T() const {
    return item<T>();
  }
  operator std::vector<Tensor>() const { return {begin(), end()}; }

 private:
  [[noreturn]] void throw_several() const;

  std::size_t count_;
  std::shared_ptr<const std::string> who_;
  Tensor one_;  // so that one result takes no list
  std::vector<Tensor> list_;
};
std::ostream& operator<<(std::ostream& stream, const Results& results);

}  // namespace palimpsest
