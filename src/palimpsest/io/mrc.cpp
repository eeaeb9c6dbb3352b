// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/mrc.hpp"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/io/image_format_list.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {
namespace {

using io_detail::fail_format;
using io_detail::kHostIsLittle;

constexpr index_t kMrcHeaderBytes = 1024;
constexpr std::size_t kLabelBytes = 80, kMostLabels = 10;
// Offsets in bytes of the fields of the header.
constexpr std::size_t kSizes = 0, kMode = 12, kSampling = 28, kCell = 40, kAngles = 52, kAxes = 64,
                      kRange = 76, kSpaceGroup = 88, kExtended = 92, kExtendedType = 104,
                      kVersion = 108, kImodStamp = 152, kImodFlags = 156, kOrigin = 196, kMap = 208,
                      kByteOrder = 212, kDeviation = 216, kLabelCount = 220, kLabels = 224;
constexpr std::int32_t kImod = 1146047817, kVolumeStack = 401, kMrcVersion = 20141;
constexpr double kMillimetresPerAngstrom = 1e-7;

// The fields of a header, which may have the other byte order.
class MrcHeader {
 public:
  explicit MrcHeader(const io_detail::InputFile& file) : path_(file.path()) {
    if (file.size() < kMrcHeaderBytes) {
      fail_format(path_, fmt::format("is no MRC file: got {} bytes, expected at least {}.",
                                     file.size(), kMrcHeaderBytes));
    }
    file.read_at(0, bytes_.data(), kMrcHeaderBytes);
    swapped_ = is_swapped();
  }

  const std::string& path() const { return path_; }
  bool swapped() const { return swapped_; }
  index_t integer(std::size_t offset, std::size_t i = 0) const {
    return io_detail::load<std::int32_t>(bytes_.data() + offset + 4 * i, swapped_);
  }
  // Numbers that are not finite count as not given.
  double real(std::size_t offset, std::size_t i) const {
    const float value = io_detail::load<float>(bytes_.data() + offset + 4 * i, swapped_);
    return std::isfinite(value) ? static_cast<double>(value) : 0;
  }
  std::string_view text(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, length};
  }

 private:
  // The stamp says so; where a program left it out, the mode does.
  bool is_swapped() const {
    const unsigned char stamp = bytes_[kByteOrder];
    if (stamp == 0x44) return !kHostIsLittle;
    if (stamp == 0x11) return kHostIsLittle;
    const auto mode = io_detail::load<std::int32_t>(bytes_.data() + kMode, false);
    return mode < 0 || mode > 0xffff;
  }

  std::string path_;
  std::array<unsigned char, kMrcHeaderBytes> bytes_;
  bool swapped_ = false;
};

struct MrcLayout {
  DType stored = DType::float32;
  bool is_half = false;  // stored as uint16
  Extents shape;
  index_t offset = 0;
};

void set_type(MrcLayout& layout, const MrcHeader& header) {
  const index_t mode = header.integer(kMode);
  switch (mode) {
    case 0: {
      const bool is_unsigned =
          header.integer(kImodStamp) == kImod && (header.integer(kImodFlags) & 1) == 0;
      layout.stored = is_unsigned ? DType::uint8 : DType::int8;
      return;
    }
    case 1:
      layout.stored = DType::int16;
      return;
    case 2:
      layout.stored = DType::float32;
      return;
    case 4:
      layout.stored = DType::complex64;
      return;
    case 6:
      layout.stored = DType::uint16;
      return;
    case 12:
      layout.stored = DType::uint16;
      layout.is_half = true;
      return;
    default:
      fail_format(header.path(),
                  fmt::format("has the MRC mode {}, expected 0, 1, 2, 4, 6 or 12.", mode));
  }
}

