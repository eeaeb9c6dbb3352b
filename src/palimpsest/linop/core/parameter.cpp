// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/parameter.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/shape/strided.hpp"
#include "palimpsest/run/stretched_values.hpp"
#include "palimpsest/tensor/layout.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

SharedVariable fixed(const Tensor& value, bool borrow) {
  if (!value.defined()) throw ValueError("[Parameter] got an undefined tensor");
  return shared(value, {.borrow = borrow, .strict = true, .shape = value.shape()});
}

Function evaluation(const Variable& expression) {
  return function({}, {Out(expression, {.return_internal_type = true})},
                  {.name = "derived parameter"});
}

// The value lives as long as the operator; the rest of a larger buffer is not kept with it.
Tensor evaluate(const Variable& expression) {
  const Tensor value = evaluation(expression)()[0];
  const bool is_all = static_cast<std::size_t>(value.nbytes()) == value.storage().nbytes();
  return is_all ? value : value.clone();
}

std::vector<std::shared_ptr<Container>> containers_in(const Variable& expression) {
  std::vector<std::shared_ptr<Container>> found;
  for (const Variable& v : values_of({&expression, 1})) {
    const auto container = container_of(v);
    if (container && std::find(found.begin(), found.end(), container) == found.end()) {
      found.push_back(container);
    }
  }
  return found;
}

// A stale value is never read.
Tensor not_yet_computed(const Variable& expression) {
  const TensorType& type = expression.type();
  return Tensor::empty(type.shape, type.dtype, type.device);
}

thread_local int n_deferred = 0;

// Copies into a tensor whose elements may be one: row after row, the last one stays.
void copy_one_by_one(const Tensor& from, Tensor to) {
  if (!has_internal_overlap(to)) {
    to.copy_from(from);
    return;
  }
  for (index_t i = 0; i < to.shape(0); ++i) copy_one_by_one(from.select(0, i), to.select(0, i));
}

// A derivation whose memory is known before it runs.
struct PlannedDerivation : Derivation {
  virtual index_t planned_bytes() const = 0;
};

}  // namespace

DeferredDerivations::DeferredDerivations() { ++n_deferred; }
DeferredDerivations::~DeferredDerivations() { --n_deferred; }

std::optional<std::vector<Slice>> as_slices(const ElementLayout& layout, const TensorType& of) {
  if (layout.dtype != of.dtype || layout.shape.size() != of.rank()) return {};
  const Strides steps = contiguous_strides(of.shape);
  std::vector<Slice> slices;
  index_t rest = layout.offset;
  for (std::size_t k = 0; k < of.rank(); ++k) {
    const index_t n = layout.shape[k], start = rest / steps[k];
    index_t step = 1;
    if (n > 1) {
      if (layout.strides[k] < steps[k] || layout.strides[k] % steps[k] != 0) return {};
      step = layout.strides[k] / steps[k];
    }
    if (n == 0 || rest < 0 || start + (n - 1) * step >= of.shape[k]) return {};
    rest -= start * steps[k];
    slices.push_back(slice(start, start + (n - 1) * step + 1, step));
  }
  return slices;
}

std::optional<Tensor> elements_of(const Tensor& whole, const ElementLayout& layout) {
  const TensorType type{whole.dtype(), whole.shape(), whole.device()};
  if (const auto slices = as_slices(layout, type)) {
    return whole.index_with({slices->begin(), slices->end()});
  }
  const auto from = static_cast<index_t>(item_size(whole.dtype()));
  const auto to = static_cast<index_t>(item_size(layout.dtype));
  if (!whole.is_contiguous() || whole.offset() * from % to != 0) return {};
  return Tensor(whole.storage(), layout.dtype, layout.shape, layout.strides,
                whole.offset() * from / to + layout.offset);
}

// Some elements of a variable. Views of views are views of the variable.
struct Parameter::View {
  ElementLayout layout;
  Variable var;

  Tensor of(const Tensor& whole) const {
    if (auto part = elements_of(whole, layout)) return *part;
    return *elements_of(whole.contiguous().clone(), layout);
  }
  // Runs `change` on the elements, in place. ValueError, and no change, if elements that share
  // memory get different values.
  void change(Tensor& whole, const std::function<void(Tensor&)>& f) const {
    if (!elements_of(whole, layout)) whole = whole.clone();
    Tensor part = *elements_of(whole, layout);
    if (!has_internal_overlap(part)) return f(part);
    Tensor values = part.clone();
    f(values);
    Tensor changed = whole.clone();
    Tensor target = *elements_of(changed, layout);
    copy_one_by_one(values, target);
    if (!equal(target, values)) {
      throw ValueError(
          "[Parameter] elements share memory, as the tensors did that it was made of: got "
          "different values for them, expected equal ones. Try clone() before the parameter is "
          "made");
    }
    whole = changed;
  }
};

