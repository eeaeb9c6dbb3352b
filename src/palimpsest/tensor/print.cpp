// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

// Real numbers of one tensor in a common form: either all with the same number of decimals, blank
// where they are zeros at the end, or all with an exponent.
class NumberFormat {
 public:
  NumberFormat(const std::vector<double>& values, bool is_single, int precision)
      : is_single_(is_single), precision_(precision) {
    choose_notation(values);
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const Digits parts = digits(value);
      decimals_ = std::max(decimals_, count_decimals(parts.mantissa));
      exponent_digits_ = std::max(exponent_digits_, parts.exponent.size());
    }
    for (const double value : values) width_ = std::max(width_, unaligned(value).size());
  }

  /// The text of a value; all texts have one width. `sign` puts a plus in front of a value without
  /// a minus.
  std::string operator()(double value, bool sign = false) const {
    std::string text = unaligned(value);
    if (sign && text.front() != '-') text.insert(0, "+");
    const std::size_t width = width_ + (sign && !has_negative_ ? 1 : 0);
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  }

 private:
  // The exponent without `e` and sign; empty if there is none.
  struct Digits {
    std::string mantissa, exponent;
    bool is_small = false;  // a negative exponent
  };

  void choose_notation(const std::vector<double>& values) {
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (const double value : values) {
      if (std::signbit(value)) has_negative_ = true;
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
    }
    has_exponent_ = largest > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1e3);
  }

  static std::size_t count_decimals(const std::string& mantissa) {
    return mantissa.size() - mantissa.find('.') - 1;
  }

  // Fewest digits for the number among those of its type, or rounded to the precision if that
  // is shorter; always with a point.
  Digits digits(double value) const {
    std::array<char, 400> buffer;
    const auto format = has_exponent_ ? std::chars_format::scientific : std::chars_format::fixed;
    char* const last = buffer.data() + buffer.size();
    const auto shortest = [&] {
      if (is_single_)
        return std::to_chars(buffer.data(), last, static_cast<float>(value), format).ptr;
      return std::to_chars(buffer.data(), last, value, format).ptr;
    };
    Digits parts = split(std::string(buffer.data(), shortest()));
    if (count_decimals(parts.mantissa) > static_cast<std::size_t>(precision_)) {
      char* const end = std::to_chars(buffer.data(), last, value, format, precision_).ptr;
      parts = split(std::string(buffer.data(), end));
    }
    return parts;
  }

  static Digits split(std::string text) {
    Digits parts;
    if (const std::size_t e = text.find('e'); e != std::string::npos) {
      parts.is_small = text[e + 1] == '-';
      parts.exponent = text.substr(e + 2);
      text.resize(e);
    }
    if (text.find('.') == std::string::npos) {
      text += '.';
    } else {
      text.resize(text.find_last_not_of('0') + 1);
    }
    parts.mantissa = std::move(text);
    return parts;
  }

  std::string unaligned(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    const Digits parts = digits(value);
    std::string text = parts.mantissa;
    text.append(decimals_ - count_decimals(text), has_exponent_ ? '0' : ' ');
    if (!has_exponent_) return text;
    text += parts.is_small ? "e-" : "e+";
    text.append(exponent_digits_ - parts.exponent.size(), '0');
    return text + parts.exponent;
  }

  bool is_single_;
  int precision_;
  bool has_exponent_ = false, has_negative_ = false;
  std::size_t decimals_ = 0, exponent_digits_ = 0, width_ = 0;
};

