// SPDX-License-Identifier: Apache-2.0
// All ranks run all tests in the same order. Only rank 0 prints, except for failures.
#include <gtest/gtest.h>

#include <memory>

#include "palimpsest/distributed/team.hpp"

namespace {

class FailuresOnly : public ::testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d\n%s\n", rank_, result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  const int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int rank = palimpsest::Team::world().rank();
  if (rank != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<FailuresOnly>(rank).release());
  }
  return RUN_ALL_TESTS();
}
