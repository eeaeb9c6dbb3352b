// SPDX-License-Identifier: Apache-2.0
// No two shared variables show each other's writes, whatever Storages their values are lent in.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/tensor/dlpack.hpp"

namespace palimpsest {
namespace {

using V = std::vector<double>;

V values(const SharedVariable& s) { return s.get_value().to_vector<double>(); }
const void* address(const SharedVariable& s) { return s.get_value({.borrow = true}).raw_data(); }
void add_one(SharedVariable& s) { function({}, {}, {.updates = {{s, s + 1.0}}})(); }

struct OneMemory : ::testing::Test {
  V memory{1, 2, 3, 4};

  Tensor part(std::size_t first, std::size_t n, bool writable = true) {
    return Tensor::from_blob(memory.data() + first, DType::float64, {static_cast<index_t>(n)}, {1},
                             {}, writable);
  }
  Tensor array() { return part(0, 4); }

  // An update of either leaves the other as it was.
  static void expect_apart(SharedVariable& p, SharedVariable& q) {
    const V of_q = values(q);
    add_one(p);
    EXPECT_EQ(values(q), of_q);
    const V of_p = values(p);
    add_one(q);
    p.modify([](Tensor& t) { t.fill(9.0); });
    EXPECT_EQ(values(q)[0], of_q[0] + 1);
    q.zero({.borrow = true});
    EXPECT_EQ(values(p), V(of_p.size(), 9.0));
  }
};

TEST_F(OneMemory, TheSecondVariableOnABufferIsACopy) {
  SharedVariable p = shared(array(), {.name = "p", .borrow = true});
  SharedVariable q = shared(array(), {.name = "q", .borrow = true});
  EXPECT_EQ(address(p), memory.data());
  EXPECT_NE(address(q), memory.data());
  add_one(p);
  EXPECT_EQ(values(p), (V{2, 3, 4, 5}));
  EXPECT_EQ(values(q), (V{1, 2, 3, 4}));
  EXPECT_EQ(memory, (V{2, 3, 4, 5}));
  const Function both =
      function({}, {p + 0.0, q + 0.0}, {.updates = {{p, p + 1.0}, {q, q * 10.0}}});
  both();
  EXPECT_EQ(values(p), (V{3, 4, 5, 6}));
  EXPECT_EQ(values(q), (V{10, 20, 30, 40}));
  expect_apart(p, q);
}

TEST_F(OneMemory, PartsOfABufferAreBorrowedUnlessTheyOverlap) {
  SharedVariable p = shared(part(0, 3), {.borrow = true});
  SharedVariable q = shared(part(1, 3), {.borrow = true});
  expect_apart(p, q);
  SharedVariable r = shared(part(3, 1), {.borrow = true});
  EXPECT_EQ(address(p), memory.data());
  EXPECT_EQ(address(r), memory.data() + 3);
}

TEST_F(OneMemory, ReadOnlyAndWritableShowsOfABuffer) {
  for (const bool is_borrowed : {false, true}) {
    SharedVariable reader = shared(part(0, 4, false), {.borrow = is_borrowed});
    SharedVariable writer = shared(array(), {.borrow = true});
    expect_apart(writer, reader);
    memory = {1, 2, 3, 4};
  }
  SharedVariable writer = shared(array(), {.borrow = true});
  EXPECT_EQ(address(writer), memory.data());
  for (const bool is_borrowed : {false, true}) {
    SharedVariable reader = shared(part(1, 3, false), {.borrow = is_borrowed});
    expect_apart(writer, reader);
  }
  // Readers alone share it.
  memory = {1, 2, 3, 4};
  SharedVariable other = shared(Tensor::zeros({4}));
  writer = other;
  const SharedVariable a = shared(part(0, 4, false)), b = shared(part(0, 4, false));
  EXPECT_EQ(address(a), memory.data());
  EXPECT_EQ(address(b), memory.data());
}

TEST_F(OneMemory, ANewValueIsACopyWhereAnotherVariableHasTheMemory) {
  SharedVariable p = shared(array(), {.borrow = true});
  SharedVariable q = shared(Tensor::zeros({4})), r = shared(Tensor::zeros({4}));
  q.set_value(array(), {.borrow = true});
  expect_apart(p, q);
  r.exchange(array());
  expect_apart(p, r);
  // By an update: the argument may be lent or not, and promise not to be written.
  for (const bool writable : {false, true}) {
    for (const bool is_lent : {false, true}) {
      const Variable x = dvector("x");
      const Function f = function({In(x, {.borrow = is_lent})}, {}, {.updates = {{q, x}}});
      f(part(0, 4, writable));
      EXPECT_EQ(values(q), memory);
      expect_apart(p, q);
    }
  }
}

TEST_F(OneMemory, AVariableTakesItsOwnMemoryAgain) {
  SharedVariable s = shared(array(), {.borrow = true});
  for (int i = 0; i < 3; ++i) {
    s.set_value(array(), {.borrow = true});
    EXPECT_EQ(address(s), memory.data());
  }
  add_one(s);
  EXPECT_EQ(memory, (V{2, 3, 4, 5}));
  s.set_value(Tensor::zeros({4}));
  const SharedVariable other = shared(array(), {.borrow = true});
  EXPECT_EQ(address(other), memory.data());
}

TEST_F(OneMemory, BuffersThatAreExchangedKeepTheirHolders) {
  SharedVariable p = shared(array(), {.borrow = true}), q = shared(Tensor::zeros({4}));
  function({}, {}, {.updates = {{p, q}, {q, p}}})();
  EXPECT_EQ(address(q), memory.data());
  SharedVariable r = shared(array(), {.borrow = true});
  expect_apart(q, r);
  q.set_value(Tensor::zeros({4}));
  r.set_value(array(), {.borrow = true});
  EXPECT_EQ(address(r), memory.data());
}

TEST_F(OneMemory, ReadOnlyMemoryThatWasReplacedIsFree) {
  SharedVariable p = shared(part(0, 4, false), {.borrow = true});
  add_one(p);
  const SharedVariable q = shared(array(), {.borrow = true});
  EXPECT_EQ(address(q), memory.data());
}

TEST_F(OneMemory, ASegmentThatIsAttachedTwice) {
  const Storage segment = Storage::shared_memory(32);
  const Storage again = Storage::attach_shared_memory(segment.shared_descriptor());
  SharedVariable p = shared(Tensor(segment, DType::float64, {4}, {1}), {.borrow = true});
  SharedVariable q = shared(Tensor(again, DType::float64, {4}, {1}), {.borrow = true});
  expect_apart(p, q);
}

TEST_F(OneMemory, ATensorOfTheLibraryAndAnImportOfItsExport) {
  Tensor t = Tensor::ones({4}), u = Tensor::ones({4});
  SharedVariable p = shared(t, {.borrow = true});
  const Tensor of_t = from_dlpack(to_dlpack(t, DlpackAccess::writable));
  const Tensor of_u = from_dlpack(to_dlpack(u, DlpackAccess::writable));
  SharedVariable q = shared(of_t, {.borrow = true});
  expect_apart(p, q);
  SharedVariable r = shared(of_u, {.borrow = true});
  EXPECT_EQ(address(r), u.raw_data());
  SharedVariable s = shared(u, {.borrow = true});
  expect_apart(r, s);
}

TEST_F(OneMemory, AConstantInAMappedFileKeepsItsValue) {
  const std::string path = ::testing::TempDir() + "/palimpsest_one_memory";
  const auto write = [&] {
    std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write(reinterpret_cast<const char*>(memory.data()), 32);
  };
  std::ofstream(path).close();
  write();
  const Tensor mapped(Storage::from_file(path, 0, 32), DType::float64, {4}, {1});
  const Variable x = dvector("x"), c = constant(mapped);
  const Variable rolled = ops::roll(constant(mapped(1)) + x, 1, 0);
  const Function f = function({x}, {x + c, x * mapped, rolled, c});
  const Tensor clone = mapped.clone();
  memory = {5, 5, 5, 5};
  write();
  ASSERT_EQ(mapped.to_vector<double>(), memory);
  const auto got = f(Tensor::ones({4}));
  EXPECT_EQ(got[0].to_vector<double>(), (V{2, 3, 4, 5}));
  EXPECT_EQ(got[1].to_vector<double>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(got[2].to_vector<double>(), (V{3, 3, 3, 3}));
  EXPECT_EQ(got[3].to_vector<double>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(c.constant_value().to_vector<double>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(clone.to_vector<double>(), (V{1, 2, 3, 4}));
  std::remove(path.c_str());
}

TEST_F(OneMemory, AConstantKeepsItsValue) {
  const Variable c = constant(part(0, 4, false));
  const Variable x = dvector("x");
  const Function f = function({x}, x + c), only = function({}, {c});
  SharedVariable p = shared(array(), {.borrow = true});
  EXPECT_EQ(address(p), memory.data());
  add_one(p);
  EXPECT_EQ(f(Tensor::zeros({4})).tensor().to_vector<double>(), (V{1, 2, 3, 4}));
  EXPECT_EQ(only().tensor().to_vector<double>(), (V{1, 2, 3, 4}));
}

}  // namespace
}  // namespace palimpsest
