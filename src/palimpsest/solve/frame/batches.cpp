// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/batches.hpp"

#include <utility>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/solve/frame/planned.hpp"
#include "palimpsest/solve/frame/prelude.hpp"

namespace palimpsest {
namespace {

// The part of an operator, with variables of its own in place of views: lazy clones, which copy
// nothing and may be exchanged for those of another part.
NamedLinop with_own_data(const NamedLinop& part) {
  NamedLinop own = part;
  for (const auto& [name, p] : part.params()) {
    if (p.present() && p.is_view()) own.set_param(name, Parameter(p.value()));
  }
  if (part.linop_count() == 0) return own;
  std::vector<NamedLinop> children;
  for (const NamedLinop& child : part.linops()) children.push_back(with_own_data(child));
  own.set_linops(std::move(children));
  return own;
}

// True if the part differs from the operator with own data only in the values of the cut
// parameters.
bool is_alike(const NamedLinop& own, const NamedLinop& part) {
  const bool is_same = &own.type() == &part.type() && own.is_flipped() == part.is_flipped() &&
                       own.shape() == part.shape() && own.attrs() == part.attrs() &&
                       own.recorded_sizes() == part.recorded_sizes() &&
                       own.params().size() == part.params().size() &&
                       own.linop_count() == part.linop_count();
  if (!is_same) return false;
  for (std::size_t i = 0; i < own.params().size(); ++i) {
    const auto& [name, p] = own.params()[i];
    const auto& [other, q] = part.params()[i];
    if (name != other || p.present() != q.present()) return false;
    if (!p.present()) continue;
    if (q.is_view() ? p.is_view() || p.type() != q.type() : !p.is(q)) return false;
  }
  for (std::size_t i = 0; i < own.linop_count(); ++i) {
    if (!is_alike(own[i], part[i])) return false;
  }
  return true;
}

// Lets an operator with data of its own have those of this part.
void assign(const NamedLinop& own, const NamedLinop& part) {
  for (const auto& [name, p] : part.params()) {
    if (!p.present() || !p.is_view()) continue;
    Parameter target = own.param(name);
    target.set_value(p.value());
  }
  for (std::size_t i = 0; i < part.linop_count(); ++i) assign(own[i], part[i]);
}

bool has_axes(const Prox& g) {
  const bool has = std::any_of(g.params().begin(), g.params().end(), [](const auto& entry) {
    return entry.second.present() && !entry.second.shape().empty();
  });
  return has || std::any_of(g.parts().begin(), g.parts().end(), has_axes);
}

// The budget of the config is met by cutting the block, not each run.
class WithoutBudget {
 public:
  WithoutBudget() {
    if (!config().budget) return;
    ConfigOverrides overrides = without_cache_tiles();
    overrides.budget = kNoLimit;
    scope_.emplace(overrides);
  }

 private:
  std::optional<ConfigScope> scope_;
};

// A block of problems and how it is cut.
class CutBlock {
 public:
  CutBlock(const SolverType& type, const Problem& problem, const BatchesOptions& options)
      : type_(type), problem_(problem), options_(options), whole_(problem) {
    const auto fail = [&](const std::string& what) { throw ValueError(who() + what); };
    if (options.dims.empty()) fail("dims: got none, expected at least one");
    if (options.solve.checkpoint || !options.solve.resume.empty()) {
      fail("checkpoint: expected none");
    }
    const bool has_x0 = options.solve.x0.has_value();
    whole_.resolve(options.dims, has_x0, type.name);
    for (const auto& [name, g] : problem.proxes()) {
      if (!has_axes(g)) continue;
      throw SplitError(who() + "dims: " + name +
                       ": expected a function whose parameters have no axes");
    }
    for (const index_t axis : whole_.x().batch_axes()) {
      extents_.push_back(whole_.x().type().shape[static_cast<std::size_t>(axis)]);
    }
    for (std::size_t k = 0; k < extents_.size(); ++k) {
      sizes_.emplace_back(options.dims[k], extents_[k]);
    }
  }

  const Problem& whole() const { return whole_; }
  const Extents& extents() const { return extents_; }
  std::string who() const { return "[" + std::string(type_.name) + "] in batches: "; }

  Tile first(const TileSizes& sizes) const {
    Tile where;
    for (const auto& [d, n] : sizes) where.emplace(d, slice(0, n));
    return where;
  }

  // The problem on a part; operators on views of their data.
  Problem part(const Tile& where) const {
    Problem made(b_type(where));
    for (const auto& [name, A] : problem_.ops()) {
      made.set(name, is_whole(where) ? A : sized(A).split(where));
    }
    for (const auto& [name, g] : problem_.proxes()) made.set(name, g);
    for (const auto& [name, a] : problem_.attrs()) made.set(name, a);
    return made;
  }

  SolveOptions options_of(const Tile& where) const {
    SolveOptions made = options_.solve;
    made.batch = options_.dims;
    if (made.x0) made.x0 = cut(*made.x0, whole_.x(), where);
    return made;
  }

