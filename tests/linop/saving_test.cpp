// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/copies/saving.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "contract/linop_lists.hpp"
#include "linop/linop_support.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/palimpsest.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;
using Bytes = std::vector<std::byte>;
using Json = nlohmann::ordered_json;

struct TemporaryPath {
  explicit TemporaryPath(const std::string& name)
      : text((std::filesystem::temp_directory_path() /
              ("palimpsest_saving_" + std::to_string(::getpid()) + "_" + name))
                 .string()) {}
  ~TemporaryPath() {
    std::error_code ignored;
    std::filesystem::remove(text, ignored);
  }
  std::string text;
};

struct Sample {
  NamedLinop A;
  Extents input;
};

Tensor points() { return random({5, 2}, DType::float64); }

// At least one sample of every type.
std::vector<Sample> samples() {
  set_breakpoint_hook("saving", [](const BreakpointHit&) {});
  const NamedLinop D = Diagonal(random({4}), "N");
  const NamedLinop W = Dense(random({3, 4}), "MN,N->M");
  Tensor mask = Tensor::zeros({4, 5}, DType::bool_);
  for (const index_t i : {1, 3, 12}) mask.view({20}).set<bool>({i}, true);
  std::vector<Sample> all = {
      {Identity("A"), {3}},
      {ToDevice(Device{}, Device{}, "A"), {3}},
      {Sleep(1e-5, "A"), {3}},
      {Breakpoint("A", "saving"), {3}},
      {Zero("A", "B", {.sizes = {{"A", 3}, {"B", 2}}}), {3}},
      {Scalar(std::complex<double>(1, -2), "A"), {3}},
      {Scalar(Parameter(Tensor::scalar(std::complex<double>(2, 1))), "A"), {3}},
      {ShapeSpec("A ...", "B ..."), {3, 2}},
      {D, {4}},
      {D.H(), {4}},
      {pow(Diagonal(random({4}, DType::float64), "N"), 2.5), {4}},
      {D.N(), {4}},
      {W, {4}},
      {W.H(), {3}},
      {W.N(), {4}},
      {Dense(random({2, 3, 4})), {2, 4}},
      {Fft(2, {.norm = FftNorm::forward, .centered = true}), {2, 4, 6}},
      {Fft(1).inverse(), {8}},
      {Pad({4}, {9}), {4}},
      {Crop({9}, {4}), {9}},
      {PadDim("A", 3, 5, "A B"), {3, 2}},
      {Truncate("A", 5, 2, "A"), {5}},
      {Restrict("A B", {{"A", slice(1, 3)}}, {.sizes = {{"A", 4}}}), {4, 2}},
      {Embed("A", {{"A", slice(1, 3)}}, {.sizes = {{"A", 4}}}), {2}},
      {Permute("A ... B", "B A ..."), {2, 3, 4}},
      {Rearrange("(A B) C -> C B A", {.sizes = {{"A", 2}}}), {6, 3}},
      {SumReduce("A B", "A", {.sizes = {{"B", 3}}}), {2, 3}},
      {Repeat({{"B", 3}}, "A", "A B"), {2}},
      {Sampling({Tensor::from<index_t>({0, 3, 3})}, {4}), {2, 4}},
      {Sampling({Tensor::from<index_t>({0, 3, 3})}, {4}).N(), {2, 4}},
      {SamplingFromMask(mask), {4, 5}},
      {ArrayToBlocks({7, 5}, {3, 2}, {2, 1}), {7, 5}},
      {BlocksToArray({7}, {3}, {2}), {3, 3}},
      {Sparse(random({3}), Tensor::from<index_t>({0, 4, 1}), Tensor::from<index_t>({0, 2, 3}), 5),
       {5}},
      {Interpolate(points(), {6, 5}), {6, 5}},
      {Nufft(points(), {6, 5}, "K", {.eps = 1e-4}), {6, 5}},
      {Nufft(points(), {6, 5}, "K", {.toeplitz = Toeplitz::yes}).N(), {6, 5}},
      {Nufft(points(), {6, 5}, "K", {.mode = NufftMode::sampling}), {6, 5}},
      {Convolution(random({3})), {8}},
      {Convolution(random({3, 2}), {.boundary = Boundary::circular}).N(), {6, 5}},
      {FftConvolution(random({5})), {8}},
      {FiniteDifference("A", "A", {.spacing = 0.5}), {5}},
      {Roll("A B", "B", {2}), {2, 5}},
      {Gradient("A B", "A B"), {3, 4}},
      {Wavelet("A B", "B", {.family = "db2", .levels = 2}), {2, 8}},
      {Kronecker(W, Fft(1, {.batch = Dims()})), {4, 5}},
      {RealPart("A"), {3}},
      {ImagPart("A"), {3}},
      {AsReal("A"), {3}},
      {Chain(W, Scalar(2, "M"), W.H()), {4}},
      {W + 2 * W, {4}},
      {Concat({W, W}, {.in = "N", .out = "M"}), {8}},
      {Concat({W, W}, {.out = "M"}).H(), {6}},
      {Stack({D, D}, {.out = {"S", 0}}), {4}},
      {Stack({D, D}, {.in = {"S", 0}, .out = {"S", -1}}).H(), {4, 2}},
      {FiniteDifference("A", "A").N(), {5}},
      {Nufft(points(), {6, 5}, "K").N(), {6, 5}},
      {(Chain(W, W.H()) + D.named("mine").with_sizes({})).H(), {4}},
  };
  for (const auto& [name, list] : testing::linop_sample_lists()) {
    for (const testing::LinopSample& sample : list()) {
      const NamedLinop A = sample.make(DType::complex128);
      all.push_back({A, testing::input_extents(A, sample.options)});
    }
  }
  return all;
}

