// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/image_formats.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// The places of BART's dimensions, the fastest first.
constexpr const char* kBartNames[] = {"Nx", "Ny", "Nz", "C",   "M",   "B5", "B6",  "B7",
                                      "B8", "B9", "T",  "B11", "B12", "S",  "B14", "B15"};

// The array with its axes in another order; those that it lacks have extent 1.
Tensor in_order(const Image& image, const std::vector<const char*>& order) {
  std::vector<index_t> axes;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = image.names.index_of(order[i]);
    if (at) {
      axes.push_back(static_cast<index_t>(*at));
    } else {
      missing.push_back(i);
    }
  }
  Tensor result = image.data.permute(axes);
  for (const std::size_t i : missing) result = result.unsqueeze(static_cast<index_t>(i));
  return result;
}

bool has(const Image& image, const char* name) { return image.names.contains(name); }

void check_names(const Image& image) {
  if (image.names.size() == image.data.rank()) return;
  throw ShapeError(fmt::format("[names] got {} for an array of {}, expected a name for each axis",
                               image.names.str(), to_string(image.data.shape())));
}

// Drops axes of 1 that are neither x nor y.
void drop_single_axes(Image& image) {
  for (std::size_t i = image.names.size(); i-- > 0;) {
    const bool is_plane =
        image.names[i] == NamedDimension("Nx") || image.names[i] == NamedDimension("Ny");
    if (is_plane || image.data.shape(static_cast<index_t>(i)) != 1) continue;
    image.data = image.data.squeeze(static_cast<index_t>(i));
    image.names = image.names.without(image.names[i]);
  }
}

}  // namespace

// -- NIfTI ----------------------------------------------------------------------------------------

NiftiImage to_nifti(const Image& image) {
  check_names(image);
  const bool has_slices = has(image, "S");
  if (has_slices && has(image, "Nz")) {
    throw ShapeError(
        "[NIfTI] has one axis for slices (S) and z: got both. Try one slice at a time");
  }
  if (volumes_of(image).size() > 1) {
    throw ShapeError(
        "[NIfTI] has one place for all slices: got slices that are not parallel and equally "
        "spaced. Try volumes_of()");
  }
  std::vector<const char*> order;
  std::vector<std::string> others;
  for (const NamedDimension& name : image.names) {
    const std::string text = name.str();
    const bool is_known =
        text == "Nx" || text == "Ny" || text == "Nz" || text == "S" || text == "T";
    if (!is_known) others.push_back(text);
  }
  for (const std::string& name : others) order.push_back(name.c_str());
  const bool has_frames = has(image, "T");
  if (has_frames || !others.empty()) order.push_back("T");
  for (const char* name : {has_slices ? "S" : "Nz", "Ny", "Nx"}) order.push_back(name);
  if (order.size() > 7) {
    throw ShapeError(fmt::format("[NIfTI] has at most seven axes: got {}", image.names.str()));
  }
  NiftiImage nifti;
  nifti.data = in_order(image, order);
  for (std::size_t d = 0; d < 3; ++d) nifti.spacing_mm[2 - d] = image.voxel_mm[d];
  nifti.description = image.description;
  if (image.affine_lps) nifti.affine_ras = lps_to_ras(*image.affine_lps);
  nifti.time_step_s = image.time_step_s;
  return nifti;
}

Image from_nifti(const NiftiImage& nifti) {
  Image image;
  image.data = nifti.data;
  image.names = usual_names(nifti.data.rank());
  for (std::size_t d = 0; d < 3; ++d) image.voxel_mm[d] = nifti.spacing_mm[2 - d];
  image.description = nifti.description;
  if (nifti.affine_ras) image.affine_lps = lps_to_ras(*nifti.affine_ras);
  image.time_step_s = nifti.time_step_s;
  drop_single_axes(image);
  return image;
}

// -- ISMRMRD --------------------------------------------------------------------------------------

