// SPDX-License-Identifier: Apache-2.0
// A program that uses the library at an unusual time or in an unusual state: host PLACE FOLDER.
// Prints "used" after each successful use, and exits with 1 after a failed one.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "embedding/use_everything.hpp"

using namespace palimpsest;
using palimpsest::testing::Objects;
using palimpsest::testing::require;
using palimpsest::testing::use_everything;

namespace {

std::string folder;  // constant after the start of main()
std::string place;

// A failure must not look like a success, whatever handlers remain.
void use_or_die(const char* where, const std::function<void()>& use) {
  try {
    use();
    std::printf("used in %s\n", where);
    std::fflush(stdout);
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", where, error.what());
    std::fflush(stdout);
    std::_Exit(1);
  }
}

// -- at the end of the process or of a thread ---------------------------------------------------

struct UsesAtItsEnd {
  explicit UsesAtItsEnd(const char* w, bool is_made_early) : where(w) {
    if (is_made_early) objects = std::make_unique<Objects>();
  }
  ~UsesAtItsEnd() {
    use_or_die(where, [this] {
      if (objects) objects->use(folder);
      use_everything(folder);
    });
  }
  const char* where;
  std::unique_ptr<Objects> objects;
};

void in_static_destructor() {
  static const UsesAtItsEnd object("a static destructor", true);
  object.objects->use(folder);
}
void first_in_static_destructor() {
  static const UsesAtItsEnd object("a static destructor", false);
}
void in_thread_local_destructor() {
  thread_local const UsesAtItsEnd object("a thread_local destructor", true);
  object.objects->use(folder);
}
void first_in_thread_local_destructor() {
  thread_local const UsesAtItsEnd object("a thread_local destructor", false);
}
void in_worker(void (*f)()) {
  std::thread(f).join();
  use_or_die("main afterwards", [] { use_everything(folder); });
}

pthread_key_t key;
void use_in_key_destructor(void*) {
  use_or_die("a destructor of thread-specific data", [] { use_everything(folder); });
}
void in_key_destructor(bool uses_before) {
  pthread_key_create(&key, use_in_key_destructor);
  std::thread([uses_before] {
    if (uses_before) use_everything(folder);
    pthread_setspecific(key, &key);
  }).join();
  use_or_die("main afterwards", [] { use_everything(folder); });
}

void in_exit_handler(bool uses_before) {
  static Objects* objects = nullptr;
  std::atexit([] {
    use_or_die("an exit handler", [] {
      if (objects != nullptr) objects->use(folder);
      use_everything(folder);
    });
  });
  // Statics constructed from here on are destroyed before that handler runs.
  if (uses_before) objects = new Objects;
  if (uses_before) objects->use(folder);
}

void in_quick_exit() {
  use_everything(folder);
  std::at_quick_exit([] { use_or_die("a handler of quick_exit", [] { use_everything(folder); }); });
  std::quick_exit(0);
}

// Constructed before main(), and so destroyed after all objects of main().
struct Early {
  std::unique_ptr<Objects> objects;
  ~Early() {
    if (!objects) return;
    use_or_die("the destructor of a global object", [this] { objects->use(folder); });
  }
};
Early early;
void in_global_destructor() {
  early.objects = std::make_unique<Objects>();
  use_everything(folder);
}

// Reads the state of the process: ThreadSanitizer does not handle pthread_join() of the main
// thread.
bool main_thread_has_ended() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t state = line.rfind(") ");
  return state != std::string::npos && line.compare(state + 2, 1, "Z") == 0;
}

void main_ends_as_a_thread() {
  use_everything(folder);
  std::thread([] {
    while (!main_thread_has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    use_or_die("a thread that outlives main", [] { use_everything(folder); });
    std::exit(0);
  }).detach();
  pthread_exit(nullptr);
}

void many_threads() {
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      thread_local const Objects objects;
      const Tensor kept = Tensor::ones({10}).lazy_clone();
      const ConfigScope scope({.threads = 2});
      objects.dense(objects.x);
    }).join();
  }
  use_or_die("main after many threads", [] { use_everything(folder); });
}

// -- fork ----------------------------------------------------------------------------------------

std::string folder_of_child() {
  const std::string made = folder + "/child" + std::to_string(getpid());
  std::filesystem::create_directory(made);
  return made;
}

