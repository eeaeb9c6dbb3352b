// SPDX-License-Identifier: Apache-2.0
#include <complex>
#include <utility>

#include "growth_cases.hpp"
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest::bench {
namespace {

using Work = std::function<void()>;

const Dims kShape("y x");
const Tensor kImage = Tensor::ones({4, 4}, DType::complex64);

Tensor weights(const Extents& extents, int i) {
  return Tensor::full(extents, std::complex<float>(static_cast<float>(i % 5 + 1)));
}
NamedLinop diagonal(int i) { return Diagonal(weights({4, 4}, i), kShape); }
std::vector<NamedLinop> diagonals(int n) {
  std::vector<NamedLinop> list;
  for (int i = 0; i < n; ++i) list.push_back(diagonal(i));
  return list;
}
std::vector<NamedLinop> weighted_transforms(int n) {
  const NamedLinop transform = Fft(2, {.grid = Grid{kShape, kShape}});
  std::vector<NamedLinop> list;
  for (int i = 0; i < n; ++i) list.push_back(Chain(diagonal(i), transform));
  return list;
}

Extents image_extents(int /*n*/) { return {4, 4}; }
Extents line_extents(int /*n*/) { return {4}; }
Extents blocks_extents(int n) { return {2 * n, 4, 4}; }

// The first application: compiles, plans and runs. Operators are made again each time, since they
// keep compiled functions.
template <class Make>
GrowthCase first(std::string name, Make make, Extents (*input)(int n) = image_extents) {
  return {name + ": first", [=](int n) -> Work {
            const Tensor x = Tensor::ones(input(n), DType::complex64);
            return [=] { make(n)(x); };
          }};
}

NamedLinop nested_sum(int n) {
  NamedLinop A = diagonal(0);
  for (int i = 1; i < n; ++i) A = A + diagonal(i);
  return A;
}
NamedLinop nested_chain(int n) {
  NamedLinop A = diagonal(0);
  for (int i = 1; i < n; ++i) A = Chain(A, diagonal(i));
  return A;
}
NamedLinop block_diagonal(int n) {
  const ND c("c");
  std::vector<NamedLinop> blocks;
  for (int i = 0; i < n; ++i) {
    blocks.push_back(Diagonal(weights({2, 4, 4}, i), "c y x"));
  }
  return BlockDiagonal(std::move(blocks), c, c);
}
NamedLinop concatenated(int n) {
  std::vector<NamedLinop> blocks;
  for (int i = 0; i < n; ++i) blocks.push_back(Dense(weights({2, 4}, i), "z y,y->z"));
  return Concat(std::move(blocks), {.out = ND("z")});
}

}  // namespace

std::vector<GrowthCase> operator_cases() {
  const auto add = [](int n) { return Add(diagonals(n)); };
  std::vector<GrowthCase> cases{
      first("Add of Diagonals", add),
      first("nested Adds of two", nested_sum),
      first("nested Chains of two", nested_chain),
      first("Add of Chain(Diagonal, FFT)", [](int n) { return Add(weighted_transforms(n)); }),
      first("Add of Chain(Diagonal, FFT), normal",
            [](int n) { return Add(weighted_transforms(n)).N(); }),
      first("Chain of Diagonals", [](int n) { return Chain(diagonals(n)); }),
      first("Chain of Diagonals, normal", [](int n) { return Chain(diagonals(n)).N(); }),
      first("Chain of FFTs and Diagonals", [](int n) { return Chain(weighted_transforms(n)); }),
      first("Chain of FFTs and Diagonals, normal",
            [](int n) { return Chain(weighted_transforms(n)).N(); }),
      first("Stack of Diagonals",
            [](int n) {
              return Stack(diagonals(n), {.out = {ND("c"), 0}});
            }),
      first("Concat of tall operators", concatenated, line_extents),
      first("BlockDiagonal of Diagonals", block_diagonal, blocks_extents),
      first(
          "Diagonal split into rows",
          [](int n) {
            const Tensor w = Tensor::ones({2 * n, 4, 4}, DType::complex64);
            return create_batched_linop(Diagonal(w, "c y x"), BatchSpec{{{ND("c"), 2}}});
          },
          blocks_extents)};
  constexpr int kMostNested = 1000;  // it is applied by recursion
  cases[1].most_parts = cases[2].most_parts = kMostNested;
  cases.push_back(
      {"Add of Diagonals: adjoint", [=](int n) -> Work { return [=] { add(n).H()(kImage); }; }});
  cases.push_back({"Add of Diagonals: later", [=](int n) -> Work {
                     const NamedLinop A = add(n);
                     A(kImage);
                     return [A] { A(kImage); };
                   }});
  cases.push_back(
      {"Add of Diagonals: print", [=](int n) -> Work { return [A = add(n)] { A.str(); }; }});
  cases.push_back({"Add of Diagonals: bytes and back",
                   [=](int n) -> Work { return [A = add(n)] { from_bytes(to_bytes(A)); }; }});
  cases.push_back({"Add of Diagonals: deep copy",
                   [=](int n) -> Work { return [A = add(n)] { A.deepcopy(); }; }});
  return cases;
}

}  // namespace palimpsest::bench
