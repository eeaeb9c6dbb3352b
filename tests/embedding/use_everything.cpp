// SPDX-License-Identifier: Apache-2.0
#include "embedding/use_everything.hpp"

#include <complex>
#include <palimpsest/testing.hpp>
#include <stdexcept>

namespace palimpsest::testing {
namespace {

using complex = std::complex<float>;

void use_tensors(const std::string& folder) {
  Tensor a = Tensor::random_normal({40, 30}, DType::float64, {1});
  Tensor b = a.lazy_clone();
  b.set({0, 0}, 7.0);
  require(b.at<double>({0, 0}) == 7.0 && !equal(a, b), "a lazy clone is independent");
  require(equal(a.clone(), a) && !to_string(a).empty(), "clones");
  Tensor part = a.index_with({slice(0, 10), slice(0, 30, 3)}).contiguous();
  part.fill(3);
  const Tensor again = from_dlpack(to_dlpack(part, DlpackAccess::read_only));
  require(equal(again, part), "DLPack");
  MemoryMap memory;
  add(memory, a);
  add(memory, b);
  memory.lazy_copy();
  require(equal(map(memory, b), b), "memory maps");
  require(equal(a.to(Device{DeviceType::cpu, 1}).to(Device{}), a), "devices");
  const Storage storage = Storage::shared_memory(4096);
  const MemoryScope scope;
  const MemoryLimit limit(Device{}, std::uint64_t{1} << 40);
  // Compares sums, not peaks: other threads may free more memory than this one allocates.
  require(Tensor::zeros({1000}).nbytes() == 8000 && scope.allocated_bytes() >= 8000, "allocators");
  Allocator::of(Device{}).trim();
  write_npy(folder + "/a.npy", a);
  require(equal(read_npy(folder + "/a.npy"), a) && equal(map_npy(folder + "/a.npy"), a), "NPY");
}

void use_config_and_log(const std::string&) {
  {
    const ConfigScope scope({.threads = 2, .parallel_grain = 16});
    require(config().threads == 2, "config");
  }
  set_default_config(*shared_config());
  int lines = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++lines; });
  log(LogLevel::error, "to the sink");
  set_log_sink(nullptr);
  require(lines >= 1, "log");
  require(Config::keys().size() > 10, "keys");
}

void use_functions(const std::string& folder) {
  const Variable x = dmatrix("x");
  SharedVariable s = shared(Tensor::zeros({20, 20}), {.name = "s"});
  const Function f = function({x}, {ops::sum(ops::exp(x) * 2.0), ops::matmul(x, x) + s.var()},
                              {.updates = {{s, s.var() + x}}, .name = "f"});
  for (int i = 0; i < 3; ++i) f(Tensor::ones({20, 20}));
  require(s.get_value().at<double>({3, 4}) == 3, "updates");
  require(!f.dprint().empty() && f.plan(std::vector{Tensor::ones({20, 20})}).peak_bytes > 0,
          "plans");
  const std::vector<Function> functions = {f};
  save_functions(folder + "/f.pal", functions);
  const std::vector<Function> loaded = load_functions(folder + "/f.pal");
  loaded[0](Tensor::ones({20, 20}));
  s.modify([](Tensor& t) { t.fill(1); });
  const Variable cost = ops::sum(ops::abs2(x));
  const Function gradient = function({x}, grad(cost, x));
  require(gradient(Tensor::ones({2, 2})).tensor().at<double>({0, 0}) == 2, "gradients");
  RandomState random(5);
  const Function draw = function({}, random.normal({4}));
  require(!equal(draw().tensor(), draw().tensor()), "random numbers");
  const ConfigScope scope({.mode = "DebugMode"});
  function({x}, ops::fft(x * std::complex<double>(0, 1), {0, 1}, {}))(Tensor::ones({6, 6}));
}

