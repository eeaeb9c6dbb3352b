// SPDX-License-Identifier: Apache-2.0
// Functions of every op and every operator, restored from their bytes, give the same bits. With
// PALIMPSEST_SAMPLES they, their inputs and results are written to that folder, for tests in other
// languages: f0.pal with f0_in0.npy .. and f0_out0.npy .., A0.pal with A0_x.npy, A0_y.npy = A x and
// A0_z.npy = A^H y.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "contract/linop_samples.hpp"
#include "palimpsest/ops/registry.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest {
namespace {

// Null: nothing is written.
const char* folder() { return std::getenv("PALIMPSEST_SAMPLES"); }
std::string path(const std::string& name) { return std::string(folder()) + "/" + name; }
void keep(const std::string& name, const Tensor& t) {
  if (folder()) write_npy(path(name), t.to(Device{}));
}

void expect_same_bits(const Tensor& a, const Tensor& b) { EXPECT_TRUE(equal(a, b)); }

TEST(WrittenSamples, FunctionsOfEveryOp) {
  ops::register_library_ops();
  int n = 0;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const std::string name = "f" + std::to_string(n++);
      std::vector<Variable> inputs;
      for (const Tensor& t : sample.inputs) {
        inputs.push_back(make_input({t.dtype(), t.shape(), t.device()}));
      }
      const std::vector<Variable> outputs = sample.build(inputs).owner().outputs();
      std::vector<In> ins(inputs.begin(), inputs.end());
      std::vector<Out> outs;
      for (const Variable& v : outputs) outs.push_back(Out(v));
      const Function f = function(ins, outs, {.on_unused_input = Reaction::ignore});
      if (folder()) f.save(path(name + ".pal"));
      std::vector<Tensor> results(outputs.size()), again(outputs.size());
      f.call(sample.inputs, results);
      functions_from_bytes(functions_to_bytes(std::span(&f, 1)))[0].call(sample.inputs, again);
      for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
        keep(name + "_in" + std::to_string(k) + ".npy", sample.inputs[k]);
      }
      for (std::size_t k = 0; k < results.size(); ++k) {
        expect_same_bits(results[k], again[k]);
        keep(name + "_out" + std::to_string(k) + ".npy", results[k]);
      }
    }
  }
  EXPECT_GT(n, 300);
}

TEST(WrittenSamples, EveryOperator) {
  int n = 0, closures = 0;
  for (const testing::LinopSample& sample : testing::linop_samples()) {
    SCOPED_TRACE(sample.name);
    NamedLinop A = sample.make(DType::complex64);
    DimMap missing;
    for (const auto& [d, size] : sample.options.sizes) {
      if (A.dims().contains(d) && !A.size(d)) missing.emplace(d, size);
    }
    if (!missing.empty()) A = A.with_sizes(missing);
    const std::string name = "A" + std::to_string(n);
    std::vector<std::byte> bytes;
    try {
      bytes = to_bytes(A);
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("closure"), std::string::npos) << error.what();
      ++closures;
      continue;
    }
    const Tensor x =
        Tensor::random_normal(testing::input_extents(A, sample.options), DType::complex64, {7});
    const NamedLinop again = from_bytes(bytes);
    Tensor y, z;
    try {
      y = A(x);
      z = A.H()(y);
      expect_same_bits(again(x), y);
      expect_same_bits(again.H()(y), z);
    } catch (const DeviceError&) {
      continue;  // loaded operators are on the host
    }
    ++n;
    if (folder()) save(A, path(name + ".pal"));
    keep(name + "_x.npy", x);
    keep(name + "_y.npy", y);
    keep(name + "_z.npy", z);
  }
  EXPECT_GT(n, 100);
  EXPECT_LT(closures, n / 10);
}

}  // namespace
}  // namespace palimpsest
