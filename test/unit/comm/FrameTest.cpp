//===- FrameTest.cpp - frames of the TCP store ----------------------------===//
#include "runtime/comm/tcp/Frame.h"

#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

std::vector<std::byte> bytesOf(const std::string &text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Frame, ArrivesWholeHoweverItIsCut) {
  const std::vector<std::byte> first =
      encode({.kind = FrameKind::Gather, .key = "7", .value = bytesOf("abc"), .timeout = std::chrono::seconds(3)});
  const std::vector<std::byte> second = encode({.kind = FrameKind::Bye, .key = {}, .value = {}});
  std::vector<std::byte> both = first;
  both.insert(both.end(), second.begin(), second.end());
  for (size_t cut = 1; cut < both.size(); ++cut) {
    FrameReader reader(maxValueBytes);
    std::vector<Frame> frames;
    for (const auto &half : {std::span(both).first(cut), std::span(both).subspan(cut)}) {
      reader.add(half);
      for (auto frame = reader.next(); frame; frame = reader.next())
        frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 2u) << "cut at " << cut;
    EXPECT_EQ(frames[0].kind, FrameKind::Gather);
    EXPECT_EQ(frames[0].key, "7");
    EXPECT_EQ(frames[0].value, bytesOf("abc"));
    EXPECT_EQ(frames[0].timeout, std::chrono::seconds(3));
    EXPECT_EQ(frames[1].kind, FrameKind::Bye);
    EXPECT_FALSE(reader.garbage());
  }
}

TEST(Frame, KnowsGarbageByItsFirstByte) {
  FrameReader reader(maxValueBytes);
  reader.add(bytesOf("G"));
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_TRUE(reader.garbage());
}

TEST(Frame, MayHaveAsManyBytesAsItsSenderIsAllowed) {
  const std::vector<std::byte> frame =
      encode({.kind = FrameKind::Put, .key = "k", .value = std::vector<std::byte>(maxStrangerBytes + 1)});
  FrameReader stranger(maxStrangerBytes), rank(maxStrangerBytes);
  rank.allow(maxValueBytes);
  stranger.add(frame);
  rank.add(frame);
  EXPECT_FALSE(stranger.next().has_value());
  EXPECT_TRUE(stranger.garbage());
  EXPECT_TRUE(rank.next().has_value());
}

/// A number of bytes that nobody sends must not make the reader wait for them.
TEST(Frame, RefusesSizesBeyondItsLimits) {
  for (const size_t place : {size_t(4), size_t(7), size_t(14), size_t(22)}) { // kind, key's, value's bytes, timeout
    std::vector<std::byte> frame = encode({.kind = FrameKind::Put, .key = "k", .value = {}});
    frame[place] = std::byte(0xFF);
    FrameReader reader(maxValueBytes);
    reader.add(frame);
    EXPECT_FALSE(reader.next().has_value()) << place;
    EXPECT_TRUE(reader.garbage()) << place;
  }
}

} // namespace
} // namespace ds::runtime
