// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_images.hpp"

#include <cctype>
#include <limits>

#include "palimpsest/io/ismrmrd_header.hpp"
#include "palimpsest/io/isolated_parse.hpp"
#include "palimpsest/io/prelude.hpp"

namespace palimpsest {
namespace {

using io_detail::fail_format;
using io_detail::ImageFileResult;
using io_detail::ImageHeadRecord;

constexpr DType kTypes[] = {DType::uint16,  DType::int16,   DType::uint32,    DType::int32,
                            DType::float32, DType::float64, DType::complex64, DType::complex128};
static_assert(std::size(kTypes) == io_detail::kImageTypes);

DType stored_type(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::uint8:
      return DType::uint16;
    case DType::int8:
      return DType::int16;
    case DType::int64:
    case DType::uint64:
      return DType::float64;
    default:
      return dtype;
  }
}

int code_of(DType dtype) {
  const auto* const found = std::find(std::begin(kTypes), std::end(kTypes), dtype);
  return static_cast<int>(found - std::begin(kTypes)) + 1;
}

// -- reading -------------------------------------------------------------------------------------

// The parts of a parsed file, held against the bounds of the memory they lie in.
class ParsedImages {
 public:
  ParsedImages(const io_detail::InputFile& file, const io_detail::SharedMemory& memory,
               const ImageFileResult& result)
      : path_(file.path()), memory_(memory), result_(result) {}

  std::string text(std::uint64_t offset, std::uint64_t length) const {
    return {reinterpret_cast<const char*>(piece(offset, length)), static_cast<std::size_t>(length)};
  }
  const unsigned char* piece(std::uint64_t offset, std::uint64_t n_bytes) const {
    const std::uint64_t size = memory_.size() - io_detail::kResultBytes;
    if (offset > size || n_bytes > size - offset) {
      fail_format(path_, "is damaged: its parts do not fit.");
    }
    return memory_.data() + io_detail::kResultBytes + offset;
  }
  const ImageFileResult& result() const { return result_; }

 private:
  const std::string& path_;
  const io_detail::SharedMemory& memory_;
  const ImageFileResult& result_;
};

std::vector<std::string> split_text(const std::string& text, char end) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t to = std::min(text.find(end, at), text.size());
    parts.push_back(text.substr(at, to - at));
    at = to + 1;
  }
  return parts;
}

template <std::size_t N, class T>
std::array<T, N> array_of(const T (&values)[N]) {
  std::array<T, N> result;
  std::copy(std::begin(values), std::end(values), result.begin());
  return result;
}

IsmrmrdImageHead image_head_of(const ImageHeadRecord& r, const std::string& attributes) {
  IsmrmrdImageHead head;
  head.field_of_view_mm = array_of(r.field_of_view);
  head.position_mm = array_of(r.position);
  head.read_direction = array_of(r.read_dir);
  head.phase_direction = array_of(r.phase_dir);
  head.slice_direction = array_of(r.slice_dir);
  head.patient_table_position_mm = array_of(r.patient_table_position);
  head.average = r.average, head.slice = r.slice, head.contrast = r.contrast;
  head.phase = r.phase, head.repetition = r.repetition, head.set = r.set;
  head.acquisition_time_stamp = r.acquisition_time_stamp;
  head.physiology_time_stamp = array_of(r.physiology_time_stamp);
  head.image_type = r.image_type, head.image_index = r.image_index;
  head.series_index = r.image_series_index;
  head.flags = r.flags;
  head.attributes = io_detail::parse_meta_attributes(attributes);
  return head;
}

void parse_series(const io_detail::InputFile& file, io_detail::SharedMemory& memory,
                  const std::string& series) {
  io_detail::check_hdf5_signature(file);
  io_detail::parse_in_child<ImageFileResult>(
      file, memory, [&](io_detail::Arena& arena, ImageFileResult& result) {
        io_detail::parse_image_file(file.path(), static_cast<std::uint64_t>(file.size()), series,
                                    arena, result);
      });
}

const ImageFileResult& result_in(const io_detail::SharedMemory& memory) {
  return *std::launder(reinterpret_cast<const ImageFileResult*>(memory.data()));
}

// -- writing -------------------------------------------------------------------------------------

