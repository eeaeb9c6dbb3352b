// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/base/view.hpp"
#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/storage.hpp"

namespace PALIMPSEST_API palimpsest {

/// start:stop:step of one axis, with Python's meaning; absent ends reach to the border.
struct Slice {
  std::optional<index_t> start, stop;
  index_t step = 1;
};
Slice slice(std::optional<index_t> start, std::optional<index_t> stop, index_t step = 1);
inline constexpr struct All {
} all;
inline constexpr struct NewAxis {
} newaxis;
inline constexpr struct EllipsisIndex {
} ellipsis;
/// An entry of a basic index: an element, a range, everything, a new axis, or `...`.
using Index = std::variant<index_t, Slice, All, NewAxis, EllipsisIndex>;

/// An array: a handle to a Storage with dtype, shape, strides (in elements) and offset.
///
/// Aliases  copying a Tensor aliases it; two tensors alias iff they share a Storage and their byte
///          ranges meet. lazy_clone() is independent and costs nothing until one side is written;
///          clone() copies now. Reads are const; writes take mutable_data(), which materializes.
/// Threads  const members may be called concurrently; a write needs that no other thread uses the
///          same Storage. Lazy clones are different Storages.
class Tensor {
 public:
  /// No array at all; every member but defined() throws ValueError.
  Tensor() = default;
  /// A view of a storage; offset in elements. ShapeError, or AliasError when it reaches outside.
  Tensor(Storage storage, DType dtype, Extents shape, Strides strides, index_t offset = 0);

  // -- making ----------------------------------------------------------------------------------
  static Tensor empty(Extents shape, DType dtype = DType::float64, Device device = {},
                      std::string_view name = {});
  static Tensor zeros(Extents shape, DType dtype = DType::float64, Device device = {});
  static Tensor ones(Extents shape, DType dtype = DType::float64, Device device = {});
  template <class T>
  static Tensor full(Extents shape, T value, Device device = {});
  static Tensor arange(index_t n, DType dtype = DType::int64, Device device = {});
  static Tensor linspace(double first, double last, index_t n, DType dtype = DType::float64,
                         Device device = {});
  static Tensor eye(index_t n, DType dtype = DType::float64, Device device = {});
  /// Row-major elements of a given shape; the default is one axis. ShapeError if the counts differ.
  template <class T>
  static Tensor from(const std::vector<T>& values, std::optional<Extents> shape = {},
                     Device device = {});
  template <class T>
  static Tensor scalar(T value, Device device = {});
  /// Memory of another owner, used in place. The deleter (may be empty) runs when the last tensor
  /// is gone.
  static Tensor from_blob(void* data, DType dtype, Extents shape, Strides strides,
                          std::function<void()> deleter, bool writable, Device device = {});
  /// Counter-based random numbers: element i depends on the key and i alone.
  static Tensor random_normal(Extents shape, DType dtype, RandomKey key, Device device = {});
  static Tensor random_uniform(Extents shape, DType dtype, RandomKey key, Device device = {});

  // -- identity --------------------------------------------------------------------------------
  bool defined() const { return storage_.defined(); }
  DType dtype() const {
    check_defined();
    return dtype_;
  }
  const Extents& shape() const {
    check_defined();
    return shape_;
  }
  index_t shape(index_t axis) const;
  const Strides& strides() const {
    check_defined();
    return strides_;
  }
  /// Offset of the first element, in elements from the start of the storage.
  index_t offset() const {
    check_defined();
    return offset_;
  }
  std::size_t rank() const { return shape().size(); }
  index_t numel() const { return element_count(shape()); }
  /// numel times the item size.
  index_t nbytes() const { return byte_count(shape(), dtype_); }
  Device device() const { return storage_.device(); }
  const Storage& storage() const { return storage_; }
  Storage& storage() { return storage_; }
  bool is_contiguous() const;
  /// True if the data are shared with a lazy clone at present.
  bool is_shared() const;

  // -- views: O(1), alias this tensor ----------------------------------------------------------
  template <class... I>
  Tensor operator()(I... index) const {
    return index_with({Index(to_index(index))...});
  }
  Tensor index_with(const std::vector<Index>& index) const;
  Tensor select(index_t axis, index_t i) const;
  Tensor narrow(index_t axis, index_t start, index_t length) const;
  Tensor permute(std::span<const index_t> axes) const;
  Tensor permute(std::initializer_list<index_t> axes) const;
  Tensor transpose(index_t a = -2, index_t b = -1) const;
  /// Stretches axes of one element, and new leading ones, with stride 0.
  Tensor expand(Extents shape) const;
  Tensor squeeze(index_t axis) const;
  Tensor unsqueeze(index_t axis) const;
  Tensor flip(std::span<const index_t> axes) const;
  Tensor diagonal(index_t offset = 0, index_t a = -2, index_t b = -1) const;
  /// Windows of `size` every `step` along an axis, as a new last axis.
  Tensor unfold(index_t axis, index_t size, index_t step) const;
  /// Other shape, same elements in order; ShapeError where the strides do not allow a view.
  Tensor view(Extents shape) const;
  /// Any view inside the storage's extent; offset in elements from the storage's start.
  Tensor as_strided(Extents shape, Strides strides, index_t offset) const;
  /// complex (..) -> real (.., 2), and back.
  Tensor view_as_real() const;
  Tensor view_as_complex() const;
  /// The same bytes as another dtype; the last axis is rescaled when the item sizes differ.
  ///
  /// Errors   ShapeError: shape, strides or offset do not divide; ValueError: the address is not a
  ///          multiple of the dtype's alignment. The address of a lazy clone from the middle of an
  ///          array may not be, before and after it is written. The address of a clone() always is.
  Tensor bitcast(DType dtype) const;

