// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/regularizers.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <optional>
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

struct Name {
  std::string_view text;
  Penalty penalty;
  bool has_weight, has_dims, has_across;
};
constexpr Name kRegularizerNames[] = {
    {"l2", Penalty::l2, true, false, false},
    {"l1", Penalty::l1, true, false, false},
    {"l1wav", Penalty::l1_wavelet, true, true, false},
    {"l1fft", Penalty::l1_fourier, true, true, false},
    {"tv", Penalty::total_variation, true, true, false},
    {"tgv", Penalty::generalized_variation, true, true, false},
    {"lr", Penalty::low_rank, true, true, true},
    {"llr", Penalty::locally_low_rank, true, true, true},
    {"nonneg", Penalty::non_negative, false, false, false},
    {"real", Penalty::real_valued, false, false, false},
    {"ball", Penalty::ball, true, false, false},
};

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

const Name& read_name(Reader& reader) {
  const std::string_view word = reader.until("(:,");
  const auto* const it = std::find_if(std::begin(kRegularizerNames), std::end(kRegularizerNames),
                                      [&](const Name& name) { return name.text == word; });
  if (it != std::end(kRegularizerNames)) return *it;
  std::vector<std::string_view> known, nearest;
  std::size_t least = std::string::npos;
  for (const Name& name : kRegularizerNames) {
    known.push_back(name.text);
    // Words that share no more than a letter or two are not near.
    if (edit_distance(word, name.text) > 1 + word.size() / 3) continue;
    const std::size_t distance = edit_distance(word, name.text);
    if (distance < least) nearest.clear();
    least = std::min(least, distance);
    if (distance == least) nearest.push_back(name.text);
  }
  const std::string advice =
      nearest.empty() ? "" : fmt::format("; the nearest ones are {}", fmt::join(nearest, ", "));
  reader.fail(fmt::format("unknown regularizer '{}', expected one of {}{}", word,
                          fmt::join(known, ", "), advice),
              0);
}

ND read_dimension(Reader& reader, std::string_view word, std::size_t at) {
  try {
    const Dims dims{std::string(word)};
    if (dims.size() == 1 && !dims.has_wildcard()) return dims[0];
  } catch (const ValueError&) {
  }
  reader.fail(fmt::format("expected the name of a dimension, got '{}'", word), at);
}

// `A,B` or `A=8,B=8;T`, behind the opening parenthesis.
void read_dimensions(Reader& reader, const Name& name, Regularizer& result) {
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
        const bool takes = name.penalty == Penalty::locally_low_rank && !is_behind;
        if (!takes) reader.fail("only blocks of llr have extents", number);
        if (!extent || *extent < 1) reader.fail("expected a number of at least 1", number);
        result.block.emplace_back(d, *extent);
      }
    }
    if (!name.has_across || is_behind || !reader.accept(';')) {
      more = reader.accept(',');
    } else {
      is_behind = true;
    }
  }
  reader.expect(')');
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

bool read_wavelet_key(Reader& reader, std::string_view key, Regularizer& result) {
  const std::size_t at = reader.at();
  if (key == "wavelet") {
    result.wavelet = reader.until(",");
    try {
      wavelet_filter(result.wavelet);
    } catch (const ValueError& error) {
      reader.fail(untagged(error), at);
    }
  } else if (key == "levels") {
    const std::string_view word = reader.until(",");
    const int levels = number_of<int>(word).value_or(0);
    if (word != "auto" && levels < 1) reader.fail("expected auto or a number of at least 1", at);
    result.levels = word == "auto" ? kAutomaticLevels : levels;
  } else if (key == "shift") {
    result.shift = chosen(reader, reader.until(","), at, kShifts);
  } else if (key == "joint") {
    result.joint = read_dimension(reader, reader.until(","), at);
  } else {
    return false;
  }
  return true;
}

bool read_other_key(Reader& reader, std::string_view key, Regularizer& result) {
  const std::size_t at = reader.at();
  if (result.penalty == Penalty::total_variation) {
    if (key == "iso") {
      result.isotropic = chosen(reader, reader.until(","), at, kSwitch);
    } else if (key == "boundary") {
      result.boundary = chosen(reader, reader.until(","), at, kBoundaries);
    } else if (key == "direction") {
      result.direction = chosen(reader, reader.until(","), at, kDirections);
    } else {
      return false;
    }
    return true;
  }
  if (result.penalty == Penalty::generalized_variation && key == "ratio") {
    const auto ratio = number_of<double>(reader.until(","));
    if (!ratio || !(*ratio > 0) || !std::isfinite(*ratio)) {
      reader.fail("expected a number > 0", at);
    }
    result.ratio = *ratio;
    return true;
  }
  if (result.penalty != Penalty::locally_low_rank) return false;
  if (key == "shift") {
    result.shift = chosen(reader, reader.until(","), at, kShifts);
  } else if (key == "scale") {
    result.scale = chosen(reader, reader.until(","), at, kScales);
  } else {
    return false;
  }
  return true;
}

