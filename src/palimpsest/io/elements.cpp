// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/elements.hpp"

#include "palimpsest/io/prelude.hpp"

namespace palimpsest::io_detail {

Tensor read_elements(const InputFile& file, index_t offset, const Extents& shape, DType dtype,
                     bool swapped) {
  Tensor result = Tensor::empty(shape, dtype);
  if (result.numel() == 0) return result;
  file.read_at(offset, result.raw_overwrite_data(), result.nbytes());
  make_native(result, swapped);
  return result;
}

Tensor map_elements(const std::string& path, index_t offset, const Extents& shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(byte_count(shape, dtype));
  return Tensor(Storage::from_file(path, static_cast<std::size_t>(offset), bytes), dtype, shape,
                contiguous_strides(shape), 0);
}

void make_native(Tensor& tensor, bool swapped) {
  if (tensor.numel() == 0) return;
  if (swapped) swap_elements(tensor.raw_mutable_data(), tensor.dtype(), tensor.numel());
  if (is_bool(tensor.dtype())) normalize_bools(tensor.raw_mutable_data(), tensor.numel());
}

void write_elements(AtomicFile& file, const Tensor& tensor) {
  constexpr index_t kSmallPieceBytes = index_t{1} << 20;
  if (tensor.numel() == 0) return;
  if (tensor.is_contiguous()) {
    file.write(tensor.raw_data(), static_cast<std::size_t>(tensor.nbytes()));
  } else if (tensor.nbytes() <= kSmallPieceBytes) {
    const Tensor piece = tensor.clone();
    file.write(piece.raw_data(), static_cast<std::size_t>(piece.nbytes()));
  } else if (tensor.shape(0) == 1 || tensor.nbytes() / tensor.shape(0) >= kSmallPieceBytes) {
    for (index_t i = 0; i < tensor.shape(0); ++i) write_elements(file, tensor.select(0, i));
  } else {
    const index_t rows = std::max<index_t>(1, kSmallPieceBytes * tensor.shape(0) / tensor.nbytes());
    for (index_t i = 0; i < tensor.shape(0); i += rows) {
      write_elements(file, tensor.narrow(0, i, std::min(rows, tensor.shape(0) - i)));
    }
  }
}

index_t foreign_byte_count(const std::string& path, const Extents& shape, DType dtype) {
  try {
    return byte_count(shape, dtype);
  } catch (const ValueError&) {
    fail_format(path, fmt::format("announces an impossible shape: got {}.", to_string(shape)));
  }
}

}  // namespace palimpsest::io_detail
