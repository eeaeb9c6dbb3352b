// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/failure.hpp"
#include "palimpsest/tensor/archive_manifest.hpp"
#include "palimpsest/tensor/content_hash.hpp"
#include "palimpsest/tensor/layout.hpp"
#include "palimpsest/tensor/tensor_map.hpp"

namespace palimpsest {
namespace {

using io_detail::fail_format;

// The tensors of one storage, as they will be written: in a storage of their own that holds no more
// than they use.
struct Group {
  std::vector<std::size_t> members;
  MemoryMap map{/*compact=*/true};
  Extent hull{std::numeric_limits<std::int64_t>::max(), 0};

  void add(std::size_t number, const Tensor& t) {
    members.push_back(number);
    palimpsest::add(map, t);
    const Extent extent = memory_extent(byte_layout(t));
    hull = {std::min(hull.lo, extent.lo), std::max(hull.hi, extent.hi)};
  }
  void bring(Device device) {
    if (device != Device{}) {
      map.to(Device{});
    } else if (2 * map.bytes() < hull.hi - hull.lo) {
      map.copy();  // without the gaps
    } else {
      map.lazy_copy();
    }
  }
};

// The contents of the file.
struct Image {
  std::string head;
  std::uint64_t file_bytes = 0;
  ArchiveManifest manifest;
  std::vector<Storage> storages;
};

Image image_of(std::string_view kind, std::span<const Tensor> tensors, std::string_view content) {
  std::vector<Group> groups;
  std::unordered_map<std::uint64_t, std::size_t> by_storage;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [it, is_new] = by_storage.try_emplace(tensors[i].storage().id(), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].add(i, tensors[i]);
  }
  Image image;
  image.manifest.kind = kind;
  image.manifest.content = content;
  image.manifest.tensors.resize(tensors.size());
  for (Group& group : groups) {
    group.bring(tensors[group.members[0]].device());
    for (std::size_t i : group.members) {
      const Tensor copy = map(group.map, tensors[i]);
      if (i == group.members[0]) image.storages.push_back(copy.storage());
      image.manifest.tensors[i] = {image.storages.size() - 1, copy.dtype(), copy.shape(),
                                   copy.strides(), copy.offset()};
    }
    const Storage& storage = image.storages.back();
    image.manifest.storages.push_back(
        {0, storage.nbytes(), content_hash(storage.data(), storage.nbytes())});
  }
  image.head = archive_head(image.manifest, &image.file_bytes);
  return image;
}

// Calls `emit` with all bytes in order.
template <class Emit>
void emit_all(const Image& image, Emit emit) {
  static constexpr std::byte kZeros[kArchivePage] = {};
  emit(reinterpret_cast<const std::byte*>(image.head.data()), image.head.size());
  std::uint64_t at = image.head.size();
  for (std::size_t i = 0; i < image.storages.size(); ++i) {
    const ArchivedStorage& s = image.manifest.storages[i];
    emit(kZeros, s.offset - at);
    emit(image.storages[i].data(), s.bytes);
    at = s.offset + s.bytes;
  }
}

Storage copied(std::span<const std::byte> bytes, Device device) {
  Storage storage = Storage::allocate(bytes.size(), device, "archive");
  if (!bytes.empty()) std::memcpy(storage.overwrite_data(), bytes.data(), bytes.size());
  return storage;
}

// Checks that bools are 0 or 1: C++ does not allow other bytes.
void check_bools(const Tensor& t, std::size_t number, std::string_view name) {
  const auto is_bool = [](std::byte b) { return b <= std::byte{1}; };
  const Extent hull = memory_extent(byte_layout(t));
  const std::byte* const data = t.storage().data();
  if (std::all_of(data + hull.lo, data + hull.hi, is_bool)) return;
  // The gaps may hold other bytes. Without overlaps there are no more elements than bytes.
  if (!has_internal_overlap(t)) {
    const std::vector<std::uint8_t> elements = t.bitcast(DType::uint8).to_vector<std::uint8_t>();
    if (std::all_of(elements.begin(), elements.end(), [](std::uint8_t b) { return b <= 1; })) {
      return;
    }
  }
  fail_format(name,
              fmt::format("tensor {} is of type bool and holds other bytes than 0 and 1", number));
}

}  // namespace

std::size_t ArchiveWriter::add(const Tensor& t) {
  if (!t.defined()) throw ValueError("[ArchiveWriter.add] got an undefined tensor");
  tensors_.push_back(t);
  return tensors_.size() - 1;
}

void ArchiveWriter::save(const std::string& path, std::string_view content) const {
  const Image image = image_of(kind_, tensors_, content);
  AtomicFile file(path);
  emit_all(image, [&](const std::byte* data, std::size_t n) { file.write(data, n); });
  file.commit();
}

std::vector<std::byte> ArchiveWriter::to_bytes(std::string_view content) const {
  const Image image = image_of(kind_, tensors_, content);
  std::vector<std::byte> bytes;
  bytes.reserve(image.file_bytes);
  emit_all(image, [&](const std::byte* data, std::size_t n) {
    if (n > 0) bytes.insert(bytes.end(), data, data + n);
  });
  return bytes;
}

Archive Archive::load(const std::string& path, const ArchiveOptions& options) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) io_detail::fail_io(path, "cannot be read", error.value());
  const Storage mapping = Storage::from_file(path, 0, static_cast<std::size_t>(size));
  return open({mapping.data(), mapping.nbytes()}, &mapping, options, path);
}

Archive Archive::from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options,
                            std::string_view name) {
  return open(bytes, nullptr, options, name);
}

Archive Archive::open(std::span<const std::byte> bytes, const Storage* mapping,
                      const ArchiveOptions& options, std::string_view name) {
  ArchiveManifest manifest = read_archive_head(bytes, name);
  if (!options.device.is_host()) {
    throw NotSupported("[" + std::string(name) + "] device " + options.device.str() +
                       ": expected a cpu. Try to load there, then to()");
  }
  const bool maps = mapping && options.map && options.device == Device{};
  std::vector<Storage> storages;
  for (std::size_t i = 0; i < manifest.storages.size(); ++i) {
    const ArchivedStorage& s = manifest.storages[i];
    const auto part = bytes.subspan(s.offset, s.bytes);
    // The hash of a copied storage costs little: its bytes are read anyway.
    if ((options.verify || !maps) && content_hash(part.data(), part.size()) != s.hash) {
      fail_format(name, fmt::format("checksum: storage {} is not the one that was written", i));
    }
    if (maps && !part.empty()) {
      // Only ever read: the storage knows that the memory is not to be written.
      storages.push_back(Storage::from_foreign(const_cast<std::byte*>(part.data()), part.size(),
                                               Device{}, false, [held = *mapping] {}));
    } else {
      storages.push_back(copied(part, options.device));
    }
  }
  Archive archive;
  archive.name_ = name;
  archive.kind_ = std::move(manifest.kind);
  archive.content_ = std::move(manifest.content);
  for (ArchivedTensor& t : manifest.tensors) {
    archive.tensors_.emplace_back(storages[t.storage], t.dtype, std::move(t.shape),
                                  std::move(t.strides), t.offset);
    if (t.dtype == DType::bool_) check_bools(archive.tensors_.back(), archive.size() - 1, name);
  }
  return archive;
}

const Tensor& Archive::tensor(std::size_t number) const {
  if (number < tensors_.size()) return tensors_[number];
  fail_format(name_, fmt::format("index: tensor {}, but there are {}", number, tensors_.size()));
}

}  // namespace palimpsest