// The sources of a derived value, and the versions that it was computed from.
struct Parameter::Derivation final : PlannedDerivation {
  explicit Derivation(Variable of)
      : expression(std::move(of)), containers(containers_in(expression)) {}

  std::span<const std::shared_ptr<Container>> sources() const override { return containers; }

  std::vector<std::uint64_t> present_versions() const {
    std::vector<std::uint64_t> result;
    for (const auto& source : containers) result.push_back(source->version());
    return result;
  }

  std::optional<std::vector<std::uint64_t>> computed_from() const {
    const std::lock_guard guard(mutex);
    return versions;
  }

  // Runs before every call of a function, so it allocates nothing.
  bool is_fresh() const override {
    const std::lock_guard guard(mutex);
    return versions &&
           std::equal(containers.begin(), containers.end(), versions->begin(), versions->end(),
                      [](const auto& source, std::uint64_t v) { return source->version() == v; });
  }

  Tensor value_for(std::span<const Tensor> source_values) const override {
    Tensor result;
    function_of_sources()->call(source_values, {&result, 1});
    return result;
  }

  // The value is stored before its versions: a reader that sees new versions sees the new value.
  void renew(Container& target) override {
    for (const auto& source : containers) source->renew();
    if (is_fresh()) return;
    const std::lock_guard alone(computing);
    if (is_fresh()) return;
    std::vector<std::uint64_t> present = present_versions();
    target.set_value(evaluate(expression), {.borrow = true});
    const std::lock_guard guard(mutex);
    versions = std::move(present);
  }

  index_t planned_bytes() const override {
    return evaluation(expression).plan(std::span<const TensorType>()).peak_bytes;
  }

  const Variable expression;
  const std::vector<std::shared_ptr<Container>> containers;
  CallLock computing;
  mutable Mutex mutex;
  std::optional<std::vector<std::uint64_t>> versions;  // guarded by mutex; none: stale
  mutable std::shared_ptr<const Function> compiled;    // guarded by mutex

 private:
  // The expression as a function of arguments, one per source. Compiled when it is first wanted.
  std::shared_ptr<const Function> function_of_sources() const {
    {
      const std::lock_guard guard(mutex);
      if (compiled) return compiled;
    }
    auto made = std::make_shared<const Function>(compile_for_sources());
    const std::lock_guard guard(mutex);
    if (!compiled) compiled = std::move(made);
    return compiled;
  }

  Function compile_for_sources() const {
    std::vector<In> inputs;
    FunctionOptions options{.name = "derived parameter", .on_unused_input = Reaction::ignore};
    for (const auto& source : containers) inputs.push_back(make_input(source->type(), ""));
    for (const Variable& v : values_of({&expression, 1})) {
      const auto at = std::find(containers.begin(), containers.end(), container_of(v));
      if (at == containers.end()) continue;
      const Variable& input = inputs[static_cast<std::size_t>(at - containers.begin())].variable;
      options.givens.emplace_back(v, input);
    }
    return function(std::move(inputs), {Out(expression)}, std::move(options));
  }
};

// A stretched value takes the memory that it has until it is written.
Parameter::Parameter(const Tensor& value) {
  const KeepStretchedValues keep;
  variable_ = fixed(value, false);
}

Parameter::Parameter(SharedVariable variable) : variable_(std::move(variable)) {
  if (present() && !variable_.type().is_fully_known()) {
    throw ValueError("[Parameter] an extent is open: got " + variable_.type().str() +
                     ", expected a fixed shape. Try shared(value) without .shape");
  }
}

Parameter Parameter::borrow(const Tensor& value) { return Parameter(fixed(value, true)); }

Parameter Parameter::trainable(const Tensor& value) { return Parameter(value).as_trainable(); }

Parameter Parameter::as_trainable(bool is) const {
  Parameter result = *this;
  result.trainable_ = is;
  if (is_derived() && view_) {
    result.view_ = nullptr;
    return result.view(view_->layout);
  }
  return result;
}

