// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/npy.hpp"

#include "io/files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;
using namespace std::string_literals;

constexpr DType kAllDTypes[] = {DType::bool_,     DType::int8,    DType::int16,   DType::int32,
                                DType::int64,     DType::uint8,   DType::uint16,  DType::uint32,
                                DType::uint64,    DType::float32, DType::float64, DType::complex64,
                                DType::complex128};

/// A file of format 1.0 with this header and these elements.
std::string npy(const std::string& dict, const std::string& elements) {
  std::string header = dict + "\n";
  std::string bytes = "\x93NUMPY\x01"s + '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + elements;
}

class NpyText : public ::testing::Test {
 protected:
  Tensor read(const std::string& bytes) {
    write_bytes(directory_ / "a.npy", bytes);
    return read_npy(directory_ / "a.npy");
  }
  void expect_refused(const std::string& bytes, const std::string& text) {
    expect_error<FormatError>([&] { read(bytes); }, text);
    expect_error<FormatError>([&] { map_npy(directory_ / "a.npy"); }, text);
  }
  TemporaryDirectory directory_;
};

TEST(Npy, EveryDTypeComesBack) {
  const TemporaryDirectory directory;
  for (const DType dtype : kAllDTypes) {
    const Tensor t = counting({2, 3, 4}, dtype);
    write_npy(directory / "a.npy", t);
    EXPECT_TRUE(equal(read_npy(directory / "a.npy"), t)) << name_of(dtype);
  }
}

TEST(Npy, EveryRankComesBack) {
  const TemporaryDirectory directory;
  for (const Extents& shape : {Extents{}, Extents{5}, Extents{0}, Extents{3, 0, 2},
                               Extents{1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 3}}) {
    const Tensor t = counting(shape, DType::float32);
    write_npy(directory / "a.npy", t);
    EXPECT_TRUE(equal(read_npy(directory / "a.npy"), t)) << to_string(shape);
  }
}

TEST(Npy, WritesTheBytesThatNumPyWrites) {
  const TemporaryDirectory directory;
  write_npy(directory / "a.npy", Tensor::from(std::vector<std::int16_t>{1, -2}));
  std::string dict = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
  dict.resize(128 - 10 - 1, ' ');
  EXPECT_EQ(read_bytes(directory / "a.npy"), npy(dict, "\x01\x00\xfe\xff"s));
}

TEST(Npy, WritesViewsWithoutChangingTheirElements) {
  const TemporaryDirectory directory;
  const Tensor t = counting({300, 20, 70}, DType::float64);
  for (const Tensor& view :
       {t.transpose(), t.permute({1, 0, 2}), t(slice({}, {}, -3), all, slice(1, {}, 2)),
        t.select(0, 1).unsqueeze(0).expand({40, 20, 70})}) {
    write_npy(directory / "a.npy", view);
    EXPECT_TRUE(equal(read_npy(directory / "a.npy"), view)) << to_string(view.shape());
  }
}

TEST(Npy, WritesFortranOrderWhereThatIsTheOrderInMemory) {
  const TemporaryDirectory directory;
  const Tensor t = counting({2, 3}, DType::float32);
  write_npy(directory / "a.npy", t.transpose());
  EXPECT_NE(read_bytes(directory / "a.npy").find("'fortran_order': True, 'shape': (3, 2)"),
            std::string::npos);
  const Tensor back = read_npy(directory / "a.npy");
  EXPECT_TRUE(equal(back, t.transpose()));
  EXPECT_EQ(back.strides(), (Strides{1, 3}));
}

TEST(Npy, MapsWhatItReads) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.npy";
  for (const DType dtype : kAllDTypes) {
    for (const bool transposed : {false, true}) {
      const Tensor t = counting({2, 3, 4}, dtype);
      write_npy(path, transposed ? t.transpose() : t);
      EXPECT_TRUE(equal(map_npy(path), read_npy(path))) << name_of(dtype);
    }
  }
  write_npy(path, Tensor::zeros({0, 3}, DType::float32));
  EXPECT_EQ(map_npy(path).shape(), (Extents{0, 3}));
}

TEST(Npy, WhatIsMappedIsInTheFileUntilItIsWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.npy";
  const Tensor t = counting({100, 100}, DType::float64);
  write_npy(path, t);
  Tensor mapped = map_npy(path);
  EXPECT_NE(mapped.storage().state(), StorageState::owned);
  mapped.set<double>({3, 4}, -1);
  EXPECT_EQ(mapped.storage().state(), StorageState::owned);
  EXPECT_TRUE(equal(read_npy(path), t));
}

TEST_F(NpyText, MapsOtherByteOrdersByReadingThem) {
  write_bytes(directory_ / "a.npy",
              npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", "\x01\x02\x03\x04"s));
  EXPECT_EQ(map_npy(directory_ / "a.npy").to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{0x0102, 0x0304}));
}

