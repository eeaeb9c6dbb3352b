// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/corrections/epi.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

NamedLinop fft_along_x() { return Fft(1, {.norm = FftNorm::ortho, .centered = true}); }

void expect_lines(const Tensor& line, const char* name) {
  if (line.rank() == 2 && line.numel() > 0 && line.dtype() == DType::complex64) return;
  throw ShapeError(fmt::format("[echo_phase] {}: got {} {}, expected complex64 (coil, x)", name,
                               name_of(line.dtype()), to_string(line.shape())));
}

}  // namespace

EchoPhase echo_phase(const Tensor& forward, const Tensor& reversed) {
  expect_lines(forward, "forward");
  expect_lines(reversed, "reversed");
  if (forward.shape() != reversed.shape()) {
    throw ShapeError(fmt::format("[echo_phase] got lines of {} and {}, expected equal ones",
                                 to_string(forward.shape()), to_string(reversed.shape())));
  }
  const NamedLinop F = fft_along_x();
  const Tensor f = F.H()(forward).contiguous(), r = F.H()(reversed).contiguous();
  const index_t n = f.shape(1);
  std::vector<Complex> p(static_cast<std::size_t>(n));
  for (index_t i = 0, end = f.numel(); i < end; ++i) {
    p[static_cast<std::size_t>(i % n)] +=
        Complex(r.data<Sample>()[i]) * std::conj(Complex(f.data<Sample>()[i]));
  }
  Complex turn = 0, sum = 0;
  for (std::size_t x = 0; x + 1 < p.size(); ++x) turn += p[x + 1] * std::conj(p[x]);
  EchoPhase phase{.constant = 0, .slope = std::arg(turn)};
  for (index_t x = 0; x < n; ++x) {
    sum += p[static_cast<std::size_t>(x)] *
           std::polar(1.0, -phase.slope * static_cast<double>(x - n / 2));
  }
  if (!(std::abs(sum) > 0) || !std::isfinite(std::abs(sum))) {
    throw ValueError("[echo_phase] the navigator lines have no signal, or NaN");
  }
  phase.constant = std::arg(sum);
  return phase;
}

void align_echo(Sample* line, index_t n_coils, index_t n_x, const EchoPhase& phase) {
  const Extents shape{n_coils, n_x};
  const NamedLinop F = fft_along_x();
  const std::vector<Sample> given(line, line + n_coils * n_x);
  Tensor image = F.H()(Tensor::from(given, shape)).contiguous();
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0, end = image.numel(); i < end; ++i) {
    const auto x = static_cast<double>(i % n_x - n_x / 2);
    v[i] = Sample(Complex(v[i]) * std::polar(1.0, -(phase.constant + phase.slope * x)));
  }
  const Tensor aligned = F(image).contiguous();
  std::copy_n(aligned.data<Sample>(), aligned.numel(), line);
}

bool has_navigators(const RawScan& scan, index_t slice) {
  bool found[2] = {false, false};
  for (const Readout& r : scan.readouts) {
    if (!r.has(ReadoutFlag::phase_correction) || r.slice != slice) continue;
    found[r.has(ReadoutFlag::reverse) ? 1 : 0] = true;
  }
  return found[0] && found[1];
}

std::optional<EchoPhase> echo_phase_of(const RawScanFile& file, index_t slice,
                                       index_t piece_bytes) {
  const RawScan& scan = file.contents();
  std::vector<std::size_t> numbers;
  index_t counts[2] = {0, 0}, coils = 0, n = 0;
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    const Readout& r = scan.readouts[i];
    if (!r.has(ReadoutFlag::phase_correction) || r.slice != slice) continue;
    if (numbers.empty()) {
      coils = r.n_coils;
      n = r.n_samples;
    }
    if (r.n_coils != coils || r.n_samples != n || n * coils == 0) continue;
    numbers.push_back(i);
    ++counts[r.has(ReadoutFlag::reverse) ? 1 : 0];
  }
  if (counts[0] == 0 || counts[1] == 0) return std::nullopt;
  Tensor lines[2] = {Tensor::zeros({coils, n}, DType::complex64),
                     Tensor::zeros({coils, n}, DType::complex64)};
  file.read(numbers, piece_bytes, [&](std::size_t i, const Sample* samples, const float*) {
    const bool turns = scan.readouts[i].has(ReadoutFlag::reverse);
    auto* to = lines[turns ? 1 : 0].mutable_data<Sample>();
    const auto share = 1.0F / static_cast<float>(counts[turns ? 1 : 0]);
    for (index_t k = 0; k < coils * n; ++k) {
      const index_t from = turns ? k / n * n + (n - 1 - k % n) : k;
      to[k] += share * samples[from];
    }
  });
  return echo_phase(lines[0], lines[1]);
}

Tensor aligned_echoes(const Tensor& kspace, const Tensor& is_reversed,
                      const std::optional<Tensor>& forward, const std::optional<Tensor>& reversed) {
  if (!forward || !reversed) {
    throw ValueError(
        "[aligned_echoes] there are no navigator lines, expected one in each direction");
  }
  if (kspace.rank() != 3 || kspace.dtype() != DType::complex64 || is_reversed.rank() != 1 ||
      is_reversed.dtype() != DType::bool_ || is_reversed.shape(0) != kspace.shape(1)) {
    throw ShapeError(fmt::format(
        "[aligned_echoes] got k-space {} and is_reversed {}, expected complex64 (coil, y, x) and "
        "bool (y)",
        to_string(kspace.shape()), to_string(is_reversed.shape())));
  }
  const EchoPhase phase = echo_phase(*forward, *reversed);
  Tensor result = kspace.clone();
  const std::vector<bool> turned = is_reversed.to_vector<bool>();
  for (index_t y = 0; y < kspace.shape(1); ++y) {
    if (!turned[static_cast<std::size_t>(y)]) continue;
    Tensor line = kspace.select(1, y).contiguous().clone();
    align_echo(line.mutable_data<Sample>(), line.shape(0), line.shape(1), phase);
    result.select(1, y).copy_from(line);
  }
  return result;
}

}  // namespace palimpsest
