// SPDX-License-Identifier: Apache-2.0
#include "tensor/storage_program.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::testing {
namespace {

using Value = std::int32_t;
constexpr index_t kItem = sizeof(Value);

// Difference between library and simulator.
struct Mismatch {
  std::string what;
};

void require(bool condition, const char* what) {
  if (!condition) throw Mismatch{what};
}

// -- the simulator -------------------------------------------------------------------------------

// Storages that may still share data. The last member never needs a copy.
struct Family {
  int members = 0;
};

struct SimStorage {
  std::vector<std::byte> bytes;
  std::shared_ptr<Family> family;
  bool is_read_only = false;  // foreign memory: never owned
  bool is_foreign_writable = false;
  int pins = 0;

  explicit SimStorage(std::size_t n_bytes) : bytes(n_bytes) { join(std::make_shared<Family>()); }
  SimStorage(const SimStorage&) = delete;
  SimStorage& operator=(const SimStorage&) = delete;
  ~SimStorage() { --family->members; }
  void join(std::shared_ptr<Family> other) {
    if (family) --family->members;
    family = std::move(other);
    ++family->members;
  }
};

struct SimTensor {
  std::shared_ptr<SimStorage> storage;
  std::vector<index_t> shape;
  std::vector<index_t> at;  // byte position of each element, row-major

  Value get(std::size_t k) const {
    Value value;
    std::memcpy(&value, storage->bytes.data() + at[k], kItem);
    return value;
  }
  void put(std::size_t k, Value value) const {
    std::memcpy(storage->bytes.data() + at[k], &value, kItem);
  }
  std::vector<Value> values() const {
    std::vector<Value> all(at.size());
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = get(k);
    return all;
  }
  bool overlaps_itself() const {
    std::vector<index_t> sorted = at;
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }
  bool covers_everything() const {
    return static_cast<std::size_t>(kItem) * at.size() == storage->bytes.size();
  }
  bool meets(const SimTensor& other) const {
    if (storage != other.storage) return false;
    return std::any_of(at.begin(), at.end(), [&](index_t position) {
      return std::find(other.at.begin(), other.at.end(), position) != other.at.end();
    });
  }
};

index_t count_of(const std::vector<index_t>& shape) {
  index_t n = 1;
  for (const index_t extent : shape) n *= extent;
  return n;
}

// Is the position of an element an affine function of its index in a tensor of this shape?
bool is_affine(const std::vector<index_t>& at, const std::vector<index_t>& shape) {
  if (at.empty()) return true;
  std::vector<index_t> step(shape.size(), 0);
  index_t distance = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; distance *= shape[axis]) {
    if (shape[axis] > 1) step[axis] = at[static_cast<std::size_t>(distance)] - at[0];
  }
  for (std::size_t k = 0; k < at.size(); ++k) {
    index_t position = at[0], rest = static_cast<index_t>(k);
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      position += rest % shape[axis] * step[axis];
    }
    if (position != at[k]) return false;
  }
  return true;
}

SimTensor simulated(std::vector<index_t> shape, const std::vector<Value>& values) {
  SimTensor sim{std::make_shared<SimStorage>(values.size() * kItem), std::move(shape), {}};
  for (std::size_t k = 0; k < values.size(); ++k) {
    sim.at.push_back(static_cast<index_t>(k) * kItem);
    sim.put(k, values[k]);
  }
  return sim;
}

// -- both sides ----------------------------------------------------------------------------------

struct Pair {
  int number;
  std::uint64_t step;  // the step that made it
  Tensor tensor;
  SimTensor sim;
};

// Foreign memory: given back when the last member of the family is gone, not before.
struct Foreign {
  std::shared_ptr<bool> is_freed = std::make_shared<bool>(false);
  std::shared_ptr<Family> family;
};

