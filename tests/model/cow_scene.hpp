// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/memory_model.hpp"
#include "palimpsest/memory/cow_protocol.hpp"

// Small programs over the copy-on-write protocol, run in every way that the memory model allows.
namespace palimpsest::model {

class Scene;
struct ModelStorage;
struct ModelBlock;

/// What a materialization needs, on blocks of the model.
class Environment {
 public:
  enum class Failure { none, of_allocation, of_copy };

  Environment(Scene& scene, ModelStorage& storage, Failure failure)
      : scene_(scene), storage_(storage), failure_(failure) {}

  void allocate();
  bool copy_chunk();
  void discard() noexcept;
  void free_old() noexcept;
  void wait(const Word& word, cow::Bits seen);
  void wake(const Word* word) noexcept;

  ModelBlock* copy() const { return copy_; }

 private:
  Scene& scene_;
  ModelStorage& storage_;
  const Failure failure_;
  std::size_t chunk_ = 0;
  ModelBlock* copy_ = nullptr;
};

/// The functions of the protocol: those of the library, or mutants of them.
struct Protocol {
  bool (*add_ref)(Word&);
  bool (*drop_ref)(Word&);
  bool (*is_sole)(const Word&);
  bool (*materialize)(Word&, Environment&);  ///< true: copied, false: taken over
  bool (*replace)(Word&, Environment&);      ///< the same
  void (*add_use)(Word&);
  bool (*drop_use)(Word&);
  void (*raise_pin)(Word&);
  bool (*join_pin)(Word&);
  void (*lower_pin)(Word&);
  bool (*is_pinned)(const Word&);
};

// A namespace is no template argument.
#define PALIMPSEST_PROTOCOL_OF(ns)                                                            \
  ::palimpsest::model::Protocol {                                                             \
    [](Word& w) { return ns::add_ref(w); }, [](Word& w) { return ns::drop_ref(w); },          \
        [](const Word& w) { return ns::is_sole(w); },                                         \
        [](Word& w, Environment& e) { return ns::materialize(w, e) == ns::Outcome::copied; }, \
        [](Word& w, Environment& e) { return ns::replace(w, e) == ns::Outcome::copied; },     \
        [](Word& w) { ns::add_use(w); }, [](Word& w) { return ns::drop_use(w); },             \
        [](Word& w) { ns::raise_pin(w); }, [](Word& w) { return ns::join_pin(w); },           \
        [](Word& w) { ns::lower_pin(w); }, [](const Word& w) { return ns::is_pinned(w); }     \
  }

/// One script per thread, whose storages all share one block at the start.
///
/// A script is a list of letter and storage: r0 read, w0 write, f0 write whose allocation fails,
/// g0 write whose copy fails, o0 overwrite, p0 overwrite whose allocation fails, c0 clone (the
/// clone gets the next number), k0 clone of a storage that several threads have, d0 drop. Whatever
/// is left is dropped at the end, unless a `.` ends the script.
///
/// With `family` there is one more storage on that block, of which each thread has a handle; the
/// first `pins` threads have a pin of it, too. Capitals act on it: R read, W write, C clone (gets
/// the next number; none where it is pinned), N and D one handle more and less, P raise a pin, X
/// write through a pin, U lower a pin, E export for reading (join a pin, else clone), Z look
/// whether the exported data are still there. S says that this thread came so far, A ends the
/// script if no thread has said so; their number is not used. Threads own no other storage unless
/// `clones`.
struct Scenario {
  std::vector<std::string> scripts;
  cow::Bits others = 0;  ///< references that nobody gives up, and the bit for data that are fixed
  std::size_t chunks = 1;
  bool family = false;
  std::size_t pins = 0;
  bool clones = false;

  std::string name() const;
};

/// Violations: use of a freed block, a data race, contents that are not those of a plain value, a
/// word that does not count the owners at the end, a leak, a write to fixed data, a deadlock, a
/// promised address that is not that of the data any more, a handle on a storage that is gone. An
/// outcome says how many copies were made and kept, how many were given up again, how often an
/// owner that was not alone took the data over in the end, how many calls of wake there were, and
/// how many storages are left.
Report run(const Scenario& scenario, const Protocol& protocol);

}  // namespace palimpsest::model
