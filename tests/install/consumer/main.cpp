// SPDX-License-Identifier: Apache-2.0
// What a project of its own sees of the installed package.
#include <palimpsest/palimpsest.hpp>

int main() {
  using namespace palimpsest;
  return is_complex(complex_of(DType::float32)) ? 0 : 1;
}
