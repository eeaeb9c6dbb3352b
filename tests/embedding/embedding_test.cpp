// SPDX-License-Identifier: Apache-2.0
// The library in other programs: each case runs a program at an unusual time or in an unusual
// state.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace palimpsest {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
// Some hosts end while their threads still run; memory held by these is not a leak.
constexpr const char* kSanitizerOptions = "export ASAN_OPTIONS=detect_leaks=0; ";

struct Ran {
  int code = -1;       // 128 + the signal that ended it
  std::string output;  // both streams
};

Ran run(const std::string& command) {
  Ran ran;
  std::FILE* const pipe = popen((kSanitizerOptions + ("{ " + command + " ; } 2>&1")).c_str(), "r");
  if (pipe == nullptr) return ran;
  char text[4096];
  for (std::size_t n; (n = std::fread(text, 1, sizeof text, pipe)) > 0;) ran.output.append(text, n);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "embedding-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs a host program; expects all its uses to succeed, and no other output.
void expect_uses(const std::string& place, const std::string& uses,
                 const std::string& before = "") {
  const Folder folder;
  const Ran ran = run(before + " timeout 500 " PALIMPSEST_HOST " " + place + " " + folder.path());
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, uses);
}

TEST(Embedding, StaticObjectsMayUseEverythingInTheirDestructors) {
  expect_uses("static", "used in a static destructor\n");
  expect_uses("first_in_static", "used in a static destructor\n");
  expect_uses("static_made_by_worker", "used in main afterwards\nused in a static destructor\n");
  expect_uses("global", "used in the destructor of a global object\n");
}

TEST(Embedding, ThreadLocalObjectsMayUseEverythingInTheirDestructors) {
  const std::string used = "used in a thread_local destructor\n";
  expect_uses("thread_local", used);
  expect_uses("first_in_thread_local", used);
  expect_uses("thread_local_of_worker", used + "used in main afterwards\n");
  expect_uses("first_in_thread_local_of_worker", used + "used in main afterwards\n");
}

TEST(Embedding, DestructorsOfThreadSpecificDataMayUseEverything) {
  const std::string used = "used in a destructor of thread-specific data\n";
  expect_uses("thread_specific", used + "used in main afterwards\n");
  expect_uses("first_in_thread_specific", used + "used in main afterwards\n");
}

TEST(Embedding, ExitHandlersMayUseEverything) {
  expect_uses("atexit", "used in an exit handler\n");
  expect_uses("first_in_atexit", "used in an exit handler\n");
  expect_uses("quick_exit", "used in a handler of quick_exit\n");
}

TEST(Embedding, ThreadsMayOutliveMainAndEndInAnyNumber) {
  expect_uses("main_ends_first", "used in a thread that outlives main\n");
  expect_uses("many_threads", "used in main after many threads\n");
}

TEST(Embedding, ChildrenOfBusyParentsMayUseEverything) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers keep marks of the parent's threads in the child";
  expect_uses("fork_busy", "used in the parent\n");
}

TEST(Embedding, AChildHasThreadsOfItsOwnIfItsParentHadNone) {
  expect_uses("fork_idle", "used in the parent\n");
}

TEST(Embedding, AThreadMayForkInAStepOfItsOwn) {
  expect_uses("fork_in_a_step", "used in the parent\n");
}

TEST(Embedding, LibrariesStartNoThreads) { expect_uses("one_thread", "used in one thread\n"); }

TEST(Embedding, TheSchedulerSaysNothingOnStandardError) {
  expect_uses("more_threads_than_cores", "used in more threads than cores\n");
  expect_uses("more_threads_than_cores", "used in more threads than cores\n", "taskset 1");
  expect_uses("one_thread", "used in one thread\n", "PALIMPSEST_FLAGS=threads=5");
}

TEST(Embedding, LittleMemoryIsAnErrorAndNoHang) {
  expect_uses("little_memory", "used in little memory\n");
}

TEST(Embedding, AStackOf128KiBIsEnough) { expect_uses("small_stack", "used in a small stack\n"); }

TEST(Embedding, APluginMayBeUnloaded) {
  const Folder folder;
  const Ran ran =
      run("timeout 100 " PALIMPSEST_PLUGIN_HOST " " PALIMPSEST_PLUGIN " " + folder.path());
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
}

// Every limit gives the result or an error, never an endless wait.
TEST(Embedding, TheCommandEndsUnderAnyLimitOfItsMemory) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers map more than any limit";
  const Folder folder;
  const std::string scan = folder.path() + "/scan.h5";
  ASSERT_EQ(run(PALIMPSEST_COMMAND " simulate " + scan + " --size 64 --coils 4").code, 0);
  for (const int kilobytes : {100000, 150000, 200000, 250000, 300000, 400000, 600000}) {
    const std::string limit =
        "ulimit -v " + std::to_string(kilobytes) + "; ulimit -c 0; timeout 60 ";
    const Ran version = run(limit + PALIMPSEST_COMMAND " --version");
    EXPECT_NE(version.code, 124) << kilobytes;
    if (kilobytes >= 200000) {
      EXPECT_EQ(version.code, 0) << version.output;
    }
    const Ran recon =
        run(limit + PALIMPSEST_COMMAND " recon " + scan + " -o " + folder.path() + "/image.png");
    EXPECT_NE(recon.code, 124) << kilobytes;
    EXPECT_LT(recon.code, 128) << kilobytes << ": " << recon.output;
  }
}

}  // namespace
}  // namespace palimpsest
