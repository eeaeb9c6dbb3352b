// SPDX-License-Identifier: Apache-2.0
// Proximal functions, and objectives made of them.
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/solve/prox_object.hpp"
#include "palimpsest/python/transform_options.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/saving.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "palimpsest/solve/testing/check_prox.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(Shift, "shift", "none", "random")
PALIMPSEST_OPTIONS(ProxCheckOptions)
PALIMPSEST_NAMES(LowRankScale, "scale", "none", "bart")
PALIMPSEST_OPTIONS(L1Options)
PALIMPSEST_OPTIONS(SquaredL2Options)
PALIMPSEST_OPTIONS(BallOptions)
PALIMPSEST_OPTIONS(AffineOptions)
PALIMPSEST_OPTIONS(TotalVariationOptions)
PALIMPSEST_OPTIONS(TgvOptions)
PALIMPSEST_OPTIONS(LocallyLowRankOptions)

template <>
struct From<Weight> {
  static constexpr auto name = nb::detail::const_name("ArrayLike | Parameter");
  static Weight from(nb::handle object) {
    if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) {
      return PyFloat_AsDouble(object.ptr());
    }
    return from_python<Parameter>(object);
  }
};
template <>
struct From<BlockExtents> {
  static constexpr auto name =
      nb::detail::const_name("Mapping[str, int] | Sequence[tuple[str, int]]");
  static BlockExtents from(nb::handle object) { return ordered_sizes(object); }
};
template <>
inline constexpr auto kResultName<BlockExtents> = From<BlockExtents>::name;
template <>
struct ObjectFor<Prox> {
  using Type = ProxObject;
};
template <>
struct ObjectFor<Objective> {
  using Type = ObjectiveObject;
};

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(DifferenceBoundary)
PALIMPSEST_ARGUMENT(DifferenceDirection)
PALIMPSEST_ARGUMENT(Shift)
PALIMPSEST_ARGUMENT(LowRankScale)
PALIMPSEST_ARGUMENT(Weight)
PALIMPSEST_ARGUMENT(BlockExtents)

