// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/step_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest::proximal {

Preparation prepare_condat_vu(const Problem& p, std::uint64_t seed) {
  Preparation made = lipschitz(p, seed);
  const double L = made.values[0].second;
  const double balance = p.real("balance", 2.4);
  const auto terms = static_cast<double>(term_count(p));
  double sum = 0;
  for (index_t i = 0; i < term_count(p); ++i) {
    const OperatorNorm K = operator_norm2(p.op(of_term("K", i)), p.x().type(), seed);
    made.applications += K.applications;
    const double norm = K.value == 0 ? 1 : K.value, sigma = balance * L / (terms * norm);
    made.values.emplace_back(of_term("sigma", i), sigma);
    made.values.emplace_back(of_term("norm", i), norm);
    sum += sigma * norm;
  }
  made.values.emplace_back("tau", 0.99 / (L / 2 + sum));
  return made;
}

index_t prepare_condat_vu_bytes(const Problem& p) {
  index_t bytes = lipschitz_bytes(p);
  for (index_t i = 0; i < term_count(p); ++i) {
    bytes = std::max(bytes, operator_norm2_bytes(p.op(of_term("K", i)), p.x().type()));
  }
  return bytes;
}

namespace {

// The normal operators of tiles are there for their norms only: their data go with them.
class NormsOfTiles {
 public:
  explicit NormsOfTiles(const Problem& p) {
    if (p.tiles().empty()) return;
    ConfigOverrides overrides;
    overrides.cache_adjoint_normal = false;
    scope_.emplace(overrides);
  }

 private:
  std::optional<ConfigScope> scope_;
};

}  // namespace

Preparation prepare_pdhg(const Problem& p, std::uint64_t seed) {
  const NormsOfTiles scope(p);
  Preparation made;
  double norm = p.real("L", 0);  // of A^H A, where it is known
  if (norm == 0) {
    const OperatorNorm A = operator_norm2(p.op("A"), p.x().type(), seed);
    norm = A.value;
    made.applications = A.applications;
  }
  for (index_t i = 0; i < term_count(p); ++i) {
    const OperatorNorm K = operator_norm2(p.op(of_term("K", i)), p.x().type(), seed);
    made.applications += K.applications;
    norm += K.value;
  }
  if (norm == 0) norm = 1;
  const double ratio = p.real("ratio", 1), tau = std::sqrt(0.99 / (norm * ratio));
  made.values = {{"tau", tau}, {"sigma", ratio * tau}, {"norm", norm}};
  return made;
}

index_t prepare_pdhg_bytes(const Problem& p) {
  const NormsOfTiles scope(p);
  index_t bytes = 0;
  const auto add = [&](const NamedLinop& A) {
    const index_t data = p.tiles().empty() ? 0 : operator_bytes({A, A.N()}) - operator_bytes({A});
    bytes = std::max(bytes, operator_norm2_bytes(A, p.x().type()) + data);
  };
  if (p.real("L", 0) == 0) add(p.op("A"));
  for (index_t i = 0; i < term_count(p); ++i) add(p.op(of_term("K", i)));
  return bytes;
}

}  // namespace palimpsest::proximal
