// SPDX-License-Identifier: Apache-2.0
// The laws of operators. Each check appends lines to the report; an exception is a line too.
#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/linop/copies/copying.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/testing/testing_inputs.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/guarded_window.hpp"

namespace palimpsest {
namespace {

class Contract {
 public:
  Contract(const NamedLinop& A, const TestOptions& options) : A_(A), options_(options) {}

  ContractReport run() {
    law("names", [&] { check_names(); });
    law("sizes", [&] { check_sizes(); });
    law("input", [&] { check_unchanged(A_, input_of_A(), "A"); });
    law("adjoint", [&] { check_operator(A_, input_of_A(), "A"); });
    law("adjoint of H", [&] { check_operator(sized_adjoint(), output_of_A(), "A.H"); });
    law("adjoint of N", [&] { check_operator(A_.N(), input_of_A(), "A.N"); });
    law("linearity", [&] { check_linearity(); });
    law("table", [&] { check_table(); });
    law("split", [&] { check_tiles(A_, input_of_A(), "A"); });
    law("split of H", [&] { check_tiles(sized_adjoint(), output_of_A(), "A.H"); });
    law("split of N", [&] { check_tiles(A_.N(), input_of_A(), "A.N"); });
    law("gradient", [&] { check_gradients(A_, input_of_A(), "A"); });
    law("gradient of H", [&] { check_gradients(sized_adjoint(), output_of_A(), "A.H"); });
    law("gradient of N", [&] { check_gradients(A_.N(), input_of_A(), "A.N"); });
    law("in place", [&] { check_in_place(A_, input_of_A(), "A"); });
    law("in place, H", [&] { check_in_place(sized_adjoint(), output_of_A(), "A.H"); });
    law("in place, N", [&] { check_in_place(A_.N(), input_of_A(), "A.N"); });
    law("copy", [&] { check_copies(); });
    law("threads", [&] { check_threads(A_, input_of_A(), "A"); });
    law("threads, H", [&] { check_threads(sized_adjoint(), output_of_A(), "A.H"); });
    law("threads, N", [&] { check_threads(A_.N(), input_of_A(), "A.N"); });
    law("dtypes", [&] { check_dtypes(); });
    law("peak", [&] { check_peak(A_, input_of_A(), "A"); });
    law("peak of H", [&] { check_peak(sized_adjoint(), output_of_A(), "A.H"); });
    law("peak of N", [&] { check_peak(A_.N(), input_of_A(), "A.N"); });
    law("destinations", [&] { check_destinations(A_, input_of_A(), "A"); });
    law("destinations of H", [&] { check_destinations(sized_adjoint(), output_of_A(), "A.H"); });
    law("destinations of N", [&] { check_destinations(A_.N(), input_of_A(), "A.N"); });
    law("errors", [&] { check_errors(); });
    return std::move(report_);
  }

 private:
  template <class F>
  void law(const std::string& name, F&& check) {
    try {
      check();
    } catch (const std::exception& error) {
      fail(name + ": " + error.what());
    }
  }
  void fail(const std::string& text) { report_.failures.push_back(text); }
  void expect(bool holds, const std::string& text) {
    if (!holds) fail(text);
  }

  Tensor input_of_A() const { return test_input(A_, options_, 0); }
  Tensor output_of_A() const {
    const Tensor y = A_(input_of_A());
    return Tensor::random_normal(y.shape(), y.dtype(), {options_.seed, 1});
  }
  NamedLinop sized_adjoint() const { return with_sizes_of(A_, input_of_A()).H(); }

  // Laws 3 and, for caches, 1.4.
  void check_names() {
    expect(identical(A_.H().shape(), A_.shape().H()), "A.H has another shape than A flipped");
    expect(A_.H().H().is(A_), "A.H.H is not A");
    expect(A_.H().is(A_.H()), "A.H is not cached");
    expect(A_.N().is(A_.N()), "A.N is not cached");
    expect(A_.N().H().is(A_.N()), "A.N is not its own adjoint");
    expect(identical(NamedShape(A_.N().ishape(), A_.N().oshape()),
                     NamedShape(A_.ishape(), A_.ishape())),
           "A.N does not map the input space to itself");
  }

  // Law 8.
  void check_sizes() {
    const Tensor x = input_of_A();
    DimSizes real = palimpsest::bind(A_.ishape(), x.shape());
    real = palimpsest::bind(A_.oshape(), A_(x).shape(), real);
    for (const ND& d : unite(A_.ishape(), A_.oshape())) {
      const auto claimed = A_.size(d), found = real.size(d);
      expect(!claimed || !found || *claimed == *found, "size of dim " + d.str() + " is wrong");
    }
    const MatrixSize size = A_.matrix_size(x.shape());
    expect(size == MatrixSize{A_(x).numel(), x.numel()}, "matrix_size is wrong");
  }

