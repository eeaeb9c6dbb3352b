// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csetjmp>
#include <functional>
#include <memory>

namespace palimpsest::model {

/// A thread of control with a stack of its own, run in turns with the one that enters it.
///
/// Exceptions may be thrown, caught and handled across turns, but not leave the body. An abandoned
/// body runs no destructors.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets what the next enter() begins with.
  void start(std::function<void()> body);
  /// Runs the body until it leaves or ends.
  void enter();
  /// From inside the body: back to whoever entered.
  void leave();
  /// Forgets a body that has not ended.
  void abandon();

 private:
  struct State;
  static void entry(unsigned high, unsigned low);
  void run();

  std::unique_ptr<State> state_;
};

}  // namespace palimpsest::model
