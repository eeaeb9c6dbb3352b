// SPDX-License-Identifier: Apache-2.0
#include "model/fiber.hpp"

#include <cxxabi.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

// Part of the C++ ABI, but not declared by its header.
extern "C" void __cxa_end_catch();

namespace palimpsest::model {
namespace {

// The state of the C++ runtime per thread about exceptions being handled; each fiber has its own.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

void swap_exception_state(ExceptionState& mine) {
  void* const current = abi::__cxa_get_globals();
  ExceptionState other;
  std::memcpy(&other.caught, current, sizeof(void*));
  std::memcpy(&other.uncaught, static_cast<std::byte*>(current) + sizeof(void*), sizeof(unsigned));
  std::memcpy(current, &mine.caught, sizeof(void*));
  std::memcpy(static_cast<std::byte*>(current) + sizeof(void*), &mine.uncaught, sizeof(unsigned));
  mine = other;
}

constexpr std::size_t kStackBytes = 256 << 10;

}  // namespace

// The first entry makes a context. All other switches are jumps, without a system call.
struct Fiber::State {
  std::vector<std::byte> stack = std::vector<std::byte>(kStackBytes);
  ucontext_t context{}, first_caller{};
  std::jmp_buf caller{}, here{}, base{};
  std::function<void()> body;
  ExceptionState exceptions;
  bool is_made = false, is_fresh = false, is_running = false;
};

Fiber::Fiber() : state_(std::make_unique<State>()) {}
Fiber::~Fiber() = default;

void Fiber::start(std::function<void()> body) {
  state_->body = std::move(body);
  state_->is_fresh = true;
  state_->is_running = true;
}

void Fiber::entry(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low)->run();
}

// Never returns: an ended or abandoned body jumps back to `base`, with the stack empty again.
void Fiber::run() {
  (void)_setjmp(state_->base);
  for (;;) {
    state_->body();
    state_->is_running = false;
    leave();
  }
}

void Fiber::enter() {
  State& state = *state_;
  swap_exception_state(state.exceptions);
  if (_setjmp(state.caller) == 0) {
    const bool is_fresh = std::exchange(state.is_fresh, false);
    if (!is_fresh) _longjmp(state.here, 1);
    if (state.is_made) _longjmp(state.base, 1);
    state.is_made = true;
    getcontext(&state.context);
    state.context.uc_stack.ss_sp = state.stack.data();
    state.context.uc_stack.ss_size = state.stack.size();
    state.context.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&state.context, reinterpret_cast<void (*)()>(&Fiber::entry), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    swapcontext(&state.first_caller, &state.context);
  }
  swap_exception_state(state.exceptions);
}

void Fiber::leave() {
  if (_setjmp(state_->here) == 0) _longjmp(state_->caller, 1);
}

void Fiber::abandon() {
  State& state = *state_;
  if (!state.is_running) return;
  state.is_running = false;
  // Ends the exceptions that the body was handling; they would leak otherwise.
  swap_exception_state(state.exceptions);
  while (*static_cast<void**>(static_cast<void*>(abi::__cxa_get_globals())) != nullptr) {
    __cxa_end_catch();
  }
  swap_exception_state(state.exceptions);
}

}  // namespace palimpsest::model
