// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "model/memory_model.hpp"

// Outcomes that the memory model must allow or forbid, by the classical litmus tests. An outcome
// lists the values of the loads.
namespace palimpsest::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;

struct Scene {
  Word x{0}, y{0};
  Cell data{0}, other{0};
  std::array<std::uint64_t, 6> seen{};

  std::string text(std::size_t n) const {
    std::string all;
    for (std::size_t k = 0; k < n; ++k) all += std::to_string(seen[k]);
    return all;
  }
};

using Body = std::function<void(Scene&)>;

// Runs the bodies; the outcome is the first n values seen, or a separate text.
Report run(std::vector<Body> bodies, std::size_t n_seen,
           std::function<std::string(const Scene&)> outcome = {}) {
  auto scene = std::make_shared<std::optional<Scene>>();
  Program program;
  program.start = [=] {
    scene->reset();
    scene->emplace();
    std::vector<std::function<void()>> threads;
    for (const Body& body : bodies) threads.emplace_back([=] { body(**scene); });
    return threads;
  };
  program.finish = [=] { return outcome ? outcome(**scene) : (*scene)->text(n_seen); };
  return explore(program);
}

using Outcomes = std::set<std::string>;

TEST(Litmus, StoreBufferingIsAllowed) {
  const auto body = [](bool first) {
    return [first](Scene& s) {
      (first ? s.x : s.y).store(1, kRelease);
      s.seen[first ? 0 : 1] = (first ? s.y : s.x).load(kAcquire);
    };
  };
  EXPECT_EQ(run({body(true), body(false)}, 2).outcomes, (Outcomes{"00", "01", "10", "11"}));
}

Report message_passing(std::memory_order store, std::memory_order load) {
  return run({[=](Scene& s) {
                s.x.store(1, kRelaxed);
                s.y.store(1, store);
              },
              [=](Scene& s) {
                s.seen[0] = s.y.load(load);
                s.seen[1] = s.x.load(kRelaxed);
              }},
             2);
}

TEST(Litmus, MessagePassingNeedsReleaseAndAcquire) {
  EXPECT_EQ(message_passing(kRelease, kAcquire).outcomes, (Outcomes{"00", "01", "11"}));
  EXPECT_TRUE(message_passing(kRelaxed, kAcquire).outcomes.contains("10"));
  EXPECT_TRUE(message_passing(kRelease, kRelaxed).outcomes.contains("10"));
}

Report passing_of_data(std::memory_order store, std::memory_order load) {
  return run({[=](Scene& s) {
                s.data.write(1);
                s.y.store(1, store);
              },
              [=](Scene& s) {
                if (s.y.load(load) == 1) s.seen[0] = static_cast<std::uint64_t>(s.data.read());
              }},
             1);
}

TEST(Litmus, DataWithoutReleaseAndAcquireAreARace) {
  EXPECT_EQ(passing_of_data(kRelease, kAcquire).violation, "");
  EXPECT_EQ(passing_of_data(kRelease, kAcquire).outcomes, (Outcomes{"0", "1"}));
  EXPECT_NE(passing_of_data(kRelaxed, kAcquire).violation.find("data race"), std::string::npos);
  EXPECT_NE(passing_of_data(kRelease, kRelaxed).violation.find("data race"), std::string::npos);
}

// RC11 forbids it, and so does every compiler in use: it requires a load moved behind a store.
TEST(Litmus, LoadBufferingIsNotSeen) {
  const auto body = [](bool first) {
    return [first](Scene& s) {
      s.seen[first ? 0 : 1] = (first ? s.x : s.y).load(kRelaxed);
      (first ? s.y : s.x).store(1, kRelaxed);
    };
  };
  EXPECT_EQ(run({body(true), body(false)}, 2).outcomes, (Outcomes{"00", "01", "10"}));
}

TEST(Litmus, ReadersMayDisagreeOnIndependentWrites) {
  const auto writer = [](bool first) {
    return [first](Scene& s) { (first ? s.x : s.y).store(1, kRelease); };
  };
  const auto reader = [](bool first) {
    return [first](Scene& s) {
      s.seen[first ? 0 : 2] = (first ? s.x : s.y).load(kAcquire);
      s.seen[first ? 1 : 3] = (first ? s.y : s.x).load(kAcquire);
    };
  };
  const Report report = run({writer(true), writer(false), reader(true), reader(false)}, 4);
  EXPECT_TRUE(report.outcomes.contains("1010"));
  EXPECT_EQ(report.outcomes.size(), 16u);
}

TEST(Litmus, ReadsOfOneLocationNeverGoBack) {
  const Report report = run({[](Scene& s) {
                               s.x.store(1, kRelaxed);
                               s.x.store(2, kRelaxed);
                             },
                             [](Scene& s) {
                               s.seen[0] = s.x.load(kRelaxed);
                               s.seen[1] = s.x.load(kRelaxed);
                             }},
                            2);
  EXPECT_EQ(report.outcomes, (Outcomes{"00", "01", "02", "11", "12", "22"}));
}

