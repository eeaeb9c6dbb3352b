// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "growth_cases.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/function_file.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest::bench {
namespace {

using Work = std::function<void()>;

const Tensor kEight = Tensor::ones({8});

Variable vector_input(std::string name = "x") {
  return make_input({DType::float64, {8}, {}}, std::move(name));
}

// n values computed from x: either elementwise, which may be fused with their readers, or by two
// steps each, the second of which is not fused.
std::vector<Variable> parts_of(const Variable& x, int n) {
  std::vector<Variable> parts;
  for (int i = 0; i < n; ++i) parts.push_back(x * static_cast<double>(i + 1));
  return parts;
}
std::vector<Variable> rolls_of(const Variable& x, int n) {
  std::vector<Variable> parts = parts_of(x, n);
  for (Variable& v : parts) v = ops::roll(v, 1, 0);
  return parts;
}
Variable chain_of(const Variable& x, int n, bool fuses) {
  Variable v = x;
  for (int i = 0; i < n; ++i) v = fuses ? v * 1.5 : ops::roll(ops::flip(v, {0}), 1, 0);
  return v;
}
Variable sum_of(std::vector<Variable> terms) {
  Variable v = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) v = v + terms[i];
  return v;
}

std::vector<Out> outs_of(const std::vector<Variable>& variables) {
  return {variables.begin(), variables.end()};
}

// Compiles, plans and calls a function of x.
template <class Build>
GrowthCase compiled(std::string name, Build build) {
  return {std::move(name), [build](int n) -> Work {
            const Variable x = vector_input();
            const std::vector<Variable> outputs = {Variable(build(x, n))};
            return [x, outputs] { function({x}, outs_of(outputs))(kEight); };
          }};
}

// The second and later calls.
template <class Build>
GrowthCase called(std::string name, Build build) {
  return {std::move(name), [build](int n) -> Work {
            const Variable x = vector_input();
            const Function f = function({x}, build(x, n));
            f(kEight);
            return [f] { f(kEight); };
          }};
}

Variable sets_in(const Variable& x, int n, bool columns) {
  Variable v = columns ? ops::zeros({8, n}) : ops::zeros({n, 8});
  const std::vector<Variable> parts = rolls_of(x, n);
  for (index_t i = 0; i < n; ++i) {
    const Variable& part = parts[static_cast<std::size_t>(i)];
    v = columns ? ops::set_subtensor(v, {all, i}, part) : ops::set_subtensor(v, {i, all}, part);
  }
  return v;
}

