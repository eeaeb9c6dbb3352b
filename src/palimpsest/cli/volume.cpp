// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/volume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "palimpsest/base/config.hpp"
#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/code_pages.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/image.hpp"
#include "palimpsest/cli/inputs.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/add.hpp"
#include "palimpsest/linop/budget.hpp"
#include "palimpsest/linop/chain.hpp"
#include "palimpsest/linop/dense.hpp"
#include "palimpsest/linop/diagonal.hpp"
#include "palimpsest/linop/fft.hpp"
#include "palimpsest/linop/identity.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/reduce.hpp"

namespace palimpsest::cli {
namespace {

Tensor mapped_array(const std::string& path, const char* expected) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::npy && format != FileFormat::cfl) {
    throw UsageError(fmt::format("[{}] is {}, expected {}", path, name_of(format), expected));
  }
  Tensor data =
      read_input(path, [&] { return format == FileFormat::npy ? map_npy(path) : map_cfl(path); });
  if (data.dtype() != DType::complex64) {
    throw UsageError(
        fmt::format("[{}] got {}, expected complex64: arrays that are mapped are not "
                    "converted. Try to save them as complex64",
                    path, name_of(data.dtype())));
  }
  if ((data.rank() != 3 && data.rank() != 4) || data.numel() == 0) {
    throw UsageError(
        fmt::format("[{}] wrong rank: got the shape {}, expected (coil, y, x) or "
                    "(coil, z, y, x)",
                    path, to_string(data.shape())));
  }
  return data;
}

Dims names_of(const char* base, std::size_t n) {
  const Dims all = std::string_view(base) == "N" ? Dims("Nz Ny Nx") : Dims("Kz Ky Kx");
  return all.slice(3 - n, 3);
}

// y[c] = F (s_c x).
NamedLinop coil_operator(const Volume& volume) {
  const std::size_t n = volume.image_shape().size();
  const Dims image = names_of("N", n), coils = Dims("C") + image;
  return Chain(Dense(volume.maps, coils, image, coils),
               Fft(static_cast<int>(n), {.batch = "C",
                                         .grid = Grid{image, names_of("K", n)},
                                         .norm = FftNorm::ortho,
                                         .centered = true}));
}

// (M F S)^H M F S + lambda.
NamedLinop normal_operator(const Volume& volume, const Tensor& weights, double lambda) {
  const std::size_t n = volume.image_shape().size();
  // Weights are 0 or 1: their squares are themselves.
  const NamedLinop N =
      coil_operator(volume).normal(Diagonal(weights, Dims("C") + names_of("K", n)));
  return lambda > 0 ? N + lambda * Identity(names_of("N", n)) : N;
}

TensorType type_of(const Tensor& x) { return {x.dtype(), x.shape(), x.device()}; }

// The budget of a stage beside which `held` bytes stay in memory.
index_t left_of(index_t budget, index_t held) { return std::max<index_t>(budget - held, 0); }

CgOptions cg_options(const SenseOptions& options, const VolumePlan& plan) {
  CgOptions cg;
  cg.tolerance = options.tolerance;
  cg.max_iterations = static_cast<int>(options.iterations);
  if (plan.budget) cg.budget_bytes = left_of(*plan.budget, plan.right_hand_side_bytes);
  cg.callback = [&options](const CgInfo& info) {
    if (options.progress) options.progress(info.iteration(), info.residual());
    return true;
  };
  return cg;
}

// 1 where any coil has measured, a piece of the file at a time.
Tensor sampling_weights(const Volume& volume, index_t budget) {
  const Extents image = volume.image_shape();
  Tensor weights = Tensor::zeros(image, DType::float32);
  const bool is_volume = image.size() == 3;
  const Extents plane = is_volume ? Extents{image[1], image[2]} : image;
  const Variable y = make_input({DType::complex64, plane, {}}, "k-space");
  const Variable w = make_input({DType::float32, plane, {}}, "weights");
  const Variable power = ops::abs2(y);
  const Variable seen = ops::astype(
      ops::elementwise(ScalarOp::ne, {power, constant(Tensor::scalar<float>(0))}), DType::float32);
  const Function note = function({y, w}, {Out(ops::elementwise(ScalarOp::maximum, {w, seen}))},
                                 {.name = "sampled points", .budget_bytes = budget});
  for (index_t c = 0; c < volume.n_coils(); ++c) {
    const Tensor coil = volume.kspace.select(0, c);
    for (index_t z = 0; z < (is_volume ? image[0] : 1); ++z) {
      Tensor part = is_volume ? weights.select(0, z) : weights;
      note.call_into(part, is_volume ? coil.select(0, z) : coil, part);
    }
  }
  return weights;
}