namespace palimpsest::python {

namespace {

using Self = const ProxObject&;
using MaybeDims = std::optional<Dims>;

void bind_class(nb::class_<ProxObject>& prox) {
  prox.def(
          "prox",
          [](Self self, ArrayGiven v, double t) {
            const Tensor given = data_of(v);
            return array_like(v, released([&] { return self.value.prox(given, t); }));
          },
          "v"_a, "t"_a = 1.0, "argmin over x of t g(x) + |x - v|^2 / 2.")
      .def(
          "conjugate_prox",
          [](Self self, ArrayGiven u, double s) {
            const Tensor given = data_of(u);
            return array_like(u, released([&] { return self.value.conjugate_prox(given, s); }));
          },
          "u"_a, "s"_a = 1.0, "The proximal operator of the convex conjugate: prox of s g*.")
      .def(
          "value",
          [](Self self, ArrayGiven x) {
            const Tensor given = data_of(x);
            return released([&] { return self.value.value(given); });
          },
          "x"_a, "g(x); infinite outside of a constraint.")
      .def(
          "__call__",
          [](Self self, ArrayGiven x) {
            const Tensor given = data_of(x);
            return released([&] { return self.value.value(given); });
          },
          "x"_a, "g(x).")
      .def_prop_ro(
          "is_smooth", [](Self self) { return self.value.is_smooth(); }, "It has a gradient.")
      .def_prop_ro(
          "name", [](Self self) { return self.value.name(); }, "Name of its kind, in messages.")
      .def("__repr__", [](Self self) { return self.value.str(); })
      .def("__reduce__", [](Self self) {
        const std::vector<std::byte> bytes = released([&] { return to_bytes(self.value); });
        return nb::make_tuple(nb::module_::import_("palimpsest._pickles").attr("prox_of_bytes"),
                              nb::make_tuple(nb::bytes(bytes.data(), bytes.size())));
      });
}

void bind_tools(nb::module_& m) {
  // For the test that all are bound.
  m.def("_registered", [] {
    nb::dict names;
    names["operators"] = nb::cast(linop_names());
    names["solvers"] = nb::cast(solver_names());
    names["proximal functions"] = nb::cast(prox_names());
    return names;
  });
  m.def("_prox_of_bytes", [](const nb::bytes& bytes) {
    const std::span data(static_cast<const std::byte*>(bytes.data()), bytes.size());
    return ProxObject{released([&] { return prox_from_bytes(data); })};
  });
  def_with_options(
      m, "check_prox",
      +[](const ProxObject& g, const ProxCheckOptions& options) {
        return released([&] { return check_prox(g.value, options); });
      },
      {"g"}, "list[str]");
}

// A function of Variables that any thread may call and drop.
template <class... V>
std::function<Variable(const V&...)> graph_function(nb::handle f, const char* what) {
  if (!PyCallable_Check(f.ptr())) {
    throw TypeError("[CustomProx] got " + class_name(f) + " for " + what +
                    ", expected a function of Variables.");
  }
  return [f = shared_object(nb::borrow(f))](const V&... arguments) {
    const Locked locked;
    return from_python<Variable>(f->get()(to_python(arguments)...));
  };
}

void bind_norms(nb::module_& m) {
  def_with_options(m, "L1", &L1, {{"lam", 1.0}});
  m.def(
      "L2",
      [](Weight lambda, Dims over, MaybeDims dims) {
        return ProxObject{L2(lambda, {.over = over, .dims = dims})};
      },
      "lam"_a = 1.0, nb::kw_only(), "over"_a = nb::make_tuple(), "dims"_a.none() = nb::none(),
      "lam |x|, the norm over some dimensions.");
  m.def(
      "L21",
      [](Weight lambda, Dims over, MaybeDims dims) { return ProxObject{L21(lambda, over, dims)}; },
      "lam"_a, "over"_a, "dims"_a.none() = nb::none(), "Joint sparsity.");
  def_with_options(m, "SquaredL2", &SquaredL2, {{"lam", 1.0}});
  m.def(
      "Huber",
      [](Weight lambda, double delta, MaybeDims dims) {
        return ProxObject{Huber(lambda, delta, dims)};
      },
      "lam"_a = 1.0, "delta"_a = 1.0, "dims"_a.none() = nb::none(),
      "Quadratic near 0, then linear.");
  m.def(
      "CustomProx",
      [](nb::handle prox, nb::handle value, const std::string& name) {
        ProxFunctions functions{.prox = graph_function<Variable, Variable>(prox, "prox")};
        if (!value.is_none()) functions.value = graph_function<Variable>(value, "value");
        return ProxObject{CustomProx(std::move(functions), name)};
      },
      "prox"_a, "value"_a.none() = nb::none(), "name"_a = "Custom",
      "A function that prox(v, t) and value(x) describe, as graphs.");
  m.def(
      "ZeroProx", [] { return ProxObject{ZeroProx()}; }, "The function that is 0 everywhere.");
  m.def(
      "Box", [](double lo, double hi) { return ProxObject{Box(lo, hi)}; }, "lo"_a, "hi"_a,
      "The constraint lo <= x <= hi.");
  m.def(
      "NonNegative", [] { return ProxObject{NonNegative()}; }, "x real and not negative.");
  m.def(
      "RealValued", [] { return ProxObject{RealValued()}; }, "x real.");
  def_with_options(m, "Ball", &Ball, {"radius"});
  def_with_options(m, "Affine", &Affine, {"B", "c"});
}

void bind_images(nb::module_& m) {
  def_with_options(m, "TotalVariation", &TotalVariation, {"lam", "over"});
  m.def(
      "tv_term",
      [](Weight lambda, Dims over, bool isotropic, DifferenceBoundary boundary, Dims joint,
         MaybeDims dims, DifferenceDirection direction) {
        return TermObject{tv_term(lambda, over,
                                  {.isotropic = isotropic,
                                   .boundary = boundary,
                                   .direction = direction,
                                   .joint = joint,
                                   .dims = dims})};
      },
      "lam"_a, "over"_a, nb::kw_only(), "isotropic"_a = true, "boundary"_a = "neumann",
      "joint"_a = nb::make_tuple(), "dims"_a.none() = nb::none(), "direction"_a = "forward",
      "The total variation as a Term, without an inner loop.");
  def_with_options(m, "tgv_objective", &tgv_objective, {"A", "lam", "over"});
  m.def(
      "L1Wavelet",
      [](Weight lambda, Dims over, const std::string& family, std::optional<int> levels,
         Shift shift, Dims joint, std::vector<double> level_weights, MaybeDims dims) {
        if (levels.value_or(0) < 0) {
          throw ValueError("[L1Wavelet] levels: got " + std::to_string(*levels) +
                           ", expected 0 to 39, or None");
        }
        return ProxObject{L1Wavelet(lambda, over,
                                    {.family = family,
                                     .levels = levels.value_or(kAutomaticLevels),
                                     .shift = shift,
                                     .joint = joint,
                                     .level_weights = std::move(level_weights),
                                     .dims = dims})};
      },
      "lam"_a, "over"_a, nb::kw_only(), "family"_a = "db2", "levels"_a.none() = nb::none(),
      "shift"_a = "none", "joint"_a = nb::make_tuple(), "level_weights"_a = nb::make_tuple(),
      "dims"_a.none() = nb::none(), "lam times the sum of |wavelet coefficients|.");
  m.def(
      "Nuclear",
      [](Weight lambda, Dims rows, Dims columns, MaybeDims dims) {
        return ProxObject{Nuclear(lambda, rows, columns, dims)};
      },
      "lam"_a, "rows"_a, "columns"_a, "dims"_a.none() = nb::none(), "The sum of singular values.");
  def_with_options(m, "LocallyLowRank", &LocallyLowRank, {"lam", "block", "across"});
}

// Functions of functions.
void bind_composed(nb::class_<ProxObject>& prox) {
  prox.def(
          "weighted", [](Self g, double w) { return ProxObject{weighted(g.value, w)}; }, "w"_a,
          "w g.")
      .def(
          "scaled", [](Self g, std::complex<double> a) { return ProxObject{scaled(g.value, a)}; },
          "a"_a, "g(a x) for a real a, or one of modulus 1.")
      .def(
          "translated", [](Self g, Tensor c) { return ProxObject{translated(g.value, c)}; }, "c"_a,
          "g(x - c).")
      .def(
          "plus_quadratic",
          [](Self g, double mu, std::optional<Tensor> c) {
            return ProxObject{plus_quadratic(g.value, mu, c)};
          },
          "mu"_a, "c"_a.none() = nb::none(), "g(x) + mu / 2 |x - c|^2.")
      .def(
          "with_unitary", [](Self g, NamedLinop W) { return ProxObject{with_unitary(g.value, W)}; },
          "W"_a, "g(W x) for a unitary W.")
      .def(
          "conjugate", [](Self g) { return ProxObject{conjugate(g.value)}; },
          "The convex conjugate g*(u) = sup Re <u, x> - g(x). It has no value().")
      .def(
          "moreau_envelope",
          [](Self g, double mu) { return ProxObject{moreau_envelope(g.value, mu)}; }, "mu"_a,
          "min over y of g(y) + |x - y|^2 / (2 mu): smooth.");
}

void bind_places(nb::class_<ProxObject>& prox) {
  prox.def(
          "on",
          [](Self g, NamedLinop K, std::optional<Tensor> d) {
            return TermObject{{.g = g.value, .K = K, .d = d}};
          },
          "K"_a, "d"_a.none() = nb::none(), "g(K x - d), a Term of an Objective.")
      .def(
          "on_part",
          [](Self g, ND d, index_t start, index_t stop, Dims dims) {
            return ProxObject{on(g.value, d, start, stop, dims)};
          },
          "d"_a, "start"_a, "stop"_a, "dims"_a,
          "g of the elements start .. stop - 1 along a dimension; the others are free.")
      .def_static(
          "stacked",
          [](const std::vector<ProxObject>& parts, ND d, Extents extents, Dims dims) {
            std::vector<Prox> values;
            for (const ProxObject& part : parts) values.push_back(part.value);
            return ProxObject{stacked(values, d, extents, dims)};
          },
          "parts"_a, "d"_a, "extents"_a, "dims"_a,
          "The sum of functions of parts that lie one after the other along a dimension.");
}

// The value of an object of a class, which a constructor was given.
template <class T>
auto value_in(nb::handle object, const std::string& where) {
  if (nb::isinstance<T>(object)) return nb::cast<T&>(object).value;
  throw TypeError(where + ": got " + class_name(object) + ", expected a " + T::kName + ".");
}

nb::handle list_in(nb::handle object, const std::string& where) {
  if (is_list(object)) return object;
  throw TypeError(where + ": got " + class_name(object) + ", expected a list.");
}

std::vector<Term> terms_of(nb::handle list) {
  std::vector<Term> terms;
  for (nb::handle item : list_in(list, "[Objective] terms")) {
    if (nb::isinstance<ProxObject>(item)) {
      terms.push_back({.g = nb::cast<ProxObject&>(item).value});
    } else {
      terms.push_back(value_in<TermObject>(item, "[Objective] terms"));
    }
  }
  return terms;
}

void bind_objectives(nb::module_& m, nb::class_<TermObject>& term) {
  term.def(
      "__init__",
      [](TermObject* self, nb::handle g, std::optional<NamedLinop> K, std::optional<Tensor> d) {
        new (self) TermObject{{.g = value_in<ProxObject>(g, "[Term] g"), .K = K, .d = d}};
      },
      "g"_a.none(), "K"_a.none() = nb::none(), "d"_a.none() = nb::none(),
      nb::sig("def __init__(self, g: Prox, K: NamedLinop | None = None, "
              "d: ArrayLike | None = None) -> None"));
  nb::class_<QuadraticObject>(m, "Quadratic", "lam / 2 |L x - c|^2.")
      .def(
          "__init__",
          [](QuadraticObject* self, double lambda, std::optional<NamedLinop> L,
             std::optional<Tensor> c) {
            new (self) QuadraticObject{{.lambda = lambda, .L = L, .c = c}};
          },
          "lam"_a = 1.0, "L"_a.none() = nb::none(), "c"_a.none() = nb::none());
  nb::class_<ObjectiveObject>(m, "Objective",
                              "|A x - b|_W^2 / 2 + quadratics + sum of g_i(K_i x - d_i) + h(x).")
      .def(
          "__init__",
          [](ObjectiveObject* self, NamedLinop A, std::optional<NamedLinop> W,
             nb::handle quadratics, nb::handle terms, nb::handle h) {
            Objective made{.A = A, .W = W, .terms = terms_of(terms)};
            for (nb::handle q : list_in(quadratics, "[Objective] quadratics")) {
              made.quadratics.push_back(value_in<QuadraticObject>(q, "[Objective] quadratics"));
            }
            if (!h.is_none()) made.h = value_in<ProxObject>(h, "[Objective] h");
            new (self) ObjectiveObject{std::move(made)};
          },
          "A"_a, nb::kw_only(), "W"_a.none() = nb::none(), "quadratics"_a = nb::make_tuple(),
          "terms"_a = nb::make_tuple(), "h"_a.none() = nb::none());
}

}  // namespace

void bind_proxes(nb::module_& m) {
  nb::class_<ProxObject> prox(m, "Prox",
                              "A convex function that is known by its proximal operator.");
  nb::class_<TermObject> term(m, "Term", "g(K x - d).");
  bind_class(prox);
  bind_composed(prox);
  bind_places(prox);
  bind_tools(m);
  bind_norms(m);
  bind_images(m);
  bind_objectives(m, term);
}

}  // namespace palimpsest::python
