//===- ChannelTest.cpp - what every transport's channels must do ----------===//
#include "runtime/comm/Channel.h"
#include "core/Status.h"
#include "runtime/comm/Transport.h"
#include "test/conformance/Spawn.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

using runtime::ReceivingEnd;
using runtime::SendingEnd;
using runtime::Transport;

using Words = std::vector<uint32_t>;

/// Message `number` of a channel: no two are alike.
Words words(uint32_t channel, uint32_t number, size_t count) {
  Words message(count);
  for (size_t i = 0; i < count; ++i)
    message[i] = (channel * 1000003 + number) * 2654435761u + uint32_t(i);
  return message;
}

Status send(Workplace &place, SendingEnd &end, std::initializer_list<const Words *> parts) {
  place.clear();
  std::vector<std::span<const std::byte>> spans;
  for (const Words *part : parts)
    spans.emplace_back(place.hold(*part), part->size() * sizeof(uint32_t));
  return end.send(spans, "the test", place.stream());
}

Status receive(Workplace &place, ReceivingEnd &end, std::initializer_list<Words *> parts) {
  place.clear();
  std::vector<std::span<std::byte>> spans;
  for (Words *part : parts)
    spans.emplace_back(place.hold(*part), part->size() * sizeof(uint32_t));
  const Status status = end.receive(spans, "the test", place.stream());
  size_t i = 0;
  for (Words *part : parts)
    place.fetch(*part, spans[i++].data());
  return status;
}

/// A pause of some microseconds, of another length each time.
void wobble(uint32_t salt) { std::this_thread::sleep_for(std::chrono::microseconds(salt * 7919 % 5 * 100)); }

void sendAll(Workplace &place, SendingEnd &end, uint32_t channel, uint32_t messages, size_t count) {
  for (uint32_t k = 0; k < messages; ++k) {
    wobble(k + channel);
    const Words message = words(channel, k, count);
    EXPECT_TRUE(send(place, end, {&message}).ok());
  }
}

void receiveAll(Workplace &place, ReceivingEnd &end, uint32_t channel, uint32_t messages, size_t count) {
  for (uint32_t k = 0; k < messages; ++k) {
    wobble(3 * k + channel);
    Words message(count);
    EXPECT_TRUE(receive(place, end, {&message}).ok());
    EXPECT_EQ(message, words(channel, k, count)) << "message " << k << " of channel " << channel;
  }
}

TEST(Channel, DeliversMessagesInOrder) {
  if (maxRanks() < 2)
    GTEST_SKIP() << "needs 2 ranks";
  spawn(2, [](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    if (rank == 0)
      sendAll(place, *transport.sendingEnd(0, 1, 0, "forward"), 0, 50, 33);
    else
      receiveAll(place, *transport.receivingEnd(0, 1, 0, "forward"), 0, 50, 33);
  });
}

/// Every rank sends to the next and back again at once, each on a thread of its own, as the queues of a stage do.
TEST(Channel, KeepsChannelsInBothDirectionsApart) {
  const uint32_t n = std::min(4u, maxRanks());
  if (n < 2)
    GTEST_SKIP() << "needs 2 ranks";
  spawn(n, [n](Transport &transport, uint32_t rank) {
    std::list<Workplace> places;
    std::vector<std::shared_ptr<void>> ends; // in the order of channels, in which they are given back
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i + 1 < n; ++i)
      for (uint32_t turn : {0u, 1u}) {
        const uint32_t channel = 1 + 2 * i + turn, from = i + turn, to = i + 1 - turn;
        const std::string name = "line " + std::to_string(channel);
        if (rank == from) {
          Workplace &place = places.emplace_back(rank);
          const std::shared_ptr<SendingEnd> end = transport.sendingEnd(from, to, channel, name);
          ends.push_back(end);
          threads.emplace_back([&place, &end = *end, channel] {
            place.enter();
            sendAll(place, end, channel, 40, channel * 5);
          });
        }
        if (rank == to) {
          Workplace &place = places.emplace_back(rank);
          const std::shared_ptr<ReceivingEnd> end = transport.receivingEnd(from, to, channel, name);
          ends.push_back(end);
          threads.emplace_back([&place, &end = *end, channel] {
            place.enter();
            receiveAll(place, end, channel, 40, channel * 5);
          });
        }
      }
    for (std::thread &thread : threads)
      thread.join();
    for (std::shared_ptr<void> &end : ends)
      end.reset();
  });
}

TEST(Channel, CarriesSeveralPartsEmptyOnesAndLargeOnes) {
  if (maxRanks() < 2)
    GTEST_SKIP() << "needs 2 ranks";
  spawn(2, [](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const Words small = words(0, 1, 3), none, large = words(0, 2, size_t(3) << 20); // 12 MiB
    if (rank == 0) {
      const auto end = transport.sendingEnd(0, 1, 20, "parts");
      EXPECT_TRUE(send(place, *end, {&small, &none, &large}).ok());
      EXPECT_TRUE(send(place, *end, {&none}).ok());
      // More parts than a transport keeps under way at once.
      EXPECT_TRUE(
          send(place, *end, {&small, &small, &small, &small, &small, &small, &small, &small, &small, &large}).ok());
      EXPECT_EQ(end->sentBytes(), 10 * 12 + 2 * (uint64_t(12) << 20));
      return;
    }
    const auto end = transport.receivingEnd(0, 1, 20, "parts");
    Words a(3), b, c(size_t(3) << 20), d(3);
    EXPECT_TRUE(receive(place, *end, {&a, &b, &c}).ok());
    EXPECT_EQ(a, small);
    EXPECT_EQ(c, large);
    EXPECT_TRUE(receive(place, *end, {&b}).ok());
    c.assign(c.size(), 0);
    EXPECT_TRUE(receive(place, *end, {&a, &a, &a, &a, &a, &a, &a, &a, &d, &c}).ok());
    EXPECT_EQ(d, small);
    EXPECT_EQ(c, large);
    EXPECT_EQ(end->receivedBytes(), 10 * 12 + 2 * (uint64_t(12) << 20));
  });
}

TEST(Channel, NamesTheRankThatDoesNotCome) {
  if (maxRanks() < 3)
    GTEST_SKIP() << "needs 3 ranks";
  if (!ranksMeetOnTheHost())
    GTEST_SKIP() << "both ends of a channel by NCCL are made together";
  spawn(3, [](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const Words large(size_t(1) << 20); // more than a transport hands over to nobody
    Words one(1);
    std::string error;
    transport.setTimeout(std::chrono::milliseconds(200));
    if (rank == 0) {
      const auto end = transport.sendingEnd(0, 1, 30, "forward.0-1");
      error = send(place, *end, {&large}).message();
      EXPECT_NE(error.find("rank 0 waited 0.2 s in send on channel forward.0-1 (the test) for rank 1"),
                std::string::npos)
          << error;
    }
    if (rank == 2) {
      const auto end = transport.receivingEnd(1, 2, 31, "forward.1-2");
      error = receive(place, *end, {&one}).message();
      EXPECT_NE(error.find("rank 2 waited 0.2 s in receive on channel forward.1-2 (the test) for rank 1"),
                std::string::npos)
          << error;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the others still look at us
    transport.setTimeout(std::chrono::minutes(10));
  });
}

} // namespace
} // namespace ds::test