namespace {

// Counters of an image header, the slowest first, and the dimension that each counts.
struct Counter {
  const char* name;
  index_t IsmrmrdImageHead::*member;
};
constexpr Counter kCounters[] = {
    {"B5", &IsmrmrdImageHead::contrast},  {"M", &IsmrmrdImageHead::set},
    {"B11", &IsmrmrdImageHead::phase},    {"B12", &IsmrmrdImageHead::average},
    {"T", &IsmrmrdImageHead::repetition}, {"S", &IsmrmrdImageHead::slice}};

constexpr const char* kAttribute = "palimpsest_";

std::string numbers_text(std::initializer_list<double> numbers) {
  std::string text;
  for (const double v : numbers) text += fmt::format("{}{}", text.empty() ? "" : " ", v);
  return text;
}

std::string affine_text(const AffineMatrix& a) {
  std::string text;
  for (const auto& row : a) {
    text += (text.empty() ? "" : " ") + numbers_text({row[0], row[1], row[2], row[3]});
  }
  return text;
}

// The numbers of an attribute, if it has so many.
std::optional<std::vector<double>> numbers_of(const IsmrmrdImageHead& head, const std::string& name,
                                              std::size_t count) {
  for (const auto& [key, value] : head.attributes) {
    if (key != kAttribute + name) continue;
    std::vector<double> numbers;
    const char* at = value.c_str();
    for (char* end = nullptr;; at = end) {
      const double v = std::strtod(at, &end);
      if (end == at) break;
      if (!std::isfinite(v)) return std::nullopt;
      numbers.push_back(v);
    }
    if (numbers.size() == count) return numbers;
  }
  return std::nullopt;
}

std::string text_of_head(const IsmrmrdImageHead& head, const std::string& name) {
  for (const auto& [key, value] : head.attributes) {
    if (key == kAttribute + name) return value;
  }
  return {};
}

std::array<float, 3> floats(const std::array<double, 3>& v) {
  return {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])};
}

// The place of an image: its own, or where the volume says.
Orientation place_of_slice(const Image& image, const std::array<index_t, 3>& extents,
                           index_t slice) {
  AffineMatrix affine = *image.affine_lps;
  for (auto& row : affine) row[3] += row[2] * static_cast<double>(slice);
  return orientation_of(affine, extents);
}

void take_facts(IsmrmrdImageHead& head, const ImageFacts& facts) {
  head.patient_table_position_mm = floats(facts.table_mm);
  head.average = facts.average, head.slice = facts.slice, head.contrast = facts.contrast;
  head.phase = facts.phase, head.repetition = facts.repetition, head.set = facts.set;
  head.acquisition_time_stamp = facts.time_stamp;
  head.physiology_time_stamp = facts.physiology_time_stamp;
}

IsmrmrdImageHead head_for(const Image& image, index_t slice, index_t frame) {
  IsmrmrdImageHead head;
  std::array<index_t, 3> extents = spatial_extents(image);
  const bool has_slices = has(image, "S");
  if (has_slices) extents[2] = 1;
  const ImageFacts* const facts = facts_at(image, slice, frame);
  std::array<double, 3> voxel = image.voxel_mm;
  if (has_slices && facts != nullptr && facts->thickness_mm > 0) voxel[2] = facts->thickness_mm;
  for (std::size_t d = 0; d < 3; ++d) {
    head.field_of_view_mm[d] = static_cast<float>(voxel[d] * static_cast<double>(extents[d]));
  }
  if (facts != nullptr) take_facts(head, *facts);
  if (facts != nullptr || image.affine_lps) {
    const Orientation place =
        facts != nullptr ? facts->place : place_of_slice(image, extents, has_slices ? slice : 0);
    head.position_mm = floats(place.position_mm);
    head.read_direction = floats(place.directions[0]);
    head.phase_direction = floats(place.directions[1]);
    head.slice_direction = floats(place.directions[2]);
  }
  if (image.affine_lps) {
    head.attributes.emplace_back(std::string(kAttribute) + "affine_lps",
                                 affine_text(*image.affine_lps));
  }
  const auto& v = image.voxel_mm;
  head.attributes.emplace_back(std::string(kAttribute) + "voxel_mm",
                               numbers_text({v[0], v[1], v[2]}));
  if (image.time_step_s > 0) {
    head.attributes.emplace_back(std::string(kAttribute) + "time_step_s",
                                 numbers_text({image.time_step_s}));
  }
  if (!image.frame_counter.empty()) {
    head.attributes.emplace_back(std::string(kAttribute) + "frames", image.frame_counter);
  }
  if (!image.description.empty()) {
    head.attributes.emplace_back(std::string(kAttribute) + "description", image.description);
  }
  head.image_type = is_complex(image.data.dtype()) ? 5 : 1;
  return head;
}

}  // namespace

