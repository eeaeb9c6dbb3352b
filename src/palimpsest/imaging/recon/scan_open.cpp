// SPDX-License-Identifier: Apache-2.0
// Opening of a scan and of the files that were given with it, and the checks of options.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/grid_file.hpp"
#include "palimpsest/imaging/recon/preconditioner.hpp"
#include "palimpsest/imaging/recon/scan_pipeline.hpp"
#include "palimpsest/imaging/weights.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest {
ScanReconstruction::Impl::Impl(ScanReconstructionOptions given)
    : options(std::move(given)),
      scan(options.kspace, options.scan, ledger, ties(options.regularizers, ND("Nx"))) {
  if (options.virtual_coils) scan.compress_to(*options.virtual_coils);
  open_basis();
  check_options();
  shape_team();
  open_given_maps();
  if (!has_maps()) open_center();
  open_weights();
  if (!options.phase.empty()) {
    if (scan.layout().is_resampled()) {
      throw wrong_option("phase",
                         "the image of {} has pixels between the measured ones, expected those. "
                         "Try ScanOptions.encoded_pixels",
                         options.kspace);
    }
    Extents image = scan.layout().image_shape();
    if (scan.layout().n_slices() > 1) image.insert(0, scan.layout().n_slices());
    phase = open_phase(options.phase, image);
  }
  open_partial();
  choose();
}

void ScanReconstruction::Impl::open_basis() {
  if (options.basis.empty()) return;
  const ScanLayout& layout = scan.layout();
  if (layout.frames.empty()) {
    throw wrong_option("basis",
                       "{} is not a series: it has no frames. Try ScanOptions.as T=repetition, or "
                       "ScanOptions.readouts_per_frame N",
                       options.kspace);
  }
  if (options.partial != PartialFourier::none) {
    throw wrong_option("partial",
                       "the images of ScanReconstructionOptions.basis change their sign, so that "
                       "their phase is not smooth. Try without ScanReconstructionOptions.partial");
  }
  basis = palimpsest::open_basis(options.basis, layout.n_frames());
  scan.project_to(basis->shape(1));
}

void ScanReconstruction::Impl::check_ball(const Regularizer& ball) const {
  const char* const other = basis                      ? "ScanReconstructionOptions.basis"
                            : !options.weights.empty() ? "ScanReconstructionOptions.weights"
                                                       : nullptr;
  if (other == nullptr) return;
  throw wrong_term(ball, fmt::format("got {} too, expected one of the two", other));
}

void ScanReconstruction::Impl::check_regularizers() const {
  const ScanLayout& layout = scan.layout();
  for (const Regularizer& r : options.regularizers) {
    const bool names_frames =
        r.over.contains(ND("T")) || r.across.contains(ND("T")) || r.joint.contains(ND("T"));
    if (basis && names_frames) {
      throw wrong_term(
          r, fmt::format("no dimension T in the image {} of ScanReconstructionOptions.basis. Try B",
                         (Dims("B") + layout.item_dims()).str()));
    }
    if (r.term == "ball") {
      check_ball(r);
    } else if (ties({r}, ND("T")) && layout.frames.empty()) {
      throw wrong_term(r, fmt::format("no dimension T in the image {}. Try ScanOptions.as "
                                      "T=repetition, or ScanOptions.readouts_per_frame N",
                                      layout.item_dims().str()));
    }
  }
}

void ScanReconstruction::Impl::check_options() {
  const ScanLayout& layout = scan.layout();
  check_regularizers();
  is_tied = basis || (!layout.frames.empty() && ties(options.regularizers, ND("T")));
  if (options.sets < 1) {
    throw wrong_option("sets", "got {}, expected at least 1", options.sets);
  }
  if (options.sets > 1 && has_maps()) {
    throw wrong_option("sets",
                       "has no effect with ScanReconstructionOptions.maps, whose sets are taken");
  }
  if (options.sets > layout.n_coils()) {
    throw wrong_option("sets", "got {}, expected at most {}, the number of coils", options.sets,
                       layout.n_coils());
  }
  if (!options.weights.empty() && !layout.has_trajectory()) {
    throw wrong_option("weights", "{} is measured on a grid, expected a scan along a trajectory",
                       options.kspace);
  }
  const index_t solves = images() * layout.n_items();
  for (const auto& [option, is_given] :
       {std::pair("ScanReconstructionOptions.checkpoint", options.checkpoint.has_value()),
        std::pair("ScanReconstructionOptions.resume", !options.resume.empty())}) {
    if (!is_given || solves == 1) continue;
    throw ValueError(
        fmt::format("[{}] the reconstruction is {} solves one after the other: expected one. Try "
                    "ScanOptions.slice, no ScanOptions.as and no ScanOptions.readouts_per_frame, "
                    "or a regularizer that ties the parts",
                    option, solves));
  }
}

