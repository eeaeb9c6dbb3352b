// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <limits>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/nifti_header.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {
namespace {

using io_detail::NiftiLayout;
using Matrix = std::array<std::array<double, 3>, 3>;

constexpr index_t kLongestAxis1 = std::numeric_limits<std::int16_t>::max();
constexpr int kMillimetresAndSeconds = 2 | 8;
constexpr double kOrthogonal = 1e-4;

int nifti_code_of(DType dtype) {
  for (const io_detail::NiftiType& type : io_detail::kNiftiTypes) {
    if (type.dtype == dtype) return type.code;
  }
  throw InternalError(fmt::format("[write_nifti] no code for {}", name_of(dtype)));
}

double determinant(const Matrix& r) {
  return r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) -
         r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
         r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
}

// The quaternion (b, c, d), a >= 0, of a rotation.
std::array<double, 3> quaternion_of(const Matrix& r) {
  // The largest of the four numbers is taken from the diagonal, the others relative to it.
  const double squares[4] = {1 + r[0][0] + r[1][1] + r[2][2], 1 + r[0][0] - r[1][1] - r[2][2],
                             1 - r[0][0] + r[1][1] - r[2][2], 1 - r[0][0] - r[1][1] + r[2][2]};
  const auto most = std::max_element(std::begin(squares), std::end(squares)) - squares;
  const double t = std::sqrt(squares[most]) / 2, u = 1 / (4 * t);
  double q[4] = {};
  if (most == 0) {
    q[0] = t, q[1] = (r[2][1] - r[1][2]) * u, q[2] = (r[0][2] - r[2][0]) * u;
    q[3] = (r[1][0] - r[0][1]) * u;
  } else if (most == 1) {
    q[0] = (r[2][1] - r[1][2]) * u, q[1] = t, q[2] = (r[0][1] + r[1][0]) * u;
    q[3] = (r[0][2] + r[2][0]) * u;
  } else if (most == 2) {
    q[0] = (r[0][2] - r[2][0]) * u, q[1] = (r[0][1] + r[1][0]) * u, q[2] = t;
    q[3] = (r[1][2] + r[2][1]) * u;
  } else {
    q[0] = (r[1][0] - r[0][1]) * u, q[1] = (r[0][2] + r[2][0]) * u;
    q[2] = (r[1][2] + r[2][1]) * u, q[3] = t;
  }
  const double sign = q[0] < 0 ? -1 : 1;
  return {sign * q[1], sign * q[2], sign * q[3]};
}

class HeaderWriter {
 public:
  HeaderWriter(const NiftiImage& image, DType dtype)
      : image_(image), dtype_(dtype), shape_(image.data.shape()) {
    std::reverse(shape_.begin(), shape_.end());
    const bool is_wide =
        std::any_of(shape_.begin(), shape_.end(), [](index_t n) { return n > kLongestAxis1; });
    layout_ = is_wide ? io_detail::kNiftiLayout2 : io_detail::kNiftiLayout1;
    bytes_.assign(
        static_cast<std::size_t>(is_wide ? io_detail::kNiftiBytes2 : io_detail::kNiftiBytes1), 0);
  }

  // The header, and the four bytes that say that no extension follows.
  std::vector<unsigned char> bytes() {
    const auto size = static_cast<std::int32_t>(bytes_.size());
    put(0, size);
    if (layout_.wide) {
      std::memcpy(bytes_.data() + 4, "n+2\0\r\n\032\n", 8);
      put<std::int64_t>(layout_.vox_offset, size + 4);
    } else {
      std::memcpy(bytes_.data() + 344, "n+1", 4);
      put(layout_.vox_offset, static_cast<float>(size + 4));
      put(38, 'r');
    }
    put<std::int16_t>(layout_.datatype, static_cast<std::int16_t>(nifti_code_of(dtype_)));
    put<std::int16_t>(layout_.bitpix, static_cast<std::int16_t>(8 * item_size(dtype_)));
    put_real(layout_.slope, 0, 1);
    put_sizes();
    if (layout_.wide) {
      put<std::int32_t>(layout_.units, kMillimetresAndSeconds);
    } else {
      put<std::int8_t>(layout_.units, kMillimetresAndSeconds);
    }
    const std::size_t length = std::min<std::size_t>(image_.description.size(), 79);
    std::memcpy(bytes_.data() + layout_.description, image_.description.data(), length);
    if (image_.affine_ras) put_place();
    bytes_.resize(bytes_.size() + 4);
    return bytes_;
  }