  // -- copies ----------------------------------------------------------------------------------
  /// Independent; shares data until either side is written. Covers the extent of this view only.
  ///
  /// Cost     O(1), independent of the size
  Tensor lazy_clone() const;
  /// Independent, dense, row-major, now.
  Tensor clone() const;
  /// A lazy clone when this is dense row-major already, else a clone.
  Tensor contiguous() const;
  /// Independent of this one: a lazy clone where the strides allow it, else a copy. One -1 is
  /// inferred.
  Tensor reshape(Extents shape) const;
  /// Converted (casts wrap; complex to real is a DTypeError); a lazy clone when nothing changes.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;

  // -- elements --------------------------------------------------------------------------------
  /// Address of the first element. DTypeError if T is not the dtype; DeviceError off the host.
  template <class T>
  const T* data() const {
    check_access(dtype_of<T>);
    return static_cast<const T*>(raw_data());
  }
  /// The same for writing: materializes. The strides stay as they are. AliasError if elements
  /// overlap one another.
  ///
  /// Cost     a few nanoseconds when the data are owned
  template <class T>
  T* mutable_data() {
    if (is_plain_ && dtype_ == dtype_of<T>) [[likely]] {
      if (std::byte* const data = storage_.writable_data()) [[likely]]
        return reinterpret_cast<T*>(data) + offset_;
    }
    check_access(dtype_of<T>);
    return static_cast<T*>(raw_mutable_data());
  }
  /// An address on the device of this tensor.
  const void* raw_data() const;
  void* raw_mutable_data();
  /// For a writer that will set every byte of this view: as raw_mutable_data, but no old byte of
  /// shared data is copied when the view covers the whole storage.
  void* raw_overwrite_data();
  /// The only element, converted; ShapeError if there are several. Waits for a device, as
  /// to_vector() does; at() and set() are DeviceErrors off the host.
  template <class T>
  T item() const;
  template <class T>
  T at(std::initializer_list<index_t> index) const;
  template <class T>
  void set(std::initializer_list<index_t> index, T value);
  template <class T>
  Tensor& fill(T value);
  /// Elements of `source`, broadcast and converted; right also when both overlap.
  Tensor& copy_from(const Tensor& source);
  /// All elements, row-major, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  /// DeviceError off the host, like mutable_view().
  ConstView view_of() const;
  /// Materializes. Like fill(), copy_from() and set(), this may change the strides: where shared
  /// data must be copied, and this tensor is alone in its storage and reaches less than half of it,
  /// the copy is dense.
  MutableView mutable_view();

 private:
  /// Unchecked; `is_plain` as below.
  Tensor(Storage storage, DType dtype, bool is_plain, const Extents& shape, const Strides& strides,
         index_t offset)
      : storage_(std::move(storage)),
        dtype_(dtype),
        is_plain_(is_plain),
        shape_(shape),
        strides_(strides),
        offset_(offset) {}
  static Index to_index(Index i) { return i; }
  void check_defined() const {
    if (!storage_.defined()) [[unlikely]]
      throw_undefined();
  }
  [[noreturn]] static void throw_undefined();
  void check_access(DType dtype) const;
  /// AliasError naming `who` if elements overlap one another.
  void check_writable(std::string_view who) const;
  /// A view of the same storage. It is known to lie inside, and its elements are distinct if those
  /// of this tensor are.
  Tensor view_with(DType dtype, const Extents& shape, const Strides& strides, index_t offset) const;
  /// If this view is alone on its storage and covers less than half of it, materializing copies
  /// only the view, densely.
  void compact_for_write(bool overwrite);
  /// `value` is one element of `dtype`.
  void fill_with(const void* value, DType dtype);
  /// The first element, converted to `dtype`, is stored at `value`.
  void read_element(void* value, DType dtype, std::string_view who) const;

  Storage storage_;
  DType dtype_ = DType::float64;
  bool is_plain_ = false;  // elements are known to be distinct, and on the host
  Extents shape_;
  Strides strides_;
  index_t offset_ = 0;
};

bool shares_storage(const Tensor& a, const Tensor& b);
/// t itself if the host can reach it, else a copy on the host.
Tensor on_host(const Tensor& t);
/// True if the byte ranges meet. Never false when elements overlap, for memory of any origin: two
/// imports of one buffer, two mappings of one file, and two attachments of one segment of shared
/// memory are the same memory, though not one Storage. Lazy clones are not.
bool may_share_memory(const Tensor& a, const Tensor& b);
/// True if the two sets of elements have a byte in common. Exact, up to a bounded search; beyond it
/// true, and `*exact` (if given) is set to false.
bool overlaps(const Tensor& a, const Tensor& b, bool* exact = nullptr);
bool has_internal_overlap(const Tensor& t);

/// Same shape, dtype and bits, NaN included.
bool equal(const Tensor& a, const Tensor& b);
/// |a - b| <= atol + rtol |b| everywhere, after broadcasting; NaN equals nothing.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8);

struct PrintOptions {
  int precision = 6;
  index_t summarize_above = 1000;
  index_t edge_items = 3;
  int line_width = 75;
};
/// Like NumPy's: aligned, summarized when large, with dtype and device.
std::string to_string(const Tensor& t, const PrintOptions& options = {});
std::ostream& operator<<(std::ostream& stream, const Tensor& t);

}  // namespace palimpsest
