// SPDX-License-Identifier: Apache-2.0
// libnvrtc.so.13 of the tests: its machine code is the text itself, once OpenCL has compiled it.
#include <cstring>

#include "device/fake_cuda/fake_opencl.hpp"

struct _nvrtcProgram {
  std::string text;
  std::string log;
};

#define EXPORTED extern "C" __attribute__((visibility("default"))) int

EXPORTED nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

EXPORTED nvrtcCreateProgram(_nvrtcProgram** program, const char* text, const char*, int,
                            const char* const*, const char* const*) {
  *program = new _nvrtcProgram{text, ""};
  return 0;
}

EXPORTED nvrtcDestroyProgram(_nvrtcProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

EXPORTED nvrtcCompileProgram(_nvrtcProgram* program, int, const char* const*) {
  const auto built = fake_cuda::device().build(program->text, &program->log);
  if (built == nullptr) return 6;  // NVRTC_ERROR_COMPILATION
  fake_cuda::device().api.clReleaseProgram(built);
  return 0;
}

EXPORTED nvrtcGetCUBINSize(_nvrtcProgram* program, std::size_t* bytes) {
  *bytes = program->text.size() + 1;
  return 0;
}

EXPORTED nvrtcGetCUBIN(_nvrtcProgram* program, char* binary) {
  std::memcpy(binary, program->text.c_str(), program->text.size() + 1);
  return 0;
}

EXPORTED nvrtcGetProgramLogSize(_nvrtcProgram* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}

EXPORTED nvrtcGetProgramLog(_nvrtcProgram* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
