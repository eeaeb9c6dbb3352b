// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "palimpsest/io/bytes.hpp"

namespace palimpsest::testing {

/// A NIfTI file made by hand, field by field.
class NiftiBytes {
 public:
  explicit NiftiBytes(int version, bool swapped = false) : version_(version), swapped_(swapped) {
    bytes_.assign(version == 1 ? 348 : 540, '\0');
    put<std::int32_t>(0, version == 1 ? 348 : 540);
    if (version == 1) {
      text(344, std::string("n+1\0", 4));
      put<float>(108, 352);
    } else {
      text(4, std::string("n+2\0\r\n\032\n", 8));
      put<std::int64_t>(168, 544);
    }
  }

  template <class T>
  NiftiBytes& put(std::size_t offset, T value) {
    if (swapped_) io_detail::swap_bytes(&value, sizeof(T), 1);
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
    return *this;
  }
  NiftiBytes& text(std::size_t offset, const std::string& value) {
    bytes_.replace(offset, value.size(), value);
    return *this;
  }

  NiftiBytes& dims(const std::vector<int>& extents) {
    put_dim(0, static_cast<int>(extents.size()));
    for (std::size_t i = 0; i < extents.size(); ++i) put_dim(i + 1, extents[i]);
    return *this;
  }
  NiftiBytes& type(int code) { return put<std::int16_t>(version_ == 1 ? 70 : 12, short(code)); }
  NiftiBytes& scaling(double slope, double intercept) {
    return put_real(version_ == 1 ? 112 : 176, slope)
        .put_real(version_ == 1 ? 116 : 184, intercept);
  }
  NiftiBytes& spacing(double x, double y, double z) {
    const std::size_t at = version_ == 1 ? 80 : 112, step = version_ == 1 ? 4 : 8;
    return put_real(at, x).put_real(at + step, y).put_real(at + 2 * step, z);
  }
  NiftiBytes& units(int code) {
    return version_ == 1 ? put<std::int8_t>(123, std::int8_t(code)) : put<std::int32_t>(500, code);
  }
  NiftiBytes& description(const std::string& value) {
    return text(version_ == 1 ? 148 : 240, value);
  }

  template <class T>
  std::string file(const std::vector<T>& voxels) const {
    std::vector<T> stored = voxels;
    if (swapped_) io_detail::swap_bytes(stored.data(), sizeof(T), stored.size());
    return bytes_ + std::string(4, '\0') +
           std::string(reinterpret_cast<const char*>(stored.data()), stored.size() * sizeof(T));
  }

 private:
  void put_dim(std::size_t i, int value) {
    if (version_ == 1) {
      put<std::int16_t>(40 + 2 * i, static_cast<std::int16_t>(value));
    } else {
      put<std::int64_t>(16 + 8 * i, value);
    }
  }
  NiftiBytes& put_real(std::size_t offset, double value) {
    return version_ == 1 ? put<float>(offset, static_cast<float>(value)) : put(offset, value);
  }

  int version_;
  bool swapped_;
  std::string bytes_;
};

inline std::string gzipped(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, bytes.size()) + 64, '\0');
  std::vector<unsigned char> in(bytes.begin(), bytes.end());
  stream.next_in = in.data();
  stream.avail_in = static_cast<unsigned>(in.size());
  stream.next_out = reinterpret_cast<unsigned char*>(result.data());
  stream.avail_out = static_cast<unsigned>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace palimpsest::testing
