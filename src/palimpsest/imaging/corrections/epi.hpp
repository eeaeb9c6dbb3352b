// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Phase of reversed echoes against forward ones, in the image along the readout: constant + slope
/// (x - floor(n / 2)), radians.
struct EchoPhase {
  double constant = 0, slope = 0;
};

/// The phase between two navigator lines of EPI, which are measured without phase encoding, one in
/// each direction.
///
/// Math     p(x) = sum over coils of r(x) conj f(x), of the inverse transforms along x; slope =
///          arg sum p(x + 1) conj p(x), constant = arg sum p(x) exp(-i slope (x - floor(n / 2)))
/// Shapes   forward, reversed (C, x), the reversed one already turned around
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not two such lines; ValueError "navigator": no signal
/// Source   Bruder et al. 1992, doi:10.1002/mrm.1910230211
EchoPhase echo_phase(const Tensor& forward, const Tensor& reversed);

/// Takes that phase out of a reversed line of k-space, (coil, x), in place.
void align_echo(std::complex<float>* line, index_t n_coils, index_t n_x, const EchoPhase& phase);

/// True if a slice has navigators: readouts of phase correction in both directions.
bool has_navigators(const RawScan& scan, index_t slice);

/// The mean echo phase of the navigators of a slice in a raw file. Empty if the scan has no
/// readouts of phase correction in both directions.
std::optional<EchoPhase> echo_phase_of(const RawScanFile& file, index_t slice, index_t piece_bytes);

/// k-space of EPI with its reversed lines aligned with the forward ones.
///
/// Shapes   kspace (C, y, x), forward and reversed navigators (C, x), is_reversed (y) bool
/// Errors   those of echo_phase(); ValueError "navigator": one is missing
Tensor aligned_echoes(const Tensor& kspace, const Tensor& is_reversed,
                      const std::optional<Tensor>& forward, const std::optional<Tensor>& reversed);

}  // namespace palimpsest
