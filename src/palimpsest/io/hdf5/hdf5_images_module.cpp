// SPDX-License-Identifier: Apache-2.0
// Images of an ISMRMRD file: in the group `dataset` a group for each series, which holds `header`,
// one compound per image, `attributes`, one string per image, and `data`, (image, channel, z, y,
// x).
#include <algorithm>
#include <iterator>

#include "palimpsest/io/hdf5/hdf5_handles.hpp"

namespace palimpsest::io_detail {
namespace {

constexpr std::uint64_t kMostImages = std::uint64_t{1} << 24;

Handle image_head_type() {
  using R = ImageHeadRecord;
  const hid_t u16 = H5T_NATIVE_UINT16, u32 = H5T_NATIVE_UINT32, u64 = H5T_NATIVE_UINT64;
  const hid_t f32 = H5T_NATIVE_FLOAT;
  return compound_type(sizeof(R),
                       {{"version", offsetof(R, version), u16},
                        {"data_type", offsetof(R, data_type), u16},
                        {"flags", offsetof(R, flags), u64},
                        {"measurement_uid", offsetof(R, measurement_uid), u32},
                        {"matrix_size", offsetof(R, matrix_size), u16, 3},
                        {"field_of_view", offsetof(R, field_of_view), f32, 3},
                        {"channels", offsetof(R, channels), u16},
                        {"position", offsetof(R, position), f32, 3},
                        {"read_dir", offsetof(R, read_dir), f32, 3},
                        {"phase_dir", offsetof(R, phase_dir), f32, 3},
                        {"slice_dir", offsetof(R, slice_dir), f32, 3},
                        {"patient_table_position", offsetof(R, patient_table_position), f32, 3},
                        {"average", offsetof(R, average), u16},
                        {"slice", offsetof(R, slice), u16},
                        {"contrast", offsetof(R, contrast), u16},
                        {"phase", offsetof(R, phase), u16},
                        {"repetition", offsetof(R, repetition), u16},
                        {"set", offsetof(R, set), u16},
                        {"acquisition_time_stamp", offsetof(R, acquisition_time_stamp), u32},
                        {"physiology_time_stamp", offsetof(R, physiology_time_stamp), u32, 3},
                        {"image_type", offsetof(R, image_type), u16},
                        {"image_index", offsetof(R, image_index), u16},
                        {"image_series_index", offsetof(R, image_series_index), u16},
                        {"user_int", offsetof(R, user_int), H5T_NATIVE_INT32, 8},
                        {"user_float", offsetof(R, user_float), f32, 8},
                        {"attribute_string_len", offsetof(R, attribute_string_len), u32}});
}

template <class T>
Handle complex_type(hid_t part) {
  return compound_type(2 * sizeof(T), {{"real", 0, part}, {"imag", sizeof(T), part}});
}

// Elements as they lie in memory, by the standard's number.
Handle element_type(int code) {
  const auto copy = [](hid_t type) { return Handle(H5Tcopy(type), H5Tclose, "no type"); };
  switch (code) {
    case 1:
      return copy(H5T_NATIVE_UINT16);
    case 2:
      return copy(H5T_NATIVE_INT16);
    case 3:
      return copy(H5T_NATIVE_UINT32);
    case 4:
      return copy(H5T_NATIVE_INT32);
    case 5:
      return copy(H5T_NATIVE_FLOAT);
    case 6:
      return copy(H5T_NATIVE_DOUBLE);
    case 7:
      return complex_type<float>(H5T_NATIVE_FLOAT);
    default:
      return complex_type<double>(H5T_NATIVE_DOUBLE);
  }
}

// The standard's number for elements of a file.
int code_of(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      if (size == 2) return is_signed ? 2 : 1;
      if (size == 4) return is_signed ? 4 : 3;
      break;
    }
    case H5T_FLOAT:
      if (size == 4) return 5;
      if (size == 8) return 6;
      break;
    case H5T_COMPOUND:
      if (H5Tget_nmembers(type) == 2 && has_member(type, "real", H5T_FLOAT) &&
          has_member(type, "imag", H5T_FLOAT)) {
        return size == 8 ? 7 : size == 16 ? 8 : 0;
      }
      break;
    default:
      break;
  }
  return 0;
}