Parameter Parameter::derived(const Variable& expression) {
  if (n_deferred > 0 && expression.type().is_fully_known()) {
    return derived(expression, not_yet_computed(expression), true);
  }
  return derived(expression, {}, false);
}

Parameter Parameter::derived(const Variable& expression, const Tensor& value, bool stale) {
  auto derivation = std::make_shared<Derivation>(expression);
  if (!stale) derivation->versions = derivation->present_versions();
  Parameter result = borrow(value.defined() ? value : evaluate(expression));
  // Every function that reads it finds it up to date.
  result.variable_.container().set_derivation(derivation);
  result.derivation_ = std::move(derivation);
  return result;
}

index_t renewal_bytes(const Container& target) {
  const auto* const derivation = dynamic_cast<const PlannedDerivation*>(target.derivation());
  if (!derivation || derivation->is_fresh()) return 0;
  index_t bytes = derivation->planned_bytes();
  for (const auto& source : derivation->sources()) bytes = std::max(bytes, renewal_bytes(*source));
  return bytes;
}

const Variable& Parameter::expression() const {
  if (!derivation_) throw ValueError("[Parameter] it is not derived: expected one that is");
  return derivation_->expression;
}

std::optional<std::vector<std::uint64_t>> Parameter::computed_from() const {
  if (!derivation_) return {};
  return derivation_->computed_from();
}

std::vector<std::uint64_t> Parameter::source_versions() const {
  return derivation_ ? derivation_->present_versions() : std::vector<std::uint64_t>();
}

void Parameter::refresh() const {
  if (derivation_) derivation_->renew(variable_.container());
}

const Variable& Parameter::var() const {
  if (!present()) throw ValueError("[Parameter] it is absent: expected a value");
  return view_ ? view_->var : whole();
}

// Gradients must reach its sources.
const Variable& Parameter::whole() const {
  return derivation_ && trainable_ ? derivation_->expression : variable_.var();
}

bool Parameter::is(const Parameter& other) const {
  if (!present() || !other.present()) return present() == other.present();
  return variable_.is(other.variable_) && layout() == other.layout();
}

bool Parameter::shares_storage(const Parameter& other) const {
  if (!present() || !other.present()) return false;
  return palimpsest::shares_storage(
      variable_.get_value({.borrow = true, .return_internal_type = true}),
      other.variable_.get_value({.borrow = true, .return_internal_type = true}));
}

ElementLayout Parameter::layout() const {
  if (view_) return view_->layout;
  const TensorType& whole = variable_.type();
  return {whole.dtype, whole.shape, contiguous_strides(whole.shape), 0};
}

Parameter Parameter::view(const ElementLayout& wanted) const {
  var();
  ElementLayout layout = wanted;
  if (element_count(layout.shape) == 0) layout.offset = 0;  // nothing lies at the offset
  Parameter result = *this;
  result.view_ = nullptr;
  const TensorType& type = variable_.type();
  if (layout == result.layout()) return result;
  const auto slices = as_slices(layout, type);
  const Variable shown =
      slices ? ops::index(whole(), {slices->begin(), slices->end()})
             : ops::as_strided(whole(), layout.shape, layout.strides, layout.offset, layout.dtype);
  result.view_ = std::make_shared<const View>(View{layout, shown});
  return result;
}

Parameter Parameter::view(const Extents& start, const Extents& extents) const {
  const Extents& whole = shape();
  if (start.size() != whole.size() || extents.size() != whole.size()) {
    throw ShapeError("[Parameter.view] got " + std::to_string(start.size()) + " starts and " +
                     std::to_string(extents.size()) + " extents, expected " +
                     std::to_string(whole.size()) + ", one per axis");
  }
  ElementLayout part = layout();
  for (std::size_t k = 0; k < whole.size(); ++k) {
    if (start[k] < 0 || extents[k] < 0 || start[k] + extents[k] > whole[k]) {
      throw ValueError("[Parameter.view] axis " + std::to_string(k) + " is out of range: got " +
                       std::to_string(start[k]) + " + " + std::to_string(extents[k]) +
                       ", expected a part of " + std::to_string(whole[k]));
    }
    part.offset += start[k] * part.strides[k];
    part.shape[k] = extents[k];
  }
  return extents == whole ? *this : view(part);
}