Tensor input_of(const Sample& s) {
  const bool is_real = &s.A.type() == &AsComplex("A").type() && s.A.is_flipped();
  return random(s.input, is_real ? DType::float64 : DType::complex128, 3);
}

// Compares kinds, names, shapes, sizes, attributes and sharing.
void expect_alike(const NamedLinop& a, const NamedLinop& b) {
  EXPECT_EQ(&a.type(), &b.type());
  EXPECT_EQ(a.str(), b.str());
  EXPECT_EQ(a.is_flipped(), b.is_flipped());
  EXPECT_TRUE(identical(a.shape(), b.shape()));
  EXPECT_EQ(a.attrs(), b.attrs());
  ASSERT_EQ(a.params().size(), b.params().size());
  for (const auto& [name, p] : a.params()) {
    const Parameter& q = b.param(name);
    EXPECT_EQ(p.present(), q.present());
    if (!p.present()) continue;
    EXPECT_EQ(p.type(), q.type());
    EXPECT_EQ(p.is_trainable(), q.is_trainable());
    EXPECT_EQ(p.is_view(), q.is_view());
  }
  ASSERT_EQ(a.linop_count(), b.linop_count());
  for (std::size_t i = 0; i < a.linop_count(); ++i) {
    expect_alike(a[i], b[i]);
    for (std::size_t k = 0; k < i; ++k) EXPECT_EQ(a[i].is(a[k]), b[i].is(b[k]));
  }
}

TEST(Saving, EveryTypeIsTheSameAgain) {
  std::set<std::string> seen;
  const auto note = [&](const auto& self, const NamedLinop& A) -> void {
    seen.insert(A.type().name);
    for (const NamedLinop& child : A.linops()) self(self, child);
  };
  for (const Sample& s : samples()) {
    SCOPED_TRACE(s.A.str());
    note(note, s.A);
    const Tensor x = input_of(s), y = s.A(x);
    const Bytes bytes = to_bytes(s.A);
    const NamedLinop B = from_bytes(bytes);
    expect_alike(s.A, B);
    EXPECT_TRUE(equal(B(x), y));
    EXPECT_TRUE(equal(B.H()(y), s.A.H()(y)));
    EXPECT_EQ(to_bytes(s.A), bytes) << "not the same bytes again";
    EXPECT_EQ(to_bytes(B), bytes) << "not the same bytes after loading";
    // The same for copies and moves.
    for (const Copy when : {Copy::lazy, Copy::eager}) {
      const NamedLinop C = s.A.deepcopy(when);
      expect_alike(s.A, C);
      EXPECT_TRUE(equal(C(x), y));
    }
  }
  for (const std::string& name : linop_names()) {
    if (name.find('.') != std::string::npos || name == "SimpleLinop") continue;
    EXPECT_TRUE(seen.contains(name)) << name << " has no sample";
  }
}