struct Pinned {
  Pinned(Storage::Pin p, std::shared_ptr<SimStorage> s) : pin(std::move(p)), sim(std::move(s)) {
    ++sim->pins;
  }
  Pinned(Pinned&&) = default;
  Pinned& operator=(Pinned&&) = delete;
  ~Pinned() {
    if (sim) --sim->pins;
  }

  Storage::Pin pin;
  std::shared_ptr<SimStorage> sim;
};

class Interpreter {
 public:
  Interpreter(Fault fault, std::string* listing) : fault_(fault), listing_(listing) {}

  void run(const Program& program) {
    const CopyStats stats;
    const MemoryScope leaks;
    for (const std::uint64_t seed : program) {
      random_ = step_ = seed;
      step();
      check_foreign();
    }
    check_all();
    check_counts(stats.counts());
    pins_.clear();
    tensors_.clear();
    check_foreign();
    require(leaks.live_bytes() == 0, "memory leaks");
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = random_ += 0x9e37'79b9'7f4a'7c15U;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9U;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebU;
    return z ^ (z >> 31);
  }
  index_t any(index_t n) { return static_cast<index_t>(next() >> 33) % n; }
  Value any_value() { return static_cast<Value>(next()); }
  std::vector<Value> any_values(index_t n) {
    std::vector<Value> values(static_cast<std::size_t>(n));
    for (Value& value : values) value = any_value();
    return values;
  }
  // The choice among existing pairs depends on the steps that made them, not on their number. So a
  // needless step can be removed from a program without changing the meaning of the others.
  std::size_t any_index() {
    const std::uint64_t key = next();
    const auto rank = [key](const Pair& pair) {
      return (key ^ pair.step) * 0xbf58'476d'1ce4'e5b9U;
    };
    const auto chosen =
        std::max_element(tensors_.begin(), tensors_.end(),
                         [&rank](const Pair& a, const Pair& b) { return rank(a) < rank(b); });
    return static_cast<std::size_t>(chosen - tensors_.begin());
  }
  Pair& any_tensor() { return tensors_[any_index()]; }

  void say(const std::string& text) {
    if (listing_ != nullptr) *listing_ += "  " + text + "\n";
  }
  static std::string name(const Pair& pair) { return "t" + std::to_string(pair.number); }
  void add(Tensor tensor, SimTensor sim, const std::string& origin) {
    say("t" + std::to_string(n_made_) + " = " + origin);
    tensors_.push_back({n_made_++, step_, std::move(tensor), std::move(sim)});
  }

  // In some steps one allocation fails: then nothing may have changed. Each step first runs on the
  // library, then on the simulator.
  void step() {
    std::optional<FailingAllocator> failing;
    if (any(6) == 0) failing.emplace(static_cast<std::uint64_t>(any(2)));
    const auto no_memory = [&](const Pair* written) {
      require(failing && failing->has_failed(), "out of memory without a reason");
      say(written == nullptr ? "(no memory)" : "(no memory to write " + name(*written) + ")");
      if (fault_ == Fault::failures_write && written != nullptr && !written->sim.at.empty()) {
        written->sim.put(0, any_value());
      }
    };
    written_ = nullptr;
    try {
      act();
      require(!failing || !failing->has_failed(), "an allocation failed, and no error came");
    } catch (const OutOfMemory&) {
      no_memory(written_);
    }
  }

  void act() {
    const index_t what = any(24);
    if (tensors_.empty() || what < 2) return create();
    if (what == 2) return create_foreign();
    if (what < 7) return make_view(any_tensor());
    if (what < 10) return lazy_clone(any_tensor());
    if (what < 12) return reshape(any_tensor());
    if (what < 16) return write(any_tensor());
    if (what < 18) return fill(any_tensor());
    if (what < 19) return copy_from(any_tensor());
    if (what < 20) return pin();
    if (what < 21) return clone(any_tensor());
    drop();
  }

