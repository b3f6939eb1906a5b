//===- StreamOrderTest.cpp - ranks of one process that only enqueue -------===//
//
// Rounds of collectives and messages without waiting for any stream: each round's values are written, moved and checked
// by what is enqueued. A rank that read too early, or overwrote what another still reads, would see values of another
// round.
//
//===----------------------------------------------------------------------===//
#include "core/DType.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "test/unit/comm/LateStream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::CollectiveKind;

constexpr uint32_t ranks = 4;
constexpr uint64_t elements = 24;
constexpr uint32_t rounds = 60;

/// Sums of four of them are exact, so one formula checks all.
int64_t value(uint32_t rank, uint32_t round, uint64_t element) {
  return int64_t(rank + 1) * 1000003 + int64_t(round) * 101 + int64_t(element);
}

int64_t summed(uint32_t round, uint64_t element) {
  int64_t sum = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    sum += value(rank, round, element);
  return sum;
}

using Elements = std::vector<int64_t>;

std::byte *bytes(Elements &elements) { return reinterpret_cast<std::byte *>(elements.data()); }

/// Calls body(transport, rank, stream) on a thread for each rank and waits for all streams.
void onEveryRank(const std::function<void(runtime::Transport &, uint32_t, LateStream &)> &body) {
  runtime::InProcessTransport transport(ranks, makeLateMover);
  std::vector<std::unique_ptr<LateStream>> streams;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    streams.push_back(std::make_unique<LateStream>(rank));
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { body(transport, rank, *streams[rank]); });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &stream : streams)
    stream->finish();
}

struct Buffers {
  Elements source = Elements(elements), target = Elements(elements);
};

/// One collective per round; `expected(round, i)`: element i of this rank's target.
void check(CollectiveKind kind, uint64_t count, uint64_t targetCount,
           const std::function<int64_t(uint32_t rank, uint32_t round, uint64_t i)> &expected) {
  std::vector<Buffers> buffers(ranks);
  std::vector<std::atomic<int>> wrong(ranks);
  onEveryRank([&](runtime::Transport &transport, uint32_t rank, LateStream &stream) {
    std::vector<uint32_t> everyone(ranks);
    std::iota(everyone.begin(), everyone.end(), 0);
    const auto communicator = transport.communicator(rank, everyone, 0);
    Buffers &mine = buffers[rank];
    for (uint32_t round = 0; round < rounds; ++round) {
      stream.enqueue([&, rank, round] {
        for (uint64_t i = 0; i < elements; ++i)
          mine.source[i] = value(rank, round, i);
      });
      const runtime::CollectivePart part{bytes(mine.source), bytes(mine.target), count, DType::I64};
      ASSERT_TRUE(communicator->run({kind, {&part, 1}, "the test", &stream}).ok());
      stream.enqueue([&, rank, round] {
        for (uint64_t i = 0; i < targetCount; ++i)
          wrong[rank] += mine.target[i] == expected(rank, round, i) ? 0 : 1;
        mine.target.assign(elements, -1);
      });
    }
  });
  for (uint32_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(wrong[rank], 0) << name(kind) << " on rank " << rank;
}

TEST(StreamOrder, HoldsForAllGather) {
  constexpr uint64_t count = elements / ranks;
  check(CollectiveKind::AllGather, count, elements,
        [](uint32_t, uint32_t round, uint64_t i) { return value(uint32_t(i / count), round, i % count); });
}

TEST(StreamOrder, HoldsForReduceScatter) {
  constexpr uint64_t count = elements / ranks;
  check(CollectiveKind::ReduceScatter, elements, count,
        [](uint32_t rank, uint32_t round, uint64_t i) { return summed(round, rank * count + i); });
}

TEST(StreamOrder, HoldsForAllReduce) {
  check(CollectiveKind::AllReduce, elements, elements,
        [](uint32_t, uint32_t round, uint64_t i) { return summed(round, i); });
}

TEST(StreamOrder, HoldsForBroadcast) {
  check(CollectiveKind::Broadcast, elements, elements,
        [](uint32_t, uint32_t round, uint64_t i) { return value(0, round, i); });
}

TEST(StreamOrder, HoldsForAllToAll) {
  constexpr uint64_t slice = elements / ranks;
  check(CollectiveKind::AllToAll, elements, elements, [](uint32_t rank, uint32_t round, uint64_t i) {
    return value(uint32_t(i / slice), round, rank * slice + i % slice);
  });
}

/// A ring of messages: each rank sends to the next, on a stream and thread beside the one that receives.
TEST(StreamOrder, HoldsForMessages) {
  std::vector<Buffers> buffers(ranks);
  std::vector<std::unique_ptr<LateStream>> sendingStreams;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    sendingStreams.push_back(std::make_unique<LateStream>(100 + rank));
  std::vector<std::atomic<int>> wrong(ranks);
  onEveryRank([&](runtime::Transport &transport, uint32_t rank, LateStream &stream) {
    const uint32_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    const auto sending = transport.sendingEnd(rank, next, rank, "ring");
    const auto receiving = transport.receivingEnd(previous, rank, previous, "ring");
    Buffers &mine = buffers[rank];
    std::thread sender([&] {
      for (uint32_t round = 0; round < rounds; ++round) {
        sendingStreams[rank]->enqueue([&, round] {
          for (uint64_t i = 0; i < elements; ++i)
            mine.source[i] = value(rank, round, i);
        });
        const auto part = std::as_bytes(std::span(mine.source));
        ASSERT_TRUE(sending->send({&part, 1}, "the test", sendingStreams[rank].get()).ok());
      }
      sendingStreams[rank]->finish();
    });
    for (uint32_t round = 0; round < rounds; ++round) {
      const auto part = std::as_writable_bytes(std::span(mine.target));
      ASSERT_TRUE(receiving->receive({&part, 1}, "the test", &stream).ok());
      stream.enqueue([&, rank, previous, round] {
        for (uint64_t i = 0; i < elements; ++i)
          wrong[rank] += mine.target[i] == value(previous, round, i) ? 0 : 1;
      });
    }
    sender.join();
    stream.finish();
  });
  for (uint32_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(wrong[rank], 0) << "rank " << rank;
}

} // namespace
} // namespace ds::test