// Threads that repeatedly take locks or change global state.
class BusyThreads {
 public:
  explicit BusyThreads(Objects& common) {
    start([](int i) {
      std::vector<Tensor> all;
      for (int k = 0; k < 20; ++k) all.push_back(Tensor::zeros({1000 * (1 + (i + k) % 40)}));
    });
    start([](int i) {
      const Tensor x = Tensor::ones({4000 + i % 5});
      Tensor a = x.lazy_clone(), b = x.lazy_clone();
      std::thread([&] { a.fill(1); }).join();
      b.fill(2);
    });
    start([shared = Tensor::ones({200000})](int) {
      Tensor mine = shared.lazy_clone();
      mine.set({0}, 2.0);
    });
    start([](int i) { functional::fft(Tensor::ones({8 + i % 300, 4}, DType::complex64)); });
    start([&common](int) {
      const ConfigScope scope({.threads = 2, .parallel_grain = 1});
      common.chain.N()(Tensor::ones({32}, DType::complex64));
      common.dense(common.x);
    });
    start([&common](int) { common.add(Tensor::ones({6})); });
    start([&common](int i) {
      common.weight.modify([i](Tensor& t) { t.fill(i); });
      common.twice.refresh();
    });
    start([](int i) {
      const Variable x = dvector("x" + std::to_string(i % 1000));
      function({x}, ops::sum(x * 2.0 + i))(Tensor::ones({3}));
    });
    start([](int i) {
      const NamedLinop A = Diagonal(Tensor::ones({3}), "Q" + std::to_string(i % 5000));
      A.H();
      A.N()(Tensor::ones({3}));
    });
    start([](int) {
      set_default_config(*shared_config());
      linop_names();
    });
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  /// The smallest number of rounds of any thread.
  int rounds() const {
    int fewest = rounds_.front()->load();
    for (const auto& n : rounds_) fewest = std::min(fewest, n->load());
    return fewest;
  }

 private:
  void start(std::function<void(int)> work) {
    rounds_.push_back(std::make_unique<std::atomic<int>>(0));
    threads_.emplace_back([this, work = std::move(work), n = rounds_.back().get()] {
      for (int i = 0; !stop_; ++i) {
        work(i);
        ++*n;
      }
    });
  }
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<std::atomic<int>>> rounds_;
  std::vector<std::thread> threads_;
};

// Runs work in a child. It must end with `result` == 0; it is killed when it hangs.
int run_child(const std::function<void()>& work, bool exits_normally) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    int result = 0;
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      result = 1;
    }
    if (exits_normally) std::exit(result);
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("child: signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

void in_children_of_busy_parents() {
  Objects common;
  const char* const wanted = std::getenv("PALIMPSEST_LONG");
  const int n_children = wanted != nullptr ? 300 : 12;
  const BusyThreads busy(common);
  while (busy.rounds() < 2) usleep(1000);
  for (int i = 0; i < n_children; ++i) {
    usleep(static_cast<useconds_t>(997 * (i % 11)));
    const int result = run_child(
        [&] {
          // The same operators and functions as the parent's threads are using.
          require(equal(common.dense(common.x), common.dense.deepcopy()(common.x)), "an operator");
          common.chain.N()(Tensor::ones({32}, DType::complex64));
          try {
            common.add(Tensor::ones({6}));
          } catch (const StateError&) {
            // Another thread was writing it.
            common.sum.set_value(Tensor::ones({6}));
            common.add(Tensor::ones({6}));
            require(common.sum.get_value().at<double>({1}) == 2, "a value set anew");
          }
          try {
            common.weight.modify([](Tensor& t) { t.fill(5); });
          } catch (const StateError&) {
            common.weight.set_value(Tensor::full({4}, 5.0));
          }
          common.twice.refresh();
          require(common.twice.value().at<double>({2}) == 10, "a derived value");
          use_everything(folder_of_child());
          std::thread([] { use_everything(folder_of_child() + "/."); }).join();
          if (i % 4 == 0) {
            require(run_child([] { use_everything(folder_of_child()); }, true) == 0,
                    "a grandchild");
          }
        },
        i % 2 == 0);
    require(result == 0, "what a child returns");
  }
  use_or_die("the parent", [] { use_everything(folder); });
}

// Like a server that forks its workers before it computes anything.
void in_child_of_idle_parent() {
  require(run_child(
              [] {
                use_everything(folder_of_child());
                require(compute_libraries().threads > 1 || std::thread::hardware_concurrency() == 1,
                        "the pool of a child whose parent had none");
              },
              true) == 0,
          "what a child returns");
  use_or_die("the parent", [] { use_everything(folder); });
}

// fork() by a thread within a call.
void fork_in_a_step() {
  SharedVariable s = shared(Tensor::ones({3}));
  s.modify([&](Tensor& t) {
    t.fill(4);
    require(run_child(
                [&] {
                  bool is_held = false;
                  try {
                    s.get_value();
                  } catch (const StateError&) {
                    is_held = true;
                  }
                  require(is_held, "the child is within modify() too");
                },
                false) == 0,
            "what a child returns");
  });
  require(s.get_value().at<double>({0}) == 4, "the value afterwards");
  use_or_die("the parent", [] { use_everything(folder); });
}

// -- threads and memory --------------------------------------------------------------------------

int n_threads() {
  int n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

void nobody_starts_threads() {
  require(n_threads() == 1, "one thread at the start");
  use_or_die("one thread", [] {
    const Tensor a = Tensor::ones({100, 100});
    const ConfigScope scope({.threads = 1});
    Objects().use(folder);
    Dense(a, "MN,N->M")(Tensor::ones({100}));
    const RawScan scan = cartesian_scan(Tensor::ones({1, 4, 4, 4}, DType::complex64),
                                        Tensor::ones({4, 4}, DType::bool_), {});
    write_ismrmrd(folder + "/x.h5", scan);
    read_ismrmrd(folder + "/x.h5");
  });
  require(n_threads() == 1, "one thread at the end");
}

void more_threads_than_cores() {
  use_or_die("more threads than cores", [] {
    const ConfigScope scope({.threads = 7, .parallel_grain = 1});
    Objects().use(folder);
    check_contract(Diagonal(Tensor::ones({3}), "N"));
  });
}

// Like a service with limited memory.
void little_memory() {
  use_or_die("little memory", [] {
    const auto x = dmatrix("x"), y = dmatrix("y");
    const Function product = function({x, y}, ops::matmul(x, y));
    const Tensor a = Tensor::ones({200, 200});
    product.prepare(std::vector{a, a});
    long pages = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    require(file != nullptr && std::fscanf(file, "%ld", &pages) == 1, "/proc/self/statm");
    std::fclose(file);
    rlimit limit = {};
    getrlimit(RLIMIT_AS, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (64U << 20);
    setrlimit(RLIMIT_AS, &limit);
    alarm(60);
    bool is_refused = false;
    try {
      product(a, a);
    } catch (const OutOfMemory& error) {
      is_refused = std::string(error.what()).find("OpenBLAS needs a buffer") != std::string::npos;
    }
    limit.rlim_cur = before;
    setrlimit(RLIMIT_AS, &limit);
    require(is_refused, "an error instead of waiting for ever");
    require(product(a, a).tensor().at<double>({1, 1}) == 200, "a product with more memory");
  });
}

// AddressSanitizer adds guard zones to stack frames: uses that need 64 KiB of stack need 160 KiB
// with it.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kSmallStackBytes = 256 << 10;
#else
constexpr std::size_t kSmallStackBytes = 128 << 10;
#endif

void on_a_small_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstacksize(&attributes, kSmallStackBytes) == 0, "the size of the stack");
  pthread_t thread{};
  const auto work = [](void*) -> void* {
    use_or_die("a small stack", [] {
      Objects().use(folder);
      use_everything(folder);
      for (const DType dtype : {DType::complex64, DType::complex128}) {
        for (const index_t n : {64, 101, 128, 320, 1000, 4096, 5003}) {
          Fft(2)(Tensor::ones({8, n}, dtype));
          Fft(2)(Tensor::ones({n, 8}, dtype));
        }
      }
    });
    return nullptr;
  };
  require(pthread_create(&thread, &attributes, work, nullptr) == 0, "a thread");
  pthread_join(thread, nullptr);
}

const std::map<std::string, void (*)()> places = {
    {"static", in_static_destructor},
    {"first_in_static", first_in_static_destructor},
    {"global", in_global_destructor},
    {"thread_local", in_thread_local_destructor},
    {"first_in_thread_local", first_in_thread_local_destructor},
    {"thread_local_of_worker", [] { in_worker(in_thread_local_destructor); }},
    {"first_in_thread_local_of_worker", [] { in_worker(first_in_thread_local_destructor); }},
    {"static_made_by_worker", [] { in_worker(in_static_destructor); }},
    {"thread_specific", [] { in_key_destructor(true); }},
    {"first_in_thread_specific", [] { in_key_destructor(false); }},
    {"atexit", [] { in_exit_handler(true); }},
    {"first_in_atexit", [] { in_exit_handler(false); }},
    {"quick_exit", in_quick_exit},
    {"main_ends_first", main_ends_as_a_thread},
    {"many_threads", many_threads},
    {"fork_busy", in_children_of_busy_parents},
    {"fork_idle", in_child_of_idle_parent},
    {"fork_in_a_step", fork_in_a_step},
    {"one_thread", nobody_starts_threads},
    {"more_threads_than_cores", more_threads_than_cores},
    {"little_memory", little_memory},
    {"small_stack", on_a_small_stack},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !places.contains(argv[1])) return 2;
  place = argv[1];
  folder = argv[2];
  try {
    places.at(place)();
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", place.c_str(), error.what());
    std::fflush(stdout);
    std::_Exit(1);
  }
}
