// SPDX-License-Identifier: Apache-2.0
// The library inside a process of Python: messages and Ctrl-C.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/solve/interrupt.hpp"

namespace palimpsest::python {
namespace {

// -- messages: they come on any thread, and go to Python's logging from the main one -----------

struct Message {
  LogLevel level;
  std::string text;
  Message* before;
};
// The latest one first. No lock: a message may come while the library holds some.
std::atomic<Message*> messages{nullptr};

// In the order in which they came.
std::vector<std::unique_ptr<Message>> taken() {
  std::vector<std::unique_ptr<Message>> list;
  for (Message* m = messages.exchange(nullptr); m != nullptr; m = m->before) list.emplace_back(m);
  std::reverse(list.begin(), list.end());
  return list;
}

nb::object logger() { return nb::module_::import_("logging").attr("getLogger")("palimpsest"); }

// True where PALIMPSEST_LOG asks for messages, and no handler but that of bind_process() has them.
bool goes_to_stderr(nb::handle log) {
  const nb::object others = nb::module_::import_("logging").attr("root").attr("handlers");
  return std::getenv("PALIMPSEST_LOG") && nb::len(others) == 0 &&
         nb::len(nb::object(log.attr("handlers"))) <= 1;
}

int deliver(void*) {
  constexpr int levels[] = {10, 20, 30, 40, 50};  // of the module logging
  try {
    const nb::object log = logger();
    const bool is_for_stderr = goes_to_stderr(log);
    for (const auto& message : taken()) {
      if (is_for_stderr) {
        constexpr const char* names[] = {"debug", "info", "warning", "error", "off"};
        std::fprintf(stderr, "palimpsest %s: %s\n", names[static_cast<int>(message->level)],
                     message->text.c_str());
      } else {
        log.attr("log")(levels[static_cast<int>(message->level)], "%s", message->text);
      }
    }
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
    return -1;
  }
}

void note(LogLevel level, std::string_view text) {
  auto* const message = new Message{level, std::string(text), messages.load()};
  while (!messages.compare_exchange_weak(message->before, message)) {
  }
  if (message->before == nullptr) Py_AddPendingCall(deliver, nullptr);
}

// -- Ctrl-C -----------------------------------------------------------------------------------

std::thread::id main_thread;
SolveInterrupt* running_solve = nullptr;  // in the main thread

// Asks Python for signals, in its main thread and not all the time.
void check_signals() {
  if (std::this_thread::get_id() != main_thread) return;
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(10)) return;
  last = now;
  const Locked locked;
  if (PyErr_CheckSignals() == 0) return;
  if (running_solve == nullptr || !running_solve->take()) throw nb::python_error();
}

void let_go() {
  set_interrupt_check(nullptr);
  set_log_sink({});
  deliver(nullptr);
}

}  // namespace

SolveInterrupt::SolveInterrupt() {
  if (std::this_thread::get_id() == main_thread) outer_ = std::exchange(running_solve, this);
}

SolveInterrupt::~SolveInterrupt() {
  if (std::this_thread::get_id() == main_thread) running_solve = outer_;
}

bool SolveInterrupt::take() {
  if (error_) return false;
  error_.emplace();
  token_.cancel();
  return true;
}

void SolveInterrupt::raise_with(ResultObject& result) {
  if (!error_) return;
  const auto stop = [](Status& status) {
    if (status == Status::cancelled) status = Status::stopped;
  };
  stop(result.result.status);
  for (Status& status : result.result.batch_status) stop(status);
  nb::object raised = nb::borrow(error_->value());
  raised.attr("result") = nb::cast(std::move(result));
  throw nb::python_error(*error_);
}

void bind_process(nb::module_&) {
  main_thread = std::this_thread::get_id();
  set_interrupt_check(check_signals);
  logger().attr("addHandler")(nb::module_::import_("logging").attr("NullHandler")());
  set_log_sink(note);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(let_go));
}

}  // namespace palimpsest::python
