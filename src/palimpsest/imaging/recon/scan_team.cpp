// SPDX-License-Identifier: Apache-2.0
// A reconstruction by several ranks: the work of each, and the assembly of the result.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/imaging/recon/data_norm.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"

namespace palimpsest {
namespace {

using distributed_detail::Parcel;
using RankPlace = distributed_detail::Place;

// The longest wait for another rank, as a multiple of this rank's own time.
constexpr double kPatience = 10;

std::span<const std::byte> bytes_of(const Tensor& t) {
  return {static_cast<const std::byte*>(t.raw_data()), static_cast<std::size_t>(t.nbytes())};
}

// Outcome of a rank besides images; sent to the others as bytes.
struct RankOutcome {
  Status status;
  index_t iterations;
  double scale, read_s, sensitivities_s, solve_s;
  std::size_t n_records;
  std::array<char, 120> reason;
};

std::string text_of(const ScanReconstructionResult& r) {
  RankOutcome outcome{r.status,          r.iterations, r.scale,          r.read_s,
                      r.sensitivities_s, r.solve_s,    r.history.size(), {}};
  r.reason.copy(outcome.reason.data(), outcome.reason.size() - 1);
  const std::size_t records = r.history.size() * sizeof(Record);
  std::string text(sizeof outcome + records, '\0');
  std::memcpy(text.data(), &outcome, sizeof outcome);
  if (records > 0) std::memcpy(text.data() + sizeof outcome, r.history.data(), records);
  for (const auto& [name, count] : r.applications) text += fmt::format("{} {}\n", name, count);
  return text;
}

// The history is that of the solve that converged least; times are those of the slowest rank.
void merge(ScanReconstructionResult& result, const std::string& text, bool has_own_solves) {
  RankOutcome other{};
  std::memcpy(&other, text.data(), sizeof other);
  std::vector<Record> history(other.n_records);
  const std::size_t records = history.size() * sizeof(Record);
  if (records > 0) std::memcpy(history.data(), text.data() + sizeof other, records);
  std::istringstream counts(text.substr(sizeof other + records));
  std::string name;
  for (std::int64_t count = 0; has_own_solves && counts >> name >> count;) {
    result.applications[name] += count;
  }
  result.iterations = std::max(result.iterations, other.iterations);
  result.read_s = std::max(result.read_s, other.read_s);
  result.sensitivities_s = std::max(result.sensitivities_s, other.sensitivities_s);
  result.solve_s = std::max(result.solve_s, other.solve_s);
  if (!is_worse(other.status, history, result.status, result.history)) return;
  result.status = other.status;
  result.reason = other.reason.data();
  result.history = std::move(history);
}

// Moves a dense block of one rank to the same block of rank 0; the others do nothing.
void move_to_first(const Team& team, int sender, Tensor& block) {
  std::vector<Parcel> parcels;
  std::vector<RankPlace> places;
  if (team.rank() == sender) parcels.push_back({0, bytes_of(block)});
  if (team.rank() == 0) {
    places.push_back({sender,
                      {static_cast<std::byte*>(block.raw_mutable_data()),
                       static_cast<std::size_t>(block.nbytes())}});
  }
  distributed_detail::exchange(team, parcels, places);
}

int largest_divisor(int n, index_t most) {
  for (int d = n; d > 1; --d) {
    if (n % d == 0 && d <= most) return d;
  }
  return 1;
}

}  // namespace

// Solves are independent. If there are more ranks than solves, the ranks share the coils of each.
void ScanReconstruction::Impl::shape_team() {
  const Team& given = options.team;
  const bool is_named =
      given.axes().size() == 2 && given.axes()[0].name == "solve" && given.axes()[1].name == "coil";
  const index_t solves = images() * scan.layout().n_items(), coils = scan.layout().n_coils();
  const int along = is_named ? given.size("solve") : largest_divisor(given.size(), solves);
  team = given.reshaped({{"solve", along}, {"coil", given.size() / along}});
  // A checkpoint knows the operator that it belongs to, and each rank has another one.
  const char* const option = options.checkpoint ? "ScanReconstructionOptions.checkpoint"
                                                : "ScanReconstructionOptions.resume";
  if (has_part_of_coils() && (options.checkpoint || !options.resume.empty())) {
    throw ValueError(
        fmt::format("[{}] {} ranks share the coils of a solve, expected one rank. Try without {}",
                    option, team.size("coil"), option));
  }
  const Regularizer* const ball = ball_of(options.regularizers);
  if (has_part_of_coils() && ball != nullptr) {
    throw wrong_term(
        *ball,
        fmt::format("{} ranks share the coils of a solve, expected one rank. Try fewer ranks",
                    team.size("coil")));
  }
  if (team.size("solve") <= solves && team.size("coil") <= coils) return;
  throw ValueError(
      fmt::format("[team] got {} ranks for solves and {} for coils, expected at most {} and {}. "
                  "Try fewer ranks",
                  team.size("solve"), team.size("coil"), solves, coils));
}

PartRange ScanReconstruction::Impl::own_solves() const {
  return part_range(images() * scan.layout().n_items(), team.coordinate("solve"),
                    team.size("solve"));
}

PartRange ScanReconstruction::Impl::own_coils() const {
  return part_range(scan.layout().n_coils(), team.coordinate("coil"), team.size("coil"));
}

bool ScanReconstruction::Impl::owns_any(index_t first, index_t count) const {
  const PartRange own = own_solves();
  return std::max(first, own.start) < std::min(first + count, own.stop);
}

Tensor ScanReconstruction::Impl::part_of_coils(const Tensor& whole, index_t axis) const {
  const PartRange own = own_coils();
  return has_part_of_coils() ? whole.narrow(axis, own.start, own.size()) : whole;
}

Tensor ScanReconstruction::Impl::place_of(const Tensor& image, index_t slice, index_t group,
                                          index_t item) const {
  const ScanLayout& layout = scan.layout();
  Tensor place = image;
  if (layout.n_slices() > 1) place = place.select(0, slice);
  if (!layout.frames.empty() && !is_tied) place = place.select(0, group);
  return layout.n_items() > 1 ? place.select(-1, item) : place;
}

// Ranks with other files, options or shapes would wait for messages that never come.
void ScanReconstruction::Impl::check_agreement() const {
  if (team.size() == 1) return;
  std::string mine =
      fmt::format("{} of {} coils, {} images of {} items, method {}, iterations {}",
                  to_string(scan.layout().result_shape()), scan.layout().n_coils(), images(),
                  scan.layout().n_items(), name_of(plan.method), plan.iterations);
  for (const TeamAxis& axis : team.axes()) mine += fmt::format(", {} {}", axis.name, axis.size);
  for (const Regularizer& r : options.regularizers) {
    mine += fmt::format(", {} {}", r.term, r.lambda);
  }
  const std::vector<std::string> texts = distributed_detail::gather_texts(team, mine);
  for (std::size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] == texts[0]) continue;
    throw ShapeError(
        fmt::format("[team] ranks 0 and {} differ: got {} and {}", r, texts[0], texts[r]));
  }
}

