// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/testing/check_prox.hpp"

#include <array>
#include <complex>
#include <sstream>
#include <string_view>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/saving.hpp"

namespace palimpsest {
namespace {

using Values = std::vector<std::complex<double>>;

Values values_of(const Tensor& t) {
  return t.to(DType::complex128).to_vector<std::complex<double>>();
}

double distance(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::norm(a[i] - b[i]);
  return std::sqrt(sum);
}

double norm(const Values& a) { return distance(a, Values(a.size())); }

class Check {
 public:
  Check(const Prox& g, const ProxCheckOptions& options)
      : g_(g),
        o_(options),
        bound_(
            std::max(options.tolerance, real_of(options.dtype) == DType::float32 ? 2e-4 : 1e-9)) {}

  std::vector<std::string> run() {
    const Tensor v = random(0), before = v.clone();
    const Tensor x = g_.prox(v, o_.t);
    expect(x.dtype() == o_.dtype, "the dtype stays", std::string(name_of(x.dtype())));
    expect(x.shape() == v.shape(), "the shape stays", to_string(x.shape()));
    expect(equal(v, before), "the operand stays", "");
    check_minimum(v, x);
    check_moreau(v, x);
    check_distances(v, x);
    check_threads(v);
    check_copies(v, x);
    check_memory(v, x);
    check_splits(v, x);
    return std::move(broken_);
  }

 private:
  Tensor random(std::uint64_t stream) const {
    return Tensor::random_normal(o_.shape, o_.dtype, {o_.seed, stream});
  }
  Tensor as_operand(const Values& values) const {
    return Tensor::from<std::complex<double>>(values).reshape(o_.shape).to(
        is_complex(o_.dtype) ? o_.dtype : DType::complex128);
  }

  void expect(bool holds, const char* law, const std::string& got) {
    if (!holds) broken_.push_back(g_.str() + ": " + law + ": got " + got);
  }
  static std::string text(double value) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
  }

  // t g(x) + |x - v|^2 / 2.
  double objective(const Tensor& x, const Values& v) const {
    const double miss = distance(values_of(x), v);
    return o_.t * g_.value(x) + miss * miss / 2;
  }

  void check_minimum(const Tensor& v, const Tensor& x) {
    double at_x = 0;
    const Values center = values_of(v);
    try {
      at_x = objective(x, center);
    } catch (const ValueError&) {
      return;  // it has no value
    }
    expect(std::isfinite(at_x), "the value at the result is finite", text(at_x));
    for (const double size : {1e-1, 1e-2, 1e-3}) {
      for (std::uint64_t k = 0; k < 8; ++k) {
        const Tensor step = random(10 + k);
        const Values from = values_of(x), along = values_of(step);
        Values to = from;
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += size * along[i];
        const Tensor moved = is_complex(o_.dtype) ? as_operand(to) : real_operand(to);
        const double there = objective(moved, center);
        expect(at_x <= there + bound_ * std::max(1.0, std::abs(at_x)), "the result is the minimum",
               text(at_x) + " there and " + text(there) + " beside it");
      }
    }
  }

  Tensor real_operand(const Values& values) const {
    std::vector<double> parts;
    for (const auto& z : values) parts.push_back(z.real());
    return Tensor::from<double>(parts).reshape(o_.shape).to(o_.dtype);
  }
  Tensor divided(const Tensor& v, double by) const {
    Values values = values_of(v);
    for (auto& z : values) z /= by;
    return is_complex(o_.dtype) ? as_operand(values) : real_operand(values);
  }

  void check_moreau(const Tensor& v, const Tensor& x) {
    const Values dual = values_of(g_.conjugate_prox(divided(v, o_.t), 1 / o_.t));
    Values sum = values_of(x);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += o_.t * dual[i];
    const double error = distance(sum, values_of(v)) / norm(values_of(v));
    expect(error <= 30 * bound_, "v = prox(v) + t prox*(v / t)", text(error));
  }

