// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/montage.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/results/bitmap_font.hpp"
#include "palimpsest/imaging/results/image.hpp"

namespace palimpsest {
namespace {

constexpr std::uint8_t kBackground = 51, kInk = 235;
constexpr index_t kPixelsPerTextScale = 160, kLargestTextScale = 4;
constexpr index_t kMostInOneRow = 4;
constexpr double kBelowWhite = 0.995, kLeastWhite = 0.4;

void check_panels(const std::vector<Panel>& panels) {
  if (panels.empty()) throw ValueError("[montage] no panels, expected at least one");
  for (const Panel& panel : panels) {
    const Extents& shape = panel.image.shape();
    if (shape.size() != 2 || shape != panels.front().image.shape() || panel.image.numel() == 0) {
      throw ShapeError(
          fmt::format("[montage] got a panel of {}, expected images (y, x) of one "
                      "size, the first being {}",
                      to_string(shape), to_string(panels.front().image.shape())));
    }
    if (is_complex(panel.image.dtype())) {
      throw DTypeError(fmt::format("[montage] got {}, expected real values. Try magnitude()",
                                   name_of(panel.image.dtype())));
    }
  }
}

// Sizes of all that is drawn, in pixels.
struct Arrangement {
  index_t ny = 0, nx = 0, columns = 1, rows = 1, scale = 1, gap = 0;
  index_t cell_width = 0, label_height = 0, note_height = 0;

  index_t cell_height() const { return label_height + ny + note_height; }
  index_t height() const { return rows * (cell_height() + gap) + gap; }
  index_t width() const { return columns * (cell_width + gap) + gap; }
};

// The texts of panels: the longest of them, and which there are.
struct Texts {
  std::string longest;
  bool has_labels = false, has_notes = false;
};

Texts texts_of(const std::vector<Panel>& panels) {
  Texts texts;
  for (const Panel& panel : panels) {
    for (const std::string* text : {&panel.label, &panel.note}) {
      if (text->size() > texts.longest.size()) texts.longest = *text;
    }
    texts.has_labels |= !panel.label.empty();
    texts.has_notes |= !panel.note.empty();
  }
  return texts;
}

Arrangement arrange(index_t n, index_t ny, index_t nx, const Texts& texts,
                    const MontageOptions& options) {
  Arrangement a{.ny = ny, .nx = nx, .gap = options.gap};
  const auto square = static_cast<index_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  a.columns = options.columns > 0 ? std::min(options.columns, n) : n <= kMostInOneRow ? n : square;
  a.rows = (n + a.columns - 1) / a.columns;
  a.scale = std::clamp<index_t>(a.nx / kPixelsPerTextScale + 1, 1, kLargestTextScale);
  while (a.scale > 1 && text_width(texts.longest, a.scale) > a.nx) --a.scale;
  a.cell_width = std::max(a.nx, text_width(texts.longest, a.scale));
  const index_t line = (kTextHeight + 3) * a.scale;
  a.label_height = texts.has_labels ? line : 0;
  a.note_height = texts.has_notes ? line : 0;
  return a;
}

// The indices of plane k along the axes before the last two.
std::string plane_label(const Extents& image, index_t k) {
  std::string label;
  for (index_t axis = static_cast<index_t>(image.size()) - 3; axis >= 0; --axis) {
    const index_t n = image[static_cast<std::size_t>(axis)];
    const std::string index = std::to_string(k % n);
    label = label.empty() ? index : index + "," + label;
    k /= n;
  }
  return label;
}

void draw_image(Tensor& to, const Tensor& image, index_t row, index_t column, double low,
                double high) {
  const Tensor values = image.to(DType::float32).contiguous();
  const float* from = values.data<float>();
  auto* pixels = to.mutable_data<std::uint8_t>();
  const index_t width = to.shape(1), ny = image.shape(0), nx = image.shape(1);
  for (index_t y = 0; y < ny; ++y) {
    for (index_t x = 0; x < nx; ++x) {
      const double gray = (double{from[y * nx + x]} - low) / (high - low);
      // NaN is black.
      const double bounded = gray > 0 ? std::min(gray, 1.0) : 0.0;
      pixels[(row + y) * width + column + x] =
          static_cast<std::uint8_t>(std::lround(255 * bounded));
    }
  }
}

}  // namespace

double white_level(const Tensor& image) {
  const Tensor m = magnitude(image);
  const double white = std::max(quantile(m, kBelowWhite), kLeastWhite * quantile(m, 1));
  return white > 0 && std::isfinite(white) ? white : 1.0;
}

Tensor montage(const std::vector<Panel>& panels, const MontageOptions& options) {
  check_panels(panels);
  double high = 0;
  if (options.high) {
    high = *options.high;
  } else {
    for (const Panel& panel : panels) {
      high = std::max(high, quantile(panel.image.to(DType::float32), 1));
    }
    if (!(high > options.low)) high = options.low + 1;
  }
  if (!(high > options.low) || !std::isfinite(high) || !std::isfinite(options.low)) {
    throw ValueError(
        fmt::format("[montage] got a window from {} to {}, expected finite numbers that increase",
                    options.low, high));
  }
  const Extents& plane = panels.front().image.shape();
  const Arrangement a =
      arrange(static_cast<index_t>(panels.size()), plane[0], plane[1], texts_of(panels), options);
  Tensor picture = Tensor::full<std::uint8_t>({a.height(), a.width()}, kBackground);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const index_t k = static_cast<index_t>(i);
    const index_t row = a.gap + k / a.columns * (a.cell_height() + a.gap);
    const index_t column = a.gap + k % a.columns * (a.cell_width + a.gap);
    const Panel& panel = panels[i];
    draw_text(picture, panel.label, row, column, a.scale, kInk);
    const index_t middle = column + (a.cell_width - a.nx) / 2;
    draw_image(picture, panel.image, row + a.label_height, middle, options.low, high);
    draw_text(picture, panel.note, row + a.label_height + a.ny + 2 * a.scale, column, a.scale,
              kInk);
  }
  return picture;
}