std::uint16_t narrow_field(index_t value, const char* name) {
  if (value < 0 || value > std::numeric_limits<std::uint16_t>::max()) {
    throw OverflowError(
        fmt::format("[write_ismrmrd_images] {} is {}, expected 0 to 65535", name, value));
  }
  return static_cast<std::uint16_t>(value);
}

ImageHeadRecord record_of(const IsmrmrdImageHead& head, const Extents& extents, int code,
                          const std::string& attributes) {
  ImageHeadRecord r;
  r.data_type = static_cast<std::uint16_t>(code);
  r.flags = head.flags;
  for (std::size_t d = 0; d < 3; ++d) r.matrix_size[d] = narrow_field(extents[4 - d], "an extent");
  r.channels = narrow_field(extents[1], "the number of channels");
  const auto put = [](const auto& from, auto& to) {
    std::copy(from.begin(), from.end(), std::begin(to));
  };
  put(head.field_of_view_mm, r.field_of_view);
  put(head.position_mm, r.position);
  put(head.read_direction, r.read_dir);
  put(head.phase_direction, r.phase_dir);
  put(head.slice_direction, r.slice_dir);
  put(head.patient_table_position_mm, r.patient_table_position);
  put(head.physiology_time_stamp, r.physiology_time_stamp);
  r.average = narrow_field(head.average, "average"), r.slice = narrow_field(head.slice, "slice");
  r.contrast = narrow_field(head.contrast, "contrast"), r.phase = narrow_field(head.phase, "phase");
  r.repetition = narrow_field(head.repetition, "repetition"), r.set = narrow_field(head.set, "set");
  r.acquisition_time_stamp = head.acquisition_time_stamp;
  r.image_type = narrow_field(head.image_type, "image_type");
  r.image_index = narrow_field(head.image_index, "image_index");
  r.image_series_index = narrow_field(head.series_index, "series_index");
  r.attribute_string_len = static_cast<std::uint32_t>(attributes.size());
  return r;
}

void check_images(const IsmrmrdImages& images) {
  const bool is_name = !images.series.empty() &&
                       std::all_of(images.series.begin(), images.series.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '_';
                       });
  if (!is_name || images.series == "data" || images.series == "xml") {
    throw ValueError(fmt::format(
        "[write_ismrmrd_images] got the series '{}', expected letters, digits and underscores",
        images.series));
  }
  const Tensor& data = images.data;
  if (!data.defined() || data.rank() != 5 || data.numel() == 0) {
    throw ValueError(
        fmt::format("[write_ismrmrd_images] got {}, expected images (image, channel, z, y, x)",
                    data.defined() ? "the shape " + to_string(data.shape()) : "no array"));
  }
  if (data.shape(0) != static_cast<index_t>(images.heads.size())) {
    throw ValueError(fmt::format("[write_ismrmrd_images] got {} heads for {} images",
                                 images.heads.size(), data.shape(0)));
  }
}

// The number of bytes of the file in the memory that a child fills.
struct BuiltFile {
  std::atomic<std::uint64_t> progress{0};
  std::uint64_t n_bytes = 0;
  char error[400] = {};
};

}  // namespace

IsmrmrdContents ismrmrd_contents(const std::string& path) {
  const io_detail::InputFile file(path);
  io_detail::SharedMemory memory(io_detail::arena_bytes(file.size()));
  parse_series(file, memory, {});
  const ParsedImages parsed(file, memory, result_in(memory));
  const ImageFileResult& r = parsed.result();
  return {r.has_scan, split_text(parsed.text(r.names_offset, r.names_length), '\n')};
}