// Texts of equal width for all elements of a contiguous tensor.
std::vector<std::string> element_texts(const Tensor& t, const PrintOptions& options) {
  std::vector<std::string> texts;
  if (is_complex(t.dtype())) {
    std::vector<double> re, im;
    for (const auto& value : t.to_vector<std::complex<double>>()) {
      re.push_back(value.real());
      im.push_back(value.imag());
    }
    const bool is_single = t.dtype() == DType::complex64;
    const NumberFormat format_re(re, is_single, options.precision);
    const NumberFormat format_im(im, is_single, options.precision);
    for (std::size_t i = 0; i < re.size(); ++i) {
      std::string imaginary = format_im(im[i], true);
      imaginary.insert(imaginary.find_last_not_of(' ') + 1, "j");
      texts.push_back(format_re(re[i]) + imaginary);
    }
  } else if (is_floating(t.dtype())) {
    const std::vector<double> values = t.to_vector<double>();
    const NumberFormat format(values, t.dtype() == DType::float32, options.precision);
    for (const double value : values) texts.push_back(format(value));
  } else if (is_bool(t.dtype())) {
    for (const bool value : t.to_vector<bool>()) texts.push_back(value ? "True" : "False");
  } else if (t.dtype() == DType::uint64) {
    for (const auto value : t.to_vector<std::uint64_t>()) texts.push_back(std::to_string(value));
  } else {
    for (const auto value : t.to_vector<std::int64_t>()) texts.push_back(std::to_string(value));
  }
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

// Keeps the edges of every axis that is longer than both together.
Tensor corners(const Tensor& t, index_t edge) {
  Tensor result = t;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    const auto axis = static_cast<index_t>(i);
    const index_t n = result.shape(axis);
    if (n <= 2 * edge) continue;
    Extents shape = result.shape();
    shape[i] = 2 * edge;
    Tensor edges = Tensor::empty(shape, t.dtype(), t.device());
    edges.narrow(axis, 0, edge).copy_from(result.narrow(axis, 0, edge));
    edges.narrow(axis, edge, edge).copy_from(result.narrow(axis, n - edge, edge));
    result = edges;
  }
  return result;
}

// Lays the texts of (the corners of) a tensor out in nested brackets.
class Layout {
 public:
  Layout(const Extents& full, const Extents& shown, std::vector<std::string> texts,
         std::size_t indent, int line_width)
      : full_(full),
        shown_(shown),
        texts_(std::move(texts)),
        indent_(indent),
        line_width_(static_cast<std::size_t>(std::max(line_width, 1))) {}

  std::string run() {
    if (full_.empty()) return texts_.front();
    print_axis(0);
    return std::move(text_);
  }

 private:
  void print_axis(std::size_t axis) {
    text_ += '[';
    if (axis + 1 == full_.size()) {
      print_row(axis);
    } else {
      const std::string separator =
          "," + std::string(full_.size() - axis - 1, '\n') + std::string(indent_ + axis + 1, ' ');
      for (index_t i = 0; i < shown_[axis]; ++i) {
        if (i > 0) text_ += separator;
        if (is_gap(axis, i)) text_ += "..." + separator;
        print_axis(axis + 1);
      }
    }
    text_ += ']';
  }

  void print_row(std::size_t axis) {
    const std::size_t margin = indent_ + axis + 1;
    std::size_t column = margin;
    for (index_t i = 0; i < shown_[axis]; ++i) {
      if (is_gap(axis, i)) put("...", margin, column, true);
      put(texts_[next_++], margin, column, i > 0);
    }
  }

  void put(const std::string& word, std::size_t margin, std::size_t& column, bool is_later) {
    if (is_later) {
      text_ += ',';
      ++column;
      // Room for the brackets or the comma behind the word.
      if (column + 1 + word.size() + full_.size() > line_width_) {
        text_ += '\n' + std::string(margin, ' ');
        column = margin;
      } else {
        text_ += ' ';
        ++column;
      }
    }
    text_ += word;
    column += word.size();
  }

  bool is_gap(std::size_t axis, index_t i) const {
    return shown_[axis] != full_[axis] && i == shown_[axis] / 2;
  }

  const Extents& full_;
  const Extents& shown_;
  std::vector<std::string> texts_;
  std::size_t indent_, line_width_, next_ = 0;
  std::string text_;
};

}  // namespace

std::string to_string(const Tensor& t, const PrintOptions& options) {
  if (!t.defined()) return "tensor(undefined)";
  const std::string kind =
      "dtype=" + std::string(name_of(t.dtype())) + ", device=" + t.device().str() + ")";
  if (t.numel() == 0) {
    return "tensor([], " + (t.rank() == 1 ? "" : "shape=" + to_string(t.shape()) + ", ") + kind;
  }
  const std::string opening = "tensor(";
  const bool is_long = t.numel() > options.summarize_above;
  Tensor shown = is_long ? corners(t, std::max<index_t>(options.edge_items, 1)) : t;
  try {
    shown = on_host(shown);
  } catch (const DeviceError&) {  // memory of a device that is not here
    return "tensor(out of reach, shape=" + to_string(t.shape()) + ", " + kind;
  }
  Layout layout(t.shape(), shown.shape(), element_texts(shown, options), opening.size(),
                options.line_width);
  const std::string shape = is_long ? "shape=" + to_string(t.shape()) + ", " : "";
  return opening + layout.run() + ", " + shape + kind;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& t) { return stream << to_string(t); }

}  // namespace palimpsest