bool is_zero(const Tensor& t) {
  const auto values = t.contiguous();
  const float* begin = values.data<float>();
  return std::all_of(begin, begin + values.numel(), [](float v) { return v == 0; });
}

std::string tiles_text(const DimMap& sizes, index_t tiles) {
  if (sizes.empty()) return "uncut";
  std::string text;
  for (const auto& [d, n] : sizes) {
    text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", d.str(), n);
  }
  return fmt::format("{} tiles: {}", tiles, text);
}

// The middle of an image.
Tensor wanted_part(const Tensor& image, const Extents& wanted) {
  if (image.shape() == wanted) return image;
  if (image.rank() == 2) return center_crop(image, wanted[0], wanted[1]).contiguous();
  const Tensor rows = center_crop(image, wanted[1], wanted[2]).permute({2, 0, 1});
  return center_crop(rows, wanted[0], wanted[1]).permute({1, 2, 0}).contiguous();
}

}  // namespace

Extents Volume::image_shape() const {
  return Extents(std::span<const index_t>(kspace.shape()).subspan(1));
}

Volume map_volume(const std::string& kspace, const std::string& maps, const RawKspaceOptions& raw) {
  Volume volume;
  const bool is_raw =
      read_input(kspace, [&] { return detect_format(kspace); }) == FileFormat::ismrmrd;
  if (is_raw) {
    RawKspace sorted = sort_raw_kspace(kspace, raw);
    volume.kspace = std::move(sorted.kspace);
    volume.wanted = std::move(sorted.image);
    volume.sorting_bytes = sorted.peak_bytes;
  } else {
    if (raw.scan.prewhiten) throw no_noise_in(kspace);
    volume.kspace = mapped_array(kspace, "a raw scan (ISMRMRD) or an array (NPY, CFL)");
    volume.wanted = volume.image_shape();
  }
  volume.maps = mapped_array(maps, "NPY or CFL: only arrays can be mapped");
  if (volume.kspace.shape() != volume.maps.shape()) {
    throw UsageError(fmt::format("[--maps] {} does not fit the scan: got the shape {}, expected {}",
                                 maps, to_string(volume.maps.shape()),
                                 to_string(volume.kspace.shape())));
  }
  return volume;
}

namespace {

// The stages of a reconstruction, to be planned for any budget.
struct Stages {
  Stages(const Volume& v, const SenseOptions& o) : volume(v), options(o) {}

  NamedLinop adjoint() const { return coil_operator(volume).H(); }
  NamedLinop normal() const {
    const Tensor weights = Tensor::empty(volume.image_shape(), DType::float32);
    return normal_operator(volume, weights, options.lambda);
  }
  TensorType image() const { return {DType::complex64, volume.image_shape(), {}}; }

  const Volume& volume;
  const SenseOptions& options;
};

[[noreturn]] void refuse(const Stages& stages, const VolumePlan& plan) {
  const index_t adjoint =
      plan.weights_bytes +
      smallest_budget(stages.adjoint(), type_of(stages.volume.kspace), {.streamed_input = true});
  index_t smallest = adjoint;
  if (plan.is_iterative) {
    const index_t solve = smallest_cg_budget(stages.normal(), stages.image());
    smallest = std::max(smallest, plan.right_hand_side_bytes + solve);
  }
  smallest = std::max(smallest, plan.sorting_bytes);
  throw BudgetError(fmt::format(
      "[--memory] nothing fits into the budget: got {} bytes, the smallest that is found is {} "
      "bytes, one coil at a time. Try --memory {}",
      with_commas(*plan.budget), with_commas(smallest), smallest));
}

}  // namespace

