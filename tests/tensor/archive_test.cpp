// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/archive.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "io/files.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;
using Bytes = std::vector<std::byte>;

Bytes archive_of(const std::vector<Tensor>& tensors, const std::string& content = "{}") {
  ArchiveWriter writer("test");
  for (const Tensor& t : tensors) writer.add(t);
  return writer.to_bytes(content);
}

Tensor range(Extents shape, DType dtype) {
  return Tensor::arange(element_count(shape), DType::int64).to(dtype).reshape(shape);
}

// The manifest changed by `edit`, with a recomputed hash.
Bytes with_manifest(const Bytes& bytes, const std::function<void(std::string&)>& edit) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + 24, 8);
  std::string text(reinterpret_cast<const char*>(bytes.data()) + 64, length);
  edit(text);
  EXPECT_LE(text.size(), length);
  text.resize(length, ' ');
  Bytes result = bytes;
  std::memcpy(result.data() + 64, text.data(), length);
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  std::memcpy(result.data() + 40, &hash, 8);
  return result;
}

Bytes replaced(const Bytes& bytes, const std::string& old, const std::string& with) {
  return with_manifest(bytes, [&](std::string& text) {
    const auto at = text.find(old);
    ASSERT_NE(at, std::string::npos) << old << " in " << text;
    text.replace(at, old.size(), with);
  });
}

TEST(Archive, KeepsValuesLayoutsAndSharing) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const Tensor base = range({6, 8}, dtype);
    const std::vector<Tensor> tensors = {base,
                                         base.transpose(),
                                         base(slice(1, {}, 2), slice({}, {}, -1)),
                                         base(2, all).expand({3, 8}),
                                         range({}, dtype),
                                         Tensor::empty({0, 3}, dtype),
                                         base.lazy_clone()};
    const Archive archive = Archive::from_bytes(archive_of(tensors, R"({"a":[1,2.5,null]})"));
    EXPECT_EQ(archive.kind(), "test");
    EXPECT_EQ(archive.content(), R"({"a":[1,2.5,null]})");
    ASSERT_EQ(archive.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(equal(archive.tensor(i), tensors[i])) << name_of(dtype) << " " << i;
      EXPECT_EQ(archive.tensor(i).strides(), tensors[i].strides()) << i;
      for (std::size_t j = 0; j < tensors.size(); ++j) {
        EXPECT_EQ(shares_storage(archive.tensor(i), archive.tensor(j)),
                  shares_storage(tensors[i], tensors[j]));
      }
    }
  }
}

TEST(Archive, SameTensorsGiveTheSameBytes) {
  const Tensor a = range({5, 7}, DType::float32);
  EXPECT_EQ(archive_of({a, a(all, 3)}), archive_of({a, a(all, 3)}));
}

TEST(Archive, FileHoldsOnlyWhatTensorsUse) {
  const Tensor big = range({1000, 1000}, DType::float64);
  EXPECT_LT(archive_of({big(7, all)}).size(), 20000u);
  EXPECT_LT(archive_of({big(all, 7)}).size(), 20000u);
  const Archive archive = Archive::from_bytes(archive_of({big(all, 7), big(3, slice(5, 9))}));
  EXPECT_TRUE(equal(archive.tensor(0), big(all, 7)));
  EXPECT_TRUE(equal(archive.tensor(1), big(3, slice(5, 9))));
  EXPECT_TRUE(shares_storage(archive.tensor(0), archive.tensor(1)));
}

TEST(Archive, GapsOfMoreThanHalfOfTheBytesAreLeftOut) {
  constexpr index_t kPart = 4096;
  const Tensor whole = range({4 * kPart}, DType::float64);
  const auto bytes = [&](index_t used) {
    return archive_of({whole.narrow(0, 0, used), whole.narrow(0, 4 * kPart - used, used)}).size();
  };
  EXPECT_GE(bytes(kPart), std::size_t{4 * kPart * 8});
  EXPECT_LT(bytes(kPart / 2), std::size_t{3 * kPart * 8});
}

struct ArchiveFile : ::testing::Test {
  TemporaryDirectory directory;
  std::string path = directory / "a.pal";
  Tensor a = range({300, 400}, DType::float64), b = range({5}, DType::complex64);

  void save() const {
    ArchiveWriter writer("test");
    writer.add(a);
    writer.add(b);
    writer.save(path, R"({"x":1})");
  }
};

TEST_F(ArchiveFile, MappedTensorsTakeNoMemoryUntilWritten) {
  save();
  const auto before = read_bytes(path);
  const MemoryScope scope;
  const Archive archive = Archive::load(path);
  EXPECT_EQ(scope.allocated_bytes(), 0u);
  Tensor t = archive.tensor(0);
  EXPECT_TRUE(equal(t, a));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.raw_data()) % 4096, 0u);
  t.set<double>({0, 0}, -1);
  EXPECT_EQ(scope.allocated_bytes(), 300u * 400 * 8);
  EXPECT_EQ(t.at<double>({0, 0}), -1);
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_TRUE(equal(Archive::load(path).tensor(0), a));
}