Parameter Parameter::view(const std::vector<Slice>& slices) const {
  const Extents& whole = shape();
  if (slices.size() != whole.size()) {
    throw ShapeError("[Parameter.view] got " + std::to_string(slices.size()) +
                     " slices, expected " + std::to_string(whole.size()) + ", one per axis");
  }
  ElementLayout part = layout();
  for (std::size_t k = 0; k < whole.size(); ++k) {
    if (slices[k].step == 0) throw ValueError("[Parameter.view] step: got 0");
    const SliceRange range = resolve(slices[k], whole[k]);
    if (range.count > 0) part.offset += range.first * part.strides[k];
    part.shape[k] = range.count;
    part.strides[k] *= range.step;
  }
  return view(part);
}

Parameter Parameter::narrow(std::size_t axis, index_t start, index_t length) const {
  Extents starts(shape().size(), 0), extents = shape();
  if (axis >= extents.size()) {
    throw ShapeError("[Parameter.narrow] axis " + std::to_string(axis) + ": expected less than " +
                     std::to_string(extents.size()));
  }
  starts[axis] = start;
  extents[axis] = length;
  return view(starts, extents);
}

Extents Parameter::view_start() const {
  const TensorType& whole = variable_.type();
  Extents start(whole.rank(), 0);
  if (!view_) return start;
  if (const auto slices = as_slices(view_->layout, whole)) {
    for (std::size_t k = 0; k < start.size(); ++k) start[k] = *(*slices)[k].start;
  }
  return start;
}

Tensor Parameter::value() const {
  var();
  const Tensor whole = variable_.get_value({.return_internal_type = true});
  return view_ ? view_->of(whole) : whole;
}

Tensor Parameter::borrowed() const {
  var();
  const Tensor whole = variable_.get_value({.borrow = true, .return_internal_type = true});
  return view_ ? view_->of(whole) : whole;
}

void Parameter::set_value(const Tensor& value) {
  var();
  if (!view_) return variable_.set_value(value);
  if (!value.defined() || value.shape() != shape()) {
    throw ShapeError("[Parameter.set_value] got " +
                     (value.defined() ? to_string(value.shape()) : "an undefined tensor") +
                     ", expected " + to_string(shape()));
  }
  if (value.dtype() != dtype()) {
    throw DTypeError("[Parameter.set_value] got " + std::string(name_of(value.dtype())) +
                     ", expected " + std::string(name_of(dtype())));
  }
  modify([&](Tensor& part) { part.copy_from(value); });
}

void Parameter::modify(const std::function<void(Tensor&)>& change) {
  var();
  if (!view_) return variable_.modify(change);
  variable_.modify([&](Tensor& whole) { view_->change(whole, change); });
}

void Parameter::touch() {
  var();
  variable_.container().touch();
}

std::uint64_t Parameter::version() const {
  var();
  return variable_.version();
}

Reduced reduced(const std::vector<Tensor>& views, DType preferred, const std::string& name) {
  const Storage& storage = views.front().storage();
  const auto bytes = static_cast<index_t>(storage.nbytes());
  const auto item = [](DType dtype) { return static_cast<index_t>(item_size(dtype)); };
  DType dtype = preferred;
  for (const Tensor& t : views) {
    const bool divides = bytes % item(dtype) == 0;
    if (!divides && item(t.dtype()) < item(dtype)) dtype = t.dtype();
  }
  const index_t n = bytes / item(dtype);
  Reduced result;
  result.variable = shared(Tensor(storage, dtype, {n}, {1}),
                           {.name = name, .borrow = true, .strict = true, .shape = Extents{n}});
  for (const Tensor& t : views) {
    result.layouts.push_back({t.dtype(), t.shape(), t.strides(), t.offset()});
  }
  return result;
}

std::vector<Parameter> parameters(const std::vector<Tensor>& values) {
  MemoryMap map;
  std::map<std::uint64_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < values.size(); ++i) {
    add(map, values[i]);
    groups[values[i].storage().id()].push_back(i);
  }
  map.lazy_copy();
  std::vector<Parameter> result(values.size());
  for (const auto& [id, members] : groups) {
    if (members.size() == 1) {
      result[members[0]] = Parameter(values[members[0]]);
      continue;
    }
    std::vector<Tensor> views;
    for (const std::size_t i : members) views.push_back(palimpsest::map(map, values[i]));
    const Reduced made = reduced(views, views[0].dtype(), {});
    for (std::size_t k = 0; k < members.size(); ++k) {
      result[members[k]] = Parameter(made.variable).view(made.layouts[k]);
    }
  }
  return result;
}

}  // namespace palimpsest
