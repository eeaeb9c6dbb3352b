// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/cow_protocol.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace palimpsest::cow {
namespace {

using Word = std::atomic<Bits>;

constexpr Bits word_of(Bits n_refs, Bits n_copiers) {
  return n_refs * kOneRef + n_copiers * kOneCopier;
}

// Simulates the other owners at chosen moments, and records the requests of the protocol.
struct ScriptedEnvironment {
  int chunks = 2;
  std::function<void()> on_allocate = [] {}, on_chunk = [] {}, on_wait = [] {};
  std::string calls;

  void allocate() {
    calls += "allocate ";
    on_allocate();
  }
  bool copy_chunk() {
    if (chunks == 0) return false;
    --chunks;
    calls += "chunk ";
    on_chunk();
    return true;
  }
  void discard() noexcept { calls += "discard "; }
  void free_old() noexcept { calls += "free "; }
  void wait(const Word& word, Bits seen) {
    calls += "wait ";
    EXPECT_EQ(word.load(), seen);
    on_wait();
  }
  void wake(const Word*) noexcept { calls += "wake "; }
};

TEST(CowProtocol, OnlyTheOnlyOwnerOfDataThatAreNotFixedWritesInPlace) {
  EXPECT_TRUE(is_sole(Word{word_of(1, 0)}));
  EXPECT_FALSE(is_sole(Word{word_of(2, 0)}));
  EXPECT_FALSE(is_sole(Word{word_of(2, 1)}));
  EXPECT_FALSE(is_sole(Word{kFixed | word_of(1, 0)}));
}

TEST(CowProtocol, AnOwnerTooManyIsRefused) {
  Word word{kMaxRefs - 1};
  EXPECT_TRUE(add_ref(word));
  EXPECT_FALSE(add_ref(word));
  EXPECT_EQ(word, kMaxRefs);
}

TEST(CowProtocol, TheLastOwnerTakesTheDataOver) {
  Word word{word_of(1, 0)};
  ScriptedEnvironment environment;
  EXPECT_EQ(materialize(word, environment), Outcome::taken_over);
  EXPECT_EQ(environment.calls, "");
  EXPECT_EQ(word, word_of(1, 0));
}

TEST(CowProtocol, OneOfSeveralCopiesAndLeaves) {
  Word word{word_of(3, 0)};
  ScriptedEnvironment environment;
  environment.on_chunk = [&] { EXPECT_EQ(word, word_of(3, 1)); };
  EXPECT_EQ(materialize(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "allocate chunk chunk ");
  EXPECT_EQ(word, word_of(2, 0));
}

TEST(CowProtocol, TheSecondToLastWakesTheOneWhoMayWaitForTheData) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  EXPECT_EQ(materialize(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "allocate chunk chunk wake ");
  EXPECT_EQ(word, word_of(1, 0));
}

TEST(CowProtocol, TheOnlyOneThatIsNotCopyingWaitsThenTakesOver) {
  Word word{word_of(3, 2)};
  ScriptedEnvironment environment;
  environment.on_wait = [&] { word -= word_of(1, 1); };
  EXPECT_EQ(materialize(word, environment), Outcome::taken_over);
  EXPECT_EQ(environment.calls, "wait wait ");
  EXPECT_EQ(word, word_of(1, 0));
}

TEST(CowProtocol, TheOneThatWaitsCopiesWhenAnotherCopyFailed) {
  Word word{word_of(2, 1)};
  ScriptedEnvironment environment;
  environment.on_wait = [&] { word -= word_of(0, 1); };
  EXPECT_EQ(materialize(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "wait allocate chunk chunk wake ");
  EXPECT_EQ(word, word_of(1, 0));
}

TEST(CowProtocol, ACopyThatHasBecomeNeedlessIsDropped) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.on_allocate = [&] { EXPECT_FALSE(drop_ref(word)); };
  EXPECT_EQ(materialize(word, environment), Outcome::taken_over);
  EXPECT_EQ(environment.calls, "allocate chunk discard ");
  EXPECT_EQ(word, word_of(1, 0));
}

TEST(CowProtocol, ACopyThatIsFinishedFirstFreesTheOldData) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.chunks = 0;  // the word is not read during the copy
  environment.on_allocate = [&] { EXPECT_FALSE(drop_ref(word)); };
  EXPECT_EQ(materialize(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "allocate free ");
  EXPECT_EQ(refs(word), 0u);
}

TEST(CowProtocol, AFailureLeavesTheOwnerAnOwner) {
  Word word{word_of(3, 0)};
  ScriptedEnvironment environment;
  environment.on_allocate = [] { throw std::runtime_error("no memory"); };
  EXPECT_THROW(materialize(word, environment), std::runtime_error);
  EXPECT_EQ(environment.calls, "allocate discard ");
  EXPECT_EQ(word, word_of(3, 0));
}

TEST(CowProtocol, AFailureWakesTheOneThatCountedOnTheCopy) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.on_chunk = [] { throw std::runtime_error("broken copy"); };
  EXPECT_THROW(materialize(word, environment), std::runtime_error);
  EXPECT_EQ(environment.calls, "allocate chunk discard wake ");
  EXPECT_EQ(word, word_of(2, 0));
}

TEST(CowProtocol, FixedDataIsCopiedEvenByTheLast) {
  Word word{kFixed | word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.on_chunk = [&] { EXPECT_EQ(copiers(word), 0u); };
  EXPECT_EQ(materialize(word, environment), Outcome::copied);
  EXPECT_EQ(word, kFixed | word_of(1, 0));
  ScriptedEnvironment last;
  EXPECT_EQ(materialize(word, last), Outcome::copied);
  EXPECT_EQ(last.calls, "allocate chunk chunk free ");
}

TEST(CowProtocol, AFailureOnFixedDataChangesNothing) {
  Word word{kFixed | word_of(1, 0)};
  ScriptedEnvironment environment;
  environment.on_allocate = [] { throw std::runtime_error("no memory"); };
  EXPECT_THROW(materialize(word, environment), std::runtime_error);
  EXPECT_EQ(word, kFixed | word_of(1, 0));
}

TEST(CowProtocol, ReplacingCopiesNothing) {
  Word word{word_of(2, 1)};
  ScriptedEnvironment environment;
  EXPECT_EQ(replace(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "allocate ");
  EXPECT_EQ(word, word_of(1, 1));
}

TEST(CowProtocol, ReplacingByTheLastKeepsTheMemory) {
  Word word{word_of(1, 0)};
  ScriptedEnvironment environment;
  EXPECT_EQ(replace(word, environment), Outcome::taken_over);
  EXPECT_EQ(environment.calls, "");
}

TEST(CowProtocol, ReplacingFreesTheOldDataWhenEverybodyElseHasLeft) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.on_allocate = [&] { EXPECT_FALSE(drop_ref(word)); };
  EXPECT_EQ(replace(word, environment), Outcome::copied);
  EXPECT_EQ(environment.calls, "allocate free ");
}

TEST(CowProtocol, AFailedReplacementChangesNothing) {
  Word word{word_of(2, 0)};
  ScriptedEnvironment environment;
  environment.on_allocate = [] { throw std::runtime_error("no memory"); };
  EXPECT_THROW(replace(word, environment), std::runtime_error);
  EXPECT_EQ(word, word_of(2, 0));
}

}  // namespace
}  // namespace palimpsest::cow
