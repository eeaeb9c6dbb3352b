// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/memory_model.hpp"
#include "palimpsest/memory/cow_protocol.hpp"

// Small programs over the copy-on-write protocol, run in every way allowed by the memory model.
namespace palimpsest::model {

class Scene;
struct ModelStorage;
struct ModelBlock;

/// The environment of a materialization, on blocks of the model.
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

// A namespace cannot be a template argument.
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

/// A script per thread. The storages of all threads share one block at the start.
///
/// A script is a list of letter and storage: r0 read, w0 write, f0 write whose allocation fails, g0
/// write whose copy fails, o0 overwrite, p0 overwrite whose allocation fails, c0 clone (the clone
/// gets the next number), k0 clone of a storage that several threads have, d0 drop. The remaining
/// storages are dropped at the end, unless a `.` ends the script.
///
/// With `family` there is one more storage on that block. Each thread has a handle of it, and the
/// first `pins` threads also a pin. Capitals act on it: R read, W write, C clone (gets the next
/// number; none where it is pinned), N and D one handle more and less, P raise a pin, X write
/// through a pin, U lower a pin, E export for reading (join a pin, else clone), Z check that the
/// exported data still exist. S signals that this thread has come so far, A ends the script if no
/// thread has signalled; their number is not used. Threads own no other storage unless `clones`.
struct Scenario {
  std::vector<std::string> scripts;
  cow::Bits others = 0;  ///< references that are never dropped, and the bit for fixed data
  std::size_t chunks = 1;
  bool family = false;
  std::size_t pins = 0;
  bool clones = false;

  std::string name() const;
};

/// Violations: use of a freed block, a data race, contents that differ from those of a plain value,
/// a word that does not count the owners at the end, a leak, a write to fixed data, a deadlock,
/// data that left a promised address, a handle on a destroyed storage. An outcome gives the numbers
/// of copies made and kept, of copies given up again, of late take-overs of the data by an owner
/// that was not alone, of calls of wake, and of remaining storages.
Report run(const Scenario& scenario, const Protocol& protocol);

}  // namespace palimpsest::model