IsmrmrdImages read_ismrmrd_images(const std::string& path, const std::string& series) {
  const io_detail::InputFile file(path);
  io_detail::SharedMemory memory(io_detail::arena_bytes(file.size()));
  parse_series(file, memory, series);
  const ParsedImages parsed(file, memory, result_in(memory));
  const ImageFileResult& r = parsed.result();
  const std::vector<std::string> names =
      split_text(parsed.text(r.names_offset, r.names_length), '\n');
  if (names.empty()) {
    fail_format(path, r.has_scan ? "holds a raw scan and no images." : "holds no images.");
  }
  IsmrmrdImages images;
  images.series = series.empty() ? names.front() : series;
  images.header = parsed.text(r.xml_offset, r.xml_length);
  if (r.data_type < 1 || r.data_type > io_detail::kImageTypes) {
    fail_format(path, "is damaged: its parts do not fit.");
  }
  Extents extents;
  for (const std::uint64_t n : r.extents) {
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      fail_format(path, fmt::format("announces an extent of {}.", n));
    }
    extents.push_back(static_cast<index_t>(n));
  }
  const DType dtype = kTypes[r.data_type - 1];
  const index_t n_bytes = io_detail::foreign_byte_count(path, extents, dtype);
  const unsigned char* data = parsed.piece(r.data_offset, static_cast<std::uint64_t>(n_bytes));
  const auto n_images = static_cast<std::uint64_t>(extents[0]);
  const unsigned char* heads = parsed.piece(r.heads_offset, n_images * sizeof(ImageHeadRecord));
  std::vector<std::string> attributes =
      split_text(parsed.text(r.attributes_offset, r.attributes_length), '\0');
  attributes.resize(static_cast<std::size_t>(n_images));
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    ImageHeadRecord record;
    std::memcpy(&record, heads + i * sizeof(record), sizeof(record));
    images.heads.push_back(image_head_of(record, attributes[i]));
  }
  images.data = Tensor::empty(extents, dtype);
  if (n_bytes > 0) {
    std::memcpy(images.data.raw_overwrite_data(), data, static_cast<std::size_t>(n_bytes));
  }
  return images;
}

void write_ismrmrd_images(const std::string& path, const IsmrmrdImages& images) {
  check_images(images);
  const Tensor data = images.data.to(stored_type(images.data.dtype())).contiguous();
  const int code = code_of(data.dtype());
  std::vector<std::string> attributes;
  std::vector<ImageHeadRecord> records;
  std::size_t text_bytes = images.header.size();
  for (const IsmrmrdImageHead& head : images.heads) {
    attributes.push_back(io_detail::make_meta_attributes(head.attributes));
    records.push_back(record_of(head, data.shape(), code, attributes.back()));
    text_bytes += attributes.back().size() + 4096;  // with the bytes that HDF5 keeps for each chunk
  }
  io_detail::ImageFileParts parts{images.header,   images.series, records, attributes,
                                  data.raw_data(), code,          {}};
  for (std::size_t i = 0; i < 5; ++i) {
    parts.extents[i] = static_cast<std::uint64_t>(data.shape(static_cast<index_t>(i)));
  }
  constexpr std::size_t kSlackOfImages = std::size_t{16} << 20;
  const std::size_t most =
      static_cast<std::size_t>(data.nbytes()) + 2 * text_bytes + kSlackOfImages;
  io_detail::SharedMemory memory(most + io_detail::kResultBytes);
  auto* built = new (memory.data()) BuiltFile;
  const auto work = [&] {
    const std::string problem =
        io_detail::build_image_file(parts, [&](const void* bytes, std::size_t n_bytes) {
          if (n_bytes > most) return;
          std::memcpy(memory.data() + io_detail::kResultBytes, bytes, n_bytes);
          built->n_bytes = n_bytes;
        });
    problem.copy(built->error, sizeof(built->error) - 1);
  };
  io_detail::ChildLimits limits;
  limits.looping_s = 3600;
  limits.stalled_s = 3600;
  limits.private_bytes += 2 * most;
  io_detail::ChildEnd end;
  {
    const std::shared_lock lock(io_detail::hdf5_lock());
    io_detail::check_hdf5_is_whole();
    end = io_detail::run_isolated(work, built->progress, limits);
  }
  built->error[sizeof(built->error) - 1] = '\0';
  if (end != io_detail::ChildEnd::finished || built->n_bytes == 0 || built->n_bytes > most) {
    throw IoError(fmt::format("[{}] cannot be built in memory: {}.", path,
                              built->error[0] != '\0' ? built->error : "HDF5 failed"));
  }
  AtomicFile file(path);
  file.write(memory.data() + io_detail::kResultBytes, built->n_bytes);
  file.commit();
}

}  // namespace palimpsest