VolumePlan plan_volume(const Volume& volume, const SenseOptions& options,
                       std::optional<index_t> budget) {
  const Stages stages(volume, options);
  VolumePlan plan;
  plan.budget = budget;
  plan.is_iterative = options.is_iterative;
  plan.sorting_bytes = volume.sorting_bytes;
  const Extents image = volume.image_shape();
  plan.weights_bytes = options.is_iterative ? byte_count(image, DType::float32) : 0;
  plan.right_hand_side_bytes = byte_count(image, DType::complex64);
  if (budget && plan.sorting_bytes > *budget) refuse(stages, plan);
  try {
    const index_t everything = std::numeric_limits<index_t>::max();
    plan.adjoint = split_to_budget(stages.adjoint(), type_of(volume.kspace),
                                   budget ? left_of(*budget, plan.weights_bytes) : everything,
                                   {.streamed_input = true});
    plan.peak_bytes = std::max(plan.sorting_bytes, plan.weights_bytes + plan.adjoint.peak_bytes);
    if (!options.is_iterative) return plan;
    plan.solve =
        plan_conjugate_gradients(stages.normal(), stages.image(), cg_options(options, plan));
  } catch (const BudgetError&) {
    refuse(stages, plan);
  }
  plan.peak_bytes =
      std::max(plan.peak_bytes, plan.right_hand_side_bytes + plan.solve.total_bytes());
  return plan;
}

SenseResult reconstruct_volume(const Volume& volume, const SenseOptions& options,
                               const VolumePlan& plan) {
  SenseResult result;
  StopWatch watch;
  result.announced_peak_bytes = plan.peak_bytes;
  if (options.announce) options.announce(plan.peak_bytes);
  // A plan counts arrays; code that has done its work need not lie beside them.
  if (plan.budget) release_code_pages();
  const MemoryScope scope;
  // Without a limit files are streamed all the same.
  const index_t budget = plan.budget.value_or(std::numeric_limits<index_t>::max());
  Tensor weights;
  if (options.is_iterative) {
    weights = sampling_weights(volume, budget);
    if (is_zero(weights)) throw UsageError("nothing is measured: all samples are 0");
  }
  Tensor b;
  {
    const ConfigScope limited({.budget = left_of(budget, plan.weights_bytes), .allow_gc = true});
    b = plan.adjoint.op(volume.kspace);
  }
  if (!options.is_iterative) {
    result.image = b;
    result.status = "done";
  } else {
    CgOptions cg = cg_options(options, plan);
    if (!cg.budget_bytes) cg.budget_bytes = budget;
    const NamedLinop normal = normal_operator(volume, weights, options.lambda);
    const SolveResult solution = conjugate_gradients(normal, b, cg);
    take_over(solution, result);
  }
  result.measured_peak_bytes = static_cast<index_t>(scope.peak_bytes());
  result.image = wanted_part(result.image, volume.wanted);
  result.seconds = watch.seconds();
  return result;
}

std::string VolumePlan::text(const Volume& volume) const {
  std::string text;
  const auto row = [&](const char* name, index_t bytes, const std::string& note = "") {
    std::string line = fmt::format("{:<18}{:>16}  {}", name, with_commas(bytes), note);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  row("peak", peak_bytes, budget ? "of " + with_commas(*budget) + " bytes" : "bytes, no limit");
  if (sorting_bytes > 0) row("sorting", sorting_bytes, "readouts, a part of the file at a time");
  row("adjoint", weights_bytes + adjoint.peak_bytes, tiles_text(adjoint.sizes, adjoint.tiles));
  if (is_iterative) {
    row("solve", right_hand_side_bytes + solve.total_bytes(), tiles_text(solve.sizes, solve.tiles));
    row("  right-hand side", right_hand_side_bytes);
    row("  state", solve.state_bytes, "iterate, residual, direction");
    row("  workspace", solve.peak_bytes - solve.state_bytes, "of one iteration");
    row("  operator", solve.operator_bytes, "in memory");
    row("  maps", solve.streamed_bytes,
        "at a time, of " + with_commas(volume.maps.nbytes()) + " in the file");
  }
  return text;
}

JsonReport VolumePlan::report() const {
  JsonReport tiles, bytes, result;
  for (const auto& [d, n] : is_iterative ? solve.sizes : adjoint.sizes) tiles.set(d.str(), n);
  if (sorting_bytes > 0) bytes.set("sorting", sorting_bytes);
  bytes.set("adjoint", weights_bytes + adjoint.peak_bytes);
  if (is_iterative) {
    bytes.set("right_hand_side", right_hand_side_bytes).set("state", solve.state_bytes);
    bytes.set("workspace", solve.peak_bytes - solve.state_bytes);
    bytes.set("operator", solve.operator_bytes).set("streamed", solve.streamed_bytes);
  }
  result.set("peak_bytes", peak_bytes);
  if (budget) result.set("budget_bytes", *budget);
  result.set("tiles", is_iterative ? solve.tiles : adjoint.tiles).set("tile_sizes", tiles);
  result.set("bytes", bytes);
  return result;
}

}  // namespace palimpsest::cli