  // A view.
  Tensor cut(const Tensor& t, const Space& space, const Tile& where) const {
    Tensor view = t;
    for (std::size_t k = 0; k < extents_.size(); ++k) {
      const Slice& s = where.at(options_.dims[k]);
      view = view.narrow(static_cast<std::size_t>(space.batch_axes()[k]), *s.start,
                         *s.stop - *s.start);
    }
    return view;
  }

  // Bytes of all that is made when this is a part, without those that the solver announces.
  index_t bytes_besides(const Tile& where) const {
    const TensorType b = b_type(where);
    const TensorType& x = whole_.x().type();
    index_t bytes = is_whole(where) ? 0 : byte_count(b.shape, b.dtype);
    if (!options_.sink && !is_whole(where)) bytes += byte_count(x.shape, x.dtype);
    const SolveOptions of_part = options_of(where);
    if (of_part.x0 && !is_whole(where)) bytes += of_part.x0->nbytes();
    return bytes;
  }

  // The largest part that fits.
  BatchesPlan plan() const {
    const auto budget = options_.bytes ? options_.bytes : config().budget;
    TileSizes sizes = sizes_;
    BatchesPlan made = planned(sizes);
    if (!budget || made.peak_bytes <= *budget) return made;
    const auto fits = [&] {
      made = planned(sizes);
      return made.peak_bytes <= *budget;
    };
    for (auto& [d, n] : sizes) {
      index_t low = 1, high = n;  // high does not fit
      n = 1;
      if (!fits()) continue;
      while (high - low > 1) {
        n = low + (high - low) / 2;
        (fits() ? low : high) = n;
      }
      n = low;
      return planned(sizes);
    }
    throw BudgetError(who() + "nothing fits into the budget: got " + std::to_string(*budget) +
                      " bytes, single elements take " + std::to_string(made.peak_bytes) +
                      ". Try a budget of " + std::to_string(made.peak_bytes));
  }

  BatchesPlan planned(const TileSizes& sizes) const {
    const Tile where = first(sizes);
    const WithoutBudget scope;
    const SolvePlan plan = plan_solve(type_, part(where), options_of(where));
    BatchesPlan made;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto& [d, n] = sizes[k];
      made.sizes.emplace(d, n);
      if (n > 0) made.runs *= (extents_[k] + n - 1) / n;
    }
    made.peak_bytes = plan.peak_bytes + bytes_besides(where);
    return made;
  }

  bool is_whole(const Tile& where) const {
    for (const auto& [d, n] : sizes_) {
      if (*where.at(d).stop - *where.at(d).start != n) return false;
    }
    return true;
  }

 private:
  TensorType b_type(const Tile& where) const {
    TensorType type = problem_.b_type();
    for (std::size_t k = 0; k < extents_.size(); ++k) {
      const Slice& s = where.at(options_.dims[k]);
      type.shape[static_cast<std::size_t>(whole_.b().batch_axes()[k])] = *s.stop - *s.start;
    }
    return type;
  }
  NamedLinop sized(const NamedLinop& A) const {
    DimMap sizes;
    for (const auto& [d, n] : sizes_) {
      if (A.dims().contains(d) && !A.size(d)) sizes.emplace(d, n);
    }
    return sizes.empty() ? A : A.with_sizes(sizes);
  }

  const SolverType& type_;
  const Problem& problem_;
  const BatchesOptions& options_;
  Problem whole_;
  Extents extents_;
  TileSizes sizes_;
};

// The parts, those of the full size first.
std::vector<Tile> parts_of(const CutBlock& block, const BatchesPlan& plan, const Dims& dims) {
  std::vector<Tile> list{{}};
  for (std::size_t k = 0; k < dims.size(); ++k) {
    std::vector<Tile> longer;
    const index_t n = std::max<index_t>(plan.sizes.at(dims[k]), 1), extent = block.extents()[k];
    for (const Tile& before : list) {
      for (index_t at = 0; at == 0 || at < extent; at += n) {
        longer.push_back(before);
        longer.back().emplace(dims[k], slice(at, std::min(at + n, extent)));
      }
    }
    list = std::move(longer);
  }
  const auto is_full = [&](const Tile& where) {
    return std::all_of(where.begin(), where.end(), [&](const auto& entry) {
      return *entry.second.stop - *entry.second.start == plan.sizes.at(entry.first);
    });
  };
  std::stable_partition(list.begin(), list.end(), is_full);
  return list;
}

// Runs the parts, one after the other, and puts their results together.
class Runs {
 public:
  Runs(const SolverType& type, const Problem& problem, const Tensor& b,
       const BatchesOptions& options)
      : type_(type), b_(b), options_(options), block_(type, problem, options) {
    check_data(type, block_.whole(), b);
  }

