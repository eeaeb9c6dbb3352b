// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/archive_manifest.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "palimpsest/base/failure.hpp"
#include "palimpsest/memory/byte_layout.hpp"
#include "palimpsest/tensor/checked_json.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {
namespace {

using io_detail::CheckedJson;
using io_detail::Json;

static_assert(std::endian::native == std::endian::little, "archives are little-endian");

constexpr std::string_view kMagic = "PALIMPS1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 64;
constexpr std::uint64_t kMostManifestBytes = 256u << 20;
constexpr int kDeepestNesting = 64;
// Bounds the memory of parsed values: ten bytes of text can become one of them.
constexpr std::size_t kMostValues = 8'000'000;

struct Header {
  char magic[8];
  std::uint32_t version, flags;
  std::uint64_t manifest_offset, manifest_bytes, file_bytes, manifest_hash;
  std::uint64_t zero[2];
};
static_assert(sizeof(Header) == kHeadBytes);

std::uint64_t up_to_page(std::uint64_t n) {
  return (n + kArchivePage - 1) / kArchivePage * kArchivePage;
}

Json json_of(const ArchiveManifest& manifest, Json&& content) {
  Json json = {{"format", "palimpsest archive"},
               {"version", kVersion},
               {"library", "palimpsest"},
               {"kind", manifest.kind}};
  json["storages"] = Json::array();
  for (const ArchivedStorage& s : manifest.storages) {
    json["storages"].push_back(
        {{"offset", s.offset}, {"bytes", s.bytes}, {"xxh3", fmt::format("{:016x}", s.hash)}});
  }
  json["tensors"] = Json::array();
  for (const ArchivedTensor& t : manifest.tensors) {
    json["tensors"].push_back(
        {{"storage", t.storage},
         {"dtype", std::string(name_of(t.dtype))},
         {"shape", std::vector<index_t>(t.shape.begin(), t.shape.end())},
         {"strides", std::vector<index_t>(t.strides.begin(), t.strides.end())},
         {"offset", t.offset}});
  }
  json["content"] = std::move(content);
  return json;
}

// -- reading -----------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  ArchiveManifest read(std::span<const std::byte> file) {
    const Header header = checked_header(file);
    const std::string_view text(reinterpret_cast<const char*>(file.data()) + kHeadBytes,
                                header.manifest_bytes);
    if (content_hash(text.data(), text.size()) != header.manifest_hash) {
      fail("checksum: the manifest is not the one that was written");
    }
    check_size(text);
    const Json json = io_detail::parse_json(text);
    if (!json.is_object()) fail("manifest: not a JSON object");
    ArchiveManifest manifest;
    const CheckedJson root(json, name_, "the manifest");
    manifest.kind = root.at("kind").text();
    std::uint64_t end = kHeadBytes + header.manifest_bytes;
    const CheckedJson storages = root.at("storages"), tensors = root.at("tensors");
    for (std::size_t i = 0; i < storages.size(); ++i) {
      manifest.storages.push_back(storage_of(storages.element(i, "storage"), end, file.size()));
      end = manifest.storages.back().offset + manifest.storages.back().bytes;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      manifest.tensors.push_back(tensor_of(tensors.element(i, "tensor"), manifest));
    }
    manifest.content = io_detail::text_of_json(root.at("content").raw());
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { io_detail::fail_format(name_, what); }

  Header checked_header(std::span<const std::byte> file) const {
    Header header;
    if (file.size() >= kMagic.size() &&
        std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
      fail("magic: not a palimpsest archive");
    }
    if (file.size() < kHeadBytes) {
      fail(fmt::format("truncated: got {} bytes, expected at least {}", file.size(), kHeadBytes));
    }
    std::memcpy(&header, file.data(), kHeadBytes);
    if (header.version > kVersion) {
      fail(fmt::format("newer: version {}, this library reads {}", header.version, kVersion));
    }
    if (header.version == 0) fail("version: got 0, expected 1");
    if (header.flags != 0) fail(fmt::format("newer: unknown flags {:#x}", header.flags));
    if (header.file_bytes > file.size()) {
      fail(fmt::format("truncated: got {} bytes, expected {}", file.size(), header.file_bytes));
    }
    if (header.file_bytes < file.size()) {
      fail(fmt::format("manifest: {} bytes follow the {} of the archive",
                       file.size() - header.file_bytes, header.file_bytes));
    }
    if (header.manifest_offset != kHeadBytes || header.manifest_bytes > kMostManifestBytes ||
        header.manifest_bytes > file.size() - kHeadBytes) {
      fail(fmt::format("manifest: {} bytes at {} are not inside the file", header.manifest_bytes,
                       header.manifest_offset));
    }
    if (header.zero[0] != 0 || header.zero[1] != 0) fail("newer: unknown words in the header");
    return header;
  }

