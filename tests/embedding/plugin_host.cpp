// SPDX-License-Identifier: Apache-2.0
// Loads a plug-in, uses it in threads that end before and after it is unloaded, and forks.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int round = 0; round < 2; ++round) {
    void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::puts(dlerror());
      return 1;
    }
    const auto use = reinterpret_cast<int (*)(const char*)>(dlsym(plugin, "use"));
    if (use == nullptr || use(argv[2]) != 0) return 1;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_used = false, is_unloaded = false;
    int result = 1;
    std::thread late([&] {
      const int used = use(argv[2]);
      std::unique_lock lock(mutex);
      result = used;
      is_used = true;
      changed.notify_all();
      changed.wait(lock, [&] { return is_unloaded; });
    });
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_used; });
      dlclose(plugin);
      is_unloaded = true;
      changed.notify_all();
    }
    late.join();
    if (result != 0) return 1;
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
}