// -- reading -------------------------------------------------------------------------------------

bool has_link(hid_t group, const char* name) { return H5Lexists(group, name, H5P_DEFAULT) > 0; }

bool is_series(hid_t group, const char* name) {
  H5O_info_t info = {};
  if (H5Oget_info_by_name(group, name, &info, H5P_DEFAULT) < 0) return false;
  if (info.type != H5O_TYPE_GROUP) return false;
  const Handle series(H5Gopen2(group, name, H5P_DEFAULT), H5Gclose, "no group");
  return has_link(series, "data") && has_link(series, "header");
}

std::string series_names(hid_t group) {
  constexpr hsize_t kMost = 1000;
  H5G_info_t info = {};
  check(H5Gget_info(group, &info), "'dataset' cannot be listed");
  std::string names;
  for (hsize_t i = 0; i < std::min(info.nlinks, kMost); ++i) {
    char name[200] = {};
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                              sizeof(name), H5P_DEFAULT);
    if (length <= 0 || length >= std::ssize(name)) continue;
    H5L_info_t link = {};
    if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) continue;
    if (is_series(group, name)) names += std::string(name) + "\n";
  }
  return names;
}

std::uint64_t keep(Arena& arena, const std::string& text) {
  void* place = arena.allocate(text.size() + 1);
  if (place == nullptr) throw Hdf5Failure{"its texts are longer than the file"};
  std::memcpy(place, text.c_str(), text.size() + 1);
  return arena.offset_of(place);
}

void read_attributes(hid_t series, std::uint64_t file_bytes, std::uint64_t n_images, hid_t transfer,
                     Arena& arena, ImageFileResult& result) {
  if (!has_link(series, "attributes")) return;
  const auto [dataset, n] = open_dataset(series, "attributes", file_bytes);
  const Handle type(H5Dget_type(dataset), H5Tclose, "no type");
  if (n != n_images || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) <= 0) return;
  auto* texts = static_cast<const char**>(arena.allocate(n * sizeof(const char*)));
  if (texts == nullptr) throw Hdf5Failure{"it announces more attributes than it has bytes"};
  const Handle string = variable_string_type();
  check(H5Tset_cset(string, H5Tget_cset(type)), "no string type");
  check(H5Dread(dataset, string, H5S_ALL, H5S_ALL, transfer, texts), "its attributes are damaged");
  std::string all;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (texts[i] != nullptr) all.append(texts[i], ::strnlen(texts[i], kLongestXml));
    all.push_back('\0');
  }
  result.attributes_offset = keep(arena, all);
  result.attributes_length = all.size();
}

void read_series(hid_t series, std::uint64_t file_bytes, hid_t transfer, Arena& arena,
                 ImageFileResult& result) {
  const auto [data, n_elements] = open_dataset(series, "data", file_bytes);
  const Handle type(H5Dget_type(data), H5Tclose, "no type");
  result.data_type = code_of(type);
  if (result.data_type == 0) throw Hdf5Failure{"its images have elements of an unknown type"};
  const Handle space(H5Dget_space(data), H5Sclose, "no extent");
  hsize_t extents[5] = {};
  if (H5Sget_simple_extent_ndims(space) != 5 ||
      H5Sget_simple_extent_dims(space, extents, nullptr) != 5) {
    throw Hdf5Failure{"its images are not an array (image, channel, z, y, x)"};
  }
  std::copy(std::begin(extents), std::end(extents), std::begin(result.extents));
  const auto [heads, n_images] = open_dataset(series, "header", file_bytes);
  const Handle given(H5Dget_type(heads), H5Tclose, "no type");
  if (n_images != extents[0] || n_images > kMostImages || H5Tget_class(given) != H5T_COMPOUND ||
      !has_member(given, "position", H5T_ARRAY) || !has_member(given, "field_of_view", H5T_ARRAY)) {
    throw Hdf5Failure{"its image headers do not fit its images"};
  }
  const Handle head = image_head_type();
  void* head_place = arena.allocate(n_images * sizeof(ImageHeadRecord));
  const Handle element = element_type(result.data_type);
  void* place = arena.allocate(n_elements * H5Tget_size(element));
  if (head_place == nullptr || place == nullptr) {
    throw Hdf5Failure{"it announces more images than it has bytes"};
  }
  check(H5Dread(heads, head, H5S_ALL, H5S_ALL, transfer, head_place), "its headers are damaged");
  result.progress.fetch_add(1, std::memory_order_relaxed);
  check(H5Dread(data, element, H5S_ALL, H5S_ALL, transfer, place), "its images are damaged");
  result.heads_offset = arena.offset_of(head_place);
  result.data_offset = arena.offset_of(place);
  read_attributes(series, file_bytes, n_images, transfer, arena, result);
}