TEST_F(ArchiveFile, HoldsTensorsOfTheMostAxes) {
  a = Tensor::ones(Extents(kMaxRank, 1));
  save();
  EXPECT_TRUE(equal(Archive::load(path).tensor(0), a));
}

TEST_F(ArchiveFile, MappingOutlivesArchiveAndName) {
  save();
  Tensor t = Archive::load(path).tensor(0);
  std::filesystem::remove(path);
  EXPECT_TRUE(equal(t, a));
}

TEST_F(ArchiveFile, LoadsIntoMemoryAndToOtherDevices) {
  save();
  const Archive in_memory = Archive::load(path, {.map = false, .verify = true});
  EXPECT_TRUE(equal(in_memory.tensor(0), a));
  EXPECT_EQ(in_memory.tensor(0).storage().state(), StorageState::owned);
  const Device other{DeviceType::cpu, 1};
  EXPECT_EQ(Archive::load(path, {.device = other}).tensor(1).device(), other);
  expect_error<NotSupported>(
      [&] {
        Archive::load(path, {.device = {DeviceType::cuda, 0}});
      },
      "cuda:0");
}

TEST_F(ArchiveFile, TensorsOfOtherDevicesAreFetched) {
  const Device other{DeviceType::cpu, 1};
  EXPECT_TRUE(equal(Archive::from_bytes(archive_of({a.to(other)})).tensor(0), a));
}

TEST_F(ArchiveFile, FailedSaveLeavesTheOldFile) {
  save();
  const auto before = read_bytes(path);
  ArchiveWriter writer("test");
  expect_error<ValueError>([&] { writer.save(path, "{not json"); }, "not JSON");
  expect_error<ValueError>([&] { writer.add(Tensor()); }, "undefined");
  EXPECT_EQ(read_bytes(path), before);
  expect_error<IoError>([&] { writer.save(directory / "none/b.pal", "{}"); }, "none/b.pal");
  expect_error<IoError>([&] { Archive::load(directory / "c.pal"); }, "c.pal");
}

TEST_F(ArchiveFile, ChangedDataAreFoundWhereTheyAreReadAndWhenAsked) {
  save();
  auto bytes = read_bytes(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(path, bytes);
  EXPECT_NO_THROW(Archive::load(path));
  expect_error<FormatError>([&] { Archive::load(path, {.verify = true}); }, "checksum: storage 1");
  expect_error<FormatError>([&] { Archive::load(path, {.map = false}); }, "checksum: storage 1");
}

// -- damaged and hostile -------------------------------------------------------------------------

void expect_refused(const Bytes& bytes, const std::string& what) {
  expect_error<FormatError>([&] { Archive::from_bytes(bytes, {}, "name.pal"); }, what);
}

struct DamagedArchive : ::testing::Test {
  Bytes good = archive_of({range({4, 5}, DType::float64), range({3}, DType::bool_)}, "[7]");
  Bytes with_byte(std::size_t at, int value) const {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return bytes;
  }
};

TEST_F(DamagedArchive, HeaderIsCheckedWordByWord) {
  Bytes other = with_byte(0, 'X');
  expect_refused(other, "[name.pal] magic");
  other.resize(8);
  expect_refused(other, "[name.pal] magic");
  expect_refused(with_byte(8, 2), "newer: version 2");
  expect_refused(with_byte(8, 0), "version: got 0");
  expect_refused(with_byte(12, 1), "newer: unknown flags");
  expect_refused(with_byte(16, 65), "manifest");
  expect_refused(with_byte(31, 0x7f), "manifest");
  expect_refused(with_byte(39, 0x7f), "truncated");
  expect_refused(with_byte(40, ~static_cast<int>(good[40]) & 255), "checksum");
  expect_refused(with_byte(70, '~'), "checksum");
  expect_refused(with_byte(50, 1), "newer");
  Bytes longer = good;
  longer.push_back({});
  expect_refused(longer, "manifest: 1 bytes follow the ");
}

TEST_F(DamagedArchive, EveryTruncationIsRefused) {
  for (std::size_t n = 0; n < good.size(); n += n < 2000 ? 1 : 97) {
    const std::span<const std::byte> part(good.data(), n);
    EXPECT_THROW(Archive::from_bytes(part), FormatError) << n;
  }
}

TEST_F(DamagedArchive, ManifestIsCheckedEntryByEntry) {
  const auto refused = [&](const std::string& old, const std::string& with,
                           const std::string& what) {
    expect_refused(replaced(good, old, with), what);
  };
  refused(R"("kind":"test")", R"("kind":7)", "not a text");
  refused(R"("storages":[{)", R"("storages": {)", "manifest");
  refused(R"("tensors")", R"("tensorz")", "has no \"tensors\"");
  refused(R"("content")", R"("contenu")", "has no \"content\"");
  refused(R"("offset":4096)", R"("offset":4097)", "aligned");
  refused(R"("offset":4096)", R"("offset":0)", "storage 0");
  refused(R"("offset":8192)", R"("offset":4096)", "storage 1");
  refused(R"("bytes":3)", R"("bytes":9)", "storage 1");
  refused(R"("bytes":160)", R"("bytes":-16)", "not a size");
  expect_refused(with_manifest(good, [](std::string& text) { text[text.find("xxh3") + 7] = 'g'; }),
                 "not a hash");
  refused(R"("storage":1)", R"("storage":2)", "index: \"storage\" of tensor 1");
  refused(R"("dtype":"float64")", R"("dtype":"floatXX")", "unknown type 'floatXX'");
  refused(R"("shape":[4,5])", R"("shape":[4,6])", "outside its storage");
  expect_refused(with_manifest(good,
                               [](std::string& text) {
                                 text.replace(text.find(R"("shape":[3])"), 11, R"("shape":[-3])");
                                 text.replace(text.find("test"), 4, "t");
                               }),
                 "not a size");
  refused(R"("strides":[5,1])", R"("strides":[-5])", "2 axes and 1 strides");
  refused(R"("strides":[5,1])", R"("strides":[9,1])", "outside its storage");
  refused(R"("strides":[5,1])", R"("strides":[.5])", "");
}

TEST_F(DamagedArchive, SizesThatOverflowAreRefused) {
  const std::string many = "999999999999";
  const auto edit = [&](std::string& text) {
    const auto at = text.find(R"("shape":[4,5],"strides":[5,1],"offset":0)");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 40, R"("shape":[)" + many + "," + many + R"(],"strides":[0,0])");
    text =
        text.substr(0, text.find("},{", at)) + R"(,"offset":0)" + text.substr(text.find("},{", at));
    text.erase(text.find(R"("format":"palimpsest archive",)"), 30);
    text.erase(text.find(R"("library":"palimpsest",)"), 23);
  };
  expect_refused(with_manifest(good, edit), "overflows");
}

