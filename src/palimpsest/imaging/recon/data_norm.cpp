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

// In the order of the ranks: all of them get the same bits.
double sum_of_ranks(double own, const Team& team) {
  const auto group = distributed_detail::group_of(team, {"coil"});
  std::vector<double> sums(static_cast<std::size_t>(group.size()), own);
  std::vector<distributed_detail::Parcel> parcels;
  std::vector<distributed_detail::Place> places;
  const auto bytes = [](double& value) { return std::as_writable_bytes(std::span(&value, 1)); };
  for (int k = 0; k < group.size(); ++k) {
    if (k == group.self) continue;
    parcels.push_back({group.member(k), bytes(own)});
    places.push_back({group.member(k), bytes(sums[static_cast<std::size_t>(k)])});
  }
  if (!parcels.empty()) distributed_detail::exchange(team, parcels, places);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double data_norm2(const Tensor& y, const Tensor& w, index_t n_coils, const Team& team) {
  const Tensor dense = y.contiguous(), weights = w.defined() ? w.contiguous() : w;
  const index_t points = y.shape(-1) * y.shape(-2), planes = points > 0 ? y.numel() / points : 0;
  const Tensor parts = dense.view({planes, points});
  double sum = 0;
  for (index_t plane = 0; plane < planes; ++plane) {
    const Tensor part = parts.select(0, plane);
    const auto* const v = part.data<std::complex<float>>();
    const float* const factors =
        w.defined() ? weights.data<float>() + plane / n_coils * points : nullptr;
    double of_plane = 0;
    for (index_t i = 0; i < points; ++i) {
      const double square = std::norm(std::complex<double>(v[i]));
      of_plane += factors != nullptr ? factors[i] * square : square;
    }
    sum += of_plane;
    release_pages(part);
  }
  return team.size() == 1 || team.size("coil") == 1 ? sum : sum_of_ranks(sum, team);
}

}  // namespace palimpsest
