// SPDX-License-Identifier: Apache-2.0
// A separate project with the installed package: a tensor through an operator and back, arithmetic
// on tensors, a graph saved and restored, a raw scan written and read. The program maps few shared
// objects.
#include <cstdio>
#include <fstream>
#include <palimpsest/palimpsest.hpp>
#include <palimpsest/testing.hpp>
#include <set>
#include <string>

namespace {

using namespace palimpsest;

constexpr std::size_t kMostSharedObjects = 15;  // including the library and the C++ runtime

std::set<std::string> mapped_shared_objects() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != std::string::npos && line.find(".so", path) != std::string::npos) {
      found.insert(line.substr(path));
    }
  }
  return found;
}

bool maps_few_shared_objects() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;  // sanitizers bring their own shared objects
#else
  const auto mapped = mapped_shared_objects();
  if (mapped.size() <= kMostSharedObjects) return true;
  for (const std::string& path : mapped) std::fprintf(stderr, "%s\n", path.c_str());
  return false;
#endif
}

bool reads_what_it_writes() {
  const Tensor x = Tensor::random_normal({2, 1, 6, 8}, DType::complex64, {5});
  RawScanHeader header;
  header.recon.matrix = {4, 6, 1};
  header.encoded.field_of_view_mm = {480, 240, 10};
  header.recon.field_of_view_mm = {240, 240, 10};
  write_ismrmrd("consumer_scan.h5", cartesian_scan(x, Tensor::ones({1, 6}, DType::bool_), header));
  const RawScan read = read_ismrmrd("consumer_scan.h5");
  std::remove("consumer_scan.h5");
  return read.readouts.size() == 6;
}

}  // namespace

int main() {
  const NamedLinop F = Fft(2);
  const Tensor x = Tensor::random_normal({3, 8, 8}, DType::complex128, {1});
  const bool keeps_the_law = dot_test(F, {.extents = x.shape()}).ok;
  if (!allclose(F.H()(F(x)), x) || F.N()(x).shape() != x.shape() || !keeps_the_law) return 1;
  if (norm(F.H()(F(x)) - x).item<double>() > 1e-12 * norm(x).item<double>()) return 2;

  const Variable v = dvector("v"), w = dvector("w");
  const FunctionGraph graph({v, w}, {ops::exp(v) * w + 1.0});
  save_graph("consumer_graph.pal", graph);
  const FunctionGraph restored = load_graph("consumer_graph.pal");
  std::remove("consumer_graph.pal");
  const Function f = function({restored.inputs()[0], restored.inputs()[1]}, restored.outputs()[0]);
  const double one = f({0.0}, {0.0});
  if (restored.str() != graph.str() || one != 1.0) return 3;
  if (!maps_few_shared_objects()) return 4;
  return reads_what_it_writes() ? 0 : 5;
}