  // -- making ----------------------------------------------------------------------------------
  void create() {
    const index_t rows = 1 + any(3), columns = 1 + any(4);
    const std::vector<Value> values = any_values(rows * columns);
    Tensor t = Tensor::from<Value>(values, Extents{rows, columns});
    add(std::move(t), simulated({rows, columns}, values),
        "new " + std::to_string(rows) + " x " + std::to_string(columns));
  }

  void create_foreign() {
    const index_t n = 1 + any(6);
    const bool is_writable = any(3) == 0;
    const std::vector<Value> values = any_values(n);
    Foreign foreign;
    auto memory = std::make_shared<std::vector<Value>>(values);
    Tensor t = Tensor::from_blob(
        memory->data(), dtype_of<Value>, {n}, {1},
        [memory, is_freed = foreign.is_freed] { *is_freed = true; }, is_writable);
    SimTensor sim = simulated({n}, values);
    sim.storage->is_read_only = !is_writable;
    sim.storage->is_foreign_writable = is_writable;
    foreign.family = sim.storage->family;
    foreign_.push_back(std::move(foreign));
    add(std::move(t), std::move(sim),
        std::string("foreign ") + (is_writable ? "writable " : "read-only ") + std::to_string(n));
  }

  // A view of a tensor; its element k is element source[k] of the tensor.
  void add_view(const Pair& of, Tensor tensor, std::vector<index_t> shape,
                const std::vector<std::size_t>& source, const std::string& how) {
    SimTensor view{of.sim.storage, std::move(shape), {}};
    for (const std::size_t k : source) view.at.push_back(of.sim.at[k]);
    if (fault_ == Fault::views_are_clones && !view.at.empty()) view = cloned(view);
    add(std::move(tensor), std::move(view), name(of) + how);
  }

  void make_view(const Pair& of) {
    const index_t what = any(8);
    if (what == 0) return transpose(of);
    if (what == 1) return expand(of);
    if (of.sim.shape.empty()) return;
    const auto axis = static_cast<std::size_t>(any(static_cast<index_t>(of.sim.shape.size())));
    const index_t extent = of.sim.shape[axis];
    if (extent == 0) return;
    if (what == 2) return select(of, axis, any(extent));
    slice_axis(of, axis);
  }

  // Elements of `of` at the chosen positions of one axis.
  static std::vector<std::size_t> chosen_of(const SimTensor& of, std::size_t axis,
                                            const std::vector<index_t>& chosen) {
    const auto middle = of.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    const index_t outer = count_of({of.shape.begin(), middle});
    const index_t inner = count_of({middle + 1, of.shape.end()});
    std::vector<std::size_t> source;
    for (index_t o = 0; o < outer; ++o) {
      for (const index_t i : chosen) {
        for (index_t n = 0; n < inner; ++n) {
          source.push_back(static_cast<std::size_t>((o * of.shape[axis] + i) * inner + n));
        }
      }
    }
    return source;
  }

  void slice_axis(const Pair& of, std::size_t axis) {
    const index_t extent = of.sim.shape[axis];
    const index_t first = any(extent), length = any(extent + 1);
    const index_t step = any(3) == 0 ? -1 - any(2) : 1 + any(2);
    std::vector<index_t> chosen;
    for (index_t i = first; i >= 0 && i < extent && std::abs(i - first) < length; i += step) {
      chosen.push_back(i);
    }
    const index_t last = first + (step > 0 ? length : -length);
    const std::optional<index_t> stop = last < 0 ? std::nullopt : std::optional<index_t>(last);
    std::vector<Index> index(of.tensor.rank(), Index{all});
    index[axis] = slice(first, stop, step);
    std::vector<index_t> shape = of.sim.shape;
    shape[axis] = static_cast<index_t>(chosen.size());
    add_view(of, of.tensor.index_with(index), std::move(shape), chosen_of(of.sim, axis, chosen),
             " sliced on axis " + std::to_string(axis) + " from " + std::to_string(first) + ", " +
                 std::to_string(chosen.size()) + " by step " + std::to_string(step));
  }

