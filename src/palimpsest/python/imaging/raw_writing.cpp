// SPDX-License-Identifier: Apache-2.0
// Imaging: ISMRMRD files of raw scans whose readouts come from Python.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

struct Counter {
  const char* name;
  index_t Readout::*member;
};
constexpr Counter kCounters[] = {
    {"samples", &Readout::n_samples},
    {"coils", &Readout::n_coils},
    {"center_sample", &Readout::center_sample},
    {"discard_pre", &Readout::discard_pre},
    {"discard_post", &Readout::discard_post},
    {"kspace_encode_step_1", &Readout::step_1},
    {"kspace_encode_step_2", &Readout::step_2},
    {"average", &Readout::average},
    {"slice", &Readout::slice},
    {"contrast", &Readout::contrast},
    {"phase", &Readout::phase},
    {"repetition", &Readout::repetition},
    {"set", &Readout::set},
    {"segment", &Readout::segment},
    {"encoding_space_ref", &Readout::encoding_space},
    {"acquisition_time_stamp", &Readout::time_stamp},
    {"trajectory_axes", &Readout::n_trajectory_axes},
};
struct Direction {
  const char* name;
  std::array<float, 3> Readout::*member;
};
constexpr Direction kDirections[] = {
    {"position", &Readout::position},         {"patient_table_position", &Readout::table_position},
    {"read_dir", &Readout::read_direction},   {"phase_dir", &Readout::phase_direction},
    {"slice_dir", &Readout::slice_direction},
};

template <class T>
T entry(const nb::dict& fields, const char* name) {
  return nb::cast<T>(fields[name]);
}

Readout readout_of(const nb::dict& fields) {
  Readout made;
  made.flags = entry<std::uint64_t>(fields, "flags");
  made.sample_time_us = entry<double>(fields, "sample_time_us");
  for (const Counter& c : kCounters) made.*c.member = entry<index_t>(fields, c.name);
  for (const Direction& d : kDirections)
    made.*d.member = entry<std::array<float, 3>>(fields, d.name);
  return made;
}

EncodingSpace space_of(const nb::dict& fields, const char* name) {
  using Grid = std::pair<std::array<index_t, 3>, std::array<double, 3>>;
  const auto [matrix, field_of_view] = entry<Grid>(fields, name);
  return {.matrix = matrix, .field_of_view_mm = field_of_view};
}

std::optional<EncodingLimit> limit_of(const nb::dict& fields, const char* name) {
  const auto limit = entry<std::optional<std::array<index_t, 3>>>(fields, name);
  if (!limit) return std::nullopt;
  const auto [minimum, maximum, center] = *limit;
  return EncodingLimit{.minimum = minimum, .maximum = maximum, .center = center};
}

RawScanHeader header_of(const nb::dict& fields) {
  RawScanHeader made;
  made.encoded = space_of(fields, "encoded");
  made.recon = space_of(fields, "recon");
  made.step_0_limit = limit_of(fields, "step_0");
  made.step_1_limit = limit_of(fields, "step_1");
  made.step_2_limit = limit_of(fields, "step_2");
  made.acceleration = entry<std::array<index_t, 2>>(fields, "acceleration");
  made.calibration_mode = str_of(fields["calibration_mode"]);
  made.trajectory = str_of(fields["trajectory"]);
  made.n_coils = entry<index_t>(fields, "coils");
  made.h1_frequency_hz = entry<double>(fields, "h1_frequency_hz");
  made.institution = str_of(fields["institution"]);
  return made;
}

// The readouts lie one after the other in `samples`, and in `trajectory`.
void write_raw_scan(const std::string& path, const nb::dict& header, const nb::list& readouts,
                    const Tensor& samples, const std::optional<Tensor>& trajectory) {
  RawScan scan;
  scan.header = header_of(header);
  scan.samples = samples;
  if (trajectory) scan.trajectory = *trajectory;
  index_t sample = 0, coordinate = 0;
  for (nb::handle fields : readouts) {
    Readout readout = readout_of(nb::cast<nb::dict>(fields));
    readout.first_sample = std::exchange(sample, sample + readout.n_coils * readout.n_samples);
    readout.first_coordinate =
        std::exchange(coordinate, coordinate + readout.n_samples * readout.n_trajectory_axes);
    scan.readouts.push_back(readout);
  }
  released([&] { write_ismrmrd(path, scan); });
}

}  // namespace

void bind_raw_writing(nb::module_& m) {
  m.def(
      "_write_raw_scan",
      [](const std::string& path, const nb::dict& header, const nb::list& readouts, Tensor samples,
         std::optional<Tensor> trajectory) {
        write_raw_scan(path, header, readouts, samples, trajectory);
      },
      "path"_a, "header"_a, "readouts"_a, "samples"_a, "trajectory"_a.none() = nb::none());
}

}  // namespace palimpsest::python