MrcLayout layout_of(const MrcHeader& header, index_t file_bytes) {
  MrcLayout layout;
  set_type(layout, header);
  const index_t nx = header.integer(kSizes, 0), ny = header.integer(kSizes, 1),
                nz = header.integer(kSizes, 2), mz = header.integer(kSampling, 2),
                group = header.integer(kSpaceGroup), extended = header.integer(kExtended);
  if (nx < 1 || ny < 1 || nz < 1) {
    fail_format(header.path(),
                fmt::format("has the extents {} x {} x {}, expected positive ones.", nx, ny, nz));
  }
  if (extended < 0) {
    fail_format(header.path(),
                fmt::format("has an extended header of {} bytes, expected 0 or more.", extended));
  }
  if (group >= kVolumeStack && mz > 0 && nz % mz == 0) {
    layout.shape = {nz / mz, mz, ny, nx};
  } else if (group == 0 && nz == 1) {
    layout.shape = {ny, nx};
  } else {
    layout.shape = {nz, ny, nx};
  }
  layout.offset = kMrcHeaderBytes + extended;
  const index_t expected =
      io_detail::foreign_byte_count(header.path(), layout.shape, layout.stored);
  if (file_bytes - layout.offset < expected) {
    fail_format(
        header.path(),
        fmt::format("is truncated: got {} bytes of elements, expected {} for {} of shape {}.",
                    std::max<index_t>(file_bytes - layout.offset, 0), expected,
                    name_of(layout.stored), to_string(layout.shape)));
  }
  return layout;
}

// The axes of the cell, 0 for x, along which columns, rows and sections lie; x, y, z where the
// header names no such order.
std::array<std::size_t, 3> axes_of(const MrcHeader& header) {
  std::array<std::size_t, 3> axes{};
  int seen = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const index_t axis = header.integer(kAxes, i);
    if (axis < 1 || axis > 3) return {0, 1, 2};
    axes[i] = static_cast<std::size_t>(axis - 1);
    seen |= 1 << axes[i];
  }
  return seen == 7 ? axes : std::array<std::size_t, 3>{0, 1, 2};
}

std::string labels_of(const MrcHeader& header) {
  const auto count =
      static_cast<std::size_t>(std::clamp<index_t>(header.integer(kLabelCount), 0, kMostLabels));
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view label = header.text(kLabels + i * kLabelBytes, kLabelBytes);
    label = label.substr(0, label.find('\0'));
    label = label.substr(0, label.find_last_not_of(' ') + 1);
    if (!label.empty()) lines += (lines.empty() ? "" : "\n") + std::string(label);
  }
  return lines;
}

// A floating number of 16 bits, exactly.
float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value = std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else if (exponent < 31) {
    value = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  } else if (fraction == 0) {
    value = std::numeric_limits<float>::infinity();
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

Tensor from_halves(const Tensor& bits) {
  Tensor result = Tensor::empty(bits.shape(), DType::float32);
  const auto* from = bits.data<std::uint16_t>();
  std::transform(from, from + bits.numel(), result.mutable_data<float>(), from_half);
  return result;
}

enum class Access { read, map };

MrcImage mrc_image(const std::string& path, Access access) {
  const io_detail::InputFile file(path);
  const MrcHeader header(file);
  const MrcLayout layout = layout_of(header, file.size());
  const bool is_native = !header.swapped() && !layout.is_half &&
                         layout.offset % static_cast<index_t>(item_size(layout.stored)) == 0;
  MrcImage image;
  image.data = access == Access::map && is_native
                   ? io_detail::map_elements(path, layout.offset, layout.shape, layout.stored)
                   : io_detail::read_elements(file, layout.offset, layout.shape, layout.stored,
                                              header.swapped());
  if (layout.is_half) image.data = from_halves(image.data);
  const auto axes = axes_of(header);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto samples = static_cast<double>(header.integer(kSampling, axes[i]));
    if (samples > 0) image.spacing_angstrom[2 - i] = header.real(kCell, axes[i]) / samples;
    image.origin_angstrom[i] = header.real(kOrigin, i);
  }
  image.is_stack = header.integer(kSpaceGroup) == 0;
  image.description = labels_of(header);
  return image;
}

