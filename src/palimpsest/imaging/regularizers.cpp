// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/regularizers.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "palimpsest/base/edit_distance.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/image_solver.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"

namespace palimpsest {
namespace {

// Reads a text from left to right, and says where it could not.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  [[noreturn]] void fail(const std::string& what, std::size_t at) const {
    throw ValueError(fmt::format("[reg] '{}', character {}: {}", text_, at + 1, what));
  }
  bool is_done() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }
  bool accept(char c) {
    if (is_done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  // All up to one of these characters.
  std::string_view until(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view part = std::string_view(text_).substr(at_, end - at_);
    at_ = end;
    return part;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

// An error's text without the name that it begins with.
std::string untagged(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t tag = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return tag == std::string::npos ? text : text.substr(tag + 2);
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ND read_dimension(const Reader& reader, std::string_view word, std::size_t at) {
  try {
    const Dims dims{std::string(word)};
    if (dims.size() == 1 && !dims.has_wildcard()) return dims[0];
  } catch (const ValueError&) {
  }
  reader.fail(fmt::format("expected the name of a dimension, got '{}'", word), at);
}

double read_weight(Reader& reader) {
  const std::size_t at = reader.at();
  const auto value = number_of<double>(reader.until(","));
  if (!value || !(*value >= 0) || !std::isfinite(*value)) {
    reader.fail("expected a number >= 0", at);
  }
  return *value;
}

template <class T>
struct Choice {
  std::string_view text;
  T value;
};
template <class T, std::size_t n>
T chosen(const Reader& reader, std::string_view word, std::size_t at,
         const Choice<T> (&choices)[n]) {
  std::string known;
  for (const Choice<T>& choice : choices) {
    if (choice.text == word) return choice.value;
    known += (known.empty() ? "" : " or ") + std::string(choice.text);
  }
  reader.fail(fmt::format("expected {}, got '{}'", known, word), at);
}

constexpr Choice<Shift> kShifts[] = {{"random", Shift::random}, {"none", Shift::none}};
constexpr Choice<LowRankScale> kScales[] = {{"none", LowRankScale::none},
                                            {"bart", LowRankScale::bart}};
constexpr Choice<bool> kSwitch[] = {{"1", true}, {"0", false}};
constexpr Choice<DifferenceBoundary> kBoundaries[] = {{"periodic", DifferenceBoundary::periodic},
                                                      {"neumann", DifferenceBoundary::neumann},
                                                      {"zero", DifferenceBoundary::zero}};
constexpr Choice<DifferenceDirection> kDirections[] = {{"backward", DifferenceDirection::backward},
                                                       {"forward", DifferenceDirection::forward}};

// A key of a term, and the function that reads its value.
struct TermKey {
  std::string_view text;
  void (*read)(const Reader& reader, std::string_view word, std::size_t at, Regularizer& result);
};

template <auto member, const auto& choices>
void read_choice(const Reader& reader, std::string_view word, std::size_t at, Regularizer& result) {
  result.*member = chosen(reader, word, at, choices);
}

void read_wavelet(const Reader& reader, std::string_view word, std::size_t at,
                  Regularizer& result) {
  result.wavelet = word;
  try {
    wavelet_filter(result.wavelet);
  } catch (const ValueError& error) {
    reader.fail(untagged(error), at);
  }
}

void read_levels(const Reader& reader, std::string_view word, std::size_t at, Regularizer& result) {
  const int levels = number_of<int>(word).value_or(0);
  if (word != "auto" && levels < 1) reader.fail("expected auto or a number of at least 1", at);
  result.levels = word == "auto" ? kAutomaticLevels : levels;
}

void read_joint(const Reader& reader, std::string_view word, std::size_t at, Regularizer& result) {
  result.joint = read_dimension(reader, word, at);
}

void read_ratio(const Reader& reader, std::string_view word, std::size_t at, Regularizer& result) {
  result.ratio = number_of<double>(word).value_or(0);
  if (result.ratio > 0 && std::isfinite(result.ratio)) return;
  reader.fail("expected a number > 0", at);
}

constexpr TermKey kShift = {"shift", read_choice<&Regularizer::shift, kShifts>};
constexpr TermKey kWaveletKeys[] = {
    {"wavelet", read_wavelet}, {"levels", read_levels}, kShift, {"joint", read_joint}};
constexpr TermKey kVariationKeys[] = {
    {"iso", read_choice<&Regularizer::isotropic, kSwitch>},
    {"boundary", read_choice<&Regularizer::boundary, kBoundaries>},
    {"direction", read_choice<&Regularizer::direction, kDirections>}};
constexpr TermKey kGeneralizedKeys[] = {{"ratio", read_ratio}};
constexpr TermKey kBlockKeys[] = {kShift, {"scale", read_choice<&Regularizer::scale, kScales>}};

// -- as functions --------------------------------------------------------------------------------

Dims spatial_of(const Dims& image) {
  Dims spatial;
  for (const char* name : {"Nz", "Ny", "Nx"}) {
    if (image.contains(ND(name))) spatial.push_back(ND(name));
  }
  return spatial;
}

void check_dimensions(const Regularizer& r, const Dims& dims, const Dims& image) {
  for (const ND& d : dims) {
    if (image.contains(d)) continue;
    throw wrong_term(r, fmt::format("no dimension {} in the image {}", d.str(), image.str()));
  }
}

// A term with its weight, and the dimensions on which it acts out of those of the image.
struct TermSetting {
  const Regularizer& r;
  const Weight& lambda;
  const Dims& over;
  const Dims& image;
};

Prox l1_norm(const TermSetting& s) { return L1(s.lambda); }

Prox l1_of_wavelets(const TermSetting& s) {
  check_dimensions(s.r, s.r.joint, s.image);
  return L1Wavelet(s.lambda, s.over,
                   {.family = s.r.wavelet,
                    .levels = s.r.levels,
                    .shift = s.r.shift,
                    .joint = s.r.joint,
                    .dims = s.image});
}

// |F x|_1: the axes to transform go last.
Prox fourier_l1(const TermSetting& s) {
  Dims sparse, rest;
  for (const ND& d : s.image) (s.over.contains(d) ? sparse : rest).push_back(d);
  const auto n = static_cast<int>(sparse.size());
  if (n > 3) throw wrong_term(s.r, fmt::format("got {} dimensions, expected at most 3", n));
  Dims frequencies;
  for (int i = 0; i < n; ++i) frequencies.push_back(ND("Freq", i + 1));
  const NamedLinop F = Fft(n, {.batch = rest, .grid = Grid{sparse, frequencies}});
  const NamedLinop U = rest + sparse == s.image ? F : Chain(Permute(s.image, rest + sparse), F);
  return with_unitary(L1(s.lambda), U);
}

// The dimensions that are the columns of a matrix of low rank.
Dims columns_of(const TermSetting& s) {
  const Dims series = s.image.contains(ND("B")) ? Dims("B") : Dims("T");
  const Dims across = s.r.across.empty() ? series : s.r.across;
  check_dimensions(s.r, across, s.image);
  return across;
}

Prox low_rank(const TermSetting& s) { return Nuclear(s.lambda, s.over, columns_of(s), s.image); }

Prox blocks_of_low_rank(const TermSetting& s) {
  const Dims across = columns_of(s);
  BlockExtents block = s.r.block;
  for (const ND& d : s.r.block.empty() ? s.over : Dims()) block.emplace_back(d, 8);
  return LocallyLowRank(s.lambda, block, across,
                        {.shift = s.r.shift, .scale = s.r.scale, .dims = s.image});
}

Prox non_negative(const TermSetting&) { return NonNegative(); }
Prox real_valued(const TermSetting&) { return RealValued(); }

// Adds the function as h if the objective has none, else as a term.
template <Prox (*function)(const TermSetting&)>
void add_prox(Objective& objective, const TermSetting& s) {
  const Prox g = function(s);
  if (objective.h) {
    objective.terms.push_back({.g = g});
  } else {
    objective.h = g;
  }
}

void add_variation(Objective& objective, const TermSetting& s) {
  objective.terms.push_back(tv_term(s.lambda, s.over,
                                    {.isotropic = s.r.isotropic,
                                     .boundary = s.r.boundary,
                                     .direction = s.r.direction,
                                     .dims = s.image}));
}

void add_generalized(Objective& objective, const TermSetting& s) {
  Objective f =
      tgv_objective(objective.A, s.lambda, s.over,
                    {.alpha0 = s.r.ratio, .boundary = s.r.boundary, .direction = s.r.direction});
  for (Quadratic& q : objective.quadratics) q.L = f.A;
  objective.A = f.A;
  objective.terms = std::move(f.terms);
}

// Points that a term ties together: along its dimensions, those of its columns too, or all.
enum class Ties : std::uint8_t { nothing, along, columns, all };

struct KindFacts {
  bool has_weight = true;
  /// The weight is in the unit of the image.
  bool is_relative = true;
  /// A condition that all images meet: goes before other functions.
  bool is_constraint = false;
  bool has_dims = false, draws_shifts = false;
  Ties ties = Ties::nothing;
  std::span<const TermKey> keys = {};
};
constexpr KindFacts kConstraint = {
    .has_weight = false, .is_relative = false, .is_constraint = true};

// The kinds of terms. A new kind is a row.
struct TermKind {
  std::string_view text;
  KindFacts facts;
  /// Null for l2, which is quadratic, and for the ball.
  void (*add)(Objective& objective, const TermSetting& s) = nullptr;
};
constexpr TermKind kKinds[] = {
    {"l2", {.is_relative = false}},
    {"l1", {}, add_prox<l1_norm>},
    {"l1wav",
     {.has_dims = true, .draws_shifts = true, .ties = Ties::along, .keys = kWaveletKeys},
     add_prox<l1_of_wavelets>},
    {"l1fft", {.has_dims = true, .ties = Ties::along}, add_prox<fourier_l1>},
    {"tv", {.has_dims = true, .ties = Ties::along, .keys = kVariationKeys}, add_variation},
    {"tgv", {.has_dims = true, .ties = Ties::along, .keys = kGeneralizedKeys}, add_generalized},
    {"lr", {.has_dims = true, .ties = Ties::columns}, add_prox<low_rank>},
    {"llr",
     {.has_dims = true, .draws_shifts = true, .ties = Ties::columns, .keys = kBlockKeys},
     add_prox<blocks_of_low_rank>},
    {"nonneg", kConstraint, add_prox<non_negative>},
    {"real", kConstraint, add_prox<real_valued>},
    {"ball", {.ties = Ties::all}},
};

const TermKind* find_kind(std::string_view term) {
  return std::find_if(std::begin(kKinds), std::end(kKinds),
                      [&](const TermKind& kind) { return kind.text == term; });
}

const TermKind& kind_of(const Regularizer& r) {
  const auto* const found = find_kind(r.term);
  if (found == std::end(kKinds)) {
    throw ValueError(fmt::format("[Regularizer.term] got '{}', expected one of {}", r.term,
                                 fmt::join(regularizer_names(), ", ")));
  }
  return *found;
}

Dims over_of(const Regularizer& r, const Dims& image) {
  return r.over.empty() ? spatial_of(image) : r.over;
}

// -- texts ---------------------------------------------------------------------------------------

const TermKind& read_kind(Reader& reader) {
  const std::string_view word = reader.until("(:,");
  if (const TermKind* const found = find_kind(word); found != std::end(kKinds)) return *found;
  std::vector<std::string_view> nearest;
  std::size_t least = std::string::npos;
  for (const TermKind& kind : kKinds) {
    // Words that share no more than a letter or two are not near.
    const std::size_t distance = edit_distance(word, kind.text);
    if (distance > 1 + word.size() / 3) continue;
    if (distance < least) nearest.clear();
    least = std::min(least, distance);
    if (distance == least) nearest.push_back(kind.text);
  }
  const std::string advice =
      nearest.empty() ? "" : fmt::format("; the nearest ones are {}", fmt::join(nearest, ", "));
  reader.fail(fmt::format("unknown regularizer '{}', expected one of {}{}", word,
                          fmt::join(regularizer_names(), ", "), advice),
              0);
}

// `A,B` or `A=8,B=8;T`, behind the opening parenthesis.
void read_dimensions(Reader& reader, const TermKind& kind, Regularizer& result) {
  bool is_behind = false;
  for (bool more = true; more;) {
    const std::size_t at = reader.at();
    const std::string_view word = reader.until("=,;):");
    const bool is_empty = word.empty() && !is_behind && result.over.empty();
    if (!is_empty) {
      const ND d = read_dimension(reader, word, at);
      if (result.over.contains(d) || result.across.contains(d)) {
        reader.fail(fmt::format("{} stands there twice", d.str()), at);
      }
      (is_behind ? result.across : result.over).push_back(d);
      if (reader.accept('=')) {
        const std::size_t number = reader.at();
        const auto extent = number_of<index_t>(reader.until(",;)"));
        const bool takes = kind.text == "llr" && !is_behind;
        if (!takes) reader.fail("only blocks of llr have extents", number);
        if (!extent || *extent < 1) reader.fail("expected a number of at least 1", number);
        result.block.emplace_back(d, *extent);
      }
    }
    if (kind.facts.ties != Ties::columns || is_behind || !reader.accept(';')) {
      more = reader.accept(',');
    } else {
      is_behind = true;
    }
  }
  reader.expect(')');
}

void read_key(Reader& reader, const TermKind& kind, std::vector<std::string>& keys,
              Regularizer& result) {
  const std::size_t start = reader.at();
  const std::string name(reader.until("=,"));
  reader.expect('=');
  if (std::find(keys.begin(), keys.end(), name) != keys.end()) {
    reader.fail(fmt::format("{} stands there twice", name), start);
  }
  keys.push_back(name);
  const auto key = std::find_if(kind.facts.keys.begin(), kind.facts.keys.end(),
                                [&](const TermKey& k) { return k.text == name; });
  if (key == kind.facts.keys.end()) {
    reader.fail(fmt::format("{} has no key '{}'", kind.text, name), start);
  }
  const std::size_t at = reader.at();
  const std::string_view word = reader.until(",");
  key->read(reader, word, at, result);
}

bool is_generalized(const Regularizer& r) { return r.term == "tgv"; }

// Runs `add`. Errors of functions and operators name the term in place of those.
template <class Add>
void naming(const Regularizer& r, Add&& add) {
  try {
    add();
  } catch (const ValueError& error) {
    if (std::string_view(error.what()).starts_with("[reg] '")) throw;
    throw wrong_term(r, untagged(error));
  }
}

}  // namespace

ValueError wrong_term(const Regularizer& r, const std::string& what) {
  return ValueError(fmt::format("[reg] '{}': {}", r.text.empty() ? r.term : r.text, what));
}

std::vector<std::string> regularizer_names(bool only_relative) {
  std::vector<std::string> names;
  for (const TermKind& kind : kKinds) {
    if (kind.facts.is_relative || !only_relative) names.emplace_back(kind.text);
  }
  return names;
}

bool ties(const std::vector<Regularizer>& regularizers, const ND& d) {
  return std::any_of(regularizers.begin(), regularizers.end(), [&](const Regularizer& r) {
    const Ties ties = kind_of(r).facts.ties;
    if (ties == Ties::nothing || ties == Ties::all) return ties == Ties::all;
    const bool is_column = r.across.empty() ? d == ND("T") : r.across.contains(d);
    if (ties == Ties::columns && is_column) return true;
    const bool is_spatial = d != ND("T") && d != ND("M");
    return (r.over.empty() ? is_spatial : r.over.contains(d)) || r.joint.contains(d);
  });
}

Regularizer parse_regularizer(const std::string& text) {
  Reader reader(text);
  const TermKind& kind = read_kind(reader);
  Regularizer result;
  result.text = text;
  result.term = kind.text;
  if (reader.accept('(')) {
    if (!kind.facts.has_dims) reader.fail(fmt::format("{} has no dimensions", kind.text));
    read_dimensions(reader, kind, result);
  }
  if (reader.accept(':')) {
    if (!kind.facts.has_weight) reader.fail(fmt::format("{} has no weight", kind.text));
    result.lambda = read_weight(reader);
  } else if (kind.facts.has_weight) {
    reader.fail(fmt::format("{} needs a weight, such as {}:0.01", kind.text, kind.text));
  }
  for (std::vector<std::string> keys; reader.accept(',');) read_key(reader, kind, keys, result);
  if (!reader.is_done()) reader.fail("expected ',' or the end");
  return result;
}

void add_regularizers(Objective& objective, const std::vector<Regularizer>& regularizers,
                      const Dims& image, const WeightOf& weight) {
  std::vector<Regularizer> constraints, functions;
  for (const Regularizer& r : regularizers) {
    check_dimensions(r, r.over, image);
    if (!(r.lambda >= 0) || r.lambda > std::numeric_limits<float>::max()) {
      throw wrong_term(r, fmt::format("got the weight {}, expected a number from 0 to {:g}",
                                      r.lambda, std::numeric_limits<float>::max()));
    }
    if (r.term == "l2") {
      if (r.lambda > 0) objective.quadratics.push_back({.lambda = r.lambda});
    } else if (r.term == "ball") {
      if (&r != ball_of(regularizers)) throw wrong_term(r, "got several balls, expected one");
    } else {
      (kind_of(r).facts.is_constraint ? constraints : functions).push_back(r);
    }
  }
  constraints.insert(constraints.end(), functions.begin(), functions.end());
  const auto tgv = std::find_if(constraints.begin(), constraints.end(), is_generalized);
  if (tgv != constraints.end() &&
      (constraints.size() > 1 || objective.h || !objective.terms.empty())) {
    throw wrong_term(*tgv, "tgv has an unknown of its own: expected no other term but l2");
  }
  // A function of differences is a term, and its dual variable has no place beside random shifts.
  const bool is_alone = !objective.h && objective.terms.empty() && constraints.size() == 1 &&
                        ball_of(regularizers) == nullptr;
  for (Regularizer& r : constraints) {
    if (!is_alone) r.shift = Shift::none;
    naming(r, [&] {
      const Weight lambda = weight ? weight(r) : Weight(r.lambda);
      kind_of(r).add(objective, {r, lambda, over_of(r, image), image});
    });
  }
}

index_t parts_of_unknown(const std::vector<Regularizer>& regularizers, const Dims& image) {
  for (const Regularizer& r : regularizers) {
    if (!is_generalized(r)) continue;
    return 1 + std::ssize(over_of(r, image));
  }
  return 1;
}

bool is_relative(const Regularizer& r) { return kind_of(r).facts.is_relative; }
bool is_constraint(const Regularizer& r) { return kind_of(r).facts.is_constraint; }

const Regularizer* ball_of(const std::vector<Regularizer>& regularizers) {
  const auto it = std::find_if(regularizers.begin(), regularizers.end(),
                               [](const Regularizer& r) { return r.term == "ball"; });
  return it == regularizers.end() ? nullptr : &*it;
}

bool draws_shifts(const std::vector<Regularizer>& regularizers) {
  const auto is_function = [](const Regularizer& r) { return r.term != "l2"; };
  const auto first = std::find_if(regularizers.begin(), regularizers.end(), is_function);
  if (first == regularizers.end() || first->shift != Shift::random) return false;
  return kind_of(*first).facts.draws_shifts &&
         std::none_of(first + 1, regularizers.end(), is_function);
}

bool are_quadratic(const std::vector<Regularizer>& regularizers) {
  return std::all_of(regularizers.begin(), regularizers.end(),
                     [](const Regularizer& r) { return r.term == "l2"; });
}

}  // namespace palimpsest
