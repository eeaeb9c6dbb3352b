// SPDX-License-Identifier: Apache-2.0
// recon --phase: an image without the phase given in a file; it may be constrained to be real.
#include <cmath>
#include <complex>
#include <limits>

#include "cli/recon_runs.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "support/difference.hpp"

namespace palimpsest::cli {
namespace {

using testing::difference;
using ::testing::HasSubstr;
using Sample = std::complex<float>;

constexpr index_t kCoils = 4, kRows = 36, kColumns = 32;

// Smooth, about 3 radians across.
Tensor angles(const Extents& shape) {
  Tensor result = Tensor::empty(shape, DType::float64);
  const index_t nx = shape.back(), ny = shape[shape.size() - 2];
  for (index_t i = 0; i < result.numel(); ++i) {
    const auto x = static_cast<double>(i % nx) / static_cast<double>(nx);
    const auto y = static_cast<double>(i / nx % ny) / static_cast<double>(ny);
    const auto plane = static_cast<double>(i / (nx * ny));
    result.mutable_data<double>()[i] = 2 * x - 1.5 * y * y + 0.3 * plane;
  }
  return result;
}

// Arrays (.., z, y, x) times exp(i phase); the phase repeats along leading axes.
Tensor turned(const Tensor& array, const Tensor& phase) {
  Tensor result = array.contiguous().clone();
  auto* v = result.mutable_data<Sample>();
  for (index_t i = 0; i < result.numel(); ++i) {
    v[i] *= Sample(std::polar(1.0, phase.data<double>()[i % phase.numel()]));
  }
  return result;
}

class Phase : public ReconRuns {
 protected:
  Phase() {
    write_npy(dir / "maps.npy", maps);
    write_npy(dir / "turned.npy", turned(maps, phase));
    write_npy(dir / "phase.npy", phase);
    write_npy(dir / "k.npy", kspace);
  }
  std::vector<std::string> with_phase(const std::string& name = "phase.npy") const {
    return {dir / "k.npy", "--maps", dir / "maps.npy", "--phase", dir / name};
  }
  std::vector<std::string> with_turned_maps() const {
    return {dir / "k.npy", "--maps", dir / "turned.npy"};
  }
  // Lines above the middle are missing except for a few: the phase must make up for them.
  static Tensor lines() {
    Tensor mask = Tensor::zeros({kRows, kColumns}, DType::bool_);
    mask.narrow(0, 0, 22).fill(true);
    return mask;
  }

