// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/sense.hpp"

#include <fmt/format.h>

#include <utility>

#include "palimpsest/cli/clock.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/linop/chain.hpp"
#include "palimpsest/linop/dense.hpp"
#include "palimpsest/linop/fft.hpp"
#include "palimpsest/linop/identity.hpp"
#include "palimpsest/linop/sampling.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest::cli {
namespace {

NamedLinop coil_transform(const Tensor& maps) {
  const NamedLinop coils = Dense(maps, "CNyNx,NyNx->CNyNx");
  const NamedLinop transform = Fft(
      2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .norm = FftNorm::ortho, .centered = true});
  return Chain(coils, transform);
}

NamedLinop sampling(const Tensor& mask) {
  return SamplingFromMask(mask, {.output = "K", .input = "KyKx", .batch = "C"});
}

TensorType type_of(const Tensor& x) { return {x.dtype(), x.shape(), x.device()}; }

// Runs `work` and notes the bytes that it took at most.
template <class Work>
void measure(SenseResult& result, Work&& work) {
  const MemoryScope scope;
  std::forward<Work>(work)();
  result.measured_peak_bytes = static_cast<index_t>(scope.peak_bytes());
}

void solve(const NamedLinop& A, const Tensor& y, const SenseOptions& options, SenseResult& result) {
  const Tensor b = A.H()(y);
  const NamedLinop normal =
      options.lambda > 0 ? A.N() + options.lambda * Identity(A.ishape()) : A.N();
  CgOptions cg;
  cg.tolerance = options.tolerance;
  cg.max_iterations = static_cast<int>(options.iterations);
  cg.callback = [&options](const CgInfo& info) {
    if (options.progress) options.progress(info.iteration(), info.residual());
    return true;
  };
  SolvePlan plan = plan_conjugate_gradients(normal, type_of(b), cg);
  result.announced_peak_bytes = plan.peak_bytes;
  result.plan = std::move(plan.step);
  if (options.announce) options.announce(result.announced_peak_bytes);
  SolveResult solution;
  measure(result, [&] { solution = conjugate_gradients(normal, b, cg); });
  take_over(solution, result);
}

void apply_adjoint(const NamedLinop& A, const Tensor& y, const SenseOptions& options,
                   SenseResult& result) {
  const NamedLinop adjoint = A.H();
  result.plan = adjoint.plan(type_of(y));
  result.announced_peak_bytes = result.plan.peak_bytes;
  if (options.announce) options.announce(result.announced_peak_bytes);
  measure(result, [&] { result.image = adjoint(y); });
  result.status = "done";
}

}  // namespace

void take_over(const SolveResult& solution, SenseResult& result) {
  if (solution.status == Status::diverged) {
    throw UsageError(fmt::format(
        "[cg-sense] the iteration diverged after {} steps: the data may hold values "
        "that are not finite. Try a larger --lambda, or scale the data to values near 1",
        solution.iterations));
  }
  result.image = solution.x;
  result.status = name_of(solution.status);
  result.iterations = solution.iterations;
  for (const Record& record : solution.history) result.residuals.push_back(record.residual);
}

NamedLinop sense_operator(const Tensor& maps, const Tensor& mask) {
  return Chain(coil_transform(maps), sampling(mask));
}

Tensor coil_kspace(const Tensor& image, const Tensor& maps) {
  return coil_transform(maps)(image).contiguous();
}

Tensor sampled(const Tensor& kspace, const Tensor& mask) { return sampling(mask)(kspace); }

SenseResult reconstruct_plane(const Tensor& kspace, const Tensor& maps, const Tensor& mask,
                              const SenseOptions& options) {
  const StopWatch watch;
  SenseResult result;
  const NamedLinop A = sense_operator(maps, mask);
  const Tensor y = sampled(kspace, mask);
  if (options.is_iterative) {
    solve(A, y, options, result);
  } else {
    apply_adjoint(A, y, options, result);
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace palimpsest::cli
