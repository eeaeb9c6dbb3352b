// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/blocks.hpp"
#include "palimpsest/ops/transforms/stencil.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

struct BlocksCase {
  const char* name;
  Extents batch, image, block, stride;
  DType dtype;
};

std::vector<BlocksCase> blocks_cases() {
  return {{"1-D", {2}, {10}, {4}, {3}, DType::complex128},
          {"2-D overlapping", {}, {6, 7}, {3, 2}, {1, 2}, DType::float32},
          {"2-D with gaps", {2}, {7, 6}, {2, 1}, {3, 2}, DType::complex64},
          {"3-D", {}, {3, 4, 5}, {2, 2, 3}, {1, 2, 1}, DType::float64}};
}

struct StencilCase {
  const char* name;
  Extents wide;
  Stencil stencil;
  DType dtype;
};

std::vector<StencilCase> stencil_cases() {
  return {{"difference", {5}, {0, {-1, 1}, 0, 1, StencilEdge::zero}, DType::float64},
          {"last axis", {2, 9}, {1, {1, -2, 1}, -1, 1, StencilEdge::nearest}, DType::complex128},
          {"first axis", {9, 3}, {0, {0.5, -2, 1}, -1, 1, StencilEdge::periodic}, DType::float32},
          {"two kinds of edges",
           {4, 6},
           {1, {-1, 2, -1}, -1, 1, StencilEdge::nearest_then_zero},
           DType::complex64},
          {"two kinds of edges, mirrored",
           {4, 6},
           {1, {-1, 2, -1}, -1, 1, StencilEdge::zero_then_nearest},
           DType::float64},
          {"step", {2, 8, 3}, {1, {1, 2, 3, 4}, 1, 2, StencilEdge::periodic}, DType::complex64},
          {"longer than its line",
           {4},
           {0, {1, 2, 3, 4, 5, 6}, -2, 2, StencilEdge::periodic},
           DType::float64}};
}

}  // namespace

std::vector<OpSample> array_to_blocks_samples() {
  std::vector<OpSample> result;
  for (const BlocksCase& c : blocks_cases()) {
    Extents shape = c.batch;
    for (const index_t extent : c.image) shape.push_back(extent);
    result.push_back(unary(c.name, sample_values(shape, c.dtype), [c](const Variable& x) {
      return array_to_blocks(x, c.block, c.stride);
    }));
  }
  return result;
}

std::vector<OpSample> blocks_to_array_samples() {
  std::vector<OpSample> result;
  for (const BlocksCase& c : blocks_cases()) {
    Extents shape = c.batch;
    const Extents blocks = nblocks(c.image, c.block, c.stride);
    for (const index_t extent : blocks) shape.push_back(extent);
    for (const index_t extent : c.block) shape.push_back(extent);
    result.push_back(unary(c.name, sample_values(shape, c.dtype), [c](const Variable& x) {
      return blocks_to_array(x, c.image, c.block, c.stride);
    }));
  }
  return result;
}

// Starts of periodic filters: negative, positive and beyond the line.
std::vector<OpSample> with_starts(bool adjoint) {
  std::vector<OpSample> result;
  for (const StencilCase& c : stencil_cases()) {
    if (c.stencil.edge != StencilEdge::periodic) continue;
    Extents extents = c.wide;
    if (adjoint) extents[c.stencil.axis] /= c.stencil.step;
    for (const index_t start : {index_t{-3}, index_t{11}}) {
      const auto build = [c, adjoint](Vars in) {
        return adjoint ? stencil_adjoint(in[0], c.stencil, in[1])
                       : stencil(in[0], c.stencil, in[1]);
      };
      result.push_back({std::string(c.name) + ", start " + std::to_string(start),
                        {sample_values(extents, c.dtype), Tensor::scalar(start)},
                        build});
    }
  }
  return result;
}

std::vector<OpSample> stencil_samples() {
  std::vector<OpSample> result = with_starts(false);
  for (const StencilCase& c : stencil_cases()) {
    result.push_back(unary(c.name, sample_values(c.wide, c.dtype),
                           [c](const Variable& x) { return stencil(x, c.stencil); }));
  }
  return result;
}

std::vector<OpSample> stencil_adjoint_samples() {
  std::vector<OpSample> result = with_starts(true);
  for (const StencilCase& c : stencil_cases()) {
    Extents narrow = c.wide;
    narrow[c.stencil.axis] /= c.stencil.step;
    result.push_back(unary(c.name, sample_values(narrow, c.dtype),
                           [c](const Variable& x) { return stencil_adjoint(x, c.stencil); }));
  }
  return result;
}

}  // namespace palimpsest::ops