  void select(const Pair& of, std::size_t axis, index_t i) {
    std::vector<index_t> shape = of.sim.shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    add_view(of, of.tensor.select(static_cast<index_t>(axis), i), std::move(shape),
             chosen_of(of.sim, axis, {i}),
             " at " + std::to_string(i) + " of axis " + std::to_string(axis));
  }

  void transpose(const Pair& of) {
    if (of.sim.shape.size() != 2) return;
    const auto rows = static_cast<std::size_t>(of.sim.shape[0]);
    const auto columns = static_cast<std::size_t>(of.sim.shape[1]);
    std::vector<std::size_t> source;
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < rows; ++r) source.push_back(r * columns + c);
    }
    add_view(of, of.tensor.transpose(), {of.sim.shape[1], of.sim.shape[0]}, source, " transposed");
  }

  void expand(const Pair& of) {
    if (of.sim.shape.size() > 2 || of.sim.at.size() > 12) return;
    std::vector<index_t> shape = of.sim.shape;
    shape.insert(shape.begin(), 2);
    std::vector<std::size_t> source(2 * of.sim.at.size());
    for (std::size_t k = 0; k < source.size(); ++k) source[k] = k % of.sim.at.size();
    add_view(of, of.tensor.expand(Extents(shape.begin(), shape.end())), shape, source,
             " expanded by 2");
  }

  // The bytes that a tensor spans, in a new storage.
  SimTensor cloned(const SimTensor& of) {
    if (fault_ == Fault::clones_alias) return of;
    const auto low = of.at.empty() ? 0 : *std::min_element(of.at.begin(), of.at.end());
    const auto high = of.at.empty() ? 0 : *std::max_element(of.at.begin(), of.at.end()) + kItem;
    SimTensor clone{std::make_shared<SimStorage>(static_cast<std::size_t>(high - low)), of.shape,
                    of.at};
    for (index_t& position : clone.at) position -= low;
    std::copy(of.storage->bytes.begin() + low, of.storage->bytes.begin() + high,
              clone.storage->bytes.begin());
    const bool is_pinned = of.storage->pins > 0 && fault_ != Fault::pins_are_ignored;
    if (is_pinned || of.storage->is_foreign_writable) {
      ++expected_.eager_copies;
      expected_.eager_copied_bytes += clone.storage->bytes.size();
    } else {
      clone.storage->join(of.storage->family);
      clone.storage->is_read_only = of.storage->is_read_only;
      ++expected_.lazy_clones;
    }
    return clone;
  }

  void lazy_clone(const Pair& of) {
    Tensor clone = of.tensor.lazy_clone();
    add(std::move(clone), cloned(of.sim), "lazy clone of " + name(of));
  }

  void clone(const Pair& of) {
    Tensor clone = of.tensor.clone();
    add(std::move(clone), simulated(of.sim.shape, of.sim.values()), "clone of " + name(of));
  }

  void reshape(const Pair& of) {
    const index_t n = static_cast<index_t>(of.sim.at.size());
    std::vector<index_t> shape{n};
    if (const index_t how = any(4); how == 0) {
      shape = {1, n, 1};
    } else if (how == 1 && n % 2 == 0) {
      shape = {2, n / 2};
    } else if (how == 2 && n % 3 == 0) {
      shape = {n / 3, 3};
    }
    Tensor t = of.tensor.reshape(Extents(shape.begin(), shape.end()));
    SimTensor sim;
    if (is_affine(of.sim.at, shape)) {
      sim = cloned(of.sim);
    } else {
      sim = simulated({}, of.sim.values());
    }
    sim.shape = std::move(shape);
    add(std::move(t), std::move(sim),
        name(of) + " reshaped to " + std::to_string(sim.shape.size()) + " axes");
  }

  // -- writing ---------------------------------------------------------------------------------
  // Accounts for the cost of a write to this storage, and its effect on the family.
  void account_write(SimStorage& storage, bool is_overwrite) {
    const int most = fault_ == Fault::last_one_copies ? 0 : 1;
    if (storage.family->members <= most && !storage.is_read_only) return;
    if (is_overwrite && fault_ != Fault::overwriting_copies) {
      ++expected_.overwrites;
    } else {
      ++expected_.copies;
      expected_.copied_bytes += storage.bytes.size();
    }
    storage.is_read_only = false;
    storage.join(std::make_shared<Family>());
  }

  // Writing a tensor with overlapping elements is an error without effect.
  bool is_refused(const Pair& target, const std::function<void()>& action) {
    if (!target.sim.overlaps_itself()) return false;
    try {
      action();
    } catch (const AliasError&) {
      say(name(target) + " refuses to be written");
      return true;
    }
    throw Mismatch{"a write through overlapping elements"};
  }

  void write(Pair& target) {
    if (target.sim.at.empty()) return;
    written_ = &target;
    const index_t k = any(static_cast<index_t>(target.sim.at.size()));
    const Value value = any_value();
    const auto get = [&target] { return target.tensor.mutable_data<Value>(); };
    if (is_refused(target, get)) return;
    Value* element = get();
    index_t rest = k;
    for (std::size_t axis = target.sim.shape.size(); axis-- > 0;) {
      element += rest % target.sim.shape[axis] * target.tensor.strides()[axis];
      rest /= target.sim.shape[axis];
    }
    *element = value;
    account_write(*target.sim.storage, false);
    target.sim.put(static_cast<std::size_t>(k), value);
    say(name(target) + " element " + std::to_string(k) + " = " + std::to_string(value));
  }

  void fill(Pair& target) {
    written_ = &target;
    const Value value = any_value();
    const auto action = [&] { target.tensor.fill(value); };
    if (is_refused(target, action)) return;
    action();
    // Nothing to write needs no memory.
    if (target.sim.at.empty()) return say(name(target) + ", which is empty, is written");
    account_write(*target.sim.storage, target.sim.covers_everything());
    for (std::size_t k = 0; k < target.sim.at.size(); ++k) target.sim.put(k, value);
    say(name(target) + " = " + std::to_string(value));
  }

  void copy_from(Pair& target) {
    const Pair& source = any_tensor();
    if (source.sim.shape != target.sim.shape) return;
    // Onto itself: nothing to do.
    if (source.sim.storage == target.sim.storage && source.sim.at == target.sim.at) return;
    written_ = &target;
    const auto action = [&] { target.tensor.copy_from(source.tensor); };
    if (is_refused(target, action)) return;
    action();
    const std::vector<Value> values = source.sim.values();
    // Nothing to write needs no memory.
    if (target.sim.at.empty()) return say(name(target) + ", which is empty, is written");
    account_write(*target.sim.storage, target.sim.covers_everything());
    for (std::size_t k = 0; k < values.size(); ++k) target.sim.put(k, values[k]);
    say(name(target) + " = elements of " + name(source));
  }

  // A writable export: its consumer writes at that address without notice.
  void pin() {
    if (!pins_.empty() && any(2) == 0) {
      say("end of the oldest pin");
      pins_.pop_front();
      return;
    }
    Pair& target = any_tensor();
    written_ = &target;
    Storage::Pin pin = target.tensor.storage().pin();
    account_write(*target.sim.storage, false);
    pins_.emplace_back(std::move(pin), target.sim.storage);
    say("pin of " + name(target));
    const std::size_t n = target.sim.storage->bytes.size();
    if (n == 0) return;
    const auto k = static_cast<std::size_t>(any(static_cast<index_t>(n)));
    const auto byte = static_cast<std::byte>(any(256));
    pins_.back().pin.data()[k] = target.sim.storage->bytes[k] = byte;
  }

  void drop() {
    const std::size_t k = any_index();
    say("end of " + name(tensors_[k]));
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(k));
  }

  // -- comparing -------------------------------------------------------------------------------
  void check_foreign() const {
    for (const Foreign& foreign : foreign_) {
      require(*foreign.is_freed == (foreign.family->members == 0), "foreign memory and its users");
    }
  }

  void check_counts(const CopyCounts& counts) const {
    require(counts.lazy_clones == expected_.lazy_clones, "number of lazy clones");
    require(counts.copies == expected_.copies, "number of copies");
    require(counts.copied_bytes == expected_.copied_bytes, "bytes copied");
    require(counts.overwrites == expected_.overwrites, "number of overwrites without a copy");
    require(counts.eager_copies == expected_.eager_copies, "number of eager copies");
    require(counts.eager_copied_bytes == expected_.eager_copied_bytes, "bytes copied eagerly");
  }

  void check_all() const {
    for (std::size_t a = 0; a < tensors_.size(); ++a) {
      const Pair& x = tensors_[a];
      require(std::equal(x.sim.shape.begin(), x.sim.shape.end(), x.tensor.shape().begin(),
                         x.tensor.shape().end()),
              "a shape");
      if (x.tensor.to_vector<Value>() != x.sim.values()) throw Mismatch{"elements of " + name(x)};
      require(x.tensor.is_shared() == (x.sim.storage->family->members > 1), "is_shared");
      require(has_internal_overlap(x.tensor) == x.sim.overlaps_itself(), "has_internal_overlap");
      for (std::size_t b = 0; b < a; ++b) check_pair(x, tensors_[b]);
    }
  }

  static void check_pair(const Pair& x, const Pair& y) {
    require(shares_storage(x.tensor, y.tensor) == (x.sim.storage == y.sim.storage),
            "shares_storage");
    require(x.tensor.storage().shares_data(y.tensor.storage()) ==
                (x.sim.storage->family == y.sim.storage->family),
            "shares_data");
    const bool meets = x.sim.meets(y.sim);
    require(overlaps(x.tensor, y.tensor) == meets, "overlaps");
    require(!meets || may_share_memory(x.tensor, y.tensor), "may_share_memory");
  }

  const Fault fault_;
  std::string* const listing_;
  std::uint64_t random_ = 0, step_ = 0;
  int n_made_ = 0;
  std::vector<Pair> tensors_;
  std::deque<Pinned> pins_;
  std::vector<Foreign> foreign_;
  CopyCounts expected_;
  const Pair* written_ = nullptr;  // written by the current step
};

}  // namespace