void use_operators(const std::string& folder) {
  const NamedLinop A =
      Chain(Dense(Tensor::random_normal({3, 8, 9}, DType::complex64, {2}), "CNxNy,NxNy->CNxNy"),
            Fft(2, {.batch = "C"}));
  require(dot_test(A).ok, "the adjoint");
  const Tensor x = Tensor::random_normal({8, 9}, DType::complex64, {3});
  const Tensor b = A.N()(x);
  require(allclose(conjugate_gradients(A.N(), b, {.tolerance = 1e-5}).x, x, 1e-2, 1e-3), "solves");
  {
    const ConfigScope threads({.threads = 3, .parallel_grain = 1});
    require(allclose(A.H()(A(x)), b, 1e-3, 1e-4), "several threads");
  }
  save(A, folder + "/A.pal");
  require(equal(load(folder + "/A.pal")(x), A(x)), "saved operators");
  require(equal(A.deepcopy()(x), A.deepcopy(Copy::eager)(x)), "copies");
  require(memory_report(A).bytes() > 0, "reports");
  const SplitGrid grid = split_linop(A, {{"C", 1}});
  require(A.ishape() == A.copy().ishape() && !A.oshape().str().empty(), "names");
  require(functional::fft(x).shape() == x.shape(), "the functional interface");
  for (const std::string& name : linop_names()) require(find_linop(name) != nullptr, "registry");
  split_to_budget(A, {DType::complex64, {8, 9}, {}}, 1 << 20);
  const NamedLinop F = Nufft(Tensor::random_uniform({50, 2}, DType::float32, {4}), {16, 16}, "K");
  require(F(Tensor::ones({16, 16}, DType::complex64)).shape()[0] == 50, "Nufft");
}

void use_files(const std::string& folder) {
  const Tensor x = Tensor::random_normal({2, 5, 6, 8}, DType::complex64, {5});
  write_cfl(folder + "/x", x);
  require(equal(read_cfl(folder + "/x.cfl"), x), "CFL");
  write_png(folder + "/x.png", Tensor::ones({8, 8}, DType::float32));
  require(read_png(folder + "/x.png").shape() == Extents{8, 8}, "PNG");
  RawScanHeader header;
  header.recon.matrix = {4, 6, 5};
  header.encoded.field_of_view_mm = {480, 240, 10};
  header.recon.field_of_view_mm = {240, 240, 10};
  const RawScan scan = cartesian_scan(x, Tensor::ones({5, 6}, DType::bool_), header);
  write_ismrmrd(folder + "/x.h5", scan);
  const CartesianKspace read = cartesian_kspace(read_ismrmrd(folder + "/x.h5"));
  require(element_count(read.kspace.shape()) > 0, "ISMRMRD");
}

}  // namespace

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("wrong: ") + what);
}

Objects::Objects()
    : dense(Dense(Tensor::random_normal({8, 8}, DType::float64, {1}), "MN,N->M")),
      chain(Chain(Fft(1), Diagonal(Tensor::ones({32}, DType::complex64), "Kx"))),
      sum(shared(Tensor::zeros({6}), {.name = "sum"})),
      weight(Tensor::ones({4})),
      twice(Parameter::derived(weight.var() * 2.0)),
      x(Tensor::ones({8})) {
  const Variable v = dvector("v");
  add = function({v}, sum.var(), {.updates = {{sum, sum.var() + v}}, .name = "add"});
}

void Objects::use(const std::string& folder) {
  require(equal(dense(x), dense.deepcopy()(x)), "an application");
  chain.N()(Tensor::ones({32}, DType::complex64));
  const double before = sum.get_value().at<double>({0});
  add(Tensor::ones({6}));
  require(sum.get_value().at<double>({0}) == before + 1, "a shared variable");
  weight.modify([](Tensor& t) { t.fill(3); });
  twice.refresh();
  require(twice.value().at<double>({0}) == 6 && twice.value().at<double>({3}) == 6, "a parameter");
  save(dense, folder + "/dense.pal");
  require(equal(load(folder + "/dense.pal")(x), dense(x)), "a saved operator");
  const ConfigScope scope({.function_cache = 2});
  require(config().function_cache == 2, "a scope");
}

void use_everything(const std::string& folder) {
  use_tensors(folder);
  use_config_and_log(folder);
  use_functions(folder);
  use_operators(folder);
  use_files(folder);
  Objects().use(folder);
}

}  // namespace palimpsest::testing