  void check_distances(const Tensor& v, const Tensor& x) {
    const Tensor other = random(3);
    const double before = distance(values_of(v), values_of(other));
    const double after = distance(values_of(x), values_of(g_.prox(other, o_.t)));
    expect(after <= before * (1 + bound_) + bound_, "distances do not grow", text(after / before));
  }

  void check_threads(const Tensor& v) {
    Tensor first;
    for (const int threads : {1, 4}) {
      ConfigOverrides overrides;
      overrides.threads = threads;
      overrides.parallel_grain = 1;
      const ConfigScope scope(overrides);
      const Tensor x = g_.renamed({}).prox(v, o_.t);  // a node of its own: nothing is compiled yet
      if (threads == 1) first = x;
      expect(equal(x, first), "threads change no bit", "other bits");
    }
  }

  void check_copies(const Tensor& v, const Tensor& x) {
    expect(equal(g_.deepcopy().prox(v, o_.t), x), "a deep copy is the same function", "other bits");
    std::vector<std::byte> bytes;
    try {
      bytes = to_bytes(g_);
    } catch (const FormatError& error) {
      if (std::string_view(error.what()).find("closure") != std::string_view::npos) return;
      throw;
    }
    const Prox loaded = prox_from_bytes(bytes);
    expect(loaded.str() == g_.str(), "loading gives the same function", loaded.str());
    expect(equal(loaded.prox(v, o_.t), x), "loading gives the same function", "other bits");
    expect(to_bytes(loaded) == bytes, "the loaded function is written as it was read",
           "other bytes");
  }

  // Halves along every dimension along which it says that it is separable.
  void check_splits(const Tensor& v, const Tensor& x) {
    if (!g_.dims()) return;
    const Prox g = g_.bound_to(*g_.dims());
    for (const ND& d : *g.dims()) {
      if (!g.is_separable(d)) continue;
      const auto axis =
          static_cast<std::size_t>(from_front(Axes{axis_of(*g.dims(), d)}, v.shape().size())[0]);
      const index_t n = v.shape()[axis], middle = n / 2;
      for (const auto& [start, stop] : {std::pair(index_t{0}, middle), std::pair(middle, n)}) {
        if (start == stop) continue;
        const auto at = static_cast<index_t>(axis);
        const Tensor part =
            g.split({{d, slice(start, stop)}}).prox(v.narrow(at, start, stop - start), o_.t);
        const Values got = values_of(part), own = values_of(x.narrow(at, start, stop - start));
        const double error = distance(got, own);
        expect(error <= 30 * bound_ * std::max(1.0, norm(own)), "a part is that of the whole",
               text(error) + " along " + d.str());
      }
    }
  }

  // Checks that it works in place of its operand, and within the planned bytes.
  void check_memory(const Tensor& v, const Tensor& x) {
    const TensorType operand{v.dtype(), v.shape(), v.device()};
    const Variable in = make_input(operand, "v");
    const Variable t = make_input({real_of(v.dtype()), {}, v.device()}, "t");
    const Prox g = g_.deepcopy();
    const StateList state = g.state(Space(operand, g.dims().value_or(Dims("..."))));
    StateScope s(state, first_values(state));
    FunctionOptions options;
    options.on_unused_input = Reaction::ignore;
    const Function f = function({In(in, {.is_mutable = true, .borrow = true}), In(t)},
                                {Out(g.prox(in, t, s))}, std::move(options));
    const std::array<Tensor, 2> arguments{v.clone(), Tensor::full<double>({}, o_.t).to(t.dtype())};
    const index_t planned = f.plan(arguments).peak_bytes;
    std::array<Tensor, 1> results;
    const MemoryScope scope(v.device());
    f.call(arguments, results);
    const auto measured = static_cast<index_t>(scope.peak_bytes());
    expect(measured == planned, "it takes the planned bytes",
           std::to_string(measured) + " bytes, planned " + std::to_string(planned));
    expect(equal(results[0], x), "in place it is the same", "other bits");
  }

  const Prox& g_;
  const ProxCheckOptions& o_;
  const double bound_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> check_prox(const Prox& g, const ProxCheckOptions& options) {
  return Check(g, options).run();
}

}  // namespace palimpsest