void add_graphs(std::vector<GrowthCase>& cases) {
  cases.push_back(
      compiled("chain of elementwise ops", [](auto& x, int n) { return chain_of(x, n, true); }));
  cases.push_back(compiled("chain of rolls", [](auto& x, int n) { return chain_of(x, n, false); }));
  cases.push_back(
      compiled("sum of elementwise ops", [](auto& x, int n) { return sum_of(parts_of(x, n)); }));
  cases.push_back(compiled("sum of rolls", [](auto& x, int n) { return sum_of(rolls_of(x, n)); }));
  cases.push_back(compiled("join of elementwise ops",
                           [](auto& x, int n) { return ops::join(0, parts_of(x, n)); }));
  cases.push_back(
      compiled("join of rolls", [](auto& x, int n) { return ops::join(0, rolls_of(x, n)); }));
  cases.push_back(compiled("stack of elementwise ops",
                           [](auto& x, int n) { return ops::stack(parts_of(x, n)); }));
  cases.push_back(compiled("stack of rolls, last axis",
                           [](auto& x, int n) { return ops::stack(rolls_of(x, n), 1); }));
  cases.push_back(compiled("sets of rows", [](auto& x, int n) { return sets_in(x, n, false); }));
  cases.push_back(compiled("sets of columns", [](auto& x, int n) { return sets_in(x, n, true); }));
  cases.push_back(compiled("sets of rows computed from the rows before", [](auto& x, int n) {
    Variable v = ops::set_subtensor(ops::zeros({n, 8}), {0, all}, x);
    for (index_t i = 1; i < n; ++i) {
      v = ops::set_subtensor(v, {i, all}, ops::roll(Variable(v(i - 1, all)) * 0.5, 1, 0));
    }
    return v;
  }));
  cases.push_back(compiled("sets in a ring of four rows", [](auto& x, int n) {
    Variable v = ops::set_subtensor(ops::zeros({4, 8}), {0, all}, x);
    for (index_t i = 1; i < n; ++i) {
      const Variable before = v((i - 1) % 4, all);
      v = ops::set_subtensor(v, {i % 4, all}, ops::roll(before * 0.5, 1, 0));
    }
    return v;
  }));
  cases.push_back(compiled("sets of overlapping parts", [](auto& x, int n) {
    Variable v = ops::join(0, {x, x * 2.0});
    for (index_t i = 0; i < n; ++i) {
      const index_t k = i % 8;
      v = ops::set_subtensor(v, {slice(k, k + 8)}, v(slice(8 - k, 16 - k)) * 0.5);
    }
    return v;
  }));
  cases.push_back(compiled("writes into views", [](auto& x, int n) {
    const Variable rows = ops::roll(ops::stack(rolls_of(x, n)), 1, 1);
    std::vector<Variable> terms;
    for (index_t i = 0; i < n; ++i) {
      const Variable row = rows(i, all);
      const Variable part = ops::sin(Variable(row(slice(4, 6))));
      terms.push_back(ops::roll(ops::set_subtensor(row, {slice(0, 2)}, part), 1, 0));
    }
    return sum_of(terms);
  }));
  cases.push_back(compiled("gradient of rows", [](auto& x, int n) {
    const Variable rows = ops::stack(rolls_of(x, n));
    std::vector<Variable> terms;
    for (index_t i = 0; i < n; ++i) terms.push_back(ops::roll(ops::tanh(rows(i, all)), 1, 0));
    return grad(ops::sum(sum_of(terms)), x);
  }));
  cases.push_back(compiled("second derivative of a chain", [](auto& x, int n) {
    const Variable first = grad(ops::sum(chain_of(ops::tanh(x), n, false)), x);
    return grad(ops::sum(first), x);
  }));
  cases.push_back(compiled("choices in the branches of choices", [](auto& x, int n) {
    const Variable sum = ops::sum(x);
    Variable v = x;
    for (int i = 0; i < n; ++i) {
      const Variable inner = ops::ifelse(sum > static_cast<double>(i), v * 2.0, v);
      v = ops::ifelse(sum > static_cast<double>(2 * i), inner, x);
    }
    return v;
  }));
  cases.back().most_parts = 1'000;
  cases.push_back(compiled("chain of choices", [](auto& x, int n) {
    const Variable sum = ops::sum(x);
    Variable v = x;
    for (int i = 0; i < n; ++i) v = ops::ifelse(sum > static_cast<double>(i), v * 2.0, v + 1.0);
    return v;
  }));
  cases.push_back(compiled("tangents of a chain", [](auto& x, int n) {
    const Variable v = chain_of(ops::tanh(x), n, false);
    return pushforward({&v, 1}, {&x, 1}, {&x, 1})[0];
  }));
  cases.push_back({"parts of a lent array", [](int n) -> Work {
                     const Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
                     std::vector<Variable> parts;
                     for (int i = 0; i < n; ++i) {
                       parts.push_back(ops::roll(ops::exp(x(slice(i, i + 1))), 1, 0));
                     }
                     const Variable joined = ops::join(0, parts);
                     return [=] { function({In(x, {.is_mutable = true})}, joined); };
                   }});
  cases.push_back(compiled("split into parts, joined again", [](auto& x, int n) {
    std::vector<Variable> parts = ops::split(ops::join(0, rolls_of(x, n)), n);
    for (Variable& part : parts) part = ops::roll(part, 1, 0);
    return ops::join(0, parts);
  }));
  cases.push_back(compiled("nested joins of two", [](auto& x, int n) {
    std::vector<Variable> parts = rolls_of(x, n);
    while (parts.size() > 1) {
      std::vector<Variable> next;
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
        next.push_back(ops::join(0, {parts[i], parts[i + 1]}));
      }
      if (parts.size() % 2 == 1) next.push_back(parts.back());
      parts = std::move(next);
    }
    return parts[0];
  }));
  cases.push_back(compiled("gradient of a chain", [](auto& x, int n) {
    return grad(ops::sum(chain_of(ops::tanh(x), n, false)), x);
  }));
  cases.push_back(compiled("gradient of a sum", [](auto& x, int n) {
    return grad(ops::sum(sum_of(rolls_of(x, n)) * x), x);
  }));
  cases.push_back(
      called("call: chain of rolls", [](auto& x, int n) { return chain_of(x, n, false); }));
  cases.push_back({"call: masks one after the other", [](int n) -> Work {
                     const Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
                     Variable v = x;
                     for (int i = 0; i < n; ++i) v = v[v > -1.0] * 0.5;
                     const Function f = function({x}, v);
                     f(kEight);
                     return [f] { f(kEight); };
                   }});
  cases.push_back(
      called("call: join of rolls", [](auto& x, int n) { return ops::join(0, rolls_of(x, n)); }));
}