void parse(const std::string& path, std::uint64_t file_bytes, const std::string& wanted,
           Arena& arena, ImageFileResult& result) {
  const Handle file = open_file(path);
  require_parts(file, {});
  const Handle group(H5Gopen2(file, "dataset", H5P_DEFAULT), H5Gclose, "'dataset' is not a group");
  Budget budget = {&arena, &result.progress};
  const Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "no properties");
  check(H5Pset_vlen_mem_manager(transfer, allocate_from, &budget, free_nothing, &budget),
        "no properties");
  result.has_scan = has_link(group, "data");
  if (has_link(group, "xml")) {
    read_xml(group, file_bytes, transfer, arena, result.xml_offset, result.xml_length);
  }
  const std::string names = series_names(group);
  result.names_offset = keep(arena, names);
  result.names_length = names.size();
  const std::string name = wanted.empty() ? names.substr(0, names.find('\n')) : wanted;
  if (name.empty()) return;
  if (!wanted.empty() && (wanted.find('/') != std::string::npos ||
                          ("\n" + names).find("\n" + wanted + "\n") == std::string::npos)) {
    throw Hdf5Failure{fmt::format("it has no images '{}'", wanted)};
  }
  const Handle series(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose, "no group");
  read_series(series, file_bytes, transfer, arena, result);
}

// -- writing -------------------------------------------------------------------------------------

// Other tools append images, which takes chunks and an open end.
void write_along_images(hid_t group, const char* name, hid_t type, int rank, const hsize_t* extents,
                        const void* values) {
  hsize_t most[5] = {}, chunk[5] = {};
  for (int i = 0; i < rank; ++i) {
    most[i] = i == 0 ? H5S_UNLIMITED : extents[i];
    chunk[i] = i == 0 ? 1 : extents[i];
  }
  const Handle space(H5Screate_simple(rank, extents, most), H5Sclose, "no extent");
  const Handle plist(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "no properties");
  check(H5Pset_chunk(plist, rank, chunk), "no chunks");
  const Handle dataset(H5Dcreate2(group, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT),
                       H5Dclose, "no dataset");
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "no images");
}

void fill(hid_t file, const ImageFileParts& parts) {
  const Handle group = make_group(file, "dataset");
  write_xml(group, parts.xml);
  const Handle series = make_group(group, parts.series.c_str());
  const hsize_t n = parts.heads.size();
  const Handle head = image_head_type();
  write_along_images(series, "header", head, 1, &n, parts.heads.data());
  const Handle string = variable_string_type();
  std::vector<const char*> texts;
  for (const std::string& text : parts.attributes) texts.push_back(text.c_str());
  write_along_images(series, "attributes", string, 1, &n, texts.data());
  hsize_t extents[5];
  std::copy(std::begin(parts.extents), std::end(parts.extents), extents);
  write_along_images(series, "data", element_type(parts.data_type), 5, extents, parts.data);
}

}  // namespace

void parse_images(const std::string& path, std::uint64_t file_bytes, const std::string& series,
                  Arena& arena, ImageFileResult& result) {
  parse_into(result, path, [&] { parse(path, file_bytes, series, arena, result); });
}

std::string build_images(const ImageFileParts& parts,
                         const std::function<void(const void*, std::size_t)>& use_image) {
  return build_in_memory([&](hid_t file) { fill(file, parts); }, use_image);
}

}  // namespace palimpsest::io_detail
