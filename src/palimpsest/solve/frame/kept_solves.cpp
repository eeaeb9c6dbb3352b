// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/kept_solves.hpp"

#include <mutex>
#include <utility>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/solve/frame/prelude.hpp"

namespace palimpsest {

struct KeptSolve::Key {
  Key(const SolverType& t, const Problem& problem, const SolveOptions& options)
      : type(&t),
        b(problem.b_type()),
        attrs(problem.attrs()),
        batch(options.batch),
        has_x0(has_start(t, options)),
        looks(looks_at_objective(options)),
        config(shared_config()) {
    for (const auto& [name, A] : problem.ops()) ops.emplace_back(name, A.node());
  }

  bool operator==(const Key& other) const {
    const auto is_same = [](const auto& x, const auto& y) {
      return x.first == y.first && !x.second.expired() && x.second.lock() == y.second.lock();
    };
    return type == other.type && b == other.b && attrs == other.attrs && batch == other.batch &&
           has_x0 == other.has_x0 && looks == other.looks && *config == *other.config &&
           std::equal(ops.begin(), ops.end(), other.ops.begin(), other.ops.end(), is_same);
  }

  const SolverType* type;
  TensorType b;
  Attributes attrs;
  std::vector<std::pair<std::string, std::weak_ptr<const LinopNode>>> ops;
  Dims batch;
  bool has_x0, looks;
  std::shared_ptr<const Config> config;
};

struct KeptSolve::Entry {
  std::shared_ptr<const Key> key;
  PlannedSolve planned;
};

namespace {

bool can_be_kept(const Problem& problem, const SolveOptions& options) {
  return problem.has_op("A") && problem.proxes().empty() && config().function_cache > 0 &&
         !budget_of(options);
}

}  // namespace

KeptSolve::KeptSolve(const SolverType& type, const Problem& problem, const SolveOptions& options) {
  if (!can_be_kept(problem, options)) {
    planned_ = plan_program(type, problem, options);
    return;
  }
  A_ = problem.op("A");
  key_ = std::make_shared<const Key>(type, problem, options);
  std::shared_ptr<void> found;
  {
    auto& kept = A_.node()->solves;
    const std::lock_guard guard(A_.node()->mutex);
    const auto at = std::find_if(kept.begin(), kept.end(), [&](const std::shared_ptr<void>& e) {
      return *static_cast<const Entry*>(e.get())->key == *key_;
    });
    if (at != kept.end()) {
      found = std::move(*at);
      kept.erase(at);
    }
  }
  if (!found) {
    planned_ = plan_program(type, problem, options);
    const Problem& resolved = *planned_.problem;
    // Spaces of parts hold their operators.
    if (resolved.x().is_in_parts() || resolved.b().is_in_parts()) key_.reset();
    return;
  }
  planned_ = std::move(static_cast<Entry*>(found.get())->planned);
  for (const auto& [name, A] : problem.ops()) planned_.problem->replace(name, A);
  check_options(type, *planned_.problem, options);
}

void KeptSolve::keep() && {
  if (!key_) return;
  std::vector<std::string> names;
  for (const auto& [name, A] : planned_.problem->ops()) names.push_back(name);
  for (const std::string& name : names) planned_.problem->replace(name, NamedLinop());
  auto entry = std::make_shared<Entry>(Entry{std::move(key_), std::move(planned_)});
  const auto limit = static_cast<std::size_t>(config().function_cache);
  std::vector<std::shared_ptr<void>> evicted;  // freed after the lock
  const std::lock_guard guard(A_.node()->mutex);
  auto& kept = A_.node()->solves;
  kept.push_back(std::move(entry));
  while (kept.size() > limit) {
    evicted.push_back(std::move(kept.front()));
    kept.erase(kept.begin());
  }
}

}  // namespace palimpsest