 private:
  template <class T>
  void put(int offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  void put_real(int offset, int i, double value) {
    if (layout_.wide) {
      put(offset + 8 * i, value);
    } else {
      put(offset + 4 * i, static_cast<float>(value));
    }
  }
  void put_code(int offset, int code) {
    if (layout_.wide) {
      put<std::int32_t>(offset, code);
    } else {
      put<std::int16_t>(offset, static_cast<std::int16_t>(code));
    }
  }

  void put_sizes() {
    const auto put_dim = [&](int i, index_t n) {
      if (layout_.wide) {
        put<std::int64_t>(layout_.dim + 8 * i, n);
      } else {
        put<std::int16_t>(layout_.dim + 2 * i, static_cast<std::int16_t>(n));
      }
    };
    put_dim(0, static_cast<index_t>(shape_.size()));
    for (int i = 1; i <= 7; ++i) {
      const auto at = static_cast<std::size_t>(i - 1);
      put_dim(i, at < shape_.size() ? shape_[at] : 1);
      const double step = i <= 3   ? image_.spacing_mm[static_cast<std::size_t>(3 - i)]
                          : i == 4 ? image_.time_step_s
                                   : 1.0;
      put_real(layout_.pixdim, i, step);
    }
    put_real(layout_.pixdim, 0, 1);
  }

  void put_place() {
    const auto& affine = *image_.affine_ras;
    put_code(layout_.sform_code, 1);
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 4; ++column) {
        put_real(layout_.sform, 4 * row + column,
                 affine[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)]);
      }
    }
    Matrix r{};
    for (std::size_t d = 0; d < 3; ++d) {
      const double length = std::hypot(affine[0][d], affine[1][d], affine[2][d]);
      if (!(length > 0)) return;
      for (std::size_t row = 0; row < 3; ++row) r[row][d] = affine[row][d] / length;
      // The qform takes the lengths from pixdim.
      const double spacing = image_.spacing_mm[2 - d];
      if (std::abs(length - spacing) > kOrthogonal * spacing) return;
    }
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const double product = r[0][a] * r[0][b] + r[1][a] * r[1][b] + r[2][a] * r[2][b];
        if (std::abs(product) > kOrthogonal) return;
      }
    }
    const double sign = determinant(r) < 0 ? -1 : 1;
    for (std::size_t row = 0; row < 3; ++row) r[row][2] *= sign;
    const auto q = quaternion_of(r);
    put_code(layout_.qform_code, 1);
    put_real(layout_.pixdim, 0, sign);
    for (int i = 0; i < 3; ++i) {
      put_real(layout_.quaternion, i, q[static_cast<std::size_t>(i)]);
      put_real(layout_.offset, i, affine[static_cast<std::size_t>(i)][3]);
    }
  }

  const NiftiImage& image_;
  DType dtype_;
  Extents shape_;
  NiftiLayout layout_{};
  std::vector<unsigned char> bytes_;
};

// Writes its input to a file, as gzip without name and time, so that the bytes depend on the
// content alone.
class GzipWriter {
 public:
  explicit GzipWriter(AtomicFile& file) : file_(file), out_(std::size_t{1} << 16) {
    const int status =
        ::deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    if (status != Z_OK) throw OutOfMemory("[write_nifti] no memory to compress");
  }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter() { ::deflateEnd(&stream_); }

  void write(const void* data, std::size_t n_bytes) {
    constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
    auto* from = static_cast<unsigned char*>(const_cast<void*>(data));
    while (n_bytes > 0) {
      const std::size_t step = std::min(n_bytes, kMostAtOnce);
      stream_.next_in = from;
      stream_.avail_in = static_cast<unsigned>(step);
      pump(Z_NO_FLUSH);
      from += step;
      n_bytes -= step;
    }
  }
  void finish() { pump(Z_FINISH); }

 private:
  void pump(int flush) {
    do {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<unsigned>(out_.size());
      ::deflate(&stream_, flush);
      file_.write(out_.data(), out_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  AtomicFile& file_;
  std::vector<unsigned char> out_;
  z_stream stream_ = {};
};

void check_nifti(const NiftiImage& image) {
  const std::size_t rank = image.data.rank();
  if (rank < 1 || rank > 7 || image.data.numel() == 0) {
    throw ShapeError(
        fmt::format("[write_nifti] got the shape {}, expected 1 to 7 axes and at least "
                    "one element",
                    to_string(image.data.shape())));
  }
  const auto is_bad = [](double v) { return !std::isfinite(v); };
  bool is_wrong = is_bad(image.time_step_s) ||
                  std::any_of(image.spacing_mm.begin(), image.spacing_mm.end(), is_bad);
  if (image.affine_ras) {
    for (const auto& row : *image.affine_ras) {
      is_wrong |= std::any_of(row.begin(), row.end(), is_bad);
    }
  }
  if (is_wrong) {
    throw ValueError(
        "[write_nifti] spacing, affine or time step is not finite, expected finite numbers");
  }
}

}  // namespace

void write_nifti(const std::string& path, const NiftiImage& image) {
  check_nifti(image);
  const Tensor data = image.data.dtype() == DType::bool_ ? image.data.to(DType::uint8) : image.data;
  const std::vector<unsigned char> header = HeaderWriter(image, data.dtype()).bytes();
  AtomicFile file(path);
  if (path.ends_with(".gz")) {
    const Tensor dense = data.contiguous();
    GzipWriter zipped(file);
    zipped.write(header.data(), header.size());
    zipped.write(dense.raw_data(), static_cast<std::size_t>(dense.nbytes()));
    zipped.finish();
  } else {
    file.write(header.data(), header.size());
    io_detail::write_elements(file, data);
  }
  file.commit();
}

}  // namespace palimpsest