  Tensor maps = ring_coil_maps(kCoils, kRows, kColumns), phase = angles({kRows, kColumns});
  Tensor image = ellipse_image(modified_shepp_logan(), kRows, kColumns).to(DType::complex64);
  Tensor kspace = sense_model(maps, {.mask = lines()})(turned(image, phase)).contiguous();
};

TEST_F(Phase, TheImageIsThatOfMapsWithThePhase) {
  for (const char* term :
       {"l2:0.01", "real", "nonneg", "l1wav:0.01,shift=none", "tv:0.01", "tgv:0.01", "ball:0.3"}) {
    SCOPED_TRACE(term);
    const std::vector<std::string> how = {"--reg", term, "--iterations", "20"};
    EXPECT_LT(difference(recon(with_phase(), how), recon(with_turned_maps(), how)), 1e-4);
  }
  for (const char* method : {"pocs", "pogm", "admm"}) {
    const std::vector<std::string> how = {"--reg",        "l1:0.01", "--method",    method,
                                          "--iterations", "30",      "--tolerance", "0"};
    EXPECT_LT(difference(recon(with_phase(), how), recon(with_turned_maps(), how)), 1e-4) << method;
  }
  EXPECT_LT(difference(recon(with_phase(), {"--method", "adjoint"}),
                       recon(with_turned_maps(), {"--method", "adjoint"})),
            1e-5);
  // The written maps equal the given ones.
  recon(with_phase(), {"--save-maps", dir / "m.npy"});
  EXPECT_TRUE(equal(read_npy(dir / "m.npy"), maps));
}

TEST_F(Phase, ARealImageMakesUpForLinesThatAreMissing) {
  const std::vector<std::string> how = {"--reg", "real", "--iterations", "200", "--tolerance", "0"};
  const Tensor constrained = recon(with_phase(), how);
  for (const Sample v : constrained.to_vector<Sample>()) ASSERT_EQ(v.imag(), 0.0F);
  const double free = difference(
      recon({dir / "k.npy", "--maps", dir / "maps.npy"}, {"--lambda", "0", "--iterations", "200"}),
      turned(image, phase));
  EXPECT_LT(difference(constrained, image), 0.5 * free);
  EXPECT_LT(difference(constrained, image), 0.05);
}

TEST_F(Phase, IsReadInEveryForm) {
  const std::vector<std::string> real = {"--reg", "real", "--iterations", "30", "--tolerance", "0"};
  const Tensor expected = recon(with_phase(), real);
  const auto same = [&](const std::string& name) {
    return difference(recon(with_phase(name), real), expected);
  };
  write_npy(dir / "f.npy", phase.to(DType::float32));
  EXPECT_LT(same("f.npy"), 1e-5);
  Tensor numbers = turned(Tensor::full<Sample>({kRows, kColumns}, Sample(3)), phase);
  write_npy(dir / "c.npy", numbers.unsqueeze(0));
  EXPECT_LT(same("c.npy"), 1e-5);
  write_npy(dir / "t.npy", phase.permute({1, 0}).contiguous().permute({1, 0}));
  EXPECT_LT(same("t.npy"), 1e-6);
  write_cfl(dir / "b", numbers.contiguous());
  EXPECT_LT(same("b.cfl"), 1e-5);
  EXPECT_TRUE(std::any_of(report.at("inputs").begin(), report.at("inputs").end(),
                          [](const Json& input) { return input.at("role") == "phase"; }));
  // 0 has no phase.
  write_npy(dir / "0.npy", Tensor::zeros({kRows, kColumns}, DType::complex64));
  EXPECT_LT(difference(recon(with_phase("0.npy"), real),
                       recon({dir / "k.npy", "--maps", dir / "maps.npy"}, real)),
            1e-5);
}

TEST_F(Phase, OfVolumesSlicesFramesAndSpokesTheyAreTheSame) {
  const std::vector<std::string> real = {"--reg", "real", "--iterations", "5"};
  constexpr index_t kPlanes = 7, kN = 14;
  const Tensor volume = Tensor::random_normal({2, kN, kN, kPlanes}, DType::complex64, {5});
  const Tensor some = Tensor::random_normal({2, kN, kN, kPlanes}, DType::complex64, {6});
  const Tensor of_volume = angles({kN, kN, kPlanes});
  Tensor sampled = volume.clone();
  sampled.narrow(1, 9, 4).fill(0);
  write_npy(dir / "k.npy", sampled);
  write_npy(dir / "maps.npy", some);
  write_npy(dir / "turned.npy", turned(some, of_volume));
  write_npy(dir / "phase.npy", of_volume);
  for (const auto& reg :
       {real, {"--reg", "tv:0.01", "--iterations", "5"}}) {  // planes, all at once
    const Tensor expected = recon(with_turned_maps(), reg);
    EXPECT_LT(difference(recon(with_phase(), reg), expected), 1e-4);
    std::vector<std::string> less = reg;
    less.insert(less.end(), {"--memory", std::to_string(smallest(with_phase(), reg))});
    EXPECT_LT(difference(recon(with_phase(), less), expected), 1e-4);
  }
  // Frames have one phase, of a grid or along spokes, one by one or together.
  const Tensor trajectory = radial_trajectory({.spokes = 20, .samples = 2 * kColumns, .golden = 1});
  const Tensor frames = Tensor::random_normal({2, kCoils, kRows, kColumns}, DType::complex64, {7});
  write_npy(dir / "maps.npy", maps);
  write_npy(dir / "turned.npy", turned(maps, phase));
  write_npy(dir / "phase.npy", phase);
  write_npy(dir / "k.npy", frames.unsqueeze(2).contiguous());
  for (const char* term : {"real", "tv(T):0.1"}) {
    const std::vector<std::string> reg = {"--reg", term, "--iterations", "5"};
    EXPECT_LT(difference(recon(with_phase(), reg), recon(with_turned_maps(), reg)), 1e-4) << term;
  }
  const Tensor square = ring_coil_maps(kCoils, kColumns, kColumns);
  const Tensor of_square = angles({kColumns, kColumns});
  write_npy(dir / "maps.npy", square);
  write_npy(dir / "turned.npy", turned(square, of_square));
  write_npy(dir / "phase.npy", of_square);
  write_npy(dir / "t.npy", trajectory);
  const Tensor head = ellipse_image(modified_shepp_logan(), kColumns, kColumns);
  const Tensor spokes =
      sense_model(square, {.trajectory = trajectory})(turned(head.to(DType::complex64), of_square));
  write_npy(dir / "k.npy", spokes.contiguous());
  for (const char* term : {"l2:0.01", "tv(T):0.01", "ball:0.1"}) {
    std::vector<std::string> more = {"--trajectory", dir / "t.npy", "--frames",     "10",
                                     "--reg",        term,          "--iterations", "60"};
    // Step sizes for each frequency follow from the images that the coils see.
    EXPECT_LT(difference(recon(with_phase(), more), recon(with_turned_maps(), more)), 0.05) << term;
  }
}

// Cropped readouts and rows: outside the image the phase is 0.
TEST_F(Phase, IsThatOfTheWantedPart) {
  RawScanHeader header;
  header.n_coils = kCoils;
  header.recon.matrix = {kColumns / 2, kRows - 6, 1};
  header.encoded.field_of_view_mm = {480, 240, 5};
  header.recon.field_of_view_mm = {240, 240.0 * (kRows - 6) / kRows, 5};
  const Tensor full = Tensor::ones({1, kRows}, DType::bool_);
  write_ismrmrd(dir / "scan.h5", cartesian_scan(kspace.unsqueeze(1).contiguous(), full, header));
  const Tensor part = angles({kRows - 6, kColumns / 2});
  write_npy(dir / "part.npy", part);
  const std::vector<std::string> given = {dir / "scan.h5", "--method", "adjoint"};
  std::vector<std::string> with = given;
  with.insert(with.end(), {"--phase", dir / "part.npy"});
  const Tensor plain = recon(given);
  EXPECT_LT(difference(turned(recon(with), part), plain), 1e-5);
  EXPECT_EQ(plain.shape(), part.shape());
  RawScan two = read_ismrmrd(dir / "scan.h5");
  for (std::size_t i = 0, n = two.readouts.size(); i < n; ++i) {
    two.readouts.push_back(two.readouts[i]);
    two.readouts.back().slice = 1;
  }
  write_ismrmrd(dir / "scan.h5", two);
  const Tensor parts = angles({2, kRows - 6, kColumns / 2});
  write_npy(dir / "part.npy", parts);
  EXPECT_LT(difference(turned(recon(with), parts), recon(given)), 1e-5);
}

TEST_F(Phase, WhatCannotBeUsedIsRefusedByName) {
  const auto with = [&](const Tensor& other) {
    write_npy(dir / "other.npy", other);
    const std::string message = refusal(with_phase("other.npy"));
    EXPECT_THAT(message, HasSubstr("[--phase] " + dir / "other.npy"));
    return message;
  };
  EXPECT_THAT(with(angles({kRows, kColumns + 1})), HasSubstr("expected (36, 32)"));
  EXPECT_THAT(with(angles({kColumns, kRows})), HasSubstr("expected (36, 32)"));
  EXPECT_THAT(with(angles({2, kRows, kColumns})), HasSubstr("expected (36, 32)"));
  Tensor bad = phase.clone();
  bad.set<double>({1, 2}, std::numeric_limits<double>::infinity());
  EXPECT_THAT(with(bad), HasSubstr("NaN or infinite values, the first is element 34"));
  Tensor complex = phase.to(DType::complex64).contiguous().clone();
  complex.set<Sample>({0, 1}, Sample(0, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_THAT(with(complex), HasSubstr("the first is element 1"));
  EXPECT_THAT(refusal(with_phase("none.npy")), HasSubstr("none.npy"));
  write_file(dir / "text.txt", "1 2 3");
  EXPECT_THAT(refusal(with_phase("text.txt")), HasSubstr("text.txt"));
  EXPECT_THAT(refusal(with_phase(), {"--phase", dir / "phase.npy"}), HasSubstr("--phase"));
  EXPECT_THAT(refusal(with_phase(), {"--cardiac-phase", "1"}),
              HasSubstr("--cardiac-phase"));  // no raw file
  EXPECT_THAT(refusal(with_phase(), {"--phase", ""}), HasSubstr("--phase: got an empty text"));
  EXPECT_THAT(refusal(with_phase(), {"--partial", "pocs"}), HasSubstr("[--partial]"));
  EXPECT_THAT(refusal(with_phase(), {"--save", dir / "phase.npy"}), HasSubstr("phase.npy"));
}

}  // namespace
}  // namespace palimpsest::cli
