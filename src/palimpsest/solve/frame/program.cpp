// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/program.hpp"

#include "palimpsest/compile/streaming.hpp"
#include "palimpsest/compile/workspace.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/scaling.hpp"
#include "palimpsest/tensor/content_hash.hpp"
#include "palimpsest/tensor/placeholder.hpp"

namespace palimpsest {
namespace {

// start() puts the real state in its place before anything runs.
Tensor placeholder(const TensorType& type) {
  return palimpsest::placeholder(type.dtype, type.shape, type.device);
}

index_t type_bytes(const TensorType& type) { return byte_count(type.shape, type.dtype); }

// Bytes of the constants that compiled functions keep, those in the bodies of loops included; one
// that two of them share counts once.
class ConstantBytes {
 public:
  /// Not those that lie in memory of the caller.
  explicit ConstantBytes(const Problem& problem) {
    for (const auto& [name, a] : problem.attrs()) {
      if (a.is_tensor()) known_.push_back(a.as_tensor().storage().data_id());
    }
  }
  void add(const Function& f) {
    add(f.graph().toposort());
    for (const Variable& v : f.graph().outputs()) add(v);
  }
  index_t bytes() const { return bytes_; }

 private:
  void add(const std::vector<Apply>& nodes) {
    for (const Apply& node : nodes) {
      for (const Variable& v : node.inputs()) add(v);
      const auto inner = node.op().inner_results();
      if (inner.empty()) continue;
      const std::vector<Variable> results(inner.begin(), inner.end());
      add(applications_of(results));
      for (const Variable& v : results) add(v);
    }
  }
  void add(const Variable& v) {
    if (!v.is_constant() || std::find(seen_.begin(), seen_.end(), v) != seen_.end()) return;
    seen_.push_back(v);
    const std::uint64_t id = v.node()->value.storage().data_id();
    if (std::find(known_.begin(), known_.end(), id) != known_.end()) return;
    known_.push_back(id);
    bytes_ += static_cast<index_t>(v.node()->value.storage().nbytes());
  }

