//===- OffsetProblemTest.cpp - check() and verify() catch what they must --===//
#include "compiler/scheduling/OffsetProblem.h"

#include <gtest/gtest.h>

namespace ds::scheduling {
namespace {

// Three buffers whose places one can check by eye: c takes over the bytes of a.
OffsetProblem threeBuffers() {
  OffsetProblem problem;
  problem.buffers = {{256, 0, 2}, {128, 1, 4}, {256, 2, 4}};
  problem.alignment = 64;
  problem.capacity = 384;
  return problem;
}

TEST(OffsetProblem, AcceptsACorrectAssignment) {
  const OffsetProblem problem = threeBuffers();
  EXPECT_EQ(problem.check(), std::nullopt);
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 256, 0}), std::nullopt);
  EXPECT_EQ(problem.arenaBytes(std::vector<int64_t>{0, 256, 0}), 384);
  EXPECT_EQ(problem.lowerBound(), 384);
}

TEST(OffsetProblem, VerifyCatchesAnOverlap) {
  const auto reason = threeBuffers().verify(std::vector<int64_t>{0, 192, 0});
  EXPECT_EQ(reason,
            "buffer 0 (256 bytes, live [0, 2)) at offset 0 overlaps buffer 1 (128 bytes, live [1, 4)) at offset "
            "192");
}

TEST(OffsetProblem, VerifyCatchesABufferInsideAnother) {
  OffsetProblem problem;
  problem.buffers = {{1024, 0, 10}, {64, 3, 4}};
  EXPECT_TRUE(problem.verify(std::vector<int64_t>{0, 512}).has_value());
  EXPECT_TRUE(problem.verify(std::vector<int64_t>{0, 0}).has_value());
  EXPECT_FALSE(problem.verify(std::vector<int64_t>{0, 1024}).has_value());
}

TEST(OffsetProblem, VerifyCatchesMisalignment) {
  const auto reason = threeBuffers().verify(std::vector<int64_t>{0, 256, 32});
  EXPECT_EQ(reason, "buffer 2 (256 bytes, live [2, 4)) lies at offset 32, which is not a multiple of 64");
  EXPECT_TRUE(threeBuffers().verify(std::vector<int64_t>{-64, 256, 0}).has_value());
}

TEST(OffsetProblem, VerifyCatchesWhatEndsAboveTheCapacity) {
  const auto reason = threeBuffers().verify(std::vector<int64_t>{0, 320, 0});
  EXPECT_EQ(reason, "buffer 1 (128 bytes, live [1, 4)) at offset 320 ends above the capacity of 384 bytes");
  // No overflow on the way to the answer.
  EXPECT_TRUE(threeBuffers().verify(std::vector<int64_t>{0, int64_t(1) << 62, 0}).has_value());
}

TEST(OffsetProblem, VerifyWantsAnOffsetForEveryBuffer) {
  EXPECT_EQ(threeBuffers().verify(std::vector<int64_t>{0, 256}), "2 offsets for 3 buffers");
}

TEST(OffsetProblem, EmptyBuffersMayLieAnywhere) {
  OffsetProblem problem;
  problem.buffers = {{256, 0, 4}, {0, 0, 4}};
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 64}), std::nullopt);
  EXPECT_EQ(problem.lowerBound(), 256);
}

TEST(OffsetProblem, LivesAreHalfOpen) {
  OffsetProblem problem;
  problem.buffers = {{64, 0, 2}, {64, 2, 3}};
  EXPECT_EQ(problem.verify(std::vector<int64_t>{0, 0}), std::nullopt);
  EXPECT_EQ(problem.lowerBound(), 64);
}

TEST(OffsetProblem, CheckRefusesNonsense) {
  OffsetProblem problem = threeBuffers();
  problem.alignment = 48;
  EXPECT_EQ(problem.check(), "alignment 48 is not a power of two");
  problem = threeBuffers();
  problem.capacity = -1;
  EXPECT_EQ(problem.check(), "capacity -1 is negative");
  problem = threeBuffers();
  problem.buffers[1] = {-1, 0, 1};
  EXPECT_EQ(problem.check(), "buffer 1 (-1 bytes, live [0, 1)) has a negative size");
  problem = threeBuffers();
  problem.buffers[1] = {1, 5, 5};
  EXPECT_EQ(problem.check(), "buffer 1 (1 bytes, live [5, 5)) never lives: its begin must lie before its end");
  problem = threeBuffers();
  problem.buffers[1].bytes = 512;
  EXPECT_EQ(problem.check(), "buffer 1 (512 bytes, live [1, 4)) alone is larger than the capacity of 384 bytes");
  problem.capacity = std::numeric_limits<int64_t>::max();
  problem.buffers = {{int64_t(1) << 61, 0, 1}, {int64_t(1) << 61, 0, 1}};
  EXPECT_EQ(problem.check(), "the buffers up to 1 together are larger than any address space");
}

} // namespace
} // namespace ds::scheduling