IsmrmrdImages to_ismrmrd(const Image& image) {
  check_names(image);
  for (const NamedDimension& name : image.names) {
    const std::string text = name.str();
    const bool is_counted = std::any_of(std::begin(kCounters), std::end(kCounters),
                                        [&](const Counter& c) { return text == c.name; });
    if (is_counted || text == "Nx" || text == "Ny" || text == "Nz" || text == "C") continue;
    throw ShapeError(
        fmt::format("[ISMRMRD] has no counter for the axis {} of {}. Try other Image.names", text,
                    image.names.str()));
  }
  std::vector<const char*> order;
  for (const Counter& counter : kCounters) order.push_back(counter.name);
  for (const char* name : {"C", "Nz", "Ny", "Nx"}) order.push_back(name);
  const Tensor ordered = in_order(image, order).contiguous();
  Extents extents = ordered.shape();
  index_t n_images = 1;
  for (std::size_t i = 0; i < std::size(kCounters); ++i) n_images *= extents[i];
  IsmrmrdImages result;
  result.header = image.header;
  const auto at = [&](std::size_t i) { return extents[std::size(kCounters) + i]; };
  result.data = ordered.view({n_images, at(0), at(1), at(2), at(3)});
  for (index_t k = 0; k < n_images; ++k) {
    const index_t n_slices = extents[std::size(kCounters) - 1];
    const index_t slice = k % n_slices, frame = k / n_slices % extents[std::size(kCounters) - 2];
    IsmrmrdImageHead head = head_for(image, slice, frame);
    const bool has_facts = facts_at(image, slice, frame) != nullptr;
    index_t rest = k;
    for (std::size_t i = std::size(kCounters); i-- > 0; rest /= extents[i]) {
      // The scanner's counters of slices and frames stay.
      const bool is_known = has_facts && (i + 2 >= std::size(kCounters) || extents[i] == 1);
      if (!is_known) head.*kCounters[i].member = rest % extents[i];
    }
    head.image_index = std::min<index_t>(k + 1, std::numeric_limits<std::uint16_t>::max());
    result.heads.push_back(std::move(head));
  }
  return result;
}

namespace {

// Offsets of the images of a grid of counters in the result; `extents` gets the extents of the
// grid.
std::vector<index_t> places_of(const IsmrmrdImages& images, Extents& extents) {
  std::vector<std::vector<index_t>> values(std::size(kCounters));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const IsmrmrdImageHead& head : images.heads) {
      values[i].push_back(head.*kCounters[i].member);
    }
    std::sort(values[i].begin(), values[i].end());
    values[i].erase(std::unique(values[i].begin(), values[i].end()), values[i].end());
    extents.push_back(std::ssize(values[i]));
  }
  index_t n = 1;
  for (const index_t extent : extents) n *= extent;
  std::vector<index_t> places;
  for (const IsmrmrdImageHead& head : images.heads) {
    index_t place = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto found =
          std::lower_bound(values[i].begin(), values[i].end(), head.*kCounters[i].member);
      place = place * extents[i] + (found - values[i].begin());
    }
    places.push_back(place);
  }
  std::vector<index_t> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  const bool is_grid =
      n == std::ssize(sorted) && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!is_grid && std::ssize(places) > 1) {
    // Counters that say nothing: the order of the file is that of the frames.
    std::fill(extents.begin(), extents.end(), 1);
    extents[std::size(kCounters) - 2] = std::ssize(places);
    for (std::size_t k = 0; k < places.size(); ++k) places[k] = static_cast<index_t>(k);
  }
  return places;
}