  std::vector<std::uint64_t> known_;  // data of the caller, and data already counted
  std::vector<Variable> seen_;
  index_t bytes_ = 0;
};

const Plan& plan_of(const Function& f, const std::vector<TensorType>& arguments) {
  return f.plan(std::span<const TensorType>(arguments));
}

}  // namespace

SolverProgram::SolverProgram(const SolverType& type, const Problem& problem, bool looks)
    : type_(type),
      problem_(problem),
      batch_count_(static_cast<std::size_t>(element_count(problem.x().number_type().shape))),
      numbers_(batch_count_) {
  type.declare(problem, list_);
  for (const auto& [name, g] : problem.proxes()) {
    list_.add_all(name, g.state(problem.argument_of(name)));
  }
  const TensorType number = problem.x().number_type();
  for (const StateList::Entry& entry : list_.entries()) {
    const TensorType& of = entry.space.type();
    state_.emplace_back(of, placeholder(of),
                        SharedOptions{.name = entry.name, .borrow = true, .shape = {}});
  }
  inputs_ = {.b = make_input(problem.b_type(), "b"),
             .scale = make_input({number.dtype, {}, number.device}, "scale"),
             .iteration = make_input({DType::int64, {}, number.device}, "iteration"),
             .active = {}};
  if (!problem.batch().empty()) {
    inputs_.active = make_input({DType::bool_, number.shape, number.device}, "active");
  }
  Problem with_objective;
  looks &= !type.is_linear && !problem.flag("objective");
  if (looks) (with_objective = problem).set("objective", true);
  if (type.setup != nullptr) {
    const Problem& of = looks ? with_objective : problem;
    Scope scope = make_scope(of);
    type.setup(of, scope);
    setup_ = compiled(scope, std::string(type.name) + " setup");
  }
  const int variants = type.variants != nullptr ? type.variants(problem) : 1;
  variants_ = static_cast<std::size_t>(variants);
  for (int variant = 0; variant < variants; ++variant) compile_step(problem, variant);
  for (int variant = 0; looks && variant < variants; ++variant) {
    compile_step(with_objective, variant);
  }
  if (type.result != nullptr) {
    Scope scope = make_scope(problem);
    const Variable x = type.result(problem, scope);
    if (x.defined()) {
      result_ = function({}, {Out(x, {.return_internal_type = true})},
                         {.name = std::string(type.name) + " result"});
    }
  }
}

void SolverProgram::compile_step(const Problem& problem, int variant) {
  Scope scope = make_scope(problem);
  type_.step(problem, scope, variant);
  if (!scope.is_guarded()) {
    throw ValueError("[" + std::string(type_.name) +
                     "] guard: the step calls none, expected one before set. Try "
                     "s.guard(p.x().norm2(next))");
  }
  steps_.push_back(compiled(scope, std::string(type_.name) + " step"));
  if (steps_.size() == 1) return;
  steps_.back().function = with_workspace_of(steps_.back().function, steps_[0].function);
}

Scope SolverProgram::make_scope(const Problem& problem) const {
  std::vector<Variable> values;
  for (const SharedVariable& s : state_) values.push_back(s.var());
  return Scope(problem, list_, std::move(values), inputs_, type_.is_linear);
}

// Numbers as one array, so that a run gives a single result.
SolverProgram::Part SolverProgram::compiled(const Scope& scope, const std::string& name) const {
  Part part;
  std::vector<Variable> packed;
  const auto n = static_cast<index_t>(batch_count_);
  for (const auto& [key, v] : scope.numbers()) {
    part.numbers.push_back(key);
    packed.push_back(v.reshape({n}));
  }
  for (const auto& [key, v] : scope.run_time_counts()) {
    part.run_time_counts.push_back(key);
    packed.push_back(v.astype(problem_.x().number_type().dtype).reshape({1}));
  }
  part.counts = scope.counts();
  part.uses_b = scope.uses_b();
  part.uses_iteration = scope.uses_iteration();
  std::vector<In> inputs;
  const auto take = [&](bool is_used, const Variable& v) {
    if (!is_used) return;
    inputs.emplace_back(v);
    part.types.push_back(v.type());
  };
  take(part.uses_b, inputs_.b);
  take(part.uses_b && type_.is_linear, inputs_.scale);
  take(part.uses_iteration, inputs_.iteration);
  take(inputs_.active.defined(), inputs_.active);
  Updates updates;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (scope.updates()[i].defined()) updates.emplace_back(state_[i].var(), scope.updates()[i]);
  }
  Outputs outputs;
  if (!packed.empty()) {
    outputs =
        Outputs({Out(packed.size() == 1 ? packed[0] : ops::join(0, packed), {.borrow = true})});
  }
  FunctionOptions options;
  options.updates = std::move(updates);
  options.name = name;
  options.on_unused_input = Reaction::ignore;
  part.function = function(std::move(inputs), std::move(outputs), std::move(options));
  return part;
}

std::vector<const Function*> SolverProgram::functions() const {
  std::vector<const Function*> list;
  if (setup_.function.defined()) list.push_back(&setup_.function);
  for (const Part& part : steps_) list.push_back(&part.function);
  if (result_.defined()) list.push_back(&result_);
  return list;
}

index_t SolverProgram::input_bytes() const {
  const auto any = [&](auto&& uses) {
    return std::any_of(steps_.begin(), steps_.end(), uses) || uses(setup_);
  };
  index_t bytes = 0;
  if (type_.is_linear && any([](const Part& p) { return p.uses_b; })) {
    bytes += type_bytes(inputs_.scale.type());
  }
  if (any([](const Part& p) { return p.uses_iteration; })) {
    bytes += type_bytes(inputs_.iteration.type());
  }
  if (inputs_.active.defined()) bytes += type_bytes(inputs_.active.type());
  return bytes;
}