Program random_program(std::uint64_t seed, std::size_t n_steps) {
  Program program(n_steps);
  for (std::size_t k = 0; k < n_steps; ++k)
    program[k] = (seed * n_steps + k) * 0x2545'f491'4f6c'dd1dU;
  return program;
}

std::string difference(const Program& program, Fault fault, std::string* listing) {
  try {
    Interpreter(fault, listing).run(program);
  } catch (const Mismatch& mismatch) {
    return mismatch.what;
  } catch (const std::exception& error) {
    return std::string("an error: ") + error.what();
  }
  return "";
}

Program shrunk(Program program, Fault fault) {
  const auto without = [&program](std::size_t first, std::size_t n) {
    Program shorter = program;
    const auto from = shorter.begin() + static_cast<std::ptrdiff_t>(first);
    shorter.erase(from, from + static_cast<std::ptrdiff_t>(n));
    return shorter;
  };
  for (std::size_t part = program.size(); part > 0;) {
    bool has_shrunk = false;
    for (std::size_t at = 0; at < program.size();) {
      Program shorter = without(at, std::min(part, program.size() - at));
      if (difference(shorter, fault).empty()) {
        at += part;
      } else {
        program = std::move(shorter);
        has_shrunk = true;
      }
    }
    if (!has_shrunk || part > 1) part /= 2;
  }
  return program;
}

}  // namespace palimpsest::testing