// Ranks that share a solve end it together.
bool ScanReconstruction::Impl::is_any_timed_out() const {
  const std::vector<double> are_late =
      values_of_ranks(clock.seconds() >= *options.time_limit_s ? 1 : 0, team);
  return *std::max_element(are_late.begin(), are_late.end()) > 0;
}

void ScanReconstruction::Impl::gather(ScanReconstructionResult& result) {
  if (team.size() == 1) return;
  // Others may have more to solve, or slower machines.
  const std::vector<std::string> texts =
      distributed_detail::gather_texts(team, text_of(result), kPatience * clock.seconds());
  const auto coils = static_cast<std::size_t>(team.size("coil"));
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (static_cast<int>(r) != team.rank()) merge(result, texts[r], r % coils == 0);
  }
  if (team.size("solve") == 1) return;
  gather_images(result.image);
  if (kept_maps) gather_maps();
}

// Takes one rank after the other: rank 0 holds one part beside the image.
void ScanReconstruction::Impl::gather_images(Tensor& image) {
  const index_t n = scan.layout().n_items();
  const auto place_at = [&](index_t solve) {
    return place_of(image, solve / (groups() * n), solve / n % groups(), solve % n);
  };
  const Extents one = place_at(0).shape();
  for (int along = 1; along < team.size("solve"); ++along) {
    const int sender = along * team.size("coil");
    const PartRange part = part_range(images() * n, along, team.size("solve"));
    const bool sends = team.rank() == sender, takes = team.rank() == 0;
    Extents shape = one;
    shape.insert(0, part.size());
    Tensor block = sends || takes ? Tensor::empty(shape, DType::complex64) : Tensor();
    for (index_t i = 0; sends && i < part.size(); ++i) {
      block.select(0, i).copy_from(place_at(part.start + i));
    }
    move_to_first(team, sender, block);
    for (index_t i = 0; takes && i < part.size(); ++i) {
      place_at(part.start + i).copy_from(block.select(0, i));
    }
  }
}

// Collects the maps on rank 0. The maps of a plane are on the rank that solves it in the first
// frame.
void ScanReconstruction::Impl::gather_maps() {
  const index_t items = scan.layout().n_items(), solves = images() * items;
  const index_t n = element_count(maps_of_item_shape());
  for (index_t solve = 0; solve < solves; ++solve) {
    if (solve / items % groups() != 0) continue;
    int along = 0;
    while (part_range(solves, along, team.size("solve")).stop <= solve) ++along;
    if (along == 0) continue;
    const int sender = along * team.size("coil");
    const index_t row = solve / (groups() * items) * items + solve % items;
    const bool sends = team.rank() == sender, takes = team.rank() == 0;
    Tensor block = sends || takes ? Tensor::empty({n}, DType::complex64) : Tensor();
    if (sends) kept_maps->read(row * n, block.raw_mutable_data(), n);
    move_to_first(team, sender, block);
    if (takes) kept_maps->write(row * n, block.raw_data(), n);
  }
}

}  // namespace palimpsest