SolvePlan SolverProgram::plan() const {
  SolvePlan result;
  for (const SharedVariable& s : state_) result.state_bytes += type_bytes(s.type());
  result.state_bytes += input_bytes();
  // The place of the data is known only when a run begins; a caller may know it before.
  const bool may_map_b = !problem_.flag("data_in_memory");
  ConstantBytes constant_bytes(problem_);
  for (const Function* f : functions()) constant_bytes.add(*f);
  const index_t constants = constant_bytes.bytes();
  result.setup_bytes = result.step_bytes = result.result_bytes = constants;
  if (setup_.function.defined()) {
    const Plan& plan = plan_of(setup_.function, setup_.types);
    result.setup_bytes += plan.peak_bytes;
    result.streamed_bytes = streamed_bytes(setup_.function, plan, setup_.uses_b && may_map_b);
  }
  index_t arena = 0;
  for (const Part& part : steps_) {
    const Plan& plan = plan_of(part.function, part.types);
    arena = std::max(arena, plan.arena_bytes);
    result.step_bytes += plan.peak_bytes - plan.arena_bytes;
    result.streamed_bytes = std::max(result.streamed_bytes,
                                     streamed_bytes(part.function, plan, part.uses_b && may_map_b));
  }
  result.step_bytes += arena;
  result.step = plan_of(steps_[0].function, steps_[0].types);
  if (result_.defined()) result.result_bytes += plan_of(result_, {}).peak_bytes;
  result.peak_bytes =
      result.state_bytes + std::max({result.setup_bytes, result.step_bytes, result.result_bytes});
  if (type_.prepare_bytes != nullptr) {
    // The functions are there by then.
    result.peak_bytes = std::max(result.peak_bytes, constants + type_.prepare_bytes(problem_));
  }
  return result;
}

double SolverProgram::work() const { return work_of(plan_of(steps_[0].function, steps_[0].types)); }

double SolverProgram::rounding() const { return rounding_of(problem_.x().type().dtype); }

Tensor SolverProgram::first_value(const StateList::Entry& entry, const Tensor& b,
                                  const std::optional<Tensor>& x0, std::uint64_t seed) const {
  const TensorType& type = entry.space.type();
  const bool is_from_x0 = entry.init.kind() == Init::Kind::x0_or_zero && x0;
  const bool is_from_b = entry.init.kind() == Init::Kind::b;
  if (is_from_x0 || is_from_b) {
    Tensor made = Tensor::empty(type.shape, type.dtype, type.device, "solver state");
    made.copy_from(is_from_x0 ? *x0 : b);
    return made;
  }
  Tensor made = Tensor::zeros(type.shape, type.dtype, type.device);
  if (entry.init.kind() == Init::Kind::key) {
    const std::uint64_t stream = content_hash(entry.name.data(), entry.name.size());
    made.copy_from(Tensor::from<std::uint64_t>({seed, stream}, type.shape, type.device));
  } else if (entry.init.kind() == Init::Kind::number && entry.init.value() != 0) {
    made.fill(entry.init.value());
  }
  return made;
}

void SolverProgram::bind_arguments(Part& part) const {
  part.arguments.clear();
  if (part.uses_b) part.arguments.push_back(b_);
  if (part.uses_b && type_.is_linear) part.arguments.push_back(scale_);
  if (part.uses_iteration) part.arguments.push_back(iteration_);
  if (active_.defined()) part.arguments.push_back(active_);
}