std::vector<SharedVariable> shared_vectors(int n) {
  std::vector<SharedVariable> list;
  for (int i = 0; i < n; ++i) list.push_back(shared(Tensor::ones({8})));
  return list;
}

// The final values of a loop in which each state becomes what the next one was, rolled.
std::vector<Variable> rotated(const std::vector<Variable>& inits) {
  const std::vector<ops::LoopState> states(inits.begin(), inits.end());
  const auto body = [](const std::vector<Variable>& a) {
    std::vector<Variable> next;
    for (std::size_t k = 0; k < a.size(); ++k) {
      next.push_back(ops::roll(a[(k + 1) % a.size()], 1, 0));
    }
    return next;
  };
  const auto result = ops::loop(body, {.states = states, .n_steps = index_t{2}});
  std::vector<Variable> values;
  for (std::size_t k = 0; k < inits.size(); ++k) values.push_back(result.last(k));
  return values;
}

// The final values of a loop whose states start with these values: the last, or all.
std::vector<Variable> looped(const std::vector<Variable>& inits, bool traces) {
  const std::vector<ops::LoopState> states(inits.begin(), inits.end());
  const auto body = [](std::vector<Variable> a) {
    for (Variable& v : a) v = v * 2.0;
    return a;
  };
  const auto result = ops::loop(body, {.states = states, .n_steps = index_t{2}});
  std::vector<Variable> values;
  for (std::size_t k = 0; k < inits.size(); ++k) {
    values.push_back(traces ? result.trace(k) : result.last(k));
  }
  return values;
}

// n inputs, outputs, constants, loops.
void add_signatures(std::vector<GrowthCase>& cases) {
  cases.push_back({"inputs", [](int n) -> Work {
                     std::vector<Variable> inputs;
                     for (int i = 0; i < n; ++i) inputs.push_back(vector_input());
                     const std::vector<In> ins(inputs.begin(), inputs.end());
                     const Variable sum = sum_of(inputs);
                     const std::vector<Tensor> values(inputs.size(), kEight);
                     return [=] {
                       Tensor result;
                       function(ins, sum).call(values, std::span(&result, 1));
                     };
                   }});
  cases.push_back({"givens", [](int n) -> Work {
                     const Variable x = vector_input();
                     Variable sum = x;
                     Givens givens;
                     for (int i = 0; i < n; ++i) {
                       const Variable y = vector_input("y");
                       givens.emplace_back(y, x * static_cast<double>(i));
                       sum = sum + y;
                     }
                     return [=] { function({x}, sum, {.givens = givens})(kEight); };
                   }});
  cases.push_back({"outputs", [](int n) -> Work {
                     const Variable x = vector_input();
                     const std::vector<Variable> parts = rolls_of(x, n);
                     return [=] { function({x}, outs_of(parts))(kEight); };
                   }});
  cases.push_back(compiled("constants", [](auto& x, int n) {
    std::vector<Variable> terms;
    for (int i = 0; i < n; ++i) {
      terms.push_back(x * constant(Tensor::full({8}, static_cast<double>(i))));
    }
    return sum_of(std::move(terms));
  }));
  cases.push_back(compiled("loops one after the other", [](auto& x, int n) {
    Variable v = x;
    for (int i = 0; i < n; ++i) {
      const auto body = [](const std::vector<Variable>& a) { return std::vector{a[0] * 2.0}; };
      v = ops::loop(body, {.states = {v}, .n_steps = index_t{2}}).last(0);
    }
    return v;
  }));
  cases.push_back(compiled("loop with many states", [](auto& x, int n) {
    return ops::join(0, looped(rolls_of(x, n), false));
  }));
  cases.push_back(compiled("loop whose states are rotated",
                           [](auto& x, int n) { return ops::join(0, rotated(rolls_of(x, n))); }));
  cases.push_back(compiled("two loops with many states", [](auto& x, int n) {
    return ops::join(0, looped(looped(rolls_of(x, n), false), false));
  }));
  cases.push_back(compiled("loop with many states, traced", [](auto& x, int n) {
    return ops::join(0, looped(rolls_of(x, n), true));
  }));
  cases.push_back(compiled("gradient of a loop with many states", [](auto& x, int n) {
    return grad(ops::sum(ops::join(0, looped(rolls_of(ops::tanh(x), n), false))), x);
  }));
  cases.push_back({"loop that updates shared variables", [](int n) -> Work {
                     const std::vector<SharedVariable> list = shared_vectors(n);
                     std::vector<Variable> values;
                     for (const SharedVariable& s : list) values.push_back(s.var());
                     const std::vector<Variable> next = looped(values, false);
                     Updates updates;
                     for (std::size_t k = 0; k < next.size(); ++k) {
                       updates.emplace_back(list[k], next[k]);
                     }
                     return [updates] { function({}, {}, {.updates = updates})(); };
                   }});
  cases.push_back(compiled("loop with a long body", [](auto& x, int n) {
    const auto body = [n](const std::vector<Variable>& a) {
      return std::vector{chain_of(a[0], n, false)};
    };
    return ops::loop(body, {.states = {x}, .n_steps = index_t{2}}).last(0);
  }));
}