  // The parameters of a tree that hold values of their own.
  static void collect_parameters(const NamedLinop& B, const std::string& path, Parameters& found) {
    for (const auto& [key, p] : B.params()) {
      if (p.present() && !p.is_derived()) found.emplace_back(path + key, p);
    }
    for (std::size_t i = 0; i < B.linop_count(); ++i) {
      collect_parameters(B[i], path + "[" + std::to_string(i) + "]/", found);
    }
  }

  // Law 1.
  void check_unchanged(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const Tensor before = x.clone();
    Parameters parameters;
    collect_parameters(B, "", parameters);
    std::vector<Tensor> values;
    for (const auto& [key, p] : parameters) values.push_back(p.value().clone());
    B(x);
    B.H();
    B.N()(x);
    expect(equal(x, before), name + " changed its input");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& [key, p] = parameters[i];
      expect(equal(values[i], p.value()), name + " changed parameter " + key);
    }
  }

  // Laws 2, 4 and 5.
  void check_operator(const NamedLinop& B, const Tensor& x, const std::string& name) {
    TestOptions own = options_;
    own.extents = x.shape();
    own.dtype = x.dtype();
    const NamedLinop sized = with_sizes_of(B, x);
    const DotTest dot = dot_test(sized, own);
    expect(dot.ok, name + ": dot_test error " + fmt::format("{}", dot.error));
    const NormalTest normal = check_normal(B, own);
    expect(normal.ok, name + ": check_normal error " + fmt::format("{}", normal.error));
    check_unchanged(B, x, name);
  }

  // Law 6.
  void check_linearity() {
    const Tensor x = input_of_A(), y = test_input(A_, options_, 2);
    // Over the reals only, and of real data, sums with real numbers.
    const bool is_real = !is_complex(x.dtype()) || is_real_linear(A_);
    const auto numbers = wide(Tensor::random_normal({2}, DType::complex128, {options_.seed, 4}));
    const auto number = [&](std::size_t i) { return is_real ? numbers[i].real() : numbers[i]; };
    const std::complex<double> a = number(0), b = number(1);
    const auto combined = [&](const Tensor& u, const Tensor& v) {
      const auto p = wide(u), q = wide(v);
      std::vector<std::complex<double>> sum(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) sum[i] = a * p[i] + b * q[i];
      return Tensor::from(sum, u.shape());
    };
    const Tensor sum = is_complex(x.dtype()) ? combined(x, y).to(x.dtype())
                                             : real_part_of(combined(x, y)).to(x.dtype());
    const Tensor lhs = A_(sum), rhs = combined(A_(x), A_(y));
    expect(relative_difference(lhs, rhs) <= test_tolerance(x.dtype(), x.numel()),
           "A is not linear");
  }

  static Tensor real_part_of(const Tensor& t) {
    std::vector<double> values;
    for (const std::complex<double>& z : wide(t)) values.push_back(z.real());
    return Tensor::from(values, t.shape());
  }

  Tensor run_graph(Variable (*graph)(const NamedLinop&, const Variable&), const NamedLinop& B,
                   const Tensor& x) {
    const Variable in = make_input({x.dtype(), x.shape(), x.device()}, "x");
    return function({in}, {Out(graph(B, in))}, {.on_unused_input = Reaction::ignore})(x)[0];
  }

  // Law 9.
  void check_table() {
    const Tensor x = input_of_A(), y = output_of_A();
    const NamedLinop sized = with_sizes_of(A_, x);
    const double tolerance = test_tolerance(x.dtype(), x.numel() + y.numel());
    expect(relative_difference(run_graph(adjoint_graph, sized, y), sized.H()(y)) <= tolerance,
           "adj_fn and A.H differ");
    expect(relative_difference(run_graph(normal_graph, A_, x), A_.N()(x)) <=
               tolerance + normal_allowance(A_),
           "normal_fn and A.N differ");
  }

  TestOptions options_for(const Tensor& x) const {
    TestOptions own = options_;
    own.extents = x.shape();
    own.dtype = x.dtype();
    return own;
  }

  // Law 7.
  void check_tiles(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const SplitTest test = check_split(B, options_for(x));
    expect(test.ok, name + ": check_split: " + test.failure);
  }

