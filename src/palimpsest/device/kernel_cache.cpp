// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/kernel_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/hash/content_hash.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/device/text/preludes.hpp"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".kernels";

// The beginning of a file, before the bytes.
struct Head {
  char magic[8] = {'P', 'A', 'L', 'K', 'E', 'R', 'N', '1'};
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};

void add_field(ByteHasher& hasher, std::string_view field) {
  const std::uint64_t length = field.size();
  hasher.add(&length, sizeof length);
  hasher.add(field.data(), field.size());
}

// The bytes in a file; nothing if they are damaged or not there.
std::optional<std::vector<std::byte>> read_kept(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Head head;
  const Head expected;
  if (whole.size() > sizeof head) {
    std::memcpy(&head, whole.data(), sizeof head);
    const char* const first = whole.data() + sizeof head;
    const std::size_t bytes = whole.size() - sizeof head;
    if (std::memcmp(head.magic, expected.magic, sizeof head.magic) == 0 && head.bytes == bytes &&
        head.hash == content_hash(first, bytes)) {
      std::vector<std::byte> kept(bytes);
      std::memcpy(kept.data(), first, bytes);
      return kept;
    }
  }
  log(LogLevel::info, fmt::format("[kernel cache] {} is damaged, compiled again", path));
  return std::nullopt;
}

// A file of the cache, or what is left of one that was never finished.
bool is_ours(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() >= 32 + kEnding.size() && name.find_first_not_of("0123456789abcdef") == 32 &&
         name.compare(32, kEnding.size(), kEnding) == 0;
}

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

KernelCache::KernelCache(std::string folder, std::string texts, std::uint64_t limit)
    : folder_(std::move(folder)), texts_(std::move(texts)), limit_(limit) {}

std::string KernelCache::file_of(const DeviceFacts& facts, const KernelText& text) const {
  ByteHasher hasher;
  for (const std::string_view field :
       {std::string_view(kOpenClPrelude), std::string_view(kCudaPrelude),
        std::string_view(text.text), std::string_view(facts.name), std::string_view(facts.driver),
        std::string_view(facts.isa), std::string_view(facts.options)}) {
    add_field(hasher, field);
  }
  for (const std::string& kernel : text.kernels) add_field(hasher, kernel);
  return (fs::path(folder_) / (hasher.digits() + std::string(kEnding))).string();
}

KernelProgram KernelCache::load(DeviceBackend& backend, const KernelText& text) const {
  keep_text(text);
  // The binary of such a driver is made of its own files, which another process may be writing.
  if (folder_.empty() || backend.facts().compiles_late) return backend.load(text, {});
  const std::string path = file_of(backend.facts(), text);
  if (const auto kept = read_kept(path)) {
    try {
      KernelProgram program = backend.load(text, *kept);
      std::error_code ignored;
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
      return program;
    } catch (const DeviceError& error) {
      backend.mark();  // throws if the device is lost or cannot be used
      log(LogLevel::info, fmt::format("[kernel cache] {}: {}, compiled again", path, error.what()));
    }
  }
  KernelProgram program = backend.load(text, {});
  keep(path, *program);
  return program;
}

void KernelCache::keep_text(const KernelText& text) const {
  if (texts_.empty()) return;
  try {
    fs::create_directories(texts_);
    AtomicFile file((fs::path(texts_) / (text.name + ".c")).string());
    file.write(text.text);
    file.commit();
  } catch (const std::exception& error) {
    log(LogLevel::warn, fmt::format("[PALIMPSEST_KERNELS] {}", error.what()));
  }
}

void KernelCache::keep(const std::string& path, const LoadedKernels& program) const {
  const std::vector<std::byte> binary = program.binary();
  if (binary.empty() || binary.size() > limit_) return;
  try {
    fs::create_directories(folder_);
    Head head;
    head.bytes = binary.size();
    head.hash = content_hash(binary.data(), binary.size());
    AtomicFile file(path);
    file.write(&head, sizeof head);
    file.write(binary.data(), binary.size());
    file.commit();
    make_room(path);
  } catch (const std::exception& error) {
    log(LogLevel::info, fmt::format("[kernel cache] {}", error.what()));
  }
}

// Removes files that were not used for longest, but not the one at `path`. Other processes may do
// so, too.
void KernelCache::make_room(const std::string& path) const {
  struct Kept {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Kept> all;
  std::uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    std::error_code gone;
    if (!is_ours(entry.path())) continue;
    const Kept one{entry.last_write_time(gone), entry.file_size(gone), entry.path()};
    if (gone) continue;
    bytes += one.bytes;
    if (one.path != path) all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& one : all) {
    if (bytes <= limit_) return;
    std::error_code ignored;
    fs::remove(one.path, ignored);
    bytes -= one.bytes;
  }
}

std::string kernel_folder(const char* setting, const char* cache_home, const char* home) {
  const std::string_view wanted = setting == nullptr ? "" : setting;
  if (wanted == "off") return {};
  if (!wanted.empty()) return std::string(wanted);
  if (is_absolute(cache_home)) return (fs::path(cache_home) / "palimpsest" / "kernels").string();
  if (is_absolute(home)) return (fs::path(home) / ".cache" / "palimpsest" / "kernels").string();
  return {};
}

const KernelCache& kernel_cache() {
  return immortal([] {
    return KernelCache(kernel_folder(std::getenv("PALIMPSEST_KERNEL_CACHE"),
                                     std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")),
                       text_or_empty(std::getenv("PALIMPSEST_KERNELS")));
  });
}

namespace {

// The kernels that are in use, by backend and text.
class LoadedTexts {
 public:
  KernelProgram load(DeviceBackend& backend, const KernelText& text) {
    const Key key{&backend, text.text};
    {
      const std::scoped_lock lock(mutex_);
      if (KernelProgram found = programs_[key].lock()) return found;
    }
    KernelProgram made = kernel_cache().load(backend, text);
    const std::scoped_lock lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    programs_[key] = made;
    return made;
  }

 private:
  using Key = std::pair<const DeviceBackend*, std::string>;
  Mutex mutex_;
  std::map<Key, std::weak_ptr<const LoadedKernels>> programs_;
};

}  // namespace

KernelProgram shared_kernels(DeviceBackend& backend, const KernelText& text) {
  return immortal([] { return std::make_unique<LoadedTexts>(); })->load(backend, text);
}

}  // namespace palimpsest