ImageFacts facts_of(const IsmrmrdImageHead& head) {
  const auto doubles = [](const std::array<float, 3>& v) {
    return std::array<double, 3>{double{v[0]}, double{v[1]}, double{v[2]}};
  };
  ImageFacts facts;
  facts.place = {
      {doubles(head.read_direction), doubles(head.phase_direction), doubles(head.slice_direction)},
      doubles(head.position_mm)};
  facts.table_mm = doubles(head.patient_table_position_mm);
  facts.average = head.average, facts.slice = head.slice, facts.contrast = head.contrast;
  facts.phase = head.phase, facts.repetition = head.repetition, facts.set = head.set;
  facts.time_stamp = head.acquisition_time_stamp;
  facts.physiology_time_stamp = head.physiology_time_stamp;
  return facts;
}

// The counter that numbers the frames.
std::size_t frame_axis(const IsmrmrdImageHead& head) {
  const std::string frames = text_of_head(head, "frames");
  if (frames == "contrast") return 0;
  if (frames == "set") return 1;
  if (frames == "phase") return 2;
  return 4;
}

// Facts of all slices and frames, if these are all that is counted.
void take_facts_of_images(Image& image, const IsmrmrdImages& images,
                          const std::vector<index_t>& places, const Extents& extents,
                          std::size_t frames) {
  const index_t n_frames = extents[frames], n_slices = extents.back();
  if (n_frames * n_slices != std::ssize(places)) return;
  image.facts.resize(places.size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    const index_t slice = places[k] % n_slices, frame = places[k] / n_slices;
    ImageFacts& facts = image.facts[static_cast<std::size_t>(slice * n_frames + frame)];
    facts = facts_of(images.heads[k]);
    facts.thickness_mm =
        double{images.heads[k].field_of_view_mm[2]} / static_cast<double>(images.data.shape(2));
  }
}

// Positions of slices give the third column, where there are several in one volume.
void take_place(Image& image, const IsmrmrdImages& images, const std::vector<index_t>& places,
                index_t n_slices) {
  std::vector<const IsmrmrdImageHead*> heads(static_cast<std::size_t>(n_slices));
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (places[k] < n_slices) heads[static_cast<std::size_t>(places[k])] = &images.heads[k];
  }
  const IsmrmrdImageHead& first = *heads[0];
  const std::array<index_t, 3> extents = {images.data.shape(4), images.data.shape(3),
                                          images.data.shape(2)};
  std::vector<ImageFacts> slices;
  for (const IsmrmrdImageHead* head : heads) slices.push_back(facts_of(*head));
  Orientation place = slices[0].place;
  for (std::size_t d = 0; d < 3; ++d) {
    image.voxel_mm[d] = double{first.field_of_view_mm[d]} / static_cast<double>(extents[d]);
  }
  AffineMatrix affine = lps_affine(place, image.voxel_mm, extents);
  const auto step = step_of_slices(slices);
  if (n_slices > 1 && step && *step != std::array<double, 3>{0, 0, 0}) {
    for (std::size_t row = 0; row < 3; ++row) affine[row][2] = (*step)[row];
    place.directions[2] = *step;
    image.voxel_mm[2] = std::hypot((*step)[0], (*step)[1], (*step)[2]);
  }
  if (are_directions(place.directions)) image.affine_lps = affine;
  if (const auto exact = numbers_of(first, "affine_lps", 12)) {
    for (std::size_t i = 0; i < 12; ++i) affine[i / 4][i % 4] = (*exact)[i];
    image.affine_lps = affine;
  } else if (numbers_of(first, "voxel_mm", 3)) {
    image.affine_lps.reset();  // written by this library from an image without a place
  }
  if (const auto exact = numbers_of(first, "voxel_mm", 3)) {
    std::copy(exact->begin(), exact->end(), image.voxel_mm.begin());
  }
  if (const auto exact = numbers_of(first, "time_step_s", 1)) image.time_step_s = exact->front();
  image.description = text_of_head(first, "description");
}

}  // namespace