// -- writing -------------------------------------------------------------------------------------

Tensor stored_values(const Tensor& data) {
  switch (data.dtype()) {
    case DType::bool_:
      return data.to(DType::int8);
    case DType::uint8:
      return data.to(DType::uint16);
    case DType::float64:
      return data.to(DType::float32);
    case DType::complex128:
      return data.to(DType::complex64);
    case DType::int8:
    case DType::int16:
    case DType::uint16:
    case DType::float32:
    case DType::complex64:
      return data;
    default:
      throw DTypeError(
          fmt::format("[write_mrc] got {}, expected integers of at most 16 bits or floating or "
                      "complex numbers. Try astype",
                      name_of(data.dtype())));
  }
}

std::int32_t mode_of(DType stored) {
  switch (stored) {
    case DType::int8:
      return 0;
    case DType::int16:
      return 1;
    case DType::float32:
      return 2;
    case DType::complex64:
      return 4;
    default:
      return 6;
  }
}

void check_image(const MrcImage& image) {
  const Extents& shape = image.data.shape();
  constexpr index_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool fits = std::all_of(shape.begin(), shape.end(), [](index_t n) { return n <= kMost; });
  const bool is_volumes = shape.size() == 4;
  if (shape.size() < 2 || shape.size() > 4 || image.data.numel() == 0 || !fits ||
      (is_volumes && shape[0] > kMost / shape[1])) {
    throw ShapeError(
        fmt::format("[write_mrc] got the shape {}, expected 2 to 4 axes of 1 to 2^31 - "
                    "1 elements",
                    to_string(shape)));
  }
  for (const auto& numbers : {image.spacing_angstrom, image.origin_angstrom}) {
    for (const double number : numbers) {
      if (std::isfinite(static_cast<float>(number))) continue;
      throw ValueError("[write_mrc] spacing or origin: got " + fmt::format("{}", number) +
                       ", expected finite numbers");
    }
  }
}

struct Statistics {
  // The values that the standard requires where they are unknown.
  double least = 0, largest = -1, mean = -2, deviation = -1;
};

// Calls f with the values of each plane of the last two axes.
template <class F>
void for_planes(const Tensor& data, F&& f) {
  if (data.rank() > 2) {
    for (index_t i = 0; i < data.shape(0); ++i) for_planes(data.select(0, i), f);
    return;
  }
  f(data.to(DType::float64).to_vector<double>());
}

Statistics statistics_of(const Tensor& data) {
  if (is_complex(data.dtype())) return {};
  const auto count = static_cast<double>(data.numel());
  Statistics result{.least = std::numeric_limits<double>::infinity(),
                    .largest = -std::numeric_limits<double>::infinity()};
  double sum = 0, squares = 0;
  for_planes(data, [&](const std::vector<double>& values) {
    for (const double v : values) {
      sum += v;
      result.least = std::min(result.least, v);
      result.largest = std::max(result.largest, v);
    }
  });
  result.mean = sum / count;
  for_planes(data, [&](const std::vector<double>& values) {
    for (const double v : values) squares += (v - result.mean) * (v - result.mean);
  });
  if (!std::isfinite(squares)) return {};
  result.deviation = std::sqrt(squares / count);
  return result;
}