TEST(Saving, OperatorsWorkInAnotherMemorySpace) {
  const Device other{DeviceType::cpu, 1};
  for (const Sample& s : samples()) {
    if (s.A.type().name == "ToDevice") continue;  // it keeps its devices
    SCOPED_TRACE(s.A.str());
    try {
      const Tensor x = input_of(s), y = s.A(x);
      const NamedLinop B = s.A.to(other);
      EXPECT_TRUE(equal(B(x.to(other)).to(Device{}), y));
      EXPECT_TRUE(equal(B.H()(y.to(other)).to(Device{}), s.A.H()(y)));
      EXPECT_TRUE(equal(s.A.N().to(other)(x.to(other)).to(Device{}), s.A.N()(x)));
      const NamedLinop C = from_bytes(to_bytes(B), {.device = other});
      EXPECT_TRUE(equal(C(x.to(other)).to(Device{}), y));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Saving, KeepsWhatIsShared) {
  const Parameter w = Parameter::trainable(random({6, 5}));
  const NamedLinop a = Dense(w.view({slice(0, 3), slice(0, 5)}), "MN,N->M"),
                   b = Dense(w.view({slice(2, 5), slice(0, 5)}), "MN,N->M");
  const NamedLinop A = Chain(a + b, (a + b).H());
  const NamedLinop B = from_bytes(to_bytes(A));
  const Parameter p = B[0][0].param("weight"), q = B[0][1].param("weight");
  EXPECT_TRUE(p.variable().is(q.variable()));
  EXPECT_TRUE(p.is_trainable() && p.is_view());
  EXPECT_TRUE(B[1][0].param("weight").is(p));
  Parameter written = p;
  written.modify([](Tensor& t) { t.fill(0); });
  EXPECT_EQ(q.value().at<testing::Complex>({0, 2}), 0.0);
  EXPECT_NE(q.value().at<testing::Complex>({1, 2}), 0.0);
  EXPECT_NE(a.param("weight").value().at<testing::Complex>({0, 0}), 0.0);
}

TEST(Saving, WritesNoMoreThanIsUsed) {
  const Parameter whole = random({100000});
  const NamedLinop tile = Diagonal(whole.view({slice(500, 510)}), "N");
  EXPECT_LT(to_bytes(tile).size(), 3 * 4096U);
  const NamedLinop far = Chain(tile, Diagonal(whole.view({slice(90000, 90010)}), "N"));
  EXPECT_LT(to_bytes(far).size(), 3 * 4096U);
  const Tensor x = random({10});
  EXPECT_TRUE(equal(from_bytes(to_bytes(far))(x), far(x)));
  // Two lazy clones of one tensor are separate storages; one variable in two places is one.
  const Tensor t = random({10000});
  const NamedLinop D = Diagonal(t, "N");
  EXPECT_LT(to_bytes(Chain(D, D, D.H())).size(), 170000U);
}

TEST(Saving, SpecialNumbersAndAbsentThingsStay) {
  const LinopType& type = Identity("A").type();
  const NamedLinop A = make_linop(
      type, NamedShape("A"), {{"gone", Parameter()}},
      {{"nothing", Attribute()},
       {"flag", true},
       {"n", std::numeric_limits<index_t>::min()},
       {"inf", -INFINITY},
       {"tenth", 0.1},
       {"zero", -0.0},
       {"z", std::complex<double>(INFINITY, 0.1)},
       {"text", "\"quoted\" \n \xc3\xa4"},
       {"dims", Dims("A ... ()")},
       {"device", Device{DeviceType::cpu, 1}},
       {"list", Attribute::List{1, 2.5, Attribute::List{}, "x", Attribute(random({2}))}}});
  const NamedLinop B = from_bytes(to_bytes(A));
  EXPECT_EQ(A.attrs(), B.attrs());
  EXPECT_TRUE(std::signbit(B.attr("zero").as_real()));
  EXPECT_FALSE(B.param("gone").present());
  const NamedLinop N = make_linop(type, NamedShape("A"), {}, {{"nan", std::nan("")}});
  EXPECT_TRUE(std::isnan(from_bytes(to_bytes(N)).attr("nan").as_real()));
  const NamedLinop bad = make_linop(type, NamedShape("A"), {}, {{"text", "\xff\xfe"}});
  expect_error<FormatError>([&] { to_bytes(bad); }, "UTF-8");
}

// -- files ----------------------------------------------------------------------------------------

TEST(Loading, MapsTheFileAndNeverChangesIt) {
  const TemporaryPath path("mapped");
  const NamedLinop A = Dense(random({300, 200}), "MN,N->M");
  save(A, path.text);
  const Bytes before = to_bytes(A);
  const Tensor x = random({200});
  {
    const MemoryScope scope;
    const NamedLinop B = load(path.text);
    EXPECT_LT(scope.allocated_bytes(), 1000U);
    EXPECT_TRUE(equal(B(x), A(x)));
    Parameter w = B.param("weight");
    w.modify([](Tensor& t) { t.fill(0); });
    EXPECT_EQ(testing::values(B(x)), std::vector<testing::Complex>(300));
  }
  EXPECT_TRUE(equal(load(path.text)(x), A(x)));
  EXPECT_TRUE(equal(load(path.text, {.map = false, .verify = true})(x), A(x)));
  std::ifstream file(path.text, std::ios::binary);
  std::string now((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(std::memcmp(now.data(), before.data(), before.size()), 0);
  // Damaged data are detected when read, and in mapped files on request.
  now.back() = static_cast<char>(now.back() ^ 1);
  std::ofstream(path.text, std::ios::binary) << now;
  EXPECT_NO_THROW(load(path.text));
  expect_error<FormatError>([&] { load(path.text, {.map = false}); }, "checksum");
  expect_error<FormatError>([&] { load(path.text, {.device = {DeviceType::cpu, 1}}); }, "checksum");
  const auto* bytes = reinterpret_cast<const std::byte*>(now.data());
  expect_error<FormatError>([&] { from_bytes({bytes, now.size()}); }, "checksum");
  expect_error<FormatError>([&] { load(path.text, {.verify = true}); }, "checksum");
}

TEST(Loading, ComputesWhatIsDerivedOnFirstUse) {
  const NamedLinop A = Nufft(random({2000, 2}, DType::float64), {32, 32}, "K");
  const Bytes bytes = to_bytes(A);
  const NamedLinop B = from_bytes(bytes);
  EXPECT_TRUE(B.param("order").is_stale());
  const Tensor x = random({32, 32});
  EXPECT_TRUE(equal(B(x), A(x)));
  EXPECT_FALSE(B.param("order").is_stale());
}

TEST(Saving, LeavesTheOldFileWhenItFails) {
  const TemporaryPath path("old");
  const NamedLinop A = Diagonal(random({4}), "N");
  save(A, path.text);
  const NamedLinop closure =
      Chain(A, SimpleLinop({.fn = [](const Variable& x) { return x * 2.0; }, .ishape = "N"}));
  expect_error<FormatError>([&] { save(closure, path.text); }, "closure");
  expect_error<FormatError>([&] { to_bytes(closure.H()); }, "closure");
  expect_error<FormatError>([&] { to_bytes(closure.N()); }, "closure");
  EXPECT_TRUE(equal(load(path.text)(random({4})), A(random({4}))));
  static const LinopType unknown{.name = "saving_test.Unknown", .functions = {}};
  expect_error<FormatError>([&] { to_bytes(make_linop(unknown, NamedShape("A"))); },
                            "unknown type");
  expect_error<IoError>([&] { save(A, "/nonexistent/folder/file"); }, "/nonexistent");
  expect_error<IoError>([&] { load("/nonexistent/file"); }, "/nonexistent");
  expect_error<ValueError>([&] { to_bytes(NamedLinop()); }, "undefined");
}

// -- hostile files --------------------------------------------------------------------------------

// The file of an operator with another content.
Bytes with_content(const Bytes& bytes, const Json& content, const std::string& kind = "operator") {
  const Archive archive = Archive::from_bytes(bytes);
  ArchiveWriter writer(kind);
  for (std::size_t i = 0; i < archive.size(); ++i) writer.add(archive.tensor(i));
  return writer.to_bytes(content.dump());
}

Json content_of(const Bytes& bytes) { return Json::parse(Archive::from_bytes(bytes).content()); }

struct HostileFile : ::testing::Test {
  Bytes good = to_bytes(Chain(Dense(random({3, 4}), "MN,N->M"), Diagonal(random({3}), "M")));
  Json content = content_of(good);
  void refused(const char* pointer, const Json& value, const std::string& what) {
    SCOPED_TRACE(pointer);
    Json edited = content;
    edited[Json::json_pointer(pointer)] = value;
    expect_error<FormatError>([&] { from_bytes(with_content(good, edited)); }, what);
  }
};

TEST_F(HostileFile, IsCheckedEntryByEntry) {
  EXPECT_NO_THROW(from_bytes(with_content(good, content)));
  refused("/root", 3, "index");
  refused("/root", -1, "not a size");
  refused("/nodes/0/type", "Densest", "unknown type");
  refused("/nodes/0/type", 3, "not a text");
  refused("/nodes/0/version", 2, "newer");
  refused("/nodes/0/ishape", {"not a name"}, "names no dimension");
  refused("/nodes/0/ishape/0", Json::array(), "not a text");
  refused("/nodes/0/ishape", Json::array(), "labels");
  refused("/nodes/0/params/0/1/variable", 7, "index");
  refused("/nodes/0/params", Json::array(), "cannot be made");
  refused("/nodes/0/params/0", Json::array({"weight"}), "not a pair");
  refused("/nodes/0/attributes/0/1", {{"real", "one"}}, "not a number");
  refused("/nodes/0/attributes/0/1", {{"unreal", 1}}, "not an attribute");
  refused("/nodes/0/attributes/0/1", {{"device", "moon"}}, "names no device");
  refused("/nodes/0/attributes/0/1", {{"tensor", 9}}, "index");
  refused("/nodes/0/sizes", Json::array({Json::array({"N", -4})}), "not a size");
  refused("/nodes/0/children", {0}, "index");
  refused("/nodes/2/children", {0, 2}, "index");
  refused("/nodes/2/children", {1, 0}, "cannot be made");
  refused("/nodes/2/children", Json::array(), "at least one");
  refused("/nodes/2/ishape", {"Q"}, "but its children have");
  refused("/nodes/1/children", {0}, "is not a container");
  refused("/variables/0/tensor", 5, "index");
  refused("/variables/0/trainable", 1, "neither true nor false");
  const Json view = {{"dtype", "complex128"}, {"shape", {3}}, {"strides", {1}}, {"offset", 1}};
  refused("/nodes/1/params/0/1/view", view, "outside");
  refused("/nodes/1/params/0/1/view", {{"dtype", "complex128"}}, "has no");
  expect_error<FormatError>([&] { from_bytes(with_content(good, content, "functions")); }, "kind");
}

TEST_F(HostileFile, ViewsThatOverflowAreRefused) {
  const index_t big = index_t{1} << 62;
  for (const auto& [n, stride, offset] : std::vector<std::tuple<index_t, index_t, index_t>>{
           {big, 1, 0}, {2, big, 0}, {2, -big, 0}, {1, 1, big}, {3, 0, 1 << 20}}) {
    refused("/nodes/1/params/0/1/view",
            {{"dtype", "complex128"}, {"shape", {n}}, {"strides", {stride}}, {"offset", offset}},
            "");
  }
}

// A chain of chains, each holding the previous one twice, is small in the file and exponential to
// traverse.
TEST_F(HostileFile, TreesThatAreTooDeepAreRefused) {
  const Bytes small = to_bytes(Chain(Identity("A"), Identity("A")));
  const Json node = content_of(small)["nodes"].back();
  for (const bool doubles : {true, false}) {
    Json edited = content_of(small);
    edited["nodes"] = Json::array({edited["nodes"][0]});
    const int n = doubles ? 64 : 20000;
    for (int i = 0; i < n; ++i) {
      Json next = node;
      next["children"] = doubles ? Json::array({i, i}) : Json::array({i});
      edited["nodes"].push_back(next);
    }
    edited["root"] = n;
    expect_error<FormatError>([&] { from_bytes(with_content(small, edited)); }, "deep");
  }
  NamedLinop A = Identity("A");
  for (int i = 0; i < 30; ++i) {
    LinopData data = copy_data(Chain(Identity("A")));
    data.children = {A, A};
    A = from_data(std::move(data));
  }
  expect_error<FormatError>([&] { to_bytes(A); }, "too deep");
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t pick(std::size_t n) { return random_() % n; }

  // Replaces, removes or duplicates a random entry of the document.
  void change(Json& root) {
    std::vector<Json*> places;
    collect(root, places);
    Json& place = *places[pick(places.size())];
    switch (pick(8)) {
      case 0:
        place = *places[pick(places.size())];
        return;
      case 1:
        if (place.is_array() && !place.empty()) place.erase(pick(place.size()));
        return;
      case 2:
        if (place.is_array() && !place.empty()) place.push_back(Json(place[pick(place.size())]));
        return;
      case 3:
        if (place.is_object() && !place.empty())
          place.erase(
              std::next(place.begin(), static_cast<std::ptrdiff_t>(pick(place.size()))).key());
        return;
      default:
        place = value(place);
    }
  }

 private:
  void collect(Json& at, std::vector<Json*>& places) {
    places.push_back(&at);
    if (!at.is_structured()) return;
    for (Json& below : at) collect(below, places);
  }

  Json value(const Json& old) {
    static const std::vector<Json> kValues{
        nullptr, true, false, 0,     1,    2,    -1,    7,   1 << 20,       int64_t{1} << 62,
        "",      "A",  "N",   "...", "()", "A1", "nan", 0.5, Json::array(), Json::object()};
    if (old.is_number_integer() && pick(3) == 0)
      return old.get<std::int64_t>() + static_cast<std::int64_t>(pick(5)) - 2;
    return kValues[pick(kValues.size())];
  }

  std::mt19937_64 random_;
};

// A loaded operator can be inspected, and used as far as its size allows.
void use(const NamedLinop& A) {
  A.str();
  A.dims();
  try {
    const MatrixSize size = A.matrix_size();
    if (size.rows > 10000 || size.columns > 10000) return;
    const NamedLinop H = A.H(), N = A.N();
    DimSizes sizes;
    sizes.set_ellipsis({});
    for (const ND& d : A.ishape()) {
      if (!d.is_ellipsis() && A.size(d)) sizes.set(d, *A.size(d));
    }
    const Extents extents = extents_of(A.ishape(), sizes);
    const TensorType type{natural_dtype(A), extents, {}};
    if (A.plan(type).peak_bytes > 1'000'000) return;
    A(Tensor::random_normal(extents, type.dtype, {1}));
  } catch (const Error&) {
  }
}

// Values that follow from others, such as the order of points, are one value again, so that equal
// operators are computed once and sums have the same bits.
TEST(Saving, EqualOperatorsStayEqual) {
  const NamedLinop F = Nufft(random({40, 1}, DType::float64), {32}, "K", {.batch = "C"});
  const NamedLinop D = Diagonal(random({32}), "C Nx", {.weight_shape = Dims("Nx")});
  const NamedLinop S = Add({F, F * D, F});
  const Tensor x = random({3, 32});
  const auto plan_of = [](const NamedLinop& A, const Tensor& v) {
    const Plan plan = A.plan({v.dtype(), v.shape(), {}});
    return std::pair(plan.steps.size(), plan.peak_bytes);
  };
  const NamedLinop loaded = from_bytes(to_bytes(S));
  EXPECT_TRUE(equal(loaded(x), S(x)));
  EXPECT_EQ(plan_of(loaded, x), plan_of(S, x));
  EXPECT_TRUE(loaded[0].param("order").is(loaded[2].param("order")));
  EXPECT_FALSE(loaded[0].param("order").shares_storage(S[0].param("order")));
  // In another precision, and of tiles.
  const NamedLinop single = S.to(DType::complex64);
  EXPECT_EQ(plan_of(single, x.to(DType::complex64)).first, plan_of(S, x).first);
  const NamedLinop tile = S.split({{"K", slice(3, 20)}});
  EXPECT_EQ(plan_of(tile, x).first, plan_of(S, x).first);
  // The loaded ones follow their own points.
  Parameter locs = loaded[0].param("locs");
  locs.set_value(random({40, 1}, DType::float64, 5));
  const NamedLinop G = Nufft(locs.value(), {32}, "K", {.batch = "C"});
  EXPECT_TRUE(allclose(loaded(x), Add({G, G * D, G})(x), 1e-13, 1e-13));
}

// Names inside derived operators come from the file where no operator of this process has them.
TEST(Saving, KeepsNamesInsideDerivedOperators) {
  const NamedLinop N =
      Nufft(random({9, 1}, DType::float64), {8}, "K", {.batch = Dims(), .toeplitz = Toeplitz::yes})
          .N();
  const Bytes bytes = to_bytes(N);
  std::string text = content_of(bytes).dump();
  for (std::size_t at = 0; (at = text.find("~16p", at)) != std::string::npos;) text[at + 3] = 'z';
  const NamedLinop other = from_bytes(with_content(bytes, Json::parse(text)));
  EXPECT_EQ(other[0].oshape().str(), "(Nx~16z)");
  const Tensor x = random({8});
  EXPECT_TRUE(equal(other(x), N(x)));
}

TEST(HostileFiles, AreAnOperatorOrAFormatError) {
  std::vector<Bytes> good;
  for (const Sample& s : samples()) good.push_back(to_bytes(s.A));
  std::vector<Json> contents;
  for (const Bytes& bytes : good) contents.push_back(content_of(bytes));
  const int n = testing::longer_unless_sanitized(10000);
  int refused = 0;
  Mutator mutator(7);
  for (int i = 0; i < n; ++i) {
    const std::size_t k = mutator.pick(good.size());
    Bytes bytes;
    if (i % 4 == 0) {
      // Damage of any kind: the hash of the manifest detects most of it.
      bytes = good[k];
      for (int e = 0; e < 3; ++e)
        bytes[mutator.pick(bytes.size())] ^= static_cast<std::byte>(1 + mutator.pick(255));
      if (i % 8 == 0) bytes.resize(mutator.pick(bytes.size() + 1));
    } else {
      Json content = contents[k];
      for (std::size_t e = 0, edits = 1 + mutator.pick(3); e < edits; ++e) mutator.change(content);
      bytes = with_content(good[k], content);
    }
    SCOPED_TRACE("file " + std::to_string(i) + " of " + std::to_string(k));
    try {
      use(from_bytes(bytes, {.verify = i % 2 == 0}));
    } catch (const FormatError&) {
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, n / 2);
  EXPECT_LT(refused, n);
}

}  // namespace
}  // namespace palimpsest
