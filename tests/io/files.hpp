// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::testing {

/// A directory that is removed at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "palimpsest-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Names of everything inside, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      result.push_back(entry.path().filename().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::string path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  // File systems protect overwritten files, which costs milliseconds.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Elements of any dtype: 0, 1, 2, .., with different imaginary parts; booleans alternate.
inline Tensor counting(const Extents& shape, DType dtype) {
  const index_t n = element_count(shape);
  if (!is_complex(dtype)) {
    const Tensor numbers = Tensor::arange(n, DType::int64);
    if (!is_bool(dtype)) return numbers.to(dtype).reshape(shape);
    std::vector<bool> odd;
    for (index_t i = 0; i < n; ++i) odd.push_back(i % 2 == 1);
    Tensor result = Tensor::empty(shape, dtype);
    bool* out = result.mutable_data<bool>();
    std::copy(odd.begin(), odd.end(), out);
    return result;
  }
  std::vector<std::complex<double>> values;
  for (index_t i = 0; i < n; ++i) values.emplace_back(double(i), 0.5 - double(i));
  return Tensor::from(values, shape).to(dtype);
}

/// A copy with one of several kinds of damage at random positions.
inline std::string damaged(const std::string& bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  std::string result = bytes;
  const std::size_t at = below(result.size());
  const std::size_t length = 1 + below(std::min<std::size_t>(64, result.size() - at));
  switch (below(7)) {
    case 0:
      for (std::size_t i = 0; i <= below(8); ++i) {
        result[below(result.size())] ^= static_cast<char>(1u << below(8));
      }
      break;
    case 1:
      result.resize(at);
      break;
    case 2:
      std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
      break;
    case 3:
      std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(at), length, '\xff');
      break;
    case 4:
      result.insert(at, length, static_cast<char>(random()));
      break;
    case 5:
      result.erase(at, length);
      break;
    default:
      result.replace(at, length, result.substr(below(result.size()), length));
  }
  return result;
}

/// Reads `n` damaged copies: each is read or refused with an IoError. Half of the damage hits the
/// header, where it has consequences.
template <class Read>
void expect_survives_damage(const std::string& good, const std::string& path, std::size_t header,
                            int n, Read read) {
  std::mt19937 random(20240607);
  int n_refused = 0;
  for (int i = 0; i < n; ++i) {
    std::string bad;
    if (i % 2 == 0) {
      bad = damaged(good, random);
    } else {
      bad = damaged(good.substr(0, header), random) + good.substr(header);
    }
    write_bytes(path, bad);
    try {
      read(path);
    } catch (const IoError& error) {
      ++n_refused;
      EXPECT_NE(std::string(error.what()).find("["), std::string::npos) << error.what();
    } catch (const std::exception& error) {
      FAIL() << "damage " << i << " of seed 20240607: " << error.what();
    }
  }
  EXPECT_GT(n_refused, n / 10);
}

}  // namespace palimpsest::testing
