// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/pool/task_graph.hpp"

#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>

#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/pool/tsan_order.hpp"

// A task ends before any task that waits for it starts.
namespace palimpsest {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

struct TaskGraph::Impl {
  struct Task {
    std::vector<int> successors;
    int n_waits = 0;
    bool is_small = false;
    std::atomic<int> left{0};  // number of unfinished tasks that it waits for
    int next_small = -1;       // in the list of small tasks of one thread
  };

  // The next tasks of one thread. Small tasks come first, since they end soon.
  struct Agenda {
    int small = -1, big = -1;
  };

  explicit Impl(std::size_t n) : tasks(n) {}

  void take_up(int i, Agenda& agenda) {
    Task& task = tasks[at(i)];
    if (task.is_small) {
      task.next_small = agenda.small;
      agenda.small = i;
    } else if (agenda.big < 0) {
      agenda.big = i;
    } else {
      group->run([this, i] {
        PALIMPSEST_ACQUIRE(&started);
        Agenda own;
        own.big = i;
        work_off(own);
      });
    }
  }

  void work_off(Agenda& agenda) {
    while (agenda.small >= 0 || agenda.big >= 0) {
      int& list = agenda.small >= 0 ? agenda.small : agenda.big;
      const int now = list;
      list = agenda.small >= 0 ? tasks[at(now)].next_small : -1;
      PALIMPSEST_ACQUIRE(&tasks[at(now)].left);
      tbb::this_task_arena::isolate([&] { call(body, at(now)); });
      for (int next : tasks[at(now)].successors) {
        PALIMPSEST_RELEASE(&tasks[at(next)].left);
        if (tasks[at(next)].left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          take_up(next, agenda);
        }
      }
    }
    PALIMPSEST_RELEASE(&finished);
  }

  std::vector<Task> tasks;
  // State of the present run.
  tbb::task_group* group = nullptr;
  void (*call)(void*, std::size_t) = nullptr;
  void* body = nullptr;
  char started = 0, finished = 0;
};

TaskGraph::TaskGraph(std::span<const std::vector<int>> waits_for, const std::vector<bool>& is_small)
    : impl_(std::make_unique<Impl>(waits_for.size())) {
  for (std::size_t i = 0; i < waits_for.size(); ++i) {
    Impl::Task& task = impl_->tasks[i];
    task.n_waits = static_cast<int>(waits_for[i].size());
    task.is_small = is_small[i];
    for (int earlier : waits_for[i]) {
      impl_->tasks[at(earlier)].successors.push_back(static_cast<int>(i));
    }
  }
}

TaskGraph::~TaskGraph() = default;

void TaskGraph::run_all(void (*call)(void*, std::size_t), void* body) {
  Impl& impl = *impl_;
  if (pool_threads() == 1 || !has_pool()) {
    for (std::size_t i = 0; i < impl.tasks.size(); ++i) call(body, i);
    return;
  }
  // A waiting thread must not take up tasks of other calls: these might wait for this call.
  tbb::this_task_arena::isolate([&] {
    tbb::task_group group;
    impl.group = &group;
    impl.call = call;
    impl.body = body;
    PALIMPSEST_RELEASE(&impl.started);
    for (Impl::Task& task : impl.tasks) task.left.store(task.n_waits, std::memory_order_relaxed);
    Impl::Agenda agenda;
    for (std::size_t i = 0; i < impl.tasks.size(); ++i) {
      if (impl.tasks[i].n_waits == 0) impl.take_up(static_cast<int>(i), agenda);
    }
    impl.work_off(agenda);
    group.wait();
    PALIMPSEST_ACQUIRE(&impl.finished);
  });
}

}  // namespace palimpsest