void ScanReconstruction::Impl::open_given_maps() {
  const ScanLayout& layout = scan.layout();
  if (!has_maps()) return;
  ScanLayout physical = layout;
  physical.grid[0] = scan.physical_coils();
  maps_file = open_maps(options.maps, physical);
  options.sets = maps_file.sets;
  if (options.sets > 1 && scan.mixer()) {
    throw wrong_option("virtual_coils",
                       "{} has {} sets of maps, expected one. Try compress_coils() of both",
                       options.maps, options.sets);
  }
  const Dims image = item_of(true).image_dims();
  const ReconstructMethod method = method_for(options.regularizers, image, options.method);
  const bool is_stepped = method != ReconstructMethod::cg && method != ReconstructMethod::adjoint;
  if (!is_stepped) return;
  if (layout.n_slices() == 1) {
    maps_norm2 = largest_norm2(maps_file.array);
    return;
  }
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    const double norm2 = largest_norm2(maps_file.array.select(0, s));
    maps_norm2 = s == 0 ? norm2 : std::max(maps_norm2, norm2);
  }
}

void ScanReconstruction::Impl::open_weights() {
  if (!options.weights.empty()) {
    const ScanLayout& layout = scan.layout();
    const std::string& path = options.weights;
    const bool is_cfl = read_input(path, [&] { return detect_format(path); }) == FileFormat::cfl;
    const Tensor given =
        is_cfl ? open_array("ScanReconstructionOptions.weights", path).view_as_real().select(-1, 0)
               : read_input(path, [&] { return read_npy(path); });
    const Extents expected{layout.grid[2], layout.grid[3]};
    if (given.shape() != expected || is_complex(given.dtype())) {
      throw wrong_option("weights", "{} is {} {}, expected real numbers {}", options.weights,
                         name_of(given.dtype()), to_string(given.shape()), to_string(expected));
    }
    density = given.to(DType::float32).contiguous();
    check_weights("ScanReconstructionOptions.weights", *density);
  }
  if (options.start.empty()) return;
  const ScanLayout& layout = scan.layout();
  Tensor given = open_array("ScanReconstructionOptions.start", options.start);
  const bool is_whole = given.numel() == element_count(layout.result_shape());
  if (is_whole && without_ones(given.shape()) == without_ones(layout.result_shape())) {
    given = given.view(layout.result_shape());
  }
  if (options.sets > 1) {
    throw wrong_option(
        "start", "{} is one image, and {} sets of maps have one each: expected maps of one set",
        options.start, options.sets);
  }
  if (layout.wanted_of_item() != layout.item_shape() || layout.is_resampled()) {
    throw wrong_option("start",
                       "the pixels of the image of {} are not those that are solved for: edges are "
                       "cut off, or pixels lie between the measured ones. Try a scan without "
                       "oversampling, with ScanOptions.encoded_pixels",
                       options.kspace);
  }
  if (given.shape() != layout.result_shape()) {
    throw wrong_option("start", "{} has the shape {}, expected {}", options.start,
                       to_string(given.shape()), to_string(layout.result_shape()));
  }
  check_finite_lines("ScanReconstructionOptions.start", options.start, given);
  start = given;
}

void ScanReconstruction::Impl::open_partial() {
  if (options.partial == PartialFourier::none) return;
  const char* const name = name_of(options.partial);
  if (scan.layout().has_trajectory()) {
    throw wrong_option("partial",
                       "{} is measured along a trajectory, expected a grid. Try without "
                       "ScanReconstructionOptions.partial",
                       options.kspace);
  }
  if (phase) {
    throw wrong_option(
        "partial",
        "{} finds a phase, and ScanReconstructionOptions.phase names one: expected one of the two",
        name);
  }
  if (options.sets > 1) {
    throw wrong_option("partial", "{} needs one image: got {} sets of maps, expected 1", name,
                       options.sets);
  }
  const ScanLayout& layout = scan.layout();
  bool is_one_missing = false;
  for (index_t slice = 0; slice < layout.n_slices(); ++slice) {
    for (index_t group = 0; group < groups(); ++group) {
      partials.push_back(partial_of(slice, group * frames()));
      is_one_missing |= partials.back().has_value();
      for (index_t t = 1; t < frames(); ++t) {
        if (partial_of(slice, group * frames() + t) == partials.back()) continue;
        throw wrong_option("partial",
                           "frames of {} that are solved together miss other lines: expected the "
                           "same ones. Try without ScanReconstructionOptions.partial",
                           options.kspace);
      }
    }
  }
  if (is_one_missing) return;
  throw wrong_option("partial",
                     "{} is measured on both sides of the middle of k-space along all axes of {}. "
                     "Try without ScanReconstructionOptions.partial",
                     options.kspace, layout.item_dims().str());
}

// The missing side of an image's k-space.
std::optional<PartialLines> ScanReconstruction::Impl::partial_of(index_t slice,
                                                                 index_t frame) const {
  try {
    return partial_lines(scan.mask(slice, frame));
  } catch (const ValueError& error) {
    const std::string text = error.what();
    const auto number = scan.layout().slices[static_cast<std::size_t>(slice)];
    throw wrong_option("partial", "{}{}: {}", options.kspace,
                       scan.layout().n_slices() > 1 ? fmt::format(", slice {}", number) : "",
                       text.substr(text.find("] ") + 2));
  }
}

}  // namespace palimpsest