TEST(Litmus, AllAgreeOnTheOrderOfWritesToOneLocation) {
  const auto writer = [](std::uint64_t value) {
    return [value](Scene& s) { s.x.store(value, kRelaxed); };
  };
  const auto reader = [](std::size_t at) {
    return [at](Scene& s) {
      s.seen[at] = s.x.load(kRelaxed);
      s.seen[at + 1] = s.x.load(kRelaxed);
    };
  };
  const Report report = run({writer(1), writer(2), reader(0), reader(2)}, 4);
  EXPECT_TRUE(report.outcomes.contains("1212"));
  EXPECT_FALSE(report.outcomes.contains("1221"));
  EXPECT_FALSE(report.outcomes.contains("2112"));
}

TEST(Litmus, AThreadSeesItsOwnWrites) {
  const Report report = run({[](Scene& s) {
                               s.x.store(1, kRelaxed);
                               s.seen[0] = s.x.load(kRelaxed);
                             },
                             [](Scene& s) { s.x.store(2, kRelaxed); }},
                            1);
  EXPECT_EQ(report.outcomes, (Outcomes{"1", "2"}));
}

TEST(Litmus, CrossedWritesMayBothBeOverwritten) {
  const auto body = [](bool first) {
    return [first](Scene& s) {
      (first ? s.x : s.y).store(1, kRelease);
      (first ? s.y : s.x).store(2, kRelease);
    };
  };
  const Report report = run({body(true), body(false)}, 0, [](const Scene& s) {
    return std::to_string(s.x.final_value()) + std::to_string(s.y.final_value());
  });
  EXPECT_EQ(report.outcomes, (Outcomes{"11", "12", "21", "22"}));
}

TEST(Litmus, CausalityIsTransitive) {
  const Report report = run({[](Scene& s) { s.x.store(1, kRelease); },
                             [](Scene& s) {
                               s.seen[0] = s.x.load(kAcquire);
                               s.y.store(1, kRelease);
                             },
                             [](Scene& s) {
                               s.seen[1] = s.y.load(kAcquire);
                               s.seen[2] = s.x.load(kRelaxed);
                             }},
                            3);
  EXPECT_FALSE(report.outcomes.contains("110"));
  EXPECT_TRUE(report.outcomes.contains("111"));
  EXPECT_TRUE(report.outcomes.contains("010"));
}

TEST(Litmus, AWriteAfterAnAcquiredOneComesLater) {
  const auto report = [](std::memory_order store, std::memory_order load) {
    return run({[=](Scene& s) {
                  s.x.store(2, kRelaxed);
                  s.y.store(1, store);
                },
                [=](Scene& s) {
                  s.seen[0] = s.y.load(load);
                  s.x.store(1, kRelaxed);
                }},
               0, [](const Scene& s) { return s.text(1) + std::to_string(s.x.final_value()); });
  };
  EXPECT_EQ(report(kRelease, kAcquire).outcomes, (Outcomes{"01", "02", "11"}));
  EXPECT_TRUE(report(kRelaxed, kAcquire).outcomes.contains("12"));
  EXPECT_TRUE(report(kRelease, kRelaxed).outcomes.contains("12"));
}

TEST(Litmus, AReadMayMissAWriteThatAnOverwrittenOneReleased) {
  const Report report =
      run({[](Scene& s) {
             s.x.store(1, kRelease);
             s.y.store(1, kRelease);
           },
           [](Scene& s) {
             s.y.store(2, kRelease);
             s.seen[0] = s.x.load(kAcquire);
           }},
          0, [](const Scene& s) { return s.text(1) + std::to_string(s.y.final_value()); });
  EXPECT_EQ(report.outcomes, (Outcomes{"01", "02", "11", "12"}));
}

TEST(Litmus, AWriteAfterAReadComesLaterInItsLocation) {
  const Report report =
      run({[](Scene& s) {
             s.seen[0] = s.x.load(kRelaxed);
             s.x.store(1, kRelaxed);
           },
           [](Scene& s) { s.x.store(2, kRelaxed); }},
          0, [](const Scene& s) { return s.text(1) + std::to_string(s.x.final_value()); });
  EXPECT_EQ(report.outcomes, (Outcomes{"01", "02", "21"}));
}

TEST(Litmus, NoIncrementIsLost) {
  const auto body = [](Scene& s) { s.x.fetch_add(1, kRelaxed); };
  const Report report =
      run({body, body, body}, 0, [](const Scene& s) { return std::to_string(s.x.final_value()); });
  EXPECT_EQ(report.outcomes, (Outcomes{"3"}));
}

