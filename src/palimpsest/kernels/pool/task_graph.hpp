// SPDX-License-Identifier: Apache-2.0
// Internal: tasks that wait for one another, on the thread pool.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace palimpsest {

/// Tasks 0, 1, ..; each waits for some tasks with lower numbers. A task sees the writes of all
/// tasks that it waits for, directly or indirectly. A thread never sleeps while it waits for a
/// task: it runs another one.
///
/// Threads  run() by one thread at a time
class TaskGraph {
 public:
  /// A small task is run by the thread that made it ready.
  TaskGraph(std::span<const std::vector<int>> waits_for, const std::vector<bool>& is_small);
  ~TaskGraph();
  TaskGraph(const TaskGraph&) = delete;
  TaskGraph& operator=(const TaskGraph&) = delete;

  /// Runs body(i) once for each task, on the calling thread and on others of its pool, and returns
  /// when all are done. The loops of a task run no other task while they wait. `body` throws
  /// nothing.
  template <class Body>
  void run(Body&& body) {
    using B = std::remove_reference_t<Body>;
    run_all([](void* b, std::size_t task) { (*static_cast<B*>(b))(task); },
            const_cast<std::remove_const_t<B>*>(std::addressof(body)));
  }

 private:
  void run_all(void (*call)(void*, std::size_t), void* body);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace palimpsest