  // Law 10.
  void check_gradients(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const GradientTest test = check_gradient(B, options_for(x));
    expect(test.ok, name + ": check_gradient error " + fmt::format("{}", test.error));
  }

  // Law 11.
  void check_in_place(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const InplaceTest test = check_inplace(B, options_for(x));
    expect(test.same_bits, name + ": steps in place give another result");
    expect(test.untouched, name + ": steps in place changed the input");
  }

  // Law 14.
  void check_threads(const NamedLinop& B, const Tensor& x, const std::string& name) {
    Tensor one, four;
    run_with_threads(1, [&] { one = B(x); });
    run_with_threads(4, [&] { four = B(x); });
    expect(equal(one, four), name + ": four threads give another result than one");
    expect(equal(one, B(x)), name + ": a repetition gives another result");
    // With branches side by side wherever there are some.
    for (const index_t threads : {1, 2, 4}) {
      const ConfigScope scope({.threads = threads, .parallel_grain = 1});
      expect(equal(B.copy()(x), one),
             name + ": another result with a plan for " + std::to_string(threads) + " threads");
      check_peak(B, x, name + " on " + std::to_string(threads) + " threads");
    }
  }

  // Law 12, and repetition.
  void check_copies() {
    const Tensor x = input_of_A(), y = A_(x);
    const NamedLinop copy = A_.copy();
    expect(!copy.is(A_) && identical(copy, A_), "a copy is not identical");
    expect(equal(copy(x), y), "a copy gives another result");
    expect(equal(A_(x), y), "a repetition gives another result");
    for (const auto& [name, p] : A_.params()) {
      expect(copy.param(name).is(p) && (&A_.type() != &A_.H().type() || A_.H().has_param(name)),
             "a copy does not share parameter " + name);
    }
    for (const Copy when : {Copy::lazy, Copy::eager}) {
      const NamedLinop deep = A_.deepcopy(when);
      expect(equal(deep(x), y), "a deep copy gives another result");
      overwrite(deep);
      expect(equal(A_(x), y), "writing to a deep copy changed the operator");
    }
    check_saving(x, y);
  }

  static void overwrite(const NamedLinop& A) {
    for (const auto& [name, p] : A.params()) {
      Parameter mine = p;
      if (p.present() && !p.is_derived()) mine.modify([](Tensor& t) { t.fill(0); });
    }
    for (const NamedLinop& child : A.linops()) overwrite(child);
  }

  static bool can_be_saved(const NamedLinop& A) {
    if (A.node()->data.user || find_linop(A.type().name) != &A.type()) return false;
    return std::all_of(A.linops().begin(), A.linops().end(), can_be_saved);
  }

  void check_saving(const Tensor& x, const Tensor& y) {
    // A file is loaded to one device.
    if (!can_be_saved(A_)) return;
    for (const MemoryReport::Entry& entry : memory_report(A_).devices) {
      if (entry.device != Device{}) return;
    }
    const std::vector<std::byte> bytes = to_bytes(A_);
    const NamedLinop loaded = from_bytes(bytes);
    expect(equal(loaded(x), y), "the saved operator gives another result");
    expect(equal(with_sizes_of(loaded, x).H()(y), sized_adjoint()(y)),
           "the adjoint of the saved operator gives another result");
    expect(to_bytes(loaded) == bytes, "the saved operator is saved as other bytes");
  }

  // Law 13: of the operator in both precisions.
  void check_dtypes() {
    const Extents shape = input_of_A().shape();
    std::optional<bool> stays_real;
    for (const DType real : {DType::float64, DType::float32}) {
      const std::string prefix = "in " + std::string(name_of(real)) + ": ";
      const NamedLinop B = in_precision(real);
      if (!B.defined()) continue;
      const Tensor of_complex = B(Tensor::random_normal(shape, complex_of(real), {3, 0}));
      expect(of_complex.dtype() == complex_of(real) ||
                 (is_real_linear(A_) && of_complex.dtype() == real),
             prefix + "a complex input gives " + std::string(name_of(of_complex.dtype())));
      const Tensor of_real = B(Tensor::random_normal(shape, real, {3, 0}));
      expect(real_of(of_real.dtype()) == real, prefix + "a real input changes precision");
      const bool is_real = !is_complex(of_real.dtype());
      expect(stays_real.value_or(is_real) == is_real,
             prefix + "a real input gives another kind of number than in double precision");
      stays_real = is_real;
      check_precision(B, real, shape);
    }
  }

  // Undefined where storages are read as several kinds of numbers, which has no counterpart.
  NamedLinop in_precision(DType real) const {
    try {
      return A_.to(real);
    } catch (const DTypeError&) {
      return {};
    }
  }

