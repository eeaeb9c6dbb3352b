// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/isolated_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/system/system_calls.hpp"

namespace palimpsest::io_detail {

namespace {

/// Bytes of private writable memory that this process has now, which RLIMIT_DATA counts; 0:
/// unknown.
std::size_t private_bytes_now() { return system_detail::status_bytes("VmData"); }

void lower_limit(decltype(RLIMIT_CORE) resource, std::size_t limit) {
  rlimit now = {};
  if (::getrlimit(resource, &now) != 0) return;
  if (now.rlim_cur != RLIM_INFINITY && now.rlim_cur <= limit) return;
  now.rlim_cur = limit;
  ::setrlimit(resource, &now);
}

/// Prepares the child: it must die alone, silently, and with its parent.
void prepare_child(pid_t parent, std::size_t data_limit) {
  system_detail::end_with_parent();
  if (::getppid() != parent) ::_exit(1);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) {
    ::signal(signal_number, SIG_DFL);
  }
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(nowhere, standard);
  lower_limit(RLIMIT_CORE, 0);
  if (data_limit != 0) lower_limit(RLIMIT_DATA, data_limit);
}

/// Seconds that a process has computed so far; 0 where the system does not tell.
double computed_s(pid_t process) {
  clockid_t clock = {};
  timespec time = {};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// Waits for the end of the child, which closes the other end of the pipe; false: it stalled.
bool wait_for_end(pid_t child, int pipe_end, const std::atomic<std::uint64_t>& progress,
                  const ChildLimits& limits, int& status) {
  constexpr int kTickMs = 100;
  double moved_at = now_s(), computed_then = 0;
  std::uint64_t seen = progress.load();
  while (true) {
    pollfd waiting = {pipe_end, POLLIN, 0};
    const bool closed = ::poll(&waiting, 1, kTickMs) > 0;
    // A process that was forked at the same time may hold the pipe open: ask for the child as well.
    const pid_t ended = ::waitpid(child, &status, closed ? 0 : WNOHANG);
    if (ended == child || (ended < 0 && errno == ECHILD)) return true;
    if (const std::uint64_t now = progress.load(); now != seen) {
      seen = now;
      moved_at = now_s();
      computed_then = computed_s(child);
    } else if (now_s() - moved_at > limits.stalled_s ||
               computed_s(child) - computed_then > limits.looping_s) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return false;
    }
  }
}

}  // namespace

SharedMemory::SharedMemory(std::size_t n_bytes) : size_(n_bytes) {
  void* memory = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw OutOfMemory(
        fmt::format("[reading] the system gives no {} bytes of shared memory.", n_bytes));
  }
  data_ = static_cast<unsigned char*>(memory);
}

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

ChildEnd run_isolated(const std::function<void()>& work, const std::atomic<std::uint64_t>& progress,
                      const ChildLimits& limits) {
  int pipe_ends[2] = {};
  const std::size_t private_now = private_bytes_now();
  const std::size_t data_limit = private_now == 0 ? 0 : private_now + limits.private_bytes;
  const pid_t parent = ::getpid();
  const bool piped = ::pipe2(pipe_ends, O_CLOEXEC) == 0;
  const pid_t child = piped ? ::fork() : -1;
  if (child < 0) {
    const int reason = errno;
    for (const int end : pipe_ends) {
      if (piped) ::close(end);
    }
    throw IoError(
        fmt::format("[reading] no process could be started: {}. Try again when fewer "
                    "programs run.",
                    std::generic_category().message(reason)));
  }
  if (child == 0) {
    int result = 0;
    try {
      prepare_child(parent, data_limit);
      work();
    } catch (...) {
      result = 1;
    }
    ::_exit(result);
  }
  ::close(pipe_ends[1]);
  int status = 0;
  const bool ended = wait_for_end(child, pipe_ends[0], progress, limits, status);
  ::close(pipe_ends[0]);
  if (!ended) return ChildEnd::stalled;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ChildEnd::finished : ChildEnd::crashed;
}

}  // namespace palimpsest::io_detail
