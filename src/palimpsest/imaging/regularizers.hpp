// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"

namespace PALIMPSEST_API palimpsest {

/// A term on an image.
struct Regularizer {
  /// Name of its kind, out of regularizer_names().
  std::string term = "l2";
  double lambda = 0;
  /// Dimensions of the image along which it acts; none: all spatial ones.
  Dims over = {};
  /// For low rank: dimensions that are the columns, empty for the series, T or B; and the extents
  /// of blocks.
  Dims across = {};
  BlockExtents block = {};
  /// For wavelets.
  std::string wavelet = "db2";
  int levels = kAutomaticLevels;
  Dims joint = {};
  /// For wavelets and blocks: random along the iterations, or none.
  Shift shift = Shift::random;
  LowRankScale scale = LowRankScale::none;
  /// For total variation.
  bool isotropic = true;
  DifferenceBoundary boundary = DifferenceBoundary::periodic;
  DifferenceDirection direction = DifferenceDirection::backward;
  /// For generalized variation: the weight of the second order over that of the first.
  double ratio = 2;
  /// Text given to parse_regularizer(): its name in messages.
  std::string text = {};
};

/// Reads `NAME[(DIMS)][:LAMBDA][,KEY=VALUE]..`, such as `tv:0.01`, `l1wav(Ny,Nx):0.01,wavelet=db4`
/// or `llr(Nx=8,Ny=8;T):0.02`.
///
/// NAME is one of regularizer_names(). Keys: wavelet, levels (a
/// number or auto), shift (random, none), joint of l1wav; iso (0, 1), boundary (periodic, neumann,
/// zero), direction (backward, forward) of tv; ratio of tgv; shift, scale (none, bart) of llr.
///
/// Errors   ValueError with the text and the character: an unknown name, naming the nearest; "needs
///          a weight"; "expected a number >= 0"; keys and dimensions that it does not have, or
///          twice
Regularizer parse_regularizer(const std::string& text);

/// The names of the terms, all or those whose weight is in the unit of the image:
///
///     l2              lambda / 2 |x|^2
///     l1              lambda |x|_1
///     l1wav, l1fft    lambda |W x|_1, W the wavelet or the unitary Fourier transform along `over`
///     tv              lambda sum |grad x|
///     tgv             lambda times the total generalized variation of second order
///     lr, llr         lambda times the nuclear norm of the matrix (all others) x `across`, or of
///                     that of every block
///     nonneg, real    x real, and not negative
///     ball            |A x - y| <= lambda, in place of |A x - y|^2 / 2
std::vector<std::string> regularizer_names(bool only_relative = false);

/// Factor of a term that is proportional to |x|, in place of its lambda.
using WeightOf = std::function<Weight(const Regularizer&)>;

/// Adds the functions to an objective with an image of these dimensions as its unknown. The first
/// function that is not quadratic is `h`; constraints come first, so that the image obeys them.
/// With several such functions random shifts are left out.
///
/// A ball is not added: it is a condition on the data, which the caller puts in place of the data
/// term.
///
/// Generalized variation makes the unknown larger: the image is part 0 of parts_of_unknown() along
/// a new first dimension, and `A` of the objective takes it out.
///
/// Errors   ValueError naming the term: "no dimension", one that the image lacks; "tgv" beside
///          other functions than l2; several balls; those of the functions
void add_regularizers(Objective& objective, const std::vector<Regularizer>& regularizers,
                      const Dims& image, const WeightOf& weight = {});

/// Number of parts of the unknown of that objective: 1; with tgv 1 + the number of its dimensions,
/// for the image and its gradient field.
index_t parts_of_unknown(const std::vector<Regularizer>& regularizers, const Dims& image);

/// True if the weight is in the unit of the image. The weight of l2 has no unit, constraints have
/// no weight.
bool is_relative(const Regularizer& regularizer);

/// True for conditions that all images meet.
bool is_constraint(const Regularizer& regularizer);

/// True if the regularizers tie the points along this dimension of the image together.
bool ties(const std::vector<Regularizer>& regularizers, const ND& d);

/// The term that bounds |A x - y|; null: none does.
const Regularizer* ball_of(const std::vector<Regularizer>& regularizers);

/// True if all of them are quadratic, so that the image is linear in the data.
bool are_quadratic(const std::vector<Regularizer>& regularizers);

/// True if l1wav or llr stands alone, or beside l2, and draws shifts.
bool draws_shifts(const std::vector<Regularizer>& regularizers);

}  // namespace palimpsest