  // Checks that an operator with parameters of one precision refuses data of the other.
  void check_precision(const NamedLinop& B, DType real, const Extents& shape) {
    const DType other = real == DType::float64 ? DType::complex64 : DType::complex128;
    if (has_precision(B)) {
      expect_error<DTypeError>("data of another precision than the parameters",
                               [&] { B(Tensor::zeros(shape, other)); });
    }
  }
  static bool has_precision(const NamedLinop& B) {
    const bool adapts = B.has_attr("adapts") && B.attr("adapts").as_bool();
    for (const auto& [key, p] : B.params()) {
      if (p.present() && !adapts && is_inexact(p.dtype())) return true;
    }
    return std::any_of(B.linops().begin(), B.linops().end(), has_precision);
  }

  // Law 15: on a copy, which has no frame yet.
  void check_peak(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const TensorType type{x.dtype(), x.shape(), x.device()};
    const NamedLinop fresh = B.copy();
    const Plan plan = fresh.plan(type);
    if (plan.arenas.empty()) {
      check_peak_on(
          x.device(), plan.peak_bytes, [&] { return fresh(x); }, name);
    }
    for (const PlannedArena& arena : plan.arenas) {
      const NamedLinop again = B.copy();
      again.plan(type);  // memory of compiling does not count for a run
      check_peak_on(
          arena.device, plan.peak_bytes_on(arena.device), [&] { return again(x); },
          name + " on " + arena.device.str());
    }
  }

  template <class F>
  void check_peak_on(Device device, index_t planned, F&& run, const std::string& name) {
    const MemoryScope scope(device);
    const Tensor y = run();
    const auto measured = static_cast<index_t>(scope.peak_bytes());
    expect(measured == planned, name + ": planned peak " + std::to_string(planned) + ", measured " +
                                    std::to_string(measured));
  }

  // Law 17: results inside larger arrays.
  void check_destinations(const NamedLinop& B, const Tensor& x, const std::string& name) {
    const Tensor y = B(x);
    const double tolerance = test_tolerance(x.dtype(), x.numel() + y.numel());
    for (const WindowLayout layout : kWindowLayouts) {
      const std::string where = " a " + std::string(name_of(layout)) + " destination";
      GuardedWindow out(y.shape(), y.dtype(), layout);
      B.apply(x, out.tensor());
      expect(relative_difference(out.tensor(), y) <= tolerance,
             name + " gives another result in" + where);
      expect(out.is_intact(), name + " writes beside" + where);
    }
  }

  template <class E, class F>
  void expect_error(const std::string& what, F&& action) {
    try {
      action();
    } catch (const E&) {
      return;
    } catch (const std::exception& error) {
      fail(what + ": another error: " + error.what());
      return;
    }
    fail(what + ": no error");
  }

  // Law 16.
  void check_errors() {
    const Tensor x = input_of_A();
    const Tensor y = A_(x);
    expect_error<DTypeError>("integer data", [&] { A_(Tensor::zeros(x.shape(), DType::int32)); });
    if (!A_.ishape().has_ellipsis()) {
      Extents longer = x.shape();
      longer.push_back(1);
      expect_error<ShapeError>("an axis too many", [&] { A_(Tensor::zeros(longer, x.dtype())); });
    }
    for (std::size_t i = 0; i < A_.ishape().size(); ++i) {
      const ND d = A_.ishape()[i];
      if (A_.ishape().has_ellipsis() || !d.is_concrete() || !A_.size(d)) continue;
      Extents wrong = x.shape();
      ++wrong[i];
      expect_error<ShapeError>("a wrong size of " + d.str(),
                               [&] { A_(Tensor::zeros(wrong, x.dtype())); });
    }
    expect(equal(A_(x), y), "an error changed the operator");
    if (A_.ishape().has_ellipsis()) return;
    NamedLinop renamed = A_;
    expect_error<ShapeError>("a shape of another structure",
                             [&] { renamed.set_ishape(A_.ishape() + Dims("Zz Zz1 Zz2 Zz3")); });
    expect(renamed.is(A_), "a setter that failed changed its handle");
  }

  NamedLinop A_;
  TestOptions options_;
  ContractReport report_;
};

}  // namespace

std::string ContractReport::str() const {
  std::string text;
  for (const std::string& line : failures) text += line + "\n";
  return text;
}

ContractReport check_contract(const NamedLinop& A, const TestOptions& options) {
  return Contract(A, options).run();
}

}  // namespace palimpsest
