// SPDX-License-Identifier: Apache-2.0
// Bytes that the library allocates and copies.
#include "palimpsest/device/machine.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {
namespace {

// A scope of C++ between __enter__ and __exit__. Its measured values stay.
template <class Scope, class... Given>
class Entered {
 public:
  explicit Entered(Given... given) : given_(std::move(given)...) {}
  void enter() {
    std::apply([&](const auto&... given) { scope_.emplace(given...); }, given_);
  }
  void leave() { scope_.reset(); }
  Scope& scope() {
    if (!scope_) throw StateError("[scope] got a scope that is not entered. Try `with`.");
    return *scope_;
  }
  bool is_entered() const { return scope_.has_value(); }

 private:
  std::tuple<Given...> given_;
  std::optional<Scope> scope_;
};

class Measured : public Entered<MemoryScope, Device> {
 public:
  using Entered::Entered;
  std::uint64_t peak() { return is_entered() ? scope().peak_bytes() : peak_; }
  std::uint64_t allocated() { return is_entered() ? scope().allocated_bytes() : allocated_; }
  std::uint64_t calls() { return is_entered() ? scope().calls() : calls_; }
  void end() {
    peak_ = scope().peak_bytes();
    allocated_ = scope().allocated_bytes();
    calls_ = scope().calls();
    leave();
  }

 private:
  std::uint64_t peak_ = 0, allocated_ = 0, calls_ = 0;
};

class Counted {
 public:
  void enter() {
    start_.emplace();
    counts_.reset();
  }
  void end() { counts_ = start_ ? start_->counts() : CopyCounts{}; }
  CopyCounts counts() const {
    if (counts_) return *counts_;
    return start_ ? start_->counts() : CopyCounts{};
  }

 private:
  std::optional<CopyStats> start_;
  std::optional<CopyCounts> counts_;
};

template <std::uint64_t CopyCounts::*field>
std::uint64_t count_of(const Counted& c) {
  return c.counts().*field;
}

// DeviceError if it does not exist.
Device present(Device device) { return Allocator::of(device).device(); }

using Limited = Entered<MemoryLimit, Device, std::uint64_t>;

class Failing : public Entered<FailingAllocator, std::uint64_t> {
 public:
  using Entered::Entered;
  bool has_failed() { return is_entered() ? scope().has_failed() : has_failed_; }
  void end() {
    has_failed_ = scope().has_failed();
    leave();
  }

 private:
  bool has_failed_ = false;
};

}  // namespace

void bind_memory(nb::module_& m) {
  nb::class_<Measured>(m, "MemoryScope",
                       "`with MemoryScope() as m:` measures the bytes that the library allocates.")
      .def(
          "__init__", [](Measured* self, Device device) { new (self) Measured(present(device)); },
          "device"_a = "cpu")
      .def(
          "__enter__",
          [](Measured& self) -> Measured& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](Measured& self, nb::args) { self.end(); })
      .def_prop_ro("peak_bytes", &Measured::peak,
                   "Largest number of live bytes since the start, less those at the start.")
      .def_prop_ro("allocated_bytes", &Measured::allocated)
      .def_prop_ro("calls", &Measured::calls);
  nb::class_<Limited>(m, "MemoryLimit", "While it is entered, live bytes stay below a bound.")
      .def(
          "__init__",
          [](Limited* self, nb::handle bytes, Device device) {
            new (self) Limited(present(device),
                               static_cast<std::uint64_t>(bytes_of(bytes, "MemoryLimit")));
          },
          "bytes"_a, "device"_a = "cpu")
      .def(
          "__enter__",
          [](Limited& self) -> Limited& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](Limited& self, nb::args) { self.leave(); });
  nb::class_<Failing>(m, "FailingAllocator",
                      "For tests: while it is entered, the n-th allocation from then on fails.")
      .def(
          "__init__", [](Failing* self, std::uint64_t n) { new (self) Failing(n); }, "n"_a)
      .def(
          "__enter__",
          [](Failing& self) -> Failing& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](Failing& self, nb::args) { self.end(); })
      .def_prop_ro("has_failed", &Failing::has_failed);
  m.def(
      "live_bytes", [](Device device) { return Allocator::of(device).stats().live_bytes; },
      "device"_a = "cpu", "Bytes that a device has given out and not yet got back.");
  m.def(
      "devices", [] { return devices(); },
      "The devices of this machine: 'cpu', then its accelerators, such as 'opencl:0'.");
  m.def(
      "synchronize",
      [](std::optional<Device> device) {
        released([&] {
          if (device) return synchronize(*device);
          for (const Device each : devices()) synchronize(each);
        });
      },
      "device"_a.none() = nb::none(),
      "Waits until a device (None: every one) has done all that it was given so far.");
  nb::class_<Counted>(m, "CopyStats", "`with CopyStats() as c:` counts copies, over all threads.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](Counted& self) -> Counted& {
            self.enter();
            return self;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](Counted& self, nb::args) { self.end(); })
      .def_prop_ro("lazy_clones", count_of<&CopyCounts::lazy_clones>)
      .def_prop_ro("copies", count_of<&CopyCounts::copies>)
      .def_prop_ro("copied_bytes", count_of<&CopyCounts::copied_bytes>)
      .def_prop_ro("take_overs", count_of<&CopyCounts::take_overs>)
      .def_prop_ro("overwrites", count_of<&CopyCounts::overwrites>)
      .def_prop_ro("eager_copies", count_of<&CopyCounts::eager_copies>)
      .def_prop_ro("eager_copied_bytes", count_of<&CopyCounts::eager_copied_bytes>)
      .def_prop_ro("import_copies", count_of<&CopyCounts::import_copies>,
                   "Arrays of other packages that had to be copied on their way in.");
}

}  // namespace palimpsest::python