  BatchesResult run() {
    const BatchesPlan plan = block_.plan();
    const WithoutBudget scope;
    SolveResult& all = made_.all;
    const Space& X = block_.whole().x();
    const auto count = static_cast<std::size_t>(element_count(block_.extents()));
    all.status = Status::converged;
    all.batch_status.assign(count, Status::max_iterations);
    all.batch_iterations.assign(count, 0);
    made_.sizes = plan.sizes;
    const std::vector<Tile> parts = parts_of(block_, plan, options_.dims);
    if (!options_.sink && parts.size() > 1) {
      all.x = Tensor::empty(X.type().shape, X.type().dtype, X.type().device, "solver result");
    }
    bool goes_on = true;
    for (const Tile& where : parts) {
      SolveResult part = goes_on ? solved(where) : left_out(where, all.status);
      goes_on = part.status != Status::cancelled && part.status != Status::stopped;
      note(where, part);
      if (options_.sink) {
        options_.sink(where, part);
      } else if (parts.size() == 1) {
        all.x = std::move(part.x);
      } else {
        block_.cut(all.x, X, where).copy_from(part.x);
      }
    }
    return std::move(made_);
  }

 private:
  SolveResult solved(const Tile& where) {
    ++made_.runs;
    const SolveOptions options = block_.options_of(where);
    if (block_.is_whole(where)) {
      solver_.emplace(type_, block_.part(where), options);
      ++made_.solvers;
      return solver_->run(b_);
    }
    const Problem part = block_.part(where);
    if (solver_ && is_alike_to(part)) {
      for (const auto& [name, A] : part.ops()) assign(own_.op(name), A);
      part_b_.copy_from(block_.cut(b_, block_.whole().b(), where));
      if (options.x0) solver_->set_x0(options.x0->clone());
    } else {
      start_with(part, where, options);
    }
    SolveResult result = solver_->run(part_b_);
    add_bytes_besides(result, block_.bytes_besides(where));
    return result;
  }

  // Starts another solver; the memory of the one before is released first.
  void start_with(const Problem& part, const Tile& where, SolveOptions options) {
    solver_.reset();
    part_b_ = Tensor();
    own_ = part;
    for (const auto& [name, A] : part.ops()) own_.replace(name, with_own_data(A));
    part_b_ = block_.cut(b_, block_.whole().b(), where).clone();
    if (options.x0) options.x0 = options.x0->clone();
    solver_.emplace(type_, own_, std::move(options));
    ++made_.solvers;
  }

  bool is_alike_to(const Problem& part) const {
    if (part.b_type() != own_.b_type()) return false;
    return std::all_of(part.ops().begin(), part.ops().end(), [&](const auto& entry) {
      return is_alike(own_.op(entry.first), entry.second);
    });
  }

  // The result of a part that is not run any more.
  SolveResult left_out(const Tile& where, Status status) const {
    const Space& X = block_.whole().x();
    const SolveOptions options = block_.options_of(where);
    Extents extents = X.type().shape, batch;
    for (std::size_t k = 0; k < options_.dims.size(); ++k) {
      const Slice& s = where.at(options_.dims[k]);
      batch.push_back(*s.stop - *s.start);
      extents[static_cast<std::size_t>(X.batch_axes()[k])] = batch.back();
    }
    SolveResult result;
    result.x = Tensor::zeros(extents, X.type().dtype, X.type().device);
    if (options.x0) result.x.copy_from(*options.x0);
    result.status = status;
    const auto count = static_cast<std::size_t>(element_count(batch));
    result.batch_status.assign(count, status);
    result.batch_iterations.assign(count, 0);
    return result;
  }

  void note(const Tile& where, const SolveResult& part) {
    SolveResult& all = made_.all;
    all.status = worst(all.status, part.status);
    all.iterations = std::max(all.iterations, part.iterations);
    all.seconds += part.seconds;
    if (!all.plan || part.peak_bytes > all.peak_bytes) all.plan = part.plan;
    all.peak_bytes = std::max(all.peak_bytes, part.peak_bytes);
    for (const auto& [name, n] : part.applications) all.applications[name] += n;
    for (std::size_t i = 0; i < part.batch_status.size(); ++i) {
      index_t rest = static_cast<index_t>(i), at = 0, step = 1;
      for (std::size_t k = options_.dims.size(); k-- > 0;) {
        const Slice& s = where.at(options_.dims[k]);
        const index_t n = *s.stop - *s.start;
        at += (*s.start + rest % n) * step;
        rest /= n;
        step *= block_.extents()[k];
      }
      all.batch_status[static_cast<std::size_t>(at)] = part.batch_status[i];
      all.batch_iterations[static_cast<std::size_t>(at)] = part.batch_iterations[i];
    }
  }

  const SolverType& type_;
  const Tensor& b_;
  const BatchesOptions& options_;
  CutBlock block_;
  BatchesResult made_;
  Problem own_;
  Tensor part_b_;
  std::optional<Solver> solver_;
};

}  // namespace

BatchesPlan plan_batches(const SolverType& type, const Problem& problem,
                         const BatchesOptions& options) {
  return CutBlock(type, problem, options).plan();
}

BatchesResult solve_in_batches(const SolverType& type, const Problem& problem, const Tensor& b,
                               const BatchesOptions& options) {
  return Runs(type, problem, b, options).run();
}

}  // namespace palimpsest