void read_key(Reader& reader, const Name& name, std::vector<std::string>& keys,
              Regularizer& result) {
  const std::size_t at = reader.at();
  const std::string key(reader.until("=,"));
  reader.expect('=');
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
    reader.fail(fmt::format("{} stands there twice", key), at);
  }
  keys.push_back(key);
  const bool is_wavelet = name.penalty == Penalty::l1_wavelet;
  const bool is_read =
      is_wavelet ? read_wavelet_key(reader, key, result) : read_other_key(reader, key, result);
  if (!is_read) reader.fail(fmt::format("{} has no key '{}'", name.text, key), at);
}

// -- as functions --------------------------------------------------------------------------------

bool is_generalized(const Regularizer& r) { return r.penalty == Penalty::generalized_variation; }

bool is_constraint(Penalty p) { return p == Penalty::non_negative || p == Penalty::real_valued; }

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

// |F x|_1: the axes to transform go last.
Prox fourier_l1(const Regularizer& r, const Weight& lambda, const Dims& over, const Dims& image) {
  Dims order, sparse, rest;
  for (const ND& d : image) (over.contains(d) ? sparse : rest).push_back(d);
  const auto n = static_cast<int>(sparse.size());
  if (n > 3) throw wrong_term(r, fmt::format("got {} dimensions, expected at most 3", n));
  Dims frequencies;
  for (int i = 0; i < n; ++i) frequencies.push_back(ND("Freq", i + 1));
  const NamedLinop F = Fft(n, {.batch = rest, .grid = Grid{sparse, frequencies}});
  const NamedLinop U = rest + sparse == image ? F : Chain(Permute(image, rest + sparse), F);
  return with_unitary(L1(lambda), U);
}

Prox low_rank(const Regularizer& r, const Weight& lambda, const Dims& over, const Dims& image) {
  const Dims series = image.contains(ND("B")) ? Dims("B") : Dims("T");
  const Dims across = r.across.empty() ? series : r.across;
  check_dimensions(r, across, image);
  if (r.penalty == Penalty::low_rank) return Nuclear(lambda, over, across, image);
  BlockExtents block = r.block;
  if (block.empty()) {
    for (const ND& d : over) block.emplace_back(d, 8);
  }
  return LocallyLowRank(lambda, block, across, {.shift = r.shift, .scale = r.scale, .dims = image});
}

Prox function_of(const Regularizer& r, const Weight& lambda, const Dims& over, const Dims& image) {
  switch (r.penalty) {
    case Penalty::l1:
      return L1(lambda);
    case Penalty::l1_wavelet:
      check_dimensions(r, r.joint, image);
      return L1Wavelet(lambda, over,
                       {.family = r.wavelet,
                        .levels = r.levels,
                        .shift = r.shift,
                        .joint = r.joint,
                        .dims = image});
    case Penalty::l1_fourier:
      return fourier_l1(r, lambda, over, image);
    case Penalty::low_rank:
    case Penalty::locally_low_rank:
      return low_rank(r, lambda, over, image);
    case Penalty::non_negative:
      return NonNegative();
    case Penalty::real_valued:
      return RealValued();
    case Penalty::l2:
    case Penalty::total_variation:
    case Penalty::generalized_variation:
    case Penalty::ball:
      break;
  }
  throw InternalError("[reg] no function");
}

void add_generalized(Objective& objective, const Regularizer& r, const Dims& image,
                     const WeightOf& weight) {
  const Dims over = r.over.empty() ? spatial_of(image) : r.over;
  Objective f =
      tgv_objective(objective.A, weight ? weight(r) : Weight(r.lambda), over,
                    {.alpha0 = r.ratio, .boundary = r.boundary, .direction = r.direction});
  for (Quadratic& q : objective.quadratics) q.L = f.A;
  objective.A = f.A;
  objective.terms = std::move(f.terms);
}