TEST_F(NpyText, ReadsTheOtherByteOrder) {
  EXPECT_EQ(
      read(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", "\x01\x02\x03\x04"s))
          .to_vector<std::uint16_t>(),
      (std::vector<std::uint16_t>{0x0102, 0x0304}));
  EXPECT_EQ(read(npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
                     "\x3f\x80\x00\x00\x40\x00\x00\x00"s))
                .item<std::complex<float>>(),
            std::complex<float>(1, 2));
  EXPECT_EQ(read(npy("{'descr': '>f8', 'fortran_order': False, 'shape': (1,)}",
                     "\x3f\xf0\x00\x00\x00\x00\x00\x00"s))
                .item<double>(),
            1.0);
}

TEST_F(NpyText, ReadsVersions2And3) {
  const std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
  for (const char version : {'\x02', '\x03'}) {
    std::string bytes = "\x93NUMPY"s + version + '\0';
    bytes += static_cast<char>(dict.size());
    bytes += "\0\0\0"s + dict + "abc";
    EXPECT_EQ(read(bytes).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{97, 98, 99}));
  }
}

TEST_F(NpyText, ReadsKeysInAnyOrderAndStyle) {
  EXPECT_EQ(read(npy("{\"shape\":(1,2L),'fortran_order':True,'descr':\"|b1\"}", "\x07\x00"s))
                .to_vector<bool>(),
            (std::vector<bool>{true, false}));
}

TEST_F(NpyText, RefusesWhatIsNoHeader) {
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
  expect_refused("", "is not an NPY file");
  expect_refused("\x93NUMPX\x01\0\0\0\0\0"s, "is not an NPY file");
  expect_refused("\x93NUMPY\x04\0\0\0\0\0"s, "has NPY version 4.0, expected 1.0, 2.0 or 3.0");
  expect_refused("\x93NUMPY\x01\0\xff\xff{}"s, "is truncated or damaged: its header announces");
  expect_refused("\x93NUMPY\x02\0\xff\xff\xff\xff{}"s, "announces 4294967295 bytes");
  expect_refused(npy("", ""), "got its end, expected '{'");
  expect_refused(npy(good + "x", "a"), "text after the closing brace");
  expect_refused(npy("{'descr': '|u1', 'shape': (1,)}", "a"), "not all of descr");
  expect_refused(npy("{'descr': '|u1', 'descr': '|u1'}", "a"), "repeated key 'descr'");
  expect_refused(npy("{'desc': '|u1'}", "a"), "an unexpected or repeated key 'desc'");
  expect_refused(npy("{descr: '|u1'}", "a"), "something else than a string");
  expect_refused(npy("{'descr", "a"), "a string without an end");
  expect_refused(npy("{'descr': '|u1', 'fortran_order': 0}", "a"), "neither True nor False");
  expect_refused(npy("{'descr' '|u1'}", "a"), "expected ':'");
}

TEST_F(NpyText, RefusesShapesThatAreNone) {
  const auto with_shape = [](const std::string& shape) {
    return npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}", "12345678");
  };
  expect_refused(with_shape("(1)"), "a number in parentheses");
  expect_refused(with_shape("(-1,)"), "no extent");
  expect_refused(with_shape("(1 1)"), "extents without a comma");
  expect_refused(with_shape("[1]"), "expected '('");
  expect_refused(with_shape("(9223372036854775808,)"), "no extent");
  expect_refused(with_shape("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "16 axes");
  expect_refused(with_shape("(9223372036854775807, 2)"), "announces an impossible shape");
  expect_refused(with_shape("(1152921504606846976,)"), "announces an impossible shape");
}

TEST_F(NpyText, RefusesSizesThatTheFileDoesNotHave) {
  const std::string dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}";
  expect_refused(npy(dict, "1234567"),
                 "is truncated: got 7 bytes of elements, expected 8000000000000 for float64");
  expect_refused(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "123"),
                 "is longer than its header says: got 3 bytes of elements, expected 2");
}

TEST_F(NpyText, NamesElementTypesThatItDoesNotRead) {
  for (const std::string descr : {"<f2", "<U4", "|O", "<M8[s]", "|f8", "f8", "", "<c32", "<b2"}) {
    expect_refused(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (0,)}", ""),
                   "holds elements of type '" + descr + "'");
  }
  expect_refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,)}", ""),
                 "something else than a string");
}

TEST(Npy, NamesAFileThatIsNotThere) {
  const TemporaryDirectory directory;
  expect_error<IoError>([&] { read_npy(directory / "none.npy"); },
                        "none.npy] cannot be read: no such file");
  expect_error<IoError>([&] { read_npy(directory.path()); }, "Is a directory");
  expect_error<IoError>([&] { read_npy("/dev/null"); }, "expected a regular file");
}

}  // namespace
}  // namespace palimpsest
