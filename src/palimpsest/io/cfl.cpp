// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/cfl.hpp"

#include <unistd.h>

#include <charconv>

#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

constexpr std::size_t kBartDimensions = 16;
// Headers also hold the command lines that made the file.
constexpr index_t kLongestHeader = 1 << 20;

std::string stem_of(const std::string& path) {
  for (const std::string_view ending : {".hdr", ".cfl"}) {
    if (path.size() > ending.size() && path.ends_with(ending)) {
      return path.substr(0, path.size() - ending.size());
    }
  }
  return path;
}

/// The line of numbers after the line `# Dimensions`, in BART's order.
Extents parse_dimensions(const std::string& path, std::string_view text) {
  constexpr std::string_view kTitle = "# Dimensions\n";
  auto at = text.starts_with(kTitle) ? 0 : text.find("\n# Dimensions\n");
  if (at == std::string_view::npos) {
    io_detail::fail_format(path, "is not a BART header: it has no line '# Dimensions'.");
  }
  at = text.find("# Dimensions\n", at) + kTitle.size();
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  Extents extents;
  const char* from = line.data();
  const char* const end = from + line.size();
  while (true) {
    while (from != end && (*from == ' ' || *from == '\t' || *from == '\r')) ++from;
    if (from == end) break;
    index_t extent = 0;
    const auto [next, problem] = std::from_chars(from, end, extent);
    const bool separated = next == end || *next == ' ' || *next == '\t' || *next == '\r';
    if (problem != std::errc() || extent < 1 || !separated || extents.size() == kBartDimensions) {
      io_detail::fail_format(path, fmt::format("has wrong dimensions: got {}, expected 1 to {} "
                                               "positive numbers.",
                                               io_detail::quoted(line), kBartDimensions));
    }
    extents.push_back(extent);
    from = next;
  }
  if (extents.empty()) io_detail::fail_format(path, "has no numbers below '# Dimensions'.");
  return extents;
}

}  // namespace

namespace {

Tensor cfl_array(const std::string& path, bool map) {
  const std::string stem = stem_of(path);
  const std::string header_path = stem + ".hdr";
  Extents shape = parse_dimensions(header_path, io_detail::read_text(header_path, kLongestHeader));
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  std::reverse(shape.begin(), shape.end());
  const io_detail::InputFile file(stem + ".cfl");
  const index_t expected = io_detail::foreign_byte_count(header_path, shape, DType::complex64);
  if (file.size() != expected) {
    io_detail::fail_format(
        file.path(), fmt::format("has the wrong size for its header: got {} bytes, expected {} for "
                                 "axes {}.",
                                 file.size(), expected, to_string(shape)));
  }
  if (map && io_detail::kHostIsLittle) {
    return io_detail::map_elements(file.path(), 0, shape, DType::complex64);
  }
  return io_detail::read_elements(file, 0, shape, DType::complex64, !io_detail::kHostIsLittle);
}

}  // namespace

Tensor read_cfl(const std::string& path) { return cfl_array(path, false); }

Tensor map_cfl(const std::string& path) { return cfl_array(path, true); }

void write_cfl(const std::string& path, const Tensor& tensor) {
  const std::string stem = stem_of(path);
  std::string header = "# Dimensions\n";
  for (std::size_t i = 0; i < std::max(kBartDimensions, tensor.rank()); ++i) {
    const index_t extent =
        i < tensor.rank() ? tensor.shape(static_cast<index_t>(tensor.rank() - 1 - i)) : 1;
    if (extent == 0) {
      throw ShapeError(fmt::format("[write_cfl({})] got shape {}, expected at least one element.",
                                   path, to_string(tensor.shape())));
    }
    header += fmt::format("{} ", extent);
  }
  header += "\n# Creator\nPalimpsest\n";
  AtomicFile elements(stem + ".cfl");
  AtomicFile text(stem + ".hdr");
  io_detail::write_elements(elements, tensor.to(DType::complex64));
  text.write(header);
  elements.flush();
  text.flush();
  elements.commit();
  try {
    text.commit();
  } catch (const IoError&) {
    ::unlink((stem + ".cfl").c_str());
    throw;
  }
}

}  // namespace palimpsest