TEST(Litmus, ExactlyOneExchangeSucceeds) {
  const auto body = [](std::size_t at) {
    return [at](Scene& s) {
      std::uint64_t expected = 0;
      s.seen[at] = s.x.compare_exchange_weak(expected, 1, kRelaxed, kRelaxed) ? 1 : 0;
    };
  };
  EXPECT_EQ(run({body(0), body(1)}, 2).outcomes, (Outcomes{"01", "10"}));
}

TEST(Litmus, AFailedExchangeAcquiresOnlyIfItsFailureOrderDoes) {
  const auto report = [](std::memory_order failure) {
    return run({[](Scene& s) {
                  s.data.write(1);
                  s.y.store(1, kRelease);
                },
                [=](Scene& s) {
                  std::uint64_t expected = 7;
                  s.y.compare_exchange_weak(expected, 8, kAcquire, failure);
                  if (expected == 1) s.data.read();
                }},
               0);
  };
  EXPECT_EQ(report(kAcquire).violation, "");
  EXPECT_NE(report(kRelaxed).violation, "");
}

// The release of the first thread reaches the reader through an intermediate modification.
Report release_sequence(const Body& between) {
  return run({[](Scene& s) {
                s.data.write(1);
                s.x.store(1, kRelease);
              },
              between,
              [](Scene& s) {
                if (s.x.load(kAcquire) == 2) s.data.read();
              }},
             0);
}

TEST(Litmus, ModificationsContinueAReleaseSequence) {
  const Report continued = release_sequence([](Scene& s) {
    std::uint64_t expected = 1;
    s.x.compare_exchange_weak(expected, 2, kRelaxed, kRelaxed);
  });
  EXPECT_EQ(continued.violation, "");
  const Report broken = release_sequence([](Scene& s) {
    if (s.x.load(kRelaxed) == 1) s.x.store(2, kRelaxed);
  });
  EXPECT_NE(broken.violation.find("data race"), std::string::npos);
}

// The rule of C++20: before, a later store of the same thread continued the sequence.
TEST(Litmus, AStoreOfTheSameThreadBreaksAReleaseSequence) {
  const Report report = run({[](Scene& s) {
                               s.data.write(1);
                               s.x.store(1, kRelease);
                               s.x.store(2, kRelaxed);
                             },
                             [](Scene& s) {
                               if (s.x.load(kAcquire) == 2) s.data.read();
                             }},
                            0);
  EXPECT_NE(report.violation.find("data race"), std::string::npos);
}

// A chain of modifications by several threads carries the releases of all of them.
TEST(Litmus, ALongChainOfModificationsCarriesEveryRelease) {
  const auto report = [](std::memory_order first, std::memory_order second) {
    return run({[=](Scene& s) {
                  s.data.write(1);
                  s.x.fetch_add(1, first);
                },
                [](Scene& s) { s.x.fetch_add(10, kRelaxed); },
                [=](Scene& s) {
                  s.seen[0] = static_cast<std::uint64_t>(s.other.read());
                  s.x.fetch_add(100, second);
                },
                [](Scene& s) {
                  if (s.x.load(kAcquire) != 111) return;
                  s.data.write(2);
                  s.other.write(2);
                }},
               0)
        .violation;
  };
  EXPECT_EQ(report(kRelease, kRelease), "");
  EXPECT_NE(report(kRelaxed, kRelease), "");
  EXPECT_NE(report(kRelease, kRelaxed), "");
}

TEST(Litmus, ADropOfTheLastReferenceNeedsBothHalves) {
  const auto report = [](std::memory_order order) {
    const auto body = [order](Scene& s) {
      s.data.read();
      if (s.x.fetch_sub(1, order) == 1) s.data.destroy();
    };
    return run({[body](Scene& s) {
                  s.x.fetch_add(2, kRelaxed);
                  s.y.store(1, kRelease);
                  body(s);
                },
                [body](Scene& s) {
                  if (s.y.load(kAcquire) == 1) body(s);
                }},
               0)
        .violation;
  };
  EXPECT_EQ(report(kAcqRel), "");
  EXPECT_NE(report(kAcquire), "");
  EXPECT_NE(report(kRelease), "");
}

TEST(Litmus, ASleeperIsWokenOnlyIfSomebodyDoes) {
  const auto report = [](bool wakes) {
    return run({[](Scene& s) { park(s.x, 0); },
                [wakes](Scene& s) {
                  s.x.store(1, kRelaxed);
                  if (wakes) unpark(&s.x);
                }},
               0)
        .violation;
  };
  EXPECT_EQ(report(true), "");
  EXPECT_NE(report(false).find("deadlock"), std::string::npos);
}

TEST(Litmus, AnAtomicMustOutliveItsUses) {
  const Report report = run({[](Scene& s) { s.x.fetch_sub(1, kRelease); },
                             [](Scene& s) {
                               if (s.x.load(kRelaxed) != 0) s.x.destroy();
                             }},
                            0);
  EXPECT_NE(report.violation.find("destroyed while it may be in use"), std::string::npos);
}

}  // namespace
}  // namespace palimpsest::model
