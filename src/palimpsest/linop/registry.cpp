// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/builtin_types.hpp"

namespace palimpsest {
namespace {

// The one list of built-in types.
constexpr const LinopType& (*kBuiltIn[])() = {
    linop_types::add,         linop_types::array_to_blocks,
    linop_types::as_real,     linop_types::breakpoint,
    linop_types::chain,       linop_types::concat,
    linop_types::convolution, linop_types::crop,
    linop_types::dense,       linop_types::diagonal,
    linop_types::fft,         linop_types::finite_difference,
    linop_types::identity,    linop_types::imag_part,
    linop_types::interpolate, linop_types::kronecker,
    linop_types::normal,      linop_types::nufft,
    linop_types::pad,         linop_types::pad_dim,
    linop_types::permute,     linop_types::real_part,
    linop_types::rearrange,   linop_types::repeat,
    linop_types::restrict_to, linop_types::sampling,
    linop_types::scalar,      linop_types::shape_spec,
    linop_types::simple,      linop_types::sleep,
    linop_types::sparse,      linop_types::stack,
    linop_types::sum_reduce,  linop_types::to_device,
    linop_types::truncate,    linop_types::wavelet,
    linop_types::zero,
};

struct Registry {
  Registry() {
    for (const auto& type : kBuiltIn) types.emplace(type().name, &type());
  }
  Mutex mutex;
  std::map<std::string, const LinopType*, std::less<>> types;
};

Registry& registry() {
  return immortal([] { return Registry(); });
}

}  // namespace

bool register_linop(const LinopType& type) {
  if (type.name.empty()) throw ValueError("[register_linop] the name is empty");
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  if (!known.types.emplace(type.name, &type).second) {
    throw ValueError("[register_linop] '" + type.name +
                     "' is already registered. Try a name with a prefix of yours");
  }
  return true;
}

const LinopType* find_linop(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  const auto found = known.types.find(name);
  return found == known.types.end() ? nullptr : found->second;
}

std::vector<std::string> linop_names() {
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, type] : known.types) names.push_back(name);
  return names;
}

}  // namespace palimpsest
