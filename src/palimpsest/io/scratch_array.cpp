// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/scratch_array.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "palimpsest/base/shape.hpp"
#include "palimpsest/base/system/system_calls.hpp"

namespace palimpsest {
namespace {

[[noreturn]] void fail_scratch(const std::string& folder, const char* doing) {
  const int reason = errno;
  throw IoError(fmt::format("[scratch] a file in '{}' cannot be {}: {}. Try another folder.",
                            folder, doing, std::generic_category().message(reason)));
}

void check_range(const Extents& shape, index_t first, index_t count) {
  const index_t n = element_count(shape);
  if (first >= 0 && count >= 0 && first <= n && count <= n - first) return;
  throw InternalError(fmt::format("[ScratchArray] got elements {} .. {}, expected some of {}",
                                  first, first + count, n));
}

}  // namespace

ScratchArray::ScratchArray(const std::string& folder, Extents shape, DType dtype)
    : folder_(folder.empty() ? "." : folder), shape_(std::move(shape)), dtype_(dtype) {
  std::string name = folder_ + "/palimpsest-scratch-XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail_scratch(folder_, "made");
  ::unlink(name.c_str());
  if (::ftruncate(descriptor_, byte_count(shape_, dtype_)) == 0) return;
  ::close(std::exchange(descriptor_, -1));
  fail_scratch(folder_, "made large enough");
}

ScratchArray ScratchArray::in_memory(Extents shape, DType dtype) {
  ScratchArray array(std::move(shape), dtype);
  array.memory_ = Tensor::zeros(array.shape_, dtype);
  return array;
}

ScratchArray ScratchArray::unwritten(Extents shape, DType dtype) {
  ScratchArray array(std::move(shape), dtype);
  array.folder_ = "memory";
  array.descriptor_ = system_detail::make_memory_file("palimpsest-unwritten");
  if (array.descriptor_ < 0 ||
      ::ftruncate(array.descriptor_, byte_count(array.shape_, dtype)) != 0) {
    fail_scratch(array.folder_, "made");
  }
  return array;
}

ScratchArray::ScratchArray(ScratchArray&& other) noexcept
    : memory_(std::move(other.memory_)),
      folder_(std::move(other.folder_)),
      shape_(std::move(other.shape_)),
      dtype_(other.dtype_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

ScratchArray::~ScratchArray() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ScratchArray::write(index_t first, const void* elements, index_t count) {
  check_range(shape_, first, count);
  const auto item = static_cast<index_t>(item_size(dtype_));
  const auto* bytes = static_cast<const char*>(elements);
  if (memory_.defined()) {
    std::memcpy(static_cast<char*>(memory_.raw_mutable_data()) + first * item, bytes,
                static_cast<std::size_t>(count * item));
    return;
  }
  for (index_t done = 0, n = count * item; done < n;) {
    const ssize_t written = ::pwrite(descriptor_, bytes + done, static_cast<std::size_t>(n - done),
                                     first * item + done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_scratch(folder_, "written");
    done += written;
  }
}

void ScratchArray::read(index_t first, void* elements, index_t count) const {
  check_range(shape_, first, count);
  const auto item = static_cast<index_t>(item_size(dtype_));
  auto* bytes = static_cast<char*>(elements);
  if (memory_.defined()) {
    std::memcpy(bytes, static_cast<const char*>(memory_.raw_data()) + first * item,
                static_cast<std::size_t>(count * item));
    return;
  }
  for (index_t done = 0, n = count * item; done < n;) {
    const ssize_t got =
        ::pread(descriptor_, bytes + done, static_cast<std::size_t>(n - done), first * item + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_scratch(folder_, "read");
    done += got;
  }
}

Tensor ScratchArray::map() const {
  if (memory_.defined()) return memory_;
  const auto bytes = static_cast<std::size_t>(byte_count(shape_, dtype_));
  if (bytes == 0) return Tensor::zeros(shape_, dtype_);
  const Storage storage = Storage::from_file(system_detail::path_of(descriptor_), 0, bytes);
  return Tensor(storage, dtype_, shape_, contiguous_strides(shape_), 0);
}

}  // namespace palimpsest
