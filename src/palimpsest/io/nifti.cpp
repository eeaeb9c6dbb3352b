// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/nifti.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <vector>

#include "palimpsest/io/nifti_header.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

using io_detail::fail_format;
using io_detail::load;

constexpr int kHeaderBytes1 = io_detail::kNiftiBytes1, kHeaderBytes2 = io_detail::kNiftiBytes2;
// Deflate cannot shrink more than this.
constexpr index_t kLargestRatio = 1032;

/// The bytes of a file one after the other, decompressed where it is compressed.
class Stream {
 public:
  explicit Stream(const io_detail::InputFile& file) : path_(file.path()) {
    const int descriptor = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) io_detail::fail_io(path_, "cannot be read", errno);
    stream_ = ::gzdopen(descriptor, "rb");
    if (stream_ == nullptr) {
      ::close(descriptor);
      throw OutOfMemory(fmt::format("[{}] no memory to decompress it.", path_));
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { ::gzclose(stream_); }

  /// Exactly this number of bytes.
  void read(void* out, index_t n_bytes) {
    constexpr index_t kMostAtOnce = index_t{1} << 28;
    auto* to = static_cast<char*>(out);
    while (n_bytes > 0) {
      const index_t got = read_some(to, std::min(n_bytes, kMostAtOnce));
      if (got == 0) {
        fail_format(path_, fmt::format("is truncated: it lacks {} bytes that its header "
                                       "announces.",
                                       n_bytes));
      }
      to += got;
      n_bytes -= got;
    }
  }

  void skip(index_t n_bytes) {
    std::vector<char> scratch(1 << 14);
    while (n_bytes > 0) {
      const index_t step = std::min<index_t>(n_bytes, std::ssize(scratch));
      read(scratch.data(), step);
      n_bytes -= step;
    }
  }

  /// Reads to the end, where the checksum stands; a little more than announced may follow.
  void finish() {
    constexpr index_t kMostBeyond = 1 << 20;
    std::vector<char> scratch(1 << 14);
    index_t beyond = 0;
    while (const index_t got = read_some(scratch.data(), std::ssize(scratch))) {
      beyond += got;
      if (beyond > kMostBeyond) fail_format(path_, "is much longer than its header says.");
    }
  }

 private:
  index_t read_some(char* to, index_t n_bytes) {
    const int got = ::gzread(stream_, to, static_cast<unsigned>(n_bytes));
    int problem = Z_OK;
    const char* message = ::gzerror(stream_, &problem);
    if (got < 0 || (problem != Z_OK && problem != Z_STREAM_END)) {
      fail_format(path_,
                  fmt::format("cannot be decompressed: {}. Try to copy or download it again.",
                              problem == Z_BUF_ERROR ? "it is truncated" : message));
    }
    return got;
  }

  std::string path_;
  gzFile stream_ = nullptr;
};

struct NiftiHeader {
  DType dtype = DType::float32;
  bool swapped = false;
  Extents shape;  // reversed already
  double slope = 0, intercept = 0;
  index_t data_offset = 0;
  NiftiImage facts;  // without data
};

using Layout = io_detail::NiftiLayout;

DType dtype_of_code(const std::string& path, int code) {
  for (const io_detail::NiftiType& type : io_detail::kNiftiTypes) {
    if (type.code == code) return type.dtype;
  }
  fail_format(path, fmt::format("holds voxels of NIfTI type {}, expected integers, float32, "
                                "float64 or complex ones.",
                                code));
}

/// The fields of a header of either version.
class HeaderFields {
 public:
  HeaderFields(const std::string& path, const unsigned char* bytes, const Layout& layout,
               bool swapped)
      : path_(path), bytes_(bytes), layout_(layout), swapped_(swapped) {}

  NiftiHeader parse() const {
    NiftiHeader header;
    header.swapped = swapped_;
    header.dtype = dtype_of_code(path_, load<std::int16_t>(bytes_ + layout_.datatype, swapped_));
    header.shape = shape();
    header.slope = real(layout_.slope, 0);
    header.intercept = real(layout_.slope, 1);
    header.data_offset = data_offset();
    header.facts.spacing_mm = spacing_mm();
    header.facts.affine_ras = affine();
    if (dimension(0) > 3) header.facts.time_step_s = time_step_s();
    const auto* text = reinterpret_cast<const char*>(bytes_ + layout_.description);
    header.facts.description.assign(text, ::strnlen(text, 80));
    return header;
  }