std::vector<Panel> planes_of(const Tensor& image, bool signed_values) {
  if (image.rank() < 2) {
    throw ShapeError(fmt::format("[montage] got the shape {}, expected images (.., y, x)",
                                 to_string(image.shape())));
  }
  const index_t ny = image.shape(-2), nx = image.shape(-1);
  const index_t n = image.numel() == 0 ? 0 : image.numel() / (ny * nx);
  const Tensor planes =
      part_of(image, signed_values ? ImagePart::real : ImagePart::magnitude).reshape({n, ny, nx});
  std::vector<Panel> panels;
  for (index_t k = 0; k < n; ++k) {
    panels.push_back({planes.select(0, k), plane_label(image.shape(), k)});
  }
  return panels;
}

Extents montage_extents(const Extents& image, const MontageOptions& options) {
  const index_t ny = image[image.size() - 2], nx = image.back();
  const index_t n = element_count(image) / std::max<index_t>(1, ny * nx);
  const std::string last = plane_label(image, std::max<index_t>(n - 1, 0));
  const Arrangement a = arrange(n, ny, nx, {last, !last.empty(), false}, options);
  return {a.height(), a.width()};
}

std::string text_preview(const Tensor& image, index_t columns) {
  constexpr std::string_view kRamp = " .:-=+*#%@";
  if (image.rank() != 2 || image.numel() == 0) {
    throw ShapeError(
        fmt::format("[text_preview] got the shape {}, expected (y, x)", to_string(image.shape())));
  }
  if (columns < 1) {
    throw ValueError(fmt::format("[text_preview] got {} columns, expected at least 1", columns));
  }
  const Tensor values = magnitude(image);
  const double white = white_level(values);
  const index_t ny = values.shape(0), nx = values.shape(1);
  const index_t wide = std::min(columns, nx);
  const index_t high = std::max<index_t>(1, (ny * wide + nx) / (2 * nx));
  std::string text;
  for (index_t row = 0; row < high; ++row) {
    std::string line;
    for (index_t column = 0; column < wide; ++column) {
      const index_t y0 = row * ny / high, y1 = std::max(y0 + 1, (row + 1) * ny / high);
      const index_t x0 = column * nx / wide, x1 = std::max(x0 + 1, (column + 1) * nx / wide);
      double sum = 0;
      for (index_t y = y0; y < y1; ++y) {
        for (index_t x = x0; x < x1; ++x) sum += double{values.data<float>()[y * nx + x]};
      }
      const double gray = sum / (white * static_cast<double>((y1 - y0) * (x1 - x0)));
      const auto level = gray > 0 ? std::min(gray, 1.0) * double(kRamp.size() - 1) : 0.0;
      line += kRamp[static_cast<std::size_t>(std::lround(level))];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace palimpsest
