// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/png.hpp"

#include <png.h>

#include <csetjmp>
#include <limits>
#include <vector>

#include "palimpsest/io/prelude.hpp"

// libpng reports errors by longjmp, which runs no destructors: the functions between setjmp and
// libpng hold plain pointers only, and everything that owns memory lives in their callers.

namespace palimpsest {

namespace {

using Bytes = std::vector<unsigned char>;

/// State for the callbacks of libpng.
struct PngStream {
  Bytes out;                          // when writing
  const unsigned char* in = nullptr;  // when reading
  std::size_t n_left = 0;
  char message[160] = "unknown error";
  bool out_of_memory = false;
};

void on_error(png_structp png, png_const_charp text) {
  auto* stream = static_cast<PngStream*>(png_get_error_ptr(png));
  std::strncpy(stream->message, text, sizeof(stream->message) - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_write(png_structp png, png_bytep bytes, png_size_t n_bytes) {
  auto* stream = static_cast<PngStream*>(png_get_io_ptr(png));
  try {
    stream->out.insert(stream->out.end(), bytes, bytes + n_bytes);
    return;
  } catch (const std::bad_alloc&) {
    stream->out_of_memory = true;
  }
  png_error(png, "out of memory");
}

void on_flush(png_structp) {}

void on_read(png_structp png, png_bytep bytes, png_size_t n_bytes) {
  auto* stream = static_cast<PngStream*>(png_get_io_ptr(png));
  if (n_bytes > stream->n_left) png_error(png, "the file is truncated");
  std::memcpy(bytes, stream->in, n_bytes);
  stream->in += n_bytes;
  stream->n_left -= n_bytes;
}

struct ImageFacts {
  png_uint_32 width = 0, height = 0;
  int bits = 8;
  int channels = 1;
  std::size_t row_bytes() const {
    return std::size_t{width} * static_cast<std::size_t>(channels * bits / 8);
  }
};

/// False on failure, with the message in the stream.
bool encode(png_structp png, png_infop info, PngStream* stream, const ImageFacts& facts,
            const unsigned char* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, stream, on_write, on_flush);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(png, info, facts.width, facts.height, facts.bits,
               facts.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (png_uint_32 y = 0; y < facts.height; ++y) {
    png_write_row(png, rows + y * facts.row_bytes());
  }
  png_write_end(png, nullptr);
  return true;
}

/// Reads the header and asks for whole samples of gray or RGB.
bool decode_header(png_structp png, png_infop info, PngStream* stream, ImageFacts* facts) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, stream, on_read);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(png, 8 << 20);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  facts->width = png_get_image_width(png, info);
  facts->height = png_get_image_height(png, info);
  facts->bits = png_get_bit_depth(png, info);
  facts->channels = png_get_channels(png, info);
  return true;
}

bool decode_rows(png_structp png, PngStream* stream, unsigned char** rows) {
  (void)stream;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

/// Owns libpng's two structures.
class PngCodec {
 public:
  PngCodec(bool writing, PngStream& stream)
      : writing_(writing),
        png_(writing
                 ? png_create_write_struct(PNG_LIBPNG_VER_STRING, &stream, on_error, on_warning)
                 : png_create_read_struct(PNG_LIBPNG_VER_STRING, &stream, on_error, on_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      release();
      throw OutOfMemory("[libpng] no memory for its state");
    }
  }
  PngCodec(const PngCodec&) = delete;
  PngCodec& operator=(const PngCodec&) = delete;
  ~PngCodec() { release(); }

  png_structp png() const { return png_; }
  png_infop info() const { return info_; }

 private:
  void release() {
    if (writing_) {
      png_destroy_write_struct(&png_, &info_);
    } else {
      png_destroy_read_struct(&png_, &info_, nullptr);
    }
  }

  bool writing_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

struct Window {
  double low, high;
};

Window window_of(const std::string& path, const std::vector<double>& values,
                 const PngOptions& options) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const bool given = options.window_low || options.window_high;
  low = options.window_low.value_or(low);
  high = options.window_high.value_or(high);
  // All values alike, or none finite: without a window of the caller's, that is a black image.
  if (!given && !(high > low)) return {std::isfinite(low) ? low : 0.0, low + 1.0};
  if (!(high > low) || !std::isfinite(low) || !std::isfinite(high)) {
    throw ValueError(
        fmt::format("[write_png({})] wrong window: got {} to {}, expected finite "
                    "numbers, the first below the second.",
                    path, low, high));
  }
  return {low, high};
}

void put_sample(Bytes& out, unsigned sample, int bits) {
  // PNG stores the high byte first.
  if (bits == 16) out.push_back(static_cast<unsigned char>(sample >> 8));
  out.push_back(static_cast<unsigned char>(sample & 0xff));
}

Bytes gray_samples(const std::string& path, const Tensor& image, const PngOptions& options) {
  const double white = options.bits == 16 ? 65535.0 : 255.0;
  const bool as_is = !options.window_low && !options.window_high &&
                     image.dtype() == (options.bits == 16 ? DType::uint16 : DType::uint8);
  if (as_is && options.bits == 8) return image.to_vector<std::uint8_t>();
  const std::vector<double> values = image.to_vector<double>();
  const Window window = as_is ? Window{0.0, white} : window_of(path, values, options);
  Bytes out;
  out.reserve(values.size() * static_cast<std::size_t>(options.bits / 8));
  for (const double value : values) {
    // Halved first, so that the widest windows do not overflow.
    const double share = (value / 2 - window.low / 2) / (window.high / 2 - window.low / 2);
    const double sample = std::isnan(share) ? 0.0 : std::clamp(share, 0.0, 1.0) * white;
    put_sample(out, static_cast<unsigned>(std::lround(sample)), options.bits);
  }
  return out;
}

void check_writable(const std::string& path, const Tensor& image, const PngOptions& options) {
  if (options.bits != 8 && options.bits != 16) {
    throw ValueError(
        fmt::format("[write_png({})] got {} bits, expected 8 or 16.", path, options.bits));
  }
  if (is_complex(image.dtype())) {
    throw DTypeError(
        fmt::format("[write_png({})] got {}, expected a real dtype. Try the magnitude.", path,
                    name_of(image.dtype())));
  }
  const bool colour = image.rank() == 3 && image.shape(2) == 3 && image.dtype() == DType::uint8;
  const bool fits = image.rank() == 2 || colour;
  if (!fits || image.numel() == 0 || image.shape(0) > PNG_UINT_31_MAX ||
      image.shape(1) > PNG_UINT_31_MAX) {
    throw ShapeError(
        fmt::format("[write_png({})] got {} of shape {}, expected (height, width), or "
                    "(height, width, 3) of uint8.",
                    path, name_of(image.dtype()), to_string(image.shape())));
  }
}

[[noreturn]] void fail_decoding(const std::string& path, const PngStream& stream) {
  io_detail::fail_format(path, fmt::format("is a damaged PNG file: {}.", stream.message));
}

}  // namespace

namespace {

Bytes encoded(const std::string& path, const Tensor& image, const PngOptions& options) {
  check_writable(path, image, options);
  ImageFacts facts;
  facts.height = static_cast<png_uint_32>(image.shape(0));
  facts.width = static_cast<png_uint_32>(image.shape(1));
  facts.channels = image.rank() == 3 ? 3 : 1;
  facts.bits = facts.channels == 3 ? 8 : options.bits;
  const Bytes samples =
      facts.channels == 3 ? image.to_vector<std::uint8_t>() : gray_samples(path, image, options);
  PngStream stream;
  const PngCodec codec(true, stream);
  if (!encode(codec.png(), codec.info(), &stream, facts, samples.data())) {
    const std::string text = fmt::format("[write_png({})] {}", path, stream.message);
    if (stream.out_of_memory) throw OutOfMemory(text);
    throw ValueError(text);
  }
  return std::move(stream.out);
}

}  // namespace

void write_png(const std::string& path, const Tensor& image, const PngOptions& options) {
  const Bytes bytes = encoded(path, image, options);
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

std::string png_bytes(const Tensor& image, const PngOptions& options) {
  const Bytes bytes = encoded("", image, options);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tensor read_png(const std::string& path) {
  // No honest row shrinks more than deflate can.
  constexpr std::size_t kMostDeflated = 1032;
  const io_detail::InputFile file(path);
  Bytes content(static_cast<std::size_t>(file.size()));
  file.read_at(0, content.data(), file.size());
  if (content.size() < 8 || png_sig_cmp(content.data(), 0, 8) != 0) {
    io_detail::fail_format(path, "is not a PNG file: it lacks the signature.");
  }
  PngStream stream;
  stream.in = content.data();
  stream.n_left = content.size();
  const PngCodec codec(false, stream);
  ImageFacts facts;
  if (!decode_header(codec.png(), codec.info(), &stream, &facts)) fail_decoding(path, stream);
  if (facts.channels != 1 && facts.channels != 3) {
    io_detail::fail_format(path,
                           fmt::format("has {} samples a pixel, expected 1 or 3.", facts.channels));
  }
  // Interlaced images of fewer bits may expand eightfold on top.
  if (facts.row_bytes() / 8 > kMostDeflated * content.size() / facts.height) {
    io_detail::fail_format(path, fmt::format("is truncated: {} x {} pixels do not fit in {} bytes.",
                                             facts.width, facts.height, content.size()));
  }
  Extents shape = {index_t{facts.height}, index_t{facts.width}};
  if (facts.channels == 3) shape.push_back(3);
  Tensor image = Tensor::empty(shape, facts.bits == 16 ? DType::uint16 : DType::uint8);
  auto* pixels = static_cast<unsigned char*>(image.raw_overwrite_data());
  std::vector<unsigned char*> rows(facts.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels + y * facts.row_bytes();
  if (!decode_rows(codec.png(), &stream, rows.data())) fail_decoding(path, stream);
  io_detail::make_native(image, facts.bits == 16 && io_detail::kHostIsLittle);
  return image;
}

}  // namespace palimpsest
