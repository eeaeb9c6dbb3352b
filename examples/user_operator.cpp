// SPDX-License-Identifier: Apache-2.0
// A complete operator of a user: y = w (x - roll(x, 1)). The adjoint is found by transposing the
// graph; the laws that every operator obeys are checked, and it takes its place among the others.
#include <iostream>
#include <palimpsest/palimpsest.hpp>

using namespace palimpsest;

namespace {

const LinopType kEdge{.name = "mylab.Edge",
                      .functions = {.fn = [](const NamedLinop& A, const Variable& x) {
                        return A.param("w").var() * (x - ops::roll(x, 1, -1));
                      }}};
PALIMPSEST_REGISTER_LINOP(kEdge);
NamedLinop Edge(Parameter w, Dims d) { return make_linop(kEdge, NamedShape(d), {{"w", w}}); }

}  // namespace

int main() {
  const NamedLinop A = Edge(Tensor::linspace(1, 2, 6), "N");
  const TestOptions sizes{.sizes = {{"N", 6}}};
  const ContractReport report = check_contract(2 * A.H() * A + 0.1 * Identity("N"), sizes);
  std::cout << A << "\n" << A.H() << "\nlaws: " << (report.ok() ? "hold" : report.str()) << "\n";
  const Tensor x = Tensor::from<double>({0, 0, 1, 0, 0, 0});
  std::cout << A(x) << "\n" << A.H()(x) << "\n";
  return report.ok() && find_linop("mylab.Edge") == &kEdge ? 0 : 1;
}
