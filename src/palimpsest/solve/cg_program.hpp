// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <complex>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest {

/// Preconditioned conjugate gradients as compiled functions over shared state.
///
/// State  x the iterate, r = b - A x, p the direction, rho = <r, M r>
/// Units  all of it for b * 2^e, x0 * 2^e: see scaling.hpp
/// Setup  from x = x0 or 0, r = b, p = 0: r -= A x (with x0); without M also p = r
/// Step   with M first z = M r, rho_before = rho, rho = <r, z>, p = z + rho / rho_before p;
///        q = A p, alpha = rho / <p, q>, x += alpha p, r -= alpha q;
///        without M last rho_before = rho, rho = <r, r>, p = r + rho / rho_before p.
///        Where rho or <p, q> is not positive, alpha is 0 and the iterate stays; where the new
///        residual is not finite, it stays too
///
/// Invariants
///  1. After the first step, step() allocates nothing.
///  2. plan() is what start() and step() take at the worst moment.
///  3. Before start() and after finish() there is no memory for the state, nor a workspace.
class CgProgram {
 public:
  /// Finishes a solve when it goes out of scope.
  struct Finish {
    explicit Finish(CgProgram& p) : program(p) {}
    ~Finish() { program.finish(); }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;
    CgProgram& program;
  };
  struct Start {
    bool is_zero = false;  // b = 0
    double norm_b = 0;     // |b|, without overflow or underflow
    double bb = 0;         // |b|^2
    double rr = 0;         // |r|^2
    double objective = 0;  // <x, A x> / 2 - Re <b, x>
  };
  struct Step {
    std::complex<double> pq;  // <p, A p>
    double rr = 0;            // |r|^2 of the new residual
    double rho = 0;           // <r, M r> of the one before
  };

  /// Compiles; allocates no state.
  CgProgram(const NamedLinop& A, const TensorType& b, const CgOptions& options);

  /// Without the bytes of operators.
  SolvePlan plan() const;
  /// Bytes that the steps of an iteration read and write.
  double work() const;
  /// Gives the state its memory and computes the first residual and direction.
  Start start(const Tensor& b, const std::optional<Tensor>& x0);
  /// One iteration; with `refresh` the residual is computed as b - A x.
  Step step(bool refresh);
  /// Gives the memory of state and workspace back; start() may follow. Iterates that a caller took
  /// are the caller's.
  void finish();
  /// The iterate, times 2^exponent().
  const SharedVariable& x() const { return x_; }
  int exponent() const { return exponent_; }
  const TensorType& type() const { return type_; }
  /// Was <p, A p> positive, and real up to rounding?
  bool is_positive(std::complex<double> pq) const;

 private:
  TensorType scale_type() const { return {real_of(type_.dtype), {}, type_.device}; }
  void compile_setup(const NamedLinop& A, const CgOptions& options);
  double number(std::size_t i) const;
  Function compile_step(const NamedLinop& A, const CgOptions& options, bool refresh) const;

  TensorType type_;  // of the state
  bool has_refresh_, converts_b_;
  SharedVariable x_, r_, p_, rho_;
  Function setup_, step_, refresh_;
  std::array<Tensor, 2> b_;  // for refreshing: b as it was given, and 2^e
  int exponent_ = 0;
  bool is_prepared_ = false;
  std::array<Tensor, 1> numbers_;  // borrowed from the step that ran last
};

}  // namespace palimpsest
