// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deque>
#include <mutex>
#include <numbers>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

// The largest eigenvalue of D^H D for differences of n points.
double difference_norm2(const NamedLinop& D, index_t n) {
  const std::string& boundary = D.attr("boundary").as_string();
  const double spacing = D.attr("spacing").as_real();
  if (n == 0 || (n == 1 && boundary != "zero")) return 0;  // no differences
  const auto half_angle = std::numbers::pi / 2;
  double angle = 0;  // 4 cos^2
  if (boundary == "zero") {
    angle = std::numbers::pi / (2.0 * static_cast<double>(n) + 1);
  } else if (boundary == "neumann" || n % 2 == 1) {
    angle = half_angle / static_cast<double>(n);
  }
  const double cosine = std::cos(angle);
  return 4 * cosine * cosine / (spacing * spacing);
}

std::optional<double> exact_norm2(const NamedLinop& A) {
  if (&A.type() == &linop_types::finite_difference()) {
    const auto axis = A.attr("axis").as_integer();
    const auto rank = static_cast<index_t>(A.ishape().size());
    const ND& d = A.ishape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    const auto n = A.size(d);
    return n ? std::optional(difference_norm2(A, *n)) : std::nullopt;
  }
  if (A.name() == "Gradient" && &A.type() == &linop_types::stack()) {
    double sum = 0;
    for (const NamedLinop& part : A.linops()) {
      const auto of_part = exact_norm2(part);
      if (!of_part) return std::nullopt;
      sum += *of_part;
    }
    return sum;
  }
  if (&A.N().type() == &linop_types::identity()) return 1.0;
  return std::nullopt;
}

void note_versions(const NamedLinop& A, std::vector<std::uint64_t>& versions) {
  for (const auto& [name, p] : A.params()) {
    if (p.present()) versions.push_back(p.version());
  }
  for (const NamedLinop& child : A.linops()) note_versions(child, versions);
}

// A kept norm; valid while its operator lives.
struct Kept {
  std::weak_ptr<const LinopNode> node;
  TensorType x;
  std::uint64_t seed;
  std::vector<std::uint64_t> versions;
  double value;
};
struct KeptNorms {
  Mutex mutex;
  std::deque<Kept> list;
};

KeptNorms& kept_norms() {
  return immortal([] { return KeptNorms(); });
}

}  // namespace

OperatorNorm operator_norm2(const NamedLinop& A, const TensorType& x, std::uint64_t seed) {
  if (const auto exact = exact_norm2(sized_for(A, x))) return {*exact, 0};
  return largest_eigenvalue(A.N(), x, seed);
}

OperatorNorm largest_eigenvalue(const NamedLinop& N, const TensorType& x, std::uint64_t seed) {
  std::vector<std::uint64_t> versions;
  note_versions(N, versions);
  KeptNorms& kept = kept_norms();
  {
    const std::lock_guard lock(kept.mutex);
    for (const Kept& k : kept.list) {
      if (k.node.lock() == N.node() && k.x == x && k.seed == seed && k.versions == versions) {
        return {k.value, 0};
      }
    }
  }
  const LanczosResult found = lanczos(N, x, {.seed = seed});
  const double value = found.values.empty() ? std::nan("") : 1.01 * found.values.back();
  const std::lock_guard lock(kept.mutex);
  std::erase_if(kept.list, [](const Kept& k) { return k.node.expired(); });
  constexpr std::size_t kMost = 64;
  if (kept.list.size() >= kMost) kept.list.pop_front();
  kept.list.push_back({N.node(), x, seed, std::move(versions), value});
  return {value, found.steps};
}

index_t operator_norm2_bytes(const NamedLinop& A, const TensorType& x) {
  return exact_norm2(sized_for(A, x)) ? 0 : lanczos_bytes(A.N(), x);
}

}  // namespace palimpsest
