// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csetjmp>
#include <functional>
#include <memory>

namespace palimpsest::model {

/// A thread of control with its own stack. It alternates with the one that enters it.
///
/// Exceptions may be thrown, caught and handled across switches, but must not leave the body. An
/// abandoned body runs no destructors.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets the body that the next enter() begins.
  void start(std::function<void()> body);
  /// Runs the body until it leaves or ends.
  void enter();
  /// Called in the body: returns to the caller of enter().
  void leave();
  /// Discards a body that has not ended.
  void abandon();

 private:
  struct State;
  static void entry(unsigned high, unsigned low);
  void run();

  std::unique_ptr<State> state_;
};

}  // namespace palimpsest::model
