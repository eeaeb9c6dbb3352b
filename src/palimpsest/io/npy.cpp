// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/npy.hpp"

#include <charconv>
#include <optional>

#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

using io_detail::fail_format;
using io_detail::kHostIsLittle;
using io_detail::quoted;

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses more than 10,000 bytes unless told otherwise.
constexpr index_t kLongestNpyHeader = 1 << 16;

struct NpyType {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"b1", DType::bool_},       {"i1", DType::int8},    {"i2", DType::int16},
    {"i4", DType::int32},       {"i8", DType::int64},   {"u1", DType::uint8},
    {"u2", DType::uint16},      {"u4", DType::uint32},  {"u8", DType::uint64},
    {"f4", DType::float32},     {"f8", DType::float64}, {"c8", DType::complex64},
    {"c16", DType::complex128},
};

struct NpyHeader {
  DType dtype = DType::float64;
  bool swapped = false;
  bool fortran_order = false;
  Extents shape;
};

/// The header is a Python dict of three known members; nothing else of Python is understood.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    std::optional<NpyHeader> type;
    std::optional<bool> fortran_order;
    std::optional<Extents> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !type) {
        type = element_type(string());
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("an unexpected or repeated key " + quoted(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("text after the closing brace");
    if (!type || !fortran_order || !shape) fail("not all of descr, fortran_order, shape");
    type->fortran_order = *fortran_order;
    type->shape = *shape;
    return *type;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    fail_format(path_, fmt::format("has a malformed NPY header at its character {}: got {}. Try to "
                                   "save the array again with numpy.save.",
                                   at_, what));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (accept(wanted)) return;
    const std::string found = at_ < text_.size() ? quoted(text_.substr(at_, 1)) : "its end";
    fail(fmt::format("{}, expected '{}'", found, wanted));
  }

  std::string_view string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("something else than a string");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string without an end");
    const auto result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("neither True nor False");
  }

  Extents tuple() {
    Extents shape;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("extents without a comma between them");
      shape.push_back(extent());
      if (shape.size() > kMaxRank) fail(fmt::format("more than {} axes", kMaxRank));
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma) fail("a number in parentheses, expected a tuple");
    return shape;
  }

  index_t extent() {
    skip_blanks();
    index_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, problem] = std::from_chars(first, text_.data() + text_.size(), value);
    if (problem != std::errc() || value < 0) fail("no extent, expected 0 to 2^63-1");
    at_ += static_cast<std::size_t>(end - first);
    // Python 2 wrote long integers so.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  NpyHeader element_type(std::string_view descr) {
    NpyHeader result;
    const char order = descr.empty() ? '\0' : descr[0];
    const auto code = descr.substr(std::min<std::size_t>(1, descr.size()));
    const auto* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                    [&](const NpyType& t) { return t.code == code; });
    const bool known = type != std::end(kNpyTypes);
    const bool ordered = order == '<' || order == '>' || order == '=';
    if (!known || !(ordered || (order == '|' && item_size(type->dtype) == 1))) {
      fail_format(path_, fmt::format("holds elements of type {}: expected bool, integers of 1 to 8 "
                                     "bytes, f4, f8, c8 or c16. Try astype() before saving.",
                                     quoted(descr)));
    }
    result.dtype = type->dtype;
    result.swapped = order == (kHostIsLittle ? '>' : '<');
    return result;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// The header's text and where the elements begin.
std::pair<std::string, index_t> header_text(const io_detail::InputFile& file) {
  unsigned char start[12] = {};
  const index_t n_start = std::min<index_t>(file.size(), 12);
  file.read_at(0, start, n_start);
  if (n_start < 10 || std::memcmp(start, kMagic.data(), kMagic.size()) != 0) {
    fail_format(file.path(), "is not an NPY file: it does not begin with \\x93NUMPY.");
  }
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    fail_format(file.path(),
                fmt::format("has NPY version {}.{}, expected 1.0, 2.0 or 3.0.", major, minor));
  }
  const index_t prefix = major == 1 ? 10 : 12;
  const index_t length = major == 1 ? io_detail::load<std::uint16_t>(start + 8, !kHostIsLittle)
                                    : io_detail::load<std::uint32_t>(start + 8, !kHostIsLittle);
  if (length > std::min(file.size() - prefix, kLongestNpyHeader)) {
    fail_format(file.path(), fmt::format("is truncated or damaged: its header announces {} bytes, "
                                         "the file has {}.",
                                         length, file.size()));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read_at(prefix, text.data(), length);
  return {text, prefix + length};
}

std::string_view npy_code_of(DType dtype) {
  for (const NpyType& type : kNpyTypes) {
    if (type.dtype == dtype) return type.code;
  }
  throw InternalError("[write_npy] a dtype without NPY code");
}

std::string make_header(const Tensor& tensor, bool fortran_order) {
  const char order = item_size(tensor.dtype()) == 1 ? '|' : kHostIsLittle ? '<' : '>';
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': {}, }}", order,
                                 npy_code_of(tensor.dtype()), fortran_order ? "True" : "False",
                                 to_string(tensor.shape()));
  // The elements begin at a multiple of 64, and a line end comes before them.
  constexpr std::size_t kPrefix = 10;
  const std::size_t total = (kPrefix + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - kPrefix - dict.size() - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

Tensor with_axes_reversed(const Tensor& tensor) {
  Axes axes;
  for (std::size_t i = tensor.rank(); i-- > 0;) axes.push_back(static_cast<index_t>(i));
  return tensor.permute(axes);
}

}  // namespace

namespace {

enum class NpyAccess { read, map };

Tensor npy_array(const std::string& path, NpyAccess access) {
  const io_detail::InputFile file(path);
  const auto [text, offset] = header_text(file);
  const NpyHeader header = HeaderParser(path, text).parse();
  const index_t expected = io_detail::foreign_byte_count(path, header.shape, header.dtype);
  if (file.size() - offset != expected) {
    fail_format(
        path,
        fmt::format(
            "{}: got {} bytes of elements, expected {} for {} of shape {}.",
            file.size() - offset < expected ? "is truncated" : "is longer than its header says",
            file.size() - offset, expected, name_of(header.dtype), to_string(header.shape)));
  }
  Extents stored = header.shape;
  if (header.fortran_order) std::reverse(stored.begin(), stored.end());
  const bool is_native = !header.swapped && header.dtype != DType::bool_ && expected > 0 &&
                         offset % static_cast<index_t>(item_size(header.dtype)) == 0;
  const Tensor result =
      access == NpyAccess::map && is_native
          ? io_detail::map_elements(path, offset, stored, header.dtype)
          : io_detail::read_elements(file, offset, stored, header.dtype, header.swapped);
  return header.fortran_order ? with_axes_reversed(result) : result;
}

}  // namespace

Tensor read_npy(const std::string& path) { return npy_array(path, NpyAccess::read); }

Tensor map_npy(const std::string& path) { return npy_array(path, NpyAccess::map); }

void write_npy(const std::string& path, const Tensor& tensor) {
  const bool reversed =
      tensor.rank() > 1 && !tensor.is_contiguous() && with_axes_reversed(tensor).is_contiguous();
  AtomicFile file(path);
  file.write(make_header(tensor, reversed));
  io_detail::write_elements(file, reversed ? with_axes_reversed(tensor) : tensor);
  file.commit();
}

}  // namespace palimpsest