// One function that is not quadratic: h of the objective if that has none, else a term.
void add_function(Objective& objective, const Regularizer& r, const Dims& image,
                  const WeightOf& weight) {
  const Dims over = r.over.empty() ? spatial_of(image) : r.over;
  const Weight lambda = weight ? weight(r) : Weight(r.lambda);
  if (r.penalty == Penalty::total_variation) {
    objective.terms.push_back(tv_term(lambda, over,
                                      {.isotropic = r.isotropic,
                                       .boundary = r.boundary,
                                       .direction = r.direction,
                                       .dims = image}));
    return;
  }
  const Prox g = function_of(r, lambda, over, image);
  if (objective.h) {
    objective.terms.push_back({.g = g});
  } else {
    objective.h = g;
  }
}

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
  const auto* const name = std::find_if(std::begin(kRegularizerNames), std::end(kRegularizerNames),
                                        [&](const Name& n) { return n.penalty == r.penalty; });
  return ValueError(
      fmt::format("[reg] '{}': {}", r.text.empty() ? std::string(name->text) : r.text, what));
}

Regularizer parse_regularizer(const std::string& text) {
  Reader reader(text);
  const Name& name = read_name(reader);
  Regularizer result;
  result.text = text;
  result.penalty = name.penalty;
  if (reader.accept('(')) {
    if (!name.has_dims) reader.fail(fmt::format("{} has no dimensions", name.text));
    read_dimensions(reader, name, result);
  }
  if (reader.accept(':')) {
    if (!name.has_weight) reader.fail(fmt::format("{} has no weight", name.text));
    result.lambda = read_weight(reader);
  } else if (name.has_weight) {
    reader.fail(fmt::format("{} needs a weight, such as {}:0.01", name.text, name.text));
  }
  for (std::vector<std::string> keys; reader.accept(',');) read_key(reader, name, keys, result);
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
    if (r.penalty == Penalty::l2) {
      if (r.lambda > 0) objective.quadratics.push_back({.lambda = r.lambda});
    } else if (r.penalty == Penalty::ball) {
      if (&r != ball_of(regularizers)) throw wrong_term(r, "got several balls, expected one");
    } else {
      (is_constraint(r.penalty) ? constraints : functions).push_back(r);
    }
  }
  constraints.insert(constraints.end(), functions.begin(), functions.end());
  if (std::any_of(constraints.begin(), constraints.end(), is_generalized)) {
    if (constraints.size() > 1 || objective.h || !objective.terms.empty()) {
      const auto tgv = std::find_if(constraints.begin(), constraints.end(), is_generalized);
      throw wrong_term(*tgv, "tgv has an unknown of its own: expected no other term but l2");
    }
    naming(constraints[0], [&] { add_generalized(objective, constraints[0], image, weight); });
    return;
  }
  // A function of differences is a term, and its dual variable has no place beside random shifts.
  const bool is_alone = !objective.h && objective.terms.empty() && constraints.size() == 1 &&
                        ball_of(regularizers) == nullptr;
  for (Regularizer& r : constraints) {
    if (!is_alone) r.shift = Shift::none;
    naming(r, [&] { add_function(objective, r, image, weight); });
  }
}

index_t parts_of_unknown(const std::vector<Regularizer>& regularizers, const Dims& image) {
  for (const Regularizer& r : regularizers) {
    if (!is_generalized(r)) continue;
    return 1 + std::ssize(r.over.empty() ? spatial_of(image) : r.over);
  }
  return 1;
}

bool is_relative(const Regularizer& r) {
  return r.penalty != Penalty::l2 && !is_constraint(r.penalty);
}

const Regularizer* ball_of(const std::vector<Regularizer>& regularizers) {
  const auto it = std::find_if(regularizers.begin(), regularizers.end(),
                               [](const Regularizer& r) { return r.penalty == Penalty::ball; });
  return it == regularizers.end() ? nullptr : &*it;
}

bool draws_shifts(const std::vector<Regularizer>& regularizers) {
  const auto is_function = [](const Regularizer& r) { return r.penalty != Penalty::l2; };
  const auto first = std::find_if(regularizers.begin(), regularizers.end(), is_function);
  if (first == regularizers.end() || first->shift != Shift::random) return false;
  return (first->penalty == Penalty::l1_wavelet || first->penalty == Penalty::locally_low_rank) &&
         std::none_of(first + 1, regularizers.end(), is_function);
}

bool are_quadratic(const std::vector<Regularizer>& regularizers) {
  return std::all_of(regularizers.begin(), regularizers.end(),
                     [](const Regularizer& r) { return r.penalty == Penalty::l2; });
}

}  // namespace palimpsest