void SolverProgram::make_arguments(const Tensor& b) {
  if (type_.is_linear && problem_.has_x0()) data_ = b;
  const auto any = [&](auto&& uses) {
    return std::any_of(steps_.begin(), steps_.end(), uses) || uses(setup_);
  };
  const auto scalar = [&](const Variable& v) {
    return Tensor::empty(v.type().shape, v.dtype(), v.type().device, "solver input");
  };
  if (any([](const Part& p) { return p.uses_b; })) {
    b_ = b;
    if (type_.is_linear) {
      scale_ = scalar(inputs_.scale);
      scale_.fill(std::ldexp(1.0, exponent_));
    }
  }
  if (any([](const Part& p) { return p.uses_iteration; })) {
    iteration_ = scalar(inputs_.iteration);
    iteration_.fill(0.0);
  }
  if (inputs_.active.defined()) {
    active_ = scalar(inputs_.active);
    active_.fill(true);
  }
  for (Part& part : steps_) bind_arguments(part);
}

Tensor SolverProgram::element_of(const Space& space, const Tensor& whole,
                                 std::size_t element) const {
  Tensor part = whole;
  auto rest = static_cast<index_t>(element);
  for (std::size_t k = space.batch_axes().size(); k-- > 0;) {
    const auto axis = static_cast<std::size_t>(space.batch_axes()[k]);
    const index_t n = space.type().shape[axis];
    part = part.narrow(axis, rest % n, 1);
    rest /= n;
  }
  return part;
}

std::vector<double> SolverProgram::largest_parts(const Tensor& b) const {
  std::vector<double> largest;
  for (std::size_t e = 0; e < batch_count_; ++e) {
    largest.push_back(problem_.b().total(largest_part(element_of(problem_.b(), b, e))));
  }
  return largest;
}

void SolverProgram::put_start(Tensor& x, std::size_t element,
                              const std::optional<Tensor>& x0) const {
  const Space& X = problem_.x();
  if (x.shape() != X.type().shape) {
    if (batch_count_ == 1) x.fill(0.0);
    return;
  }
  Tensor part = element_of(X, x, element);
  if (x0) {
    part.copy_from(element_of(X, *x0, element));
  } else {
    part.fill(0.0);
  }
}

// The norm of the data, and the power of two that brings them near 1.
SolverProgram::Start SolverProgram::look_at(const Tensor& b, const std::optional<Tensor>& x0) {
  const Tensor dense = b.contiguous();
  // Other processes may have larger parts: sums, which all of them have alike, bound both.
  const double own_largest = largest_part(dense);
  Start made;
  double largest = 0;  // of the elements that are finite
  for (const double of_element : largest_parts(dense)) {
    made.is_element_zero.push_back(of_element == 0 && !problem_.batch().empty());
    made.is_element_finite.push_back(std::isfinite(of_element));
    if (std::isfinite(of_element)) largest = std::max(largest, of_element);
  }
  const double start = x0 ? problem_.x().total(largest_part(*x0)) : 0;
  exponent_ = scale_exponent(largest, start, dense.dtype());
  const double norm = std::ldexp(safe_norm(dense, own_largest), exponent_);
  const bool is_whole = !problem_.b().is_in_parts();
  made.is_zero = largest == 0;
  made.norm_b = is_whole ? norm : std::sqrt(problem_.b().total(norm * norm));
  return made;
}

