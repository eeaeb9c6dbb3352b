// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

// Real numbers of one tensor in a common form: either all with the same number of decimals, blank
// where they are zeros at the end, or all with an exponent.
class NumberFormat {
 public:
  NumberFormat(const std::vector<double>& values, int precision) : precision_(precision) {
    choose_notation(values);
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const std::string text = digits(value);
      decimals_ = std::max(decimals_, text.size() - mantissa_end(text) == 0
                                          ? count_decimals(text)
                                          : count_decimals(text.substr(0, mantissa_end(text))));
    }
    for (const double value : values) {
      const std::string text = unaligned(value);
      width_ = std::max(width_, text.size());
    }
  }

  /// All texts have one width. `sign` puts a plus in front of what has no minus.
  std::string operator()(double value, bool sign = false) const {
    std::string text = unaligned(value);
    if (sign && text.front() != '-') text.insert(0, "+");
    const std::size_t width = width_ + (sign && !has_negative_ ? 1 : 0);
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  }

 private:
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

  static std::size_t mantissa_end(const std::string& text) {
    return std::min(text.find('e'), text.size());
  }
  static std::size_t count_decimals(const std::string& text) {
    const std::size_t point = text.find('.');
    return point == std::string::npos ? 0 : text.size() - point - 1;
  }

  // As short as identifies the number, or rounded to the precision if that is shorter.
  std::string digits(double value) const {
    std::array<char, 400> buffer;
    const auto format = has_exponent_ ? std::chars_format::scientific : std::chars_format::fixed;
    char* const last = buffer.data() + buffer.size();
    auto end = std::to_chars(buffer.data(), last, value, format).ptr;
    std::string text(buffer.data(), end);
    if (count_decimals(text.substr(0, mantissa_end(text))) > static_cast<std::size_t>(precision_)) {
      end = std::to_chars(buffer.data(), last, value, format, precision_).ptr;
      text.assign(buffer.data(), end);
    }
    std::string exponent = text.substr(mantissa_end(text));
    text.resize(mantissa_end(text));
    if (text.find('.') == std::string::npos) {
      text += '.';
    } else {
      text.resize(text.find_last_not_of('0') + 1);
    }
    return text + exponent;
  }

  std::string unaligned(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    std::string text = digits(value);
    const std::size_t end = mantissa_end(text);
    const std::size_t missing = decimals_ - count_decimals(text.substr(0, end));
    text.insert(end, missing, has_exponent_ ? '0' : ' ');
    return text;
  }

  int precision_;
  bool has_exponent_ = false, has_negative_ = false;
  std::size_t decimals_ = 0, width_ = 0;
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
    const NumberFormat format_re(re, options.precision), format_im(im, options.precision);
    for (std::size_t i = 0; i < re.size(); ++i) {
      std::string imaginary = format_im(im[i], true);
      imaginary.insert(imaginary.find_last_not_of(' ') + 1, "j");
      texts.push_back(format_re(re[i]) + imaginary);
    }
  } else if (is_floating(t.dtype())) {
    std::vector<double> values;
    for (const double value : t.to_vector<double>()) values.push_back(value);
    const NumberFormat format(values, options.precision);
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
      if (is_gap(axis, i)) put("...", margin, column, i > 0);
      put(texts_[next_++], margin, column, i > 0);
    }
  }

  void put(const std::string& word, std::size_t margin, std::size_t& column, bool is_later) {
    if (is_later) {
      text_ += ',';
      ++column;
      // One more column for the bracket or comma behind the word.
      if (column + 1 + word.size() + 1 > line_width_) {
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
  if (t.numel() == 0) return "tensor([], shape=" + to_string(t.shape()) + ", " + kind;
  if (t.device().type != DeviceType::cpu) {
    return "tensor(out of reach, shape=" + to_string(t.shape()) + ", " + kind;
  }
  const std::string opening = "tensor(";
  const bool is_long = t.numel() > options.summarize_above;
  const Tensor shown = is_long ? corners(t, std::max<index_t>(options.edge_items, 1)) : t;
  Layout layout(t.shape(), shown.shape(), element_texts(shown, options), opening.size(),
                options.line_width);
  const std::string shape = is_long ? "shape=" + to_string(t.shape()) + ", " : "";
  return opening + layout.run() + ", " + shape + kind;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& t) { return stream << to_string(t); }

}  // namespace palimpsest