  // Before it is parsed, so that no text makes the parser take more than a few times its size.
  void check_size(std::string_view text) const {
    int depth = 0, deepest = 0;
    std::size_t values = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string) {
        if (c == '\\') ++i;
        if (c == '"') in_string = false;
        continue;
      }
      in_string = c == '"';
      if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
      if (c == ']' || c == '}') --depth;
      values += c == '[' || c == '{' || c == ',';
    }
    if (deepest > kDeepestNesting) {
      fail(fmt::format("manifest: nested {} levels deep, expected at most {}", deepest,
                       kDeepestNesting));
    }
    if (values > kMostValues) {
      fail(fmt::format("manifest: {} values, expected at most {}", values, kMostValues));
    }
  }

  ArchivedStorage storage_of(const CheckedJson& entry, std::uint64_t earliest,
                             std::uint64_t file_bytes) const {
    ArchivedStorage s;
    s.offset = static_cast<std::uint64_t>(entry.at("offset").size_value());
    s.bytes = static_cast<std::uint64_t>(entry.at("bytes").size_value());
    if (s.offset % kArchivePage != 0) {
      fail(fmt::format("aligned: {} is at {}, expected a multiple of {}", entry.where(), s.offset,
                       kArchivePage));
    }
    if (s.offset < earliest || s.offset > file_bytes || s.bytes > file_bytes - s.offset) {
      entry.fail(
          fmt::format("({} bytes at {}) does not lie behind the preceding storage and inside the "
                      "file of {} bytes",
                      s.bytes, s.offset, file_bytes));
    }
    const std::string& hash = entry.at("xxh3").text();
    const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), s.hash, 16);
    if (error != std::errc() || end != hash.data() + hash.size())
      entry.at("xxh3").fail("is not a hash");
    return s;
  }

  static ArchivedTensor tensor_of(const CheckedJson& entry, const ArchiveManifest& manifest) {
    ArchivedTensor t;
    t.storage = entry.at("storage").index(manifest.storages.size());
    const CheckedJson dtype = entry.at("dtype"), shape = entry.at("shape"),
                      strides = entry.at("strides");
    try {
      t.dtype = parse_dtype(dtype.text());
    } catch (const ValueError&) {
      dtype.fail("names an unknown type " + io_detail::quoted(dtype.text()));
    }
    if (shape.size() > kMaxRank) shape.fail("has too many axes");
    if (shape.size() != strides.size()) {
      entry.fail(fmt::format("has {} axes and {} strides", shape.size(), strides.size()));
    }
    for (std::size_t k = 0; k < shape.size(); ++k) {
      t.shape.push_back(shape.element(k, "extent").size_value());
      t.strides.push_back(strides.element(k, "stride").integer());
    }
    t.offset = entry.at("offset").size_value();
    check_inside(t, manifest.storages[t.storage].bytes, entry);
    return t;
  }

  // Checks that a tensor lies inside its storage, without overflow.
  static void check_inside(const ArchivedTensor& t, std::uint64_t bytes, const CheckedJson& entry) {
    const auto item = static_cast<index_t>(item_size(t.dtype));
    const auto outside = [&](const std::string& what) {
      entry.fail(fmt::format("reaches outside its storage of {} bytes: {}", bytes, what));
    };
    index_t n_bytes = item;
    ByteLayout layout{0, t.shape, t.strides, static_cast<int>(item)};
    if (__builtin_mul_overflow(t.offset, item, &layout.offset)) outside("offset");
    for (std::size_t axis = 0; axis < t.shape.size(); ++axis) {
      index_t step = 0;
      if (__builtin_mul_overflow(t.strides[axis], item, &step)) outside("strides");
      layout.strides[axis] = step;
      if (__builtin_mul_overflow(n_bytes, std::max<index_t>(t.shape[axis], 1), &n_bytes)) {
        outside("its size overflows");
      }
    }
    Extent extent;
    try {
      extent = memory_extent(layout);
    } catch (const OverflowError&) {
      outside("its size overflows");
    }
    if (layout.offset < 0 || extent.lo < 0 || static_cast<std::uint64_t>(extent.hi) > bytes ||
        static_cast<std::uint64_t>(layout.offset) > bytes) {
      outside(fmt::format("bytes {} to {}", extent.lo, extent.hi));
    }
  }

  std::string name_;
};

}  // namespace

std::string archive_head(ArchiveManifest& manifest, std::uint64_t* file_bytes) {
  Json content = io_detail::parse_json(manifest.content);
  if (content.is_discarded()) throw ValueError("[archive] the content is not JSON");
  Json json = json_of(manifest, std::move(content));
  // The start of the storages depends on the manifest's length, and the length on the start.
  std::string text;
  for (std::uint64_t start = 0;;) {
    std::uint64_t end = start;
    for (std::size_t i = 0; i < manifest.storages.size(); ++i) {
      ArchivedStorage& s = manifest.storages[i];
      s.offset = up_to_page(end);
      json["storages"][i]["offset"] = s.offset;
      end = s.offset + s.bytes;
    }
    text = io_detail::text_of_json(json);
    const std::uint64_t needed = kHeadBytes + text.size();
    *file_bytes = std::max(end, needed);
    if (needed <= start || manifest.storages.empty()) break;
    start = up_to_page(needed);
  }
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.manifest_offset = kHeadBytes;
  header.manifest_bytes = text.size();
  header.file_bytes = *file_bytes;
  header.manifest_hash = content_hash(text.data(), text.size());
  std::string head(kHeadBytes, '\0');
  std::memcpy(head.data(), &header, kHeadBytes);
  return head + text;
}

ArchiveManifest read_archive_head(std::span<const std::byte> file, std::string_view name) {
  return Reader(name).read(file);
}

}  // namespace palimpsest