 private:
  double real(int offset, int i) const {
    return layout_.wide ? load<double>(bytes_ + offset + 8 * i, swapped_)
                        : load<float>(bytes_ + offset + 4 * i, swapped_);
  }

  index_t dimension(int i) const {
    return layout_.wide ? load<std::int64_t>(bytes_ + layout_.dim + 8 * i, swapped_)
                        : load<std::int16_t>(bytes_ + layout_.dim + 2 * i, swapped_);
  }

  Extents shape() const {
    const index_t rank = dimension(0);
    if (rank < 1 || rank > 7) {
      fail_format(path_, fmt::format("has {} dimensions, expected 1 to 7.", rank));
    }
    Extents shape;
    for (int i = 1; i <= rank; ++i) {
      shape.push_back(dimension(i));
      if (shape.back() < 1) {
        fail_format(path_, fmt::format("has extent {} along its dimension {}, expected 1 or more.",
                                       shape.back(), i));
      }
    }
    while (shape.size() > 3 && shape.back() == 1) shape.pop_back();
    std::reverse(shape.begin(), shape.end());
    return shape;
  }

  index_t data_offset() const {
    const index_t header_bytes = layout_.wide ? kHeaderBytes2 : kHeaderBytes1;
    const double offset =
        layout_.wide
            ? static_cast<double>(load<std::int64_t>(bytes_ + layout_.vox_offset, swapped_))
            : real(layout_.vox_offset, 0);
    // Headers without extensions may leave the offset 0; four bytes that say so follow the header.
    if (offset == 0) return header_bytes + 4;
    if (!(offset >= static_cast<double>(header_bytes) && offset < 1e12)) {
      fail_format(path_, fmt::format("puts its voxels at byte {}, expected {} or later.", offset,
                                     header_bytes));
    }
    return static_cast<index_t>(offset);
  }

  int units() const {
    return layout_.wide ? load<std::int32_t>(bytes_ + layout_.units, swapped_)
                        : bytes_[layout_.units];
  }

  double unit_mm() const {
    const int code = units() & 7;
    return code == 1 ? 1e3 : code == 3 ? 1e-3 : 1.0;
  }

  int code(int offset) const {
    return layout_.wide ? load<std::int32_t>(bytes_ + offset, swapped_)
                        : load<std::int16_t>(bytes_ + offset, swapped_);
  }

  double time_step_s() const {
    const int code = units() & 56;
    const double step = real(layout_.pixdim, 4) * (code == 16 ? 1e-3 : code == 24 ? 1e-6 : 1.0);
    return std::isfinite(step) && step > 0 ? step : 0.0;
  }

  std::optional<std::array<std::array<double, 4>, 3>> affine() const {
    std::array<std::array<double, 4>, 3> result{};
    if (code(layout_.sform_code) > 0) {
      for (std::size_t i = 0; i < 12; ++i) {
        result[i / 4][i % 4] = real(layout_.sform, static_cast<int>(i)) * unit_mm();
      }
    } else if (code(layout_.qform_code) > 0) {
      const double sign = real(layout_.pixdim, 0) < 0 ? -1 : 1;
      const auto rotation = io_detail::rotation_of(
          {real(layout_.quaternion, 0), real(layout_.quaternion, 1), real(layout_.quaternion, 2)},
          sign);
      const auto spacing = spacing_mm();
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t d = 0; d < 3; ++d) result[row][d] = rotation[row][d] * spacing[2 - d];
        result[row][3] = real(layout_.offset, static_cast<int>(row)) * unit_mm();
      }
    } else {
      return std::nullopt;
    }
    for (const auto& row : result) {
      for (const double value : row) {
        if (!std::isfinite(value)) return std::nullopt;
      }
    }
    return result;
  }

  std::array<double, 3> spacing_mm() const {
    const double mm = unit_mm();
    std::array<double, 3> result = {1, 1, 1};
    for (int axis = 0; axis < 3; ++axis) {
      const double spacing = std::abs(real(layout_.pixdim, 1 + axis)) * mm;
      const bool given = axis < dimension(0) && std::isfinite(spacing) && spacing > 0;
      result[static_cast<std::size_t>(2 - axis)] = given ? spacing : 1.0;
    }
    return result;
  }

  const std::string& path_;
  const unsigned char* bytes_;
  const Layout& layout_;
  bool swapped_;
};

