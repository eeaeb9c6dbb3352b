// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "palimpsest/run/container.hpp"
#include "palimpsest/run/shared.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using palimpsest::testing::expect_error;
using palimpsest::testing::in_child;
using Containers = std::vector<std::shared_ptr<Container>>;

template <class Work>
bool is_state_error(Work work) {
  try {
    work();
  } catch (const StateError&) {
    return true;
  }
  return false;
}

struct HeldContainersTest : ::testing::Test {
  SharedVariable a = shared(Tensor::ones({2}), {.name = "a"});
  SharedVariable b = shared(Tensor::ones({2}), {.name = "b"});
  SharedVariable c = shared(Tensor::ones({2}), {.name = "c"});
};

// Another thread writes b of a, b, c while the process is forked: in the child b is lost, and the
// others can be written.
TEST_F(HeldContainersTest, AreGivenBackIfOneOfThemWasLost) {
  std::promise<void> is_writing, may_end;
  std::thread writer([&] {
    b.modify([&](Tensor&) {
      is_writing.set_value();
      may_end.get_future().wait();
    });
  });
  is_writing.get_future().wait();
  const int result = in_child([&] {
    const Containers list{c.container_ptr(), b.container_ptr(), a.container_ptr()};
    if (!is_state_error([&] { HeldContainers(list, "save"); })) return 2;
    for (SharedVariable& s : {std::ref(a), std::ref(b), std::ref(c)})
      s.set_value(Tensor::zeros({2}));
    HeldContainers(list, "save");  // b has a value again
    return a.get_value().at<double>({1}) == 0 ? 0 : 3;
  });
  may_end.set_value();
  writer.join();
  EXPECT_EQ(result, 0);
}

TEST_F(HeldContainersTest, MayBeReadByOtherThreadsAndAreRefusedToTheirOwn) {
  {
    const Containers twice{b.container_ptr(), a.container_ptr(), b.container_ptr()};
    const HeldContainers held(twice, "save");
    expect_error<StateError>([&] { a.set_value(Tensor::zeros({2})); },
                             "'a' is held by this thread");
    expect_error<StateError>(
        [&] {
          HeldContainers(Containers{c.container_ptr(), b.container_ptr()}, "copy");
        },
        "[copy] shared variable 'b' is held by this thread already");
    c.set_value(Tensor::zeros({2}));
    std::thread([&] { EXPECT_EQ(a.get_value().at<double>({0}), 1); }).join();
  }
  a.set_value(Tensor::zeros({2}));
  b.set_value(Tensor::zeros({2}));
}

TEST_F(HeldContainersTest, AreStillHeldInAChildThatTheirThreadForks) {
  std::optional<HeldContainers> held(std::in_place,
                                     Containers{a.container_ptr(), b.container_ptr()}, "save");
  const int result = in_child([&] {
    if (!is_state_error([&] { b.set_value(Tensor::zeros({2})); })) return 2;
    held.reset();
    b.set_value(Tensor::zeros({2}));
    return 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(is_state_error([&] { a.set_value(Tensor::zeros({2})); }));
  held.reset();
  a.set_value(Tensor::zeros({2}));
}

TEST_F(HeldContainersTest, ThoseThatNobodyElseHasAreLetGo) {
  HeldContainers held(Containers{a.container_ptr(), shared(1.0).container_ptr(), b.container_ptr()},
                      "to");
  const std::weak_ptr<Container> of_b = b.container_ptr();
  b = SharedVariable();
  EXPECT_FALSE(of_b.expired());
  held.let_go_of_unshared();
  EXPECT_TRUE(of_b.expired());
  EXPECT_TRUE(is_state_error([&] { a.get_value(); }));
  c.set_value(Tensor::zeros({2}));
}

}  // namespace
}  // namespace palimpsest
