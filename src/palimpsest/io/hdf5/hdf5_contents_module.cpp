// SPDX-License-Identifier: Apache-2.0
// Tells what an HDF5 file holds that is no ISMRMRD file.
#include <algorithm>
#include <vector>

#include "palimpsest/io/hdf5/hdf5_handles.hpp"

namespace palimpsest::io_detail {
namespace {

constexpr hsize_t kMostNames = 6;
constexpr std::size_t kLongestName = 40, kLongestList = 300;  // bytes of the text of an error

std::vector<std::string> names_of(hid_t group) {
  H5G_info_t info = {};
  check(H5Gget_info(group, &info), "a group cannot be listed");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < std::min(info.nlinks, kMostNames); ++i) {
    char name[200] = {};
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                              sizeof(name), H5P_DEFAULT);
    if (length > 0 && length < std::ssize(name)) names.emplace_back(name);
  }
  return names;
}

bool is_hard_link(hid_t group, const std::string& name) {
  H5L_info_t link = {};
  return H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD;
}

bool is_object(hid_t group, const std::string& name, H5O_type_t type) {
  H5O_info_t info = {};
  return H5Lexists(group, name.c_str(), H5P_DEFAULT) > 0 && is_hard_link(group, name) &&
         H5Oget_info_by_name(group, name.c_str(), &info, H5P_DEFAULT) >= 0 && info.type == type;
}

bool is_scan(hid_t parent, const std::string& name) {
  if (!is_object(parent, name, H5O_TYPE_GROUP)) return false;
  const Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "no group");
  return is_object(group, "xml", H5O_TYPE_DATASET) && is_object(group, "data", H5O_TYPE_DATASET);
}

std::string shown(const std::string& name) {
  std::string text = name.substr(0, kLongestName);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text + (name.size() > kLongestName ? ".." : "");
}

std::string elements_text(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_2 ? "" : "u", bits);
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_STRING:
      return "text";
    case H5T_COMPOUND:
      if (H5Tget_nmembers(type) == 2 && H5Tget_member_class(type, 0) == H5T_FLOAT &&
          H5Tget_member_class(type, 1) == H5T_FLOAT) {
        return fmt::format("complex{}", bits);
      }
      return "records";
    default:
      return "other elements";
  }
}

// `kspace: complex64 (20, 15, 640, 320)`.
std::string array_text(hid_t group, const std::string& name) {
  const Handle array(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, "no array");
  const Handle type(H5Dget_type(array), H5Tclose, "no type");
  const Handle space(H5Dget_space(array), H5Sclose, "no extent");
  hsize_t extents[H5S_MAX_RANK] = {};
  const int rank = H5Sget_simple_extent_ndims(space);
  check(H5Sget_simple_extent_dims(space, extents, nullptr), "no extent");
  std::string text;
  for (int i = 0; i < rank; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", extents[i]);
  return fmt::format("{}: {}{}", shown(name), elements_text(type),
                     rank > 0 ? " (" + text + ")" : "");
}

std::string entry_text(hid_t parent, const std::string& name) {
  if (is_object(parent, name, H5O_TYPE_DATASET)) return array_text(parent, name);
  if (!is_object(parent, name, H5O_TYPE_GROUP)) return shown(name);
  const Handle group(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "no group");
  std::string text;
  for (const std::string& part : names_of(group)) {
    text += (text.empty() ? "" : ", ") + shown(part);
  }
  return fmt::format("group {} [{}]", shown(name), text);
}

}  // namespace

void require_parts(hid_t file, std::initializer_list<const char*> parts) {
  if (is_object(file, "dataset", H5O_TYPE_GROUP)) {
    const Handle group(H5Gopen2(file, "dataset", H5P_DEFAULT), H5Gclose, "no group");
    const bool has_all = std::all_of(parts.begin(), parts.end(), [&](const char* part) {
      return H5Lexists(group, part, H5P_DEFAULT) > 0;
    });
    if (has_all) return;
  } else if (H5Lexists(file, "dataset", H5P_DEFAULT) > 0 && !is_hard_link(file, "dataset")) {
    throw Hdf5Failure{"'dataset' leads into another file"};
  }
  std::string text, advice = "Try to save its array as NPY";
  for (const std::string& name : names_of(file)) {
    text += (text.empty() ? "" : "; ") + entry_text(file, name);
    if (is_scan(file, name) && name != "dataset") {
      advice = fmt::format(
          "Try h5copy -i FILE -o NEW.h5 -s '{0}' -d dataset, for its scan in the "
          "group '{0}'",
          shown(name));
    }
  }
  if (text.size() > kLongestList) text = text.substr(0, kLongestList) + " ..";
  throw Hdf5Failure{fmt::format("is an HDF5 file without an ISMRMRD data set; it holds {}. {}.",
                                text.empty() ? "nothing" : text, advice),
                    true};
}

}  // namespace palimpsest::io_detail