NiftiHeader read_header(const std::string& path, Stream& stream, index_t& n_read) {
  unsigned char bytes[kHeaderBytes2] = {};
  stream.read(bytes, kHeaderBytes1);
  n_read = kHeaderBytes1;
  for (const bool swapped : {false, true}) {
    const auto size = load<std::int32_t>(bytes, swapped);
    if (size == kHeaderBytes1) {
      if (std::memcmp(bytes + 344, "ni1", 4) == 0) {
        fail_format(path, "keeps its voxels in a second file (.img). Try to convert it to .nii.");
      }
      if (std::memcmp(bytes + 344, "n+1", 4) != 0) break;
      return HeaderFields(path, bytes, io_detail::kNiftiLayout1, swapped).parse();
    }
    if (size == kHeaderBytes2) {
      if (std::memcmp(bytes + 4, "n+2", 4) != 0) break;
      stream.read(bytes + kHeaderBytes1, kHeaderBytes2 - kHeaderBytes1);
      n_read = kHeaderBytes2;
      return HeaderFields(path, bytes, io_detail::kNiftiLayout2, swapped).parse();
    }
  }
  fail_format(path, "is not a NIfTI file: it has neither the header of version 1 nor of 2.");
}

/// slope * x + intercept, in place; both parts of a complex number, as the standard says.
template <class T>
void scale(T* values, index_t count, double slope, double intercept) {
  for (index_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(slope * static_cast<double>(values[i]) + intercept);
  }
}

Tensor scaled(const Tensor& stored, double slope, double intercept) {
  const DType dtype = is_inexact(stored.dtype())       ? stored.dtype()
                      : item_size(stored.dtype()) <= 2 ? DType::float32
                                                       : DType::float64;
  Tensor result = stored.to(dtype);
  Tensor parts = is_complex(dtype) ? result.view_as_real() : result;
  if (parts.dtype() == DType::float32) {
    scale(parts.mutable_data<float>(), parts.numel(), slope, intercept);
  } else {
    scale(parts.mutable_data<double>(), parts.numel(), slope, intercept);
  }
  return result;
}

}  // namespace

std::array<std::array<double, 3>, 3> io_detail::rotation_of(const std::array<double, 3>& bcd,
                                                            double sign) {
  const auto [b, c, d] = bcd;
  const double a = std::sqrt(std::max(0.0, 1 - b * b - c * c - d * d));
  return {{{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), sign * 2 * (b * d + a * c)},
           {2 * (b * c + a * d), a * a + c * c - b * b - d * d, sign * 2 * (c * d - a * b)},
           {2 * (b * d - a * c), 2 * (c * d + a * b), sign * (a * a + d * d - b * b - c * c)}}};
}

NiftiImage read_nifti(const std::string& path) {
  const io_detail::InputFile file(path);
  Stream stream(file);
  index_t n_read = 0;
  const NiftiHeader header = read_header(path, stream, n_read);
  const index_t n_bytes = io_detail::foreign_byte_count(path, header.shape, header.dtype);
  unsigned char magic[2] = {};
  file.read_at(0, magic, std::min<index_t>(2, file.size()));
  const bool compressed = magic[0] == 0x1f && magic[1] == 0x8b;
  const index_t most = compressed ? checked_multiply(file.size(), kLargestRatio) : file.size();
  if (header.data_offset < n_read || n_bytes > most - header.data_offset) {
    fail_format(path, fmt::format("is truncated: its header announces {} bytes of voxels from byte "
                                  "{} on, the file has {}{}.",
                                  n_bytes, header.data_offset, file.size(),
                                  compressed ? " compressed ones" : ""));
  }
  stream.skip(header.data_offset - n_read);
  Tensor stored = Tensor::empty(header.shape, header.dtype);
  stream.read(stored.raw_overwrite_data(), n_bytes);
  stream.finish();
  io_detail::make_native(stored, header.swapped);
  const bool plain = header.slope == 0 || (header.slope == 1 && header.intercept == 0);
  if (!std::isfinite(header.slope) || !std::isfinite(header.intercept)) {
    fail_format(path, fmt::format("scales its voxels by {} plus {}, expected finite numbers.",
                                  header.slope, header.intercept));
  }
  NiftiImage image = header.facts;
  image.data = plain ? stored : scaled(stored, header.slope, header.intercept);
  return image;
}

}  // namespace palimpsest
