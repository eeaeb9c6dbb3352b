// SPDX-License-Identifier: Apache-2.0
// Imaging: regularizers as texts of the command and as proximal functions.
#include <algorithm>
#include <array>

#include "palimpsest/python/imaging/reconstruct_options.hpp"
#include "palimpsest/python/solve/prox_object.hpp"

namespace palimpsest::python {
namespace {

// The part of a text behind `name=` in a list of words: the enumerator of that place.
template <class E, std::size_t n>
E enumerator_of(const Attribute& attribute, const std::array<std::string_view, n>& words) {
  const auto* const found = std::find(words.begin(), words.end(), attribute.as_string());
  return static_cast<E>(found - words.begin());
}

constexpr std::array<std::string_view, 3> kWordsOfBoundaries = {"periodic", "neumann", "zero"};
constexpr std::array<std::string_view, 2> kWordsOfDirections = {"forward", "backward"};
constexpr std::array<std::string_view, 2> kWordsOfShifts = {"none", "random"};
constexpr std::array<std::string_view, 2> kWordsOfScales = {"none", "bart"};

void read_nothing(const Prox&, Regularizer&) {}

void read_wavelets(const Prox& g, Regularizer& r) {
  const NamedLinop& W = g.linops().front();
  r.over = g.attr("over").as_dims();
  r.joint = g.attr("joint").as_dims();
  r.wavelet = W.attr("family").as_string();
  r.levels = static_cast<int>(W.attr("levels").as_integer());
  r.shift = enumerator_of<Shift>(g.attr("shift"), kWordsOfShifts);
}

void read_variation(const Prox& g, Regularizer& r) {
  const std::vector<NamedLinop> differences = g.linops().front().linops();
  for (const NamedLinop& part : differences) {
    const Dims dims = part.ishape();
    const index_t axis = part.attr("axis").as_integer();
    const auto rank = static_cast<index_t>(dims.size());
    r.over.push_back(dims[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
  }
  const NamedLinop& first = differences.front();
  r.isotropic = g.attr("isotropic").as_bool();
  r.boundary = enumerator_of<DifferenceBoundary>(first.attr("boundary"), kWordsOfBoundaries);
  r.direction = enumerator_of<DifferenceDirection>(first.attr("direction"), kWordsOfDirections);
}

void read_low_rank(const Prox& g, Regularizer& r) {
  r.over = g.attr("rows").as_dims();
  r.across = g.attr("columns").as_dims();
}

void read_blocks(const Prox& g, Regularizer& r) {
  const Dims rows = g.attr("rows").as_dims();
  const Extents extents = g.attr("block").as_integers();
  r.across = g.attr("columns").as_dims();
  for (std::size_t i = 0; i < rows.size(); ++i) r.block.emplace_back(rows[i], extents[i]);
  r.shift = g.type().name == "ShiftedLocallyLowRank" ? Shift::random : Shift::none;
  r.scale = enumerator_of<LowRankScale>(g.attr("scale"), kWordsOfScales);
}

struct TermOfFunction {
  std::string_view function, term;
  void (*read)(const Prox& g, Regularizer& r) = read_nothing;
};
constexpr TermOfFunction kTermsOfFunctions[] = {
    {"SquaredL2", "l2"},
    {"L1", "l1"},
    {"L1Wavelet", "l1wav", read_wavelets},
    {"ShiftedL1Wavelet", "l1wav", read_wavelets},
    {"TotalVariation", "tv", read_variation},
    {"Nuclear", "lr", read_low_rank},
    {"LocallyLowRank", "llr", read_blocks},
    {"ShiftedLocallyLowRank", "llr", read_blocks},
    {"NonNegative", "nonneg"},
    {"RealValued", "real"},
};

[[noreturn]] void refuse(const Prox& g, const std::string& what) {
  throw ValueError("[regularizers] " + g.str() + ": " + what +
                   ". Try minimize(Objective(sense_model(maps, ..), ..), kspace).");
}

Regularizer regularizer_of(const Prox& g) {
  const auto* const kind =
      std::find_if(std::begin(kTermsOfFunctions), std::end(kTermsOfFunctions),
                   [&](const TermOfFunction& k) { return k.function == g.type().name; });
  if (kind == std::end(kTermsOfFunctions)) {
    refuse(g,
           "expected one of SquaredL2, L1, L1Wavelet, TotalVariation, Nuclear, LocallyLowRank, "
           "NonNegative, RealValued");
  }
  for (const char* name : {"lambda", "weights", "center"}) {
    if (g.has_param(name))
      refuse(g, std::string("got an array as ") + name + ", expected a number");
  }
  Regularizer made;
  made.term = kind->term;
  made.text = g.str();
  if (g.has_attr("lambda")) made.lambda = g.attr("lambda").as_real();
  kind->read(g, made);
  return made;
}

Regularizer one_of(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return parse_regularizer(str_of(object));
  if (nb::isinstance<ProxObject>(object)) {
    return regularizer_of(nb::cast<ProxObject&>(object).value);
  }
  throw TypeError("[regularizers] got " + class_name(object) +
                  ", expected texts such as 'l1wav:0.01', or functions such as L1Wavelet(0.01, "
                  "'Ny Nx').");
}

}  // namespace

std::vector<Regularizer> From<std::vector<Regularizer>>::from(nb::handle object) {
  if (!is_list(object)) return {one_of(object)};
  std::vector<Regularizer> list;
  for (nb::handle item : object) list.push_back(one_of(item));
  return list;
}

}  // namespace palimpsest::python
