// SPDX-License-Identifier: Apache-2.0
// palimpsest doctor: facts about this machine and this build.

#include <array>
#include <cstdlib>
#include <thread>
#include <utility>

#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/device/machine.hpp"
#include "palimpsest/kernels/libraries.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest::cli {
namespace {

struct DoctorOptions {
  bool json = false;
};

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Instruction sets that the compiler was allowed to use everywhere.
std::string built_for() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__SSE2__)
  return "SSE2";
#elif defined(__ARM_NEON)
  return "NEON";
#else
  return "scalar";
#endif
}

// Instruction sets that this processor has.
std::vector<std::string> processor_has() {
  std::vector<std::string> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse2")) sets.emplace_back("SSE2");
  if (__builtin_cpu_supports("avx")) sets.emplace_back("AVX");
  if (__builtin_cpu_supports("avx2")) sets.emplace_back("AVX2");
  if (__builtin_cpu_supports("fma")) sets.emplace_back("FMA");
  if (__builtin_cpu_supports("avx512f")) sets.emplace_back("AVX-512");
#elif defined(__ARM_NEON)
  sets.emplace_back("NEON");
#endif
  return sets;
}

// The settings among the variables of docs/howto/embed.md.
constexpr std::array kVariables = {
    "PALIMPSEST_FLAGS",     "PALIMPSEST_LOG",    "PALIMPSEST_KERNEL_CACHE",
    "PALIMPSEST_KERNELS",   "OPENBLAS_CORETYPE", "XDG_CACHE_HOME",
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",          "MPI_LOCALNRANKS"};

std::string environment() {
  std::string text;
  for (const char* const name : kVariables) {
    const char* const value = std::getenv(name);
    if (value != nullptr) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text.empty() ? "nothing set" : text;
}

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_accelerators(DeviceType type, Facts& facts) {
  const std::string why = why_none(type);
  if (!why.empty()) {
    facts.emplace_back(type == DeviceType::cuda ? "CUDA" : "OpenCL", why);
    return;
  }
  for (const Device device : devices()) {
    if (device.type != type) continue;
    const AcceleratorFacts a = accelerator_facts(device);
    facts.emplace_back(device.str(),
                       fmt::format("{}, {}, {} bytes, at most {} in one array{}", a.name, a.driver,
                                   with_commas(static_cast<index_t>(a.memory_bytes)),
                                   with_commas(static_cast<index_t>(a.largest_allocation)),
                                   a.has_float64 ? "" : ", no float64"));
  }
}

void doctor(const DoctorOptions& options) {
  const Device host;
  const AllocatorStats stats = Allocator::of(host).stats();
  const ComputeLibraries libraries = compute_libraries();
  Facts facts = {
      {"version", PALIMPSEST_VERSION},
      {"compiler", kCompiler},
      {"threads", std::to_string(libraries.threads) + " of " +
                      std::to_string(std::thread::hardware_concurrency())},
      {"SIMD target",
       fmt::format("{} chosen at run time; other code for {}", libraries.vectors, built_for())},
      {"processor has", listed(processor_has())},
      {"BLAS", libraries.blas},
      {"caches",
       fmt::format("{} bytes of a core, {} bytes in all", with_commas(libraries.core_cache_bytes),
                   with_commas(libraries.last_cache_bytes))},
      {"environment", environment()},
      {"memory spaces", "cpu:0 to cpu:" + std::to_string(kMaxHostSpaces - 1)},
      {host.str() + " live", with_commas(static_cast<index_t>(stats.live_bytes)) + " bytes"},
  };
  for (const DeviceType type : {DeviceType::opencl, DeviceType::cuda})
    add_accelerators(type, facts);
  if (options.json) {
    JsonReport report;
    for (const auto& [name, value] : facts) report.set(name, value);
    return print(report.text());
  }
  for (const auto& [name, value] : facts) print(fmt::format("{:<14} {}\n", name, value));
}

}  // namespace

void add_doctor(CommandLine& line) {
  const auto options = std::make_shared<DoctorOptions>();
  line.add("doctor", "List facts about this machine and this build")
      .flag("--json", options->json, "Facts as JSON on standard output")
      .action([options] { doctor(*options); });
}

}  // namespace palimpsest::cli
