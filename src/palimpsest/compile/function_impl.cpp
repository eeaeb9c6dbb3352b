// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function_impl.hpp"

#include <algorithm>
#include <numeric>

namespace palimpsest {

Function::Impl::Impl(std::shared_ptr<const Program> made,
                     std::vector<std::shared_ptr<Container>> cells, std::string called,
                     bool is_profiled)
    : program(std::move(made)),
      containers(std::move(cells)),
      lock_order(containers.size()),
      name(std::move(called)),
      title(std::make_shared<const std::string>(name.empty() ? "function" : name)) {
  std::iota(lock_order.begin(), lock_order.end(), std::size_t{0});
  std::sort(lock_order.begin(), lock_order.end(), [&](std::size_t a, std::size_t b) {
    return containers[a]->id() < containers[b]->id();
  });
  pool->set_allow_gc(program->config->allow_gc);
  if (is_profiled) profiler = std::make_unique<Profiler>(program->config->profile_memory);
}

std::string Function::Impl::who(std::size_t argument) const {
  const std::string& keyword = program->arguments[argument].name;
  return who() + " argument " + std::to_string(argument) +
         (keyword.empty() ? "" : " '" + keyword + "'");
}

}  // namespace palimpsest
