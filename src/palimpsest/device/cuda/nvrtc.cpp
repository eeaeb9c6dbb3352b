// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "palimpsest/base/error.hpp"
#include "palimpsest/device/cuda/cuda_backend.hpp"
#include "palimpsest/device/messages.hpp"
#include "palimpsest/device/quiet_signals.hpp"
#include "palimpsest/device/text/preludes.hpp"

namespace palimpsest::cuda {

std::vector<std::byte> compile(const KernelText& text, const std::string& isa,
                               const std::string& device) {
  std::string why;
  const Nvrtc* const nvrtc = load_nvrtc(&why);
  if (nvrtc == nullptr) throw DeviceError(fmt::format("[{}] {}", device, why));
  const QuietSignals quiet;
  const std::string whole = kCudaPrelude + first_line(text) + text.text;
  NvrtcProgram program = nullptr;
  Result code =
      nvrtc->nvrtcCreateProgram(&program, whole.c_str(), text.name.c_str(), 0, nullptr, nullptr);
  const std::string target = "-arch=" + isa;
  // Functions of the prelude and of the library of a family may be unused.
  const std::array options = {target.c_str(), "-fmad=false", "-diag-suppress=177"};
  if (code == 0) {
    code = nvrtc->nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  }
  std::vector<std::byte> binary;
  std::string log;
  std::size_t bytes = 0;
  if (code == 0 && (code = nvrtc->nvrtcGetCUBINSize(program, &bytes)) == 0) {
    binary.resize(bytes);
    code = nvrtc->nvrtcGetCUBIN(program, reinterpret_cast<char*>(binary.data()));
  } else if (program != nullptr && nvrtc->nvrtcGetProgramLogSize(program, &bytes) == 0) {
    log.resize(bytes);
    nvrtc->nvrtcGetProgramLog(program, log.data());
  }
  if (program != nullptr) nvrtc->nvrtcDestroyProgram(&program);
  if (code == 0) return binary;
  throw DeviceError(does_not_compile(
      text.name, device, first_complaint(log, fmt::format("NVRTC gives error {}", code))));
}

}  // namespace palimpsest::cuda