SolverProgram::Start SolverProgram::start(const Tensor& b, const std::optional<Tensor>& x0,
                                          std::uint64_t seed, const Preparation& prepared) {
  is_running_ = true;
  exponent_ = 0;
  Start made = type_.is_linear ? look_at(b, x0) : Start();
  made.is_element_zero.resize(batch_count_, false);
  made.is_element_finite.resize(batch_count_, true);
  std::vector<Tensor> values;
  values.reserve(list_.entries().size());
  for (const StateList::Entry& entry : list_.entries()) {
    values.push_back(first_value(entry, b, x0, seed));
    for (const auto& [name, value] : prepared.values) {
      if (name == entry.name) values.back().fill(value);
    }
    const Init::Kind kind = entry.init.kind();
    if (kind == Init::Kind::b || kind == Init::Kind::x0_or_zero) {
      multiply_by_power_of_two(values.back(), exponent_);
    }
    if (kind == Init::Kind::x0_or_zero && x0) {  // where b is 0 x is, as without a batch
      for (std::size_t e = 0; e < made.is_element_zero.size(); ++e) {
        if (made.is_element_zero[e]) element_of(entry.space, values.back(), e).fill(0.0);
      }
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) state_[i].exchange(std::move(values[i]));
  make_arguments(b);
  if (setup_.function.defined()) {
    run_setup();
    for (std::size_t k = 0; k < batch_count_; ++k) {
      if (!numbers_.is_finite(NumberTable::From::setup, k)) made.is_element_finite[k] = false;
    }
  }
  return made;
}

void SolverProgram::run_setup() {
  bind_arguments(setup_);
  run(setup_, NumberTable::From::setup);
  setup_.result[0] = Tensor();
  setup_.arguments.clear();
  setup_.function.free();  // its workspace goes before that of the iterations comes
}

void SolverProgram::free_steps() {
  for (Part& part : steps_) {
    part.result[0] = Tensor();
    part.function.free();
  }
  is_prepared_ = false;
}

void SolverProgram::restart() {
  free_steps();
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const Init& init = list_.entries()[i].init;
    if (init.kind() == Init::Kind::x0_or_zero) {
      if (result_.defined()) {
        state_[i].exchange(iterate(/*is_last=*/false));
        result_.free();
      }
      continue;
    }
    state_[i].modify([&](Tensor& value) {
      if (init.kind() == Init::Kind::b) {
        value.copy_from(data_);
        multiply_by_power_of_two(value, exponent_);
      } else {
        value.fill(init.kind() == Init::Kind::number ? init.value() : 0.0);
      }
    });
  }
  run_setup();
}

SolverProgram::Start SolverProgram::restore(const Tensor& b, const Checkpoint& run,
                                            const NamedTensors& state) {
  const auto fail = [&](const std::string& what) {
    throw FormatError("[" + std::string(type_.name) + "] checkpoint: " + what);
  };
  // A number that is not in the file begins with its first value.
  std::vector<const Tensor*> saved;
  std::size_t next = 0;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const StateList::Entry& entry = list_.entries()[i];
    const TensorType& type = entry.space.type();
    const bool is_there = next < state.size() && state[next].first == entry.name;
    if (is_there) {
      const Tensor& t = state[next++].second;
      if (t.shape() != type.shape || t.dtype() != type.dtype) {
        fail("state '" + entry.name + "' is another one");
      }
      saved.push_back(&t);
    } else if (entry.init.kind() == Init::Kind::number && type == problem_.x().number_type()) {
      saved.push_back(nullptr);
    } else {
      fail("state '" + entry.name + "' is missing");
    }
  }
  if (next != state.size()) fail("another number of states");
  std::vector<double> numbers = run.setup_numbers;
  const std::size_t expected = setup_.numbers.size() * batch_count_;
  if (numbers.size() > expected || numbers.size() % batch_count_ != 0) fail("numbers");
  numbers.resize(expected);  // the file may lack the last ones, which restart() makes
  if (run.ended.size() != batch_count_ || run.iterations.size() != batch_count_) fail("batch");
  if (!run.growth.empty() && run.growth.size() != batch_count_) fail("batch");
  numbers_.restore_setup(setup_.numbers, numbers);
  is_running_ = true;
  exponent_ = run.exponent;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const TensorType& type = state_[i].type();
    if (saved[i] == nullptr) {
      state_[i].exchange(first_value(list_.entries()[i], b, {}, 0));
      continue;
    }
    Tensor made = Tensor::empty(type.shape, type.dtype, type.device, "solver state");
    made.copy_from(*saved[i]);
    state_[i].exchange(std::move(made));
  }
  make_arguments(b);
  Start made{.is_zero = run.is_zero, .norm_b = run.norm_b};
  if (problem_.batch().empty() || !result_.defined()) return made;
  for (const double largest : largest_parts(b)) {
    made.is_element_finite.push_back(std::isfinite(largest));
  }
  return made;
}