Image from_ismrmrd(const IsmrmrdImages& images) {
  if (images.heads.empty() || images.data.rank() != 5) {
    throw ShapeError("[ISMRMRD] has no images, expected at least one");
  }
  Extents extents;
  const std::vector<index_t> places = places_of(images, extents);
  Image image;
  image.header = images.header;
  Tensor sorted = Tensor::empty(images.data.shape(), images.data.dtype());
  for (std::size_t k = 0; k < places.size(); ++k) {
    Tensor to = sorted.select(0, places[k]);
    to.copy_from(images.data.select(0, static_cast<index_t>(k)));
  }
  take_place(image, images, places, extents.back());
  const std::size_t frames = frame_axis(images.heads.front());
  take_facts_of_images(image, images, places, extents, frames);
  for (const Counter& counter : kCounters) image.names.push_back(NamedDimension(counter.name));
  if (frames != 4 && extents[frames] > 1 && extents[4] == 1) {
    image.frame_counter = text_of_head(images.heads.front(), "frames");
    Dims names;
    for (std::size_t i = 0; i < image.names.size(); ++i) {
      names.push_back(i == frames ? ND("T") : i == 4 ? image.names[frames] : image.names[i]);
    }
    image.names = names;
  }
  for (const char* name : {"C", "Nz", "Ny", "Nx"}) image.names.push_back(NamedDimension(name));
  for (index_t axis = 1; axis < 5; ++axis) extents.push_back(sorted.shape(axis));
  image.data = sorted.view(extents);
  drop_single_axes(image);
  if (facts_at(image, 0, 0) == nullptr) image.facts.clear();
  return image;
}

// -- BART -----------------------------------------------------------------------------------------

bool is_bart_dimension(const std::string& name) {
  return std::find(std::begin(kBartNames), std::end(kBartNames), name) != std::end(kBartNames);
}

Tensor to_bart(const Image& given) {
  check_names(given);
  // Coefficients of a basis are BART's dimension 6.
  Image image = given;
  image.names = Dims();
  for (const NamedDimension& name : given.names) {
    image.names.push_back(name.str() == "B" ? NamedDimension("B6") : name);
  }
  for (const NamedDimension& name : image.names) {
    const bool is_known = std::any_of(std::begin(kBartNames), std::end(kBartNames),
                                      [&](const char* known) { return name.str() == known; });
    if (!is_known) {
      throw ShapeError(
          fmt::format("[BART] has no dimension {} of {}. Try Image.names of Nx, Ny, Nz, C, M, T, "
                      "S, or B5 and so on for the others",
                      name.str(), image.names.str()));
    }
  }
  std::vector<const char*> order(std::rbegin(kBartNames), std::rend(kBartNames));
  return in_order(image, order);
}

Image from_bart(const Tensor& array) {
  if (array.rank() > std::size(kBartNames)) {
    throw ShapeError(fmt::format("[BART] got an array of {} axes, expected at most {}",
                                 array.rank(), std::size(kBartNames)));
  }
  Image image;
  image.data = array;
  for (std::size_t i = array.rank(); i-- > 0;) image.names.push_back(NamedDimension(kBartNames[i]));
  for (std::size_t i = array.rank(); i < 2; ++i) {
    image.data = image.data.unsqueeze(0);
    image.names = Dims(NamedDimension(kBartNames[i])) + image.names;
  }
  drop_single_axes(image);
  return image;
}

}  // namespace palimpsest
