// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/data_norm.hpp"

#include <complex>
#include <numeric>
#include <span>
#include <vector>

#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/imaging/recon/place.hpp"

namespace palimpsest {
namespace {

// Sum of factors |y|^2 over one plane of any strides.
double squares_of_plane(const Tensor& y, const float* factors) {
  const auto* const first = y.data<std::complex<float>>();
  const Strides& step = y.strides();
  double sum = 0;
  for (index_t i = 0; i < y.shape(0); ++i) {
    for (index_t j = 0; j < y.shape(1); ++j) {
      const double square = std::norm(std::complex<double>(first[i * step[0] + j * step[1]]));
      sum += factors != nullptr ? *factors++ * square : square;
    }
  }
  return sum;
}

// Adds the planes of y one after the other; `plane` is the number of the next.
void add_planes(const Tensor& y, const Tensor& weights, index_t n_coils, index_t& plane,
                double& sum) {
  if (y.shape().size() > 2) {
    for (index_t i = 0; i < y.shape(0); ++i) {
      add_planes(y.select(0, i), weights, n_coils, plane, sum);
    }
    return;
  }
  const index_t image = plane++ / n_coils;
  sum +=
      squares_of_plane(y, weights.defined() ? weights.data<float>() + image * y.numel() : nullptr);
  release_pages(y);
}

}  // namespace

std::vector<double> values_of_ranks(double own, const Team& team) {
  const auto group = distributed_detail::group_of(team, {"coil"});
  std::vector<double> values(static_cast<std::size_t>(group.size()), own);
  std::vector<distributed_detail::Parcel> parcels;
  std::vector<distributed_detail::Place> places;
  const auto bytes = [](double& value) { return std::as_writable_bytes(std::span(&value, 1)); };
  for (int k = 0; k < group.size(); ++k) {
    if (k == group.self) continue;
    parcels.push_back({group.member(k), bytes(own)});
    places.push_back({group.member(k), bytes(values[static_cast<std::size_t>(k)])});
  }
  if (!parcels.empty()) distributed_detail::exchange(team, parcels, places);
  return values;
}

// Copies nothing: y is as large as all samples.
double data_norm2(const Tensor& y, const Tensor& w, index_t n_coils, const Team& team) {
  double sum = 0;
  index_t plane = 0;
  add_planes(y, w.defined() ? w.contiguous() : w, n_coils, plane, sum);
  if (team.size() == 1 || team.size("coil") == 1) return sum;
  // In the order of the ranks: all of them get the same bits.
  const std::vector<double> sums = values_of_ranks(sum, team);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace palimpsest