NamedTensors SolverProgram::state() const {
  NamedTensors all_states;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    all_states.emplace_back(list_.entries()[i].name,
                            state_[i].get_value({.borrow = true, .return_internal_type = true}));
  }
  return all_states;
}

void SolverProgram::run(Part& part, NumberTable::From from) {
  const bool has_result = !part.numbers.empty() || !part.run_time_counts.empty();
  part.function.call(part.arguments, std::span<Tensor>(part.result.data(), has_result ? 1 : 0));
  latest_ = &part;
  numbers_.set_names(from, part.numbers);
  if (has_result) numbers_.set_values(from, on_host(part.result[0]));
}

// Makes the frames of all variants, the one with the largest arena first: the others use it.
void SolverProgram::prepare() {
  std::vector<const Part*> order;
  for (const Part& part : steps_) order.push_back(&part);
  const auto arena_of = [](const Part* part) {
    return plan_of(part->function, part->types).arena_bytes;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Part* a, const Part* b) { return arena_of(a) > arena_of(b); });
  for (const Part* part : order) part->function.prepare(part->arguments);
  is_prepared_ = true;
}

void SolverProgram::step(int variant, int iteration, bool looks) {
  if (!is_prepared_) prepare();
  if (iteration_.defined()) iteration_.fill(std::int64_t{iteration});
  const bool has_looks = looks && steps_.size() > variants_;
  run(steps_[static_cast<std::size_t>(variant) + (has_looks ? variants_ : 0)],
      NumberTable::From::step);
}

void SolverProgram::set_active(const std::vector<bool>& active) {
  if (!active_.device().is_host()) {
    active_.copy_from(Tensor::from(active, active_.shape(), active_.device()));
    return;
  }
  auto* flags = static_cast<bool*>(active_.raw_mutable_data());
  std::copy(active.begin(), active.end(), flags);
}

void SolverProgram::add_counts(std::map<std::string, std::int64_t>& applications) const {
  if (latest_ == nullptr) return;
  for (const auto& [name, n] : latest_->counts) applications[name] += n;
  const std::size_t first = latest_->numbers.size() * batch_count_;
  for (std::size_t k = 0; k < latest_->run_time_counts.size(); ++k) {
    const Tensor packed = on_host(latest_->result[0]);
    const std::size_t at = first + k;
    const double n = packed.dtype() == DType::float32
                         ? static_cast<double>(packed.data<float>()[at])
                         : packed.data<double>()[at];
    applications[latest_->run_time_counts[k]] += static_cast<std::int64_t>(n);
  }
}

Tensor SolverProgram::iterate(bool is_last) {
  if (result_.defined()) {
    std::array<Tensor, 1> results;
    result_.call({}, results);
    return std::move(results[0]);
  }
  Tensor x;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (list_.entries()[i].name == "x")
      x = state_[i].get_value({.borrow = is_last, .return_internal_type = true});
  }
  return x;
}

Tensor SolverProgram::x(bool* is_in_range) {
  const bool is_last = is_in_range != nullptr;
  // At the end the workspace of the steps goes before that of the result comes.
  if (result_.defined() && is_last) free_steps();
  Tensor x = iterate(is_last);
  const bool fits = multiply_by_power_of_two(x, -exponent_);
  if (is_in_range != nullptr) *is_in_range = fits;
  return x;
}

void SolverProgram::finish() {
  is_running_ = is_prepared_ = false;
  latest_ = nullptr;
  data_ = b_ = scale_ = iteration_ = active_ = Tensor();
  for (Part& part : steps_) {
    part.result[0] = Tensor();
    part.arguments.clear();
  }
  for (const Function* f : functions()) f->free();
  for (SharedVariable& s : state_) s.exchange(placeholder(s.type()));
}

}  // namespace palimpsest