TEST_F(DamagedArchive, DeepNestingIsRefusedBeforeItIsParsed) {
  const std::string one_too_deep = std::string(64, '[') + std::string(64, ']');
  expect_refused(archive_of({}, one_too_deep), "nested 65 levels deep, expected at most 64");
  const std::string deepest = std::string(63, '[') + std::string(63, ']');
  EXPECT_EQ(Archive::from_bytes(archive_of({}, deepest)).content(), deepest);
  std::string many = "[";
  for (int i = 0; i < 8'000'001; ++i) many += "0,";
  expect_refused(archive_of({}, many + "0]"), "values");
  // Digits do not count as values.
  many = "[";
  for (int i = 0; i < 500'000; ++i) many += "12345678901234567,";
  EXPECT_NO_THROW(Archive::from_bytes(archive_of({}, many + "0]")));
}

TEST_F(DamagedArchive, BracketsWithinTextNestNothing) {
  const std::string content = "{\"text\":\"" + std::string(5000, '[') + "\\\"{\"}";
  EXPECT_EQ(Archive::from_bytes(archive_of({}, content)).content(), content);
}

TEST_F(DamagedArchive, BoolsAreZeroOrOne) {
  // Mapped, since copied data are first compared with their checksum.
  const Bytes bytes = with_byte(good.size() - 1, 2);
  const TemporaryDirectory directory;
  write_bytes(directory / "a.pal",
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  expect_error<FormatError>([&] { Archive::load(directory / "a.pal"); },
                            "tensor 1 is of type bool");
  expect_refused(bytes, "checksum");
}

TEST_F(DamagedArchive, TensorNumbersAreChecked) {
  const Archive archive = Archive::from_bytes(good, {}, "name.pal");
  expect_error<FormatError>([&] { archive.tensor(2); }, "[name.pal] index: tensor 2");
}

// Damage with a valid hash, and any other damage: an archive or a FormatError.
TEST_F(DamagedArchive, RandomDamageIsAnArchiveOrAnError) {
  const int n = 10000;
  std::mt19937 random(5);
  std::uint64_t manifest_bytes = 0;
  std::memcpy(&manifest_bytes, good.data() + 24, 8);
  const MemoryScope scope;
  int refused = 0;
  for (int i = 0; i < n; ++i) {
    Bytes bytes = good;
    const bool in_manifest = random() % 4 != 0;
    for (unsigned k = 0, edits = 1 + random() % 3; k < edits; ++k) {
      const std::size_t at = in_manifest ? 64 + random() % manifest_bytes : random() % bytes.size();
      static constexpr std::string_view kLikely = "0123456789-[]{},:\"e.tfn";
      bytes[at] = static_cast<std::byte>(random() % 3 == 0 ? static_cast<unsigned char>(random())
                                                           : kLikely[random() % 23]);
    }
    if (in_manifest) {
      bytes = with_manifest(bytes, [](std::string&) {});
    }
    try {
      const Archive archive = Archive::from_bytes(bytes, {.verify = true});
      for (std::size_t t = 0; t < archive.size(); ++t) {
        if (archive.tensor(t).nbytes() < 1000) archive.tensor(t).clone();
      }
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, n / 2);
  EXPECT_LT(scope.peak_bytes(), 100'000u);
}

}  // namespace
}  // namespace palimpsest