Function reads_of(const Variable& x, int n) {
  Variable v = x;
  for (const SharedVariable& s : shared_vectors(n)) v = v + s.var();
  return function({x}, v);
}
Function updates_of(const Variable& x, int n) {
  Updates updates;
  for (const SharedVariable& s : shared_vectors(n)) updates.emplace_back(s, s.var() + x);
  return function({x}, {}, {.updates = updates});
}

void add_shared(std::vector<GrowthCase>& cases) {
  const auto add = [&](const std::string& what, auto make) {
    cases.push_back({what + ": compile, first call",
                     [make](int n) -> Work { return [=] { make(vector_input(), n)(kEight); }; }});
    cases.push_back({what + ": call", [make](int n) -> Work {
                       const Function f = make(vector_input(), n);
                       f(kEight);
                       return [f] { f(kEight); };
                     }});
  };
  add("shared variables read", reads_of);
  add("shared variables updated", updates_of);
}

// Save, load and print.
void add_texts(std::vector<GrowthCase>& cases) {
  const auto joined = [](int n) {
    const Variable x = vector_input();
    const Function f = function({x}, ops::join(0, rolls_of(x, n)));
    f(kEight);
    return f;
  };
  const std::string path =
      (std::filesystem::temp_directory_path() / "palimpsest_growth.bin").string();
  cases.push_back(
      {"save a function", [=](int n) -> Work { return [f = joined(n), path] { f.save(path); }; }});
  cases.push_back({"load a function", [=](int n) -> Work {
                     joined(n).save(path);
                     return [path] { Function::load(path); };
                   }});
  cases.push_back(
      {"copy a function", [=](int n) -> Work { return [f = joined(n)] { f.copy(); }; }});
  cases.push_back({"debugprint", [=](int n) -> Work {
                     return [f = joined(n)] { debugprint(f, {.print_memory = true}); };
                   }});
  cases.push_back({"to_dot", [=](int n) -> Work {
                     return [f = joined(n)] { to_dot(f, {.print_memory = true}); };
                   }});
  cases.push_back({"pprint", [=](int n) -> Work {
                     const Variable v = chain_of(vector_input(), n, true);
                     return [v] { pprint(v); };
                   }});
  const auto add_plan = [&](const std::string& name, std::string (Plan::*print)() const) {
    cases.push_back({name, [=](int n) -> Work {
                       return [f = joined(n), print] { (f.latest_plan()->*print)(); };
                     }});
  };
  add_plan("plan as text", &Plan::to_string);
  add_plan("plan as JSON", &Plan::to_json);
  add_plan("plan as SVG", &Plan::to_svg);
}

}  // namespace

std::vector<GrowthCase> graph_cases() {
  std::vector<GrowthCase> cases;
  add_graphs(cases);
  add_signatures(cases);
  add_shared(cases);
  add_texts(cases);
  return cases;
}

}  // namespace palimpsest::bench
