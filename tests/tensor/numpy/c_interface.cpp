// SPDX-License-Identifier: Apache-2.0
// A minimal C interface to tensors, for the Python scripts of this folder.
#include <algorithm>
#include <cstring>
#include <string>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/tensor/dlpack.hpp"

using namespace palimpsest;

namespace {

thread_local std::string text;

const char* kept(std::string words) {
  text = std::move(words);
  return text.c_str();
}

// Errors become null, with what() as the text.
template <class F>
auto guarded(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::exception& error) {
    text = error.what();
    return {};
  }
}

Tensor& tensor(void* handle) { return *static_cast<Tensor*>(handle); }
void* handle_of(Tensor t) { return new Tensor(std::move(t)); }

}  // namespace

extern "C" {

const char* palimpsest_last_text() { return text.c_str(); }

void* palimpsest_arange(const char* dtype, std::int32_t rank, const std::int64_t* shape) {
  return guarded([&] {
    const Extents extents(shape, shape + rank);
    const Tensor numbers = Tensor::arange(element_count(extents)).to(parse_dtype(dtype));
    return handle_of(numbers.view(extents));
  });
}
/// Copies the bytes unchanged.
void* palimpsest_from_bytes(const void* bytes, const char* dtype, std::int32_t rank,
                            const std::int64_t* shape) {
  return guarded([&] {
    Tensor t = Tensor::empty(Extents(shape, shape + rank), parse_dtype(dtype));
    std::memcpy(t.raw_overwrite_data(), bytes, static_cast<std::size_t>(t.nbytes()));
    return handle_of(t);
  });
}
void* palimpsest_slice(void* t, std::int64_t axis, std::int64_t start, std::int64_t stop,
                       std::int64_t step) {
  return guarded([&] {
    std::vector<Index> index(static_cast<std::size_t>(axis), Index(all));
    index.emplace_back(slice(start, stop, step));
    return handle_of(tensor(t).index_with(index));
  });
}
void* palimpsest_transpose(void* t) {
  return guarded([&] { return handle_of(tensor(t).transpose()); });
}
void* palimpsest_expand(void* t, std::int32_t rank, const std::int64_t* shape) {
  return guarded([&] { return handle_of(tensor(t).expand(Extents(shape, shape + rank))); });
}
void* palimpsest_lazy_clone(void* t) {
  return guarded([&] { return handle_of(tensor(t).lazy_clone()); });
}
void palimpsest_free(void* t) { delete static_cast<Tensor*>(t); }

/// All elements, row-major, as float64.
void palimpsest_values(void* t, double* out) {
  const std::vector<double> values = tensor(t).to_vector<double>();
  std::copy(values.begin(), values.end(), out);
}
int palimpsest_fill(void* t, double value) {
  return guarded([&] {
    tensor(t).fill(value);
    return 1;
  });
}
std::uint64_t palimpsest_address(void* t) {
  return reinterpret_cast<std::uintptr_t>(std::as_const(tensor(t)).raw_data());
}
const char* palimpsest_state(void* t) {
  return kept(std::string(name_of(tensor(t).storage().state())));
}
const char* palimpsest_text(void* t) { return kept(to_string(tensor(t))); }
std::uint64_t palimpsest_live_bytes() { return Allocator::of(Device{}).stats().live_bytes; }
std::uint64_t palimpsest_copied_bytes() { return CopyStats::process().bytes_copied(); }

void* palimpsest_to_dlpack(void* t, std::int32_t access) {
  return guarded(
      [&]() -> void* { return to_dlpack(tensor(t), static_cast<DlpackAccess>(access)); });
}
void* palimpsest_to_unversioned_dlpack(void* t) {
  return guarded([&]() -> void* { return to_unversioned_dlpack(tensor(t)); });
}
void* palimpsest_from_dlpack(void* managed) {
  return guarded([&] {
    return handle_of(from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(managed)));
  });
}
void* palimpsest_from_unversioned_dlpack(void* managed) {
  return guarded(
      [&] { return handle_of(from_dlpack(static_cast<dlpack::ManagedTensor*>(managed))); });
}

}  // extern "C"