class MrcWriter {
 public:
  MrcWriter(const MrcImage& image, const Tensor& stored) {
    const Extents& shape = stored.shape();
    const std::size_t rank = shape.size();
    const index_t nx = shape[rank - 1], ny = shape[rank - 2], mz = rank > 2 ? shape[rank - 3] : 1,
                  nz = rank > 3 ? shape[0] * mz : mz;
    const bool is_images = rank == 2 || (rank == 3 && image.is_stack);
    const index_t samples[] = {nx, ny, is_images ? 1 : mz}, sizes[] = {nx, ny, nz};
    for (std::size_t i = 0; i < 3; ++i) {
      put(kSizes + 4 * i, static_cast<std::int32_t>(sizes[i]));
      put(kSampling + 4 * i, static_cast<std::int32_t>(samples[i]));
      put_real(kCell + 4 * i, image.spacing_angstrom[2 - i] * static_cast<double>(samples[i]));
      put_real(kAngles + 4 * i, 90);
      put(kAxes + 4 * i, static_cast<std::int32_t>(i + 1));
      put_real(kOrigin + 4 * i, image.origin_angstrom[i]);
    }
    put(kMode, mode_of(stored.dtype()));
    put(kSpaceGroup, is_images ? 0 : rank == 4 ? kVolumeStack : 1);
    put(kVersion, kMrcVersion);
    std::memcpy(bytes_.data() + kMap, "MAP ", 4);
    std::fill_n(bytes_.begin() + kByteOrder, 2, kHostIsLittle ? 0x44 : 0x11);
    const Statistics statistics = statistics_of(stored);
    put_real(kRange, statistics.least);
    put_real(kRange + 4, statistics.largest);
    put_real(kRange + 8, statistics.mean);
    put_real(kDeviation, statistics.deviation);
    put_labels(image.description);
  }

  const std::array<unsigned char, kMrcHeaderBytes>& bytes() const { return bytes_; }

 private:
  template <class T>
  void put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  void put_real(std::size_t offset, double value) { put(offset, static_cast<float>(value)); }
  // Lines that are too long go on in the next label.
  void put_labels(std::string_view text) {
    std::int32_t n = 0;
    while (!text.empty() && n < static_cast<std::int32_t>(kMostLabels)) {
      const std::string_view line = text.substr(0, std::min(text.find('\n'), kLabelBytes));
      unsigned char* const label =
          bytes_.data() + kLabels + static_cast<std::size_t>(n++) * kLabelBytes;
      std::fill_n(label, kLabelBytes, ' ');
      std::copy(line.begin(), line.end(), label);
      text.remove_prefix(line.size());
      if (text.starts_with('\n')) text.remove_prefix(1);
    }
    put(kLabelCount, n);
  }

  std::array<unsigned char, kMrcHeaderBytes> bytes_{};
};

// -- among the formats of images -----------------------------------------------------------------

bool begins_mrc(std::string_view start) {
  return start.size() >= kMrcHeaderBytes && start.substr(kMap, 3) == "MAP";
}

NiftiImage read_mrc_image(const std::string& path) {
  const MrcImage mrc = read_mrc(path);
  NiftiImage image;
  image.data = mrc.data;
  image.description = mrc.description;
  for (std::size_t d = 0; d < 3; ++d) {
    if (mrc.spacing_angstrom[d] <= 0) continue;
    image.spacing_mm[d] = mrc.spacing_angstrom[d] * kMillimetresPerAngstrom;
  }
  return image;
}

void write_mrc_image(const std::string& path, const NiftiImage& image) {
  MrcImage mrc{.data = image.data, .description = image.description};
  for (std::size_t d = 0; d < 3; ++d) {
    mrc.spacing_angstrom[d] = image.spacing_mm[d] / kMillimetresPerAngstrom;
  }
  write_mrc(path, mrc);
}

}  // namespace

const ImageFormat& image_format_types::mrc() {
  return immortal([] {
    return ImageFormat{.name = "MRC",
                       .endings = {".mrc", ".map", ".rec", ".st", ".mrcs"},
                       .begins = begins_mrc,
                       .read = read_mrc_image,
                       .write = write_mrc_image};
  });
}

MrcImage read_mrc(const std::string& path) { return mrc_image(path, Access::read); }

MrcImage map_mrc(const std::string& path) { return mrc_image(path, Access::map); }

void write_mrc(const std::string& path, const MrcImage& image) {
  check_image(image);
  const Tensor stored = stored_values(image.data);
  const MrcWriter header(image, stored);
  AtomicFile file(path);
  file.write(header.bytes().data(), header.bytes().size());
  io_detail::write_elements(file, stored);
  file.commit();
}

}  // namespace palimpsest
