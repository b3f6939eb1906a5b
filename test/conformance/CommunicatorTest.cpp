//===- CommunicatorTest.cpp - what every communicator must do -------------===//
//
// Inputs are functions of (rank, index), so every rank knows what every other holds; sums are compared bit by bit with
// a loop in rank order over values whose sum depends on the order.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Communicator.h"
#include "core/DType.h"
#include "core/Status.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "runtime/comm/Transport.h"
#include "test/conformance/Spawn.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Collective;
using runtime::CollectiveKind;
using runtime::CollectivePart;
using runtime::Communicator;
using runtime::Transport;

/// Thousandths between -500 and 500, of float16 a tenth of them, of another magnitude on every rank.
template <typename T> T value(uint32_t rank, uint64_t index) {
  const auto mixed = int64_t((rank * 0x9E3779B97F4A7C15u + index * 0xBF58476D1CE4E5B9u) >> 44) - (1 << 19);
  const double unit = std::is_same_v<T, Float16> ? 0.0001 : 0.001;
  return std::is_integral_v<T> ? T(mixed) : T(double(mixed) * unit * double(1 << rank));
}

template <typename T>
constexpr DType dtypeOf = std::is_same_v<T, float>      ? DType::F32
                          : std::is_same_v<T, double>   ? DType::F64
                          : std::is_same_v<T, BFloat16> ? DType::BF16
                          : std::is_same_v<T, Float16>  ? DType::F16
                                                        : DType::I64;

/// What a T is summed in.
template <typename T> using Sum = std::conditional_t<isNarrowFloat(dtypeOf<T>), float, T>;

template <typename T> std::vector<T> inputs(uint32_t rank, uint64_t count) {
  std::vector<T> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = value<T>(rank, i);
  return values;
}

/// What element i of a sum over n ranks must be; `old`: the target's value, for accumulation.
template <typename T> T summed(uint32_t n, uint64_t i, const T *old) {
  Sum<T> sum = old != nullptr ? Sum<T>(*old) + Sum<T>(value<T>(0, i)) : Sum<T>(value<T>(0, i));
  for (uint32_t rank = 1; rank < n; ++rank)
    sum += Sum<T>(value<T>(rank, i));
  return T(sum);
}

/// Bit by bit, or as near as sums in another order are.
template <typename T> void expectSums(const std::vector<T> &got, const std::vector<T> &expected, const char *what) {
  if (ranksMeetOnTheHost() || std::is_integral_v<T>) {
    EXPECT_EQ(got, expected) << what;
    return;
  }
  ASSERT_EQ(got.size(), expected.size()) << what;
  // Of 16 bits each addition of four ranks' values is rounded, and that to the target's.
  const double lastPlace = dtypeOf<T> == DType::BF16 ? 0x1p-7 : dtypeOf<T> == DType::F16 ? 0x1p-10 : 0;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(double(got[i]), double(expected[i]), 0.5 + lastPlace * (8000 + std::fabs(double(expected[i]))))
        << what << " of values up to 64000, element " << i;
}

std::unique_ptr<Communicator> everybody(Transport &transport, uint32_t rank, uint32_t n, uint32_t key = 0) {
  std::vector<uint32_t> members(n);
  std::iota(members.begin(), members.end(), 0);
  return transport.communicator(rank, members, key);
}

/// One rank's side of the tests, for elements of one type.
template <typename T> class Rank {
public:
  Rank(Communicator &communicator, Workplace &place, uint64_t scratchElements)
      : communicator_(communicator), place_(place), rank_(communicator.rank()), n_(communicator.size()),
        scratch_(scratchElements * n_) {}

  void allGather(uint64_t count, bool inPlace) {
    std::vector<T> source = inputs<T>(rank_, count), target(count * n_, T(-1)), expected;
    for (uint32_t rank = 0; rank < n_; ++rank)
      for (T element : inputs<T>(rank, count))
        expected.push_back(element);
    if (inPlace)
      std::copy(source.begin(), source.end(), target.begin() + ptrdiff_t(rank_ * count));
    std::byte *into = place_.hold(target);
    run(CollectiveKind::AllGather, inPlace ? into + rank_ * count * sizeof(T) : place_.hold(source), into, count,
        false);
    place_.fetch(target, into);
    EXPECT_EQ(target, expected) << "all_gather of " << count << " by " << n_ << (inPlace ? " in place" : "");
  }

  void reduceScatter(uint64_t count, bool inPlace, bool accumulate) {
    std::vector<T> source = inputs<T>(rank_, count * n_), target = inputs<T>(9, count), expected(count);
    for (uint64_t i = 0; i < count; ++i)
      expected[i] = summed<T>(n_, rank_ * count + i, accumulate ? &target[i] : nullptr);
    std::byte *from = place_.hold(source);
    std::byte *into = inPlace ? from + rank_ * count * sizeof(T) : place_.hold(target);
    run(CollectiveKind::ReduceScatter, from, into, count * n_, accumulate);
    place_.fetch(target, into);
    expectSums(target, expected, "reduce_scatter");
  }

  void allReduce(uint64_t count, bool inPlace, bool accumulate) {
    std::vector<T> source = inputs<T>(rank_, count), target = inputs<T>(9, count), expected(count);
    for (uint64_t i = 0; i < count; ++i)
      expected[i] = summed<T>(n_, i, accumulate ? &target[i] : nullptr);
    std::byte *from = place_.hold(source), *into = inPlace ? from : place_.hold(target);
    run(CollectiveKind::AllReduce, from, into, count, accumulate);
    place_.fetch(target, into);
    expectSums(target, expected, "all_reduce");
  }

  void broadcast(uint64_t count, bool inPlace) {
    std::vector<T> source = inputs<T>(rank_, count), target(count, T(-1));
    std::byte *from = place_.hold(source), *into = inPlace ? from : place_.hold(target);
    run(CollectiveKind::Broadcast, from, into, count, false);
    place_.fetch(target, into);
    EXPECT_EQ(target, inputs<T>(0, count)) << "broadcast of " << count << " by " << n_ << inPlace;
  }

  void allToAll(uint64_t count) {
    std::vector<T> source = inputs<T>(rank_, count * n_), target(count * n_, T(-1)), expected;
    for (uint32_t rank = 0; rank < n_; ++rank)
      for (uint64_t i = 0; i < count; ++i)
        expected.push_back(value<T>(rank, rank_ * count + i));
    std::byte *into = place_.hold(target);
    run(CollectiveKind::AllToAll, place_.hold(source), into, count * n_, false);
    place_.fetch(target, into);
    EXPECT_EQ(target, expected) << "all_to_all of " << count << " by " << n_;
  }

  void everything(uint64_t count) {
    if (ranksMeetOnTheHost()) // NCCL refuses it
      allToAll(count);
    for (const bool inPlace : {false, true}) {
      allGather(count, inPlace);
      broadcast(count, inPlace);
      for (const bool accumulate : {false, true})
        if (!inPlace || !accumulate) {
          reduceScatter(count, inPlace, accumulate);
          allReduce(count, inPlace, accumulate);
        }
    }
  }

private:
  void run(CollectiveKind kind, const std::byte *source, std::byte *target, uint64_t count, bool accumulate) {
    const CollectivePart part{source,     target,     count,
                              dtypeOf<T>, accumulate, {place_.hold(scratch_), scratch_.size() * sizeof(T)}};
    const Status status = communicator_.run({kind, {&part, 1}, "the test", place_.stream()});
    EXPECT_TRUE(status.ok()) << status.message();
    place_.clear();
  }

  Communicator &communicator_;
  Workplace &place_;
  const uint32_t rank_, n_;
  const std::vector<T> scratch_;
};

TEST(Communicator, CarriesOutEveryCollective) {
  for (uint32_t n = 1; n <= maxRanks(); ++n)
    spawn(n, [n](Transport &transport, uint32_t rank) {
      Workplace place(rank);
      const auto communicator = everybody(transport, rank, n);
      EXPECT_EQ(communicator->rank(), rank);
      EXPECT_EQ(communicator->size(), n);
      // 1030 is more than a tile and no multiple of n; the least scratch makes a message of every element.
      for (const auto &[count, scratch] :
           {std::pair{0, 1}, std::pair{1, 1}, std::pair{7, 2}, std::pair{1030, 64}, std::pair{1030, 2000}}) {
        Rank<float>(*communicator, place, uint64_t(scratch)).everything(uint64_t(count));
        Rank<double>(*communicator, place, uint64_t(scratch)).everything(uint64_t(count));
        Rank<BFloat16>(*communicator, place, uint64_t(scratch)).everything(uint64_t(count));
        Rank<Float16>(*communicator, place, uint64_t(scratch)).everything(uint64_t(count));
        Rank<int64_t>(*communicator, place, uint64_t(scratch)).everything(uint64_t(count));
      }
    });
}

TEST(Communicator, CarriesOutSeveralPartsInOneLaunch) {
  const uint32_t n = std::min(3u, maxRanks());
  spawn(n, [n](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const auto communicator = everybody(transport, rank, n);
    std::vector<float> a = inputs<float>(rank, 10), b = inputs<float>(rank, 501), expected(501);
    for (uint64_t i = 0; i < 501; ++i)
      expected[i] = summed<float>(n, i, nullptr);
    std::byte *heldA = place.hold(a), *heldB = place.hold(b), *scratch = place.hold(std::vector<float>(64));
    const CollectivePart parts[] = {{heldA, heldA, 10, DType::F32, false, {scratch, 256}},
                                    {heldB, heldB, 501, DType::F32, false, {scratch, 256}}};
    EXPECT_TRUE(communicator->run({CollectiveKind::AllReduce, parts, "two", place.stream()}).ok());
    place.fetch(a, heldA);
    place.fetch(b, heldB);
    expectSums(b, expected, "the second part");
    expected.resize(10);
    expectSums(a, expected, "the first part");
  });
}

/// Late ranks change nothing: sums keep their order.
TEST(Communicator, DoesNotDependOnWhoComesFirst) {
  const uint32_t n = std::min(4u, maxRanks());
  spawn(n, [n](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const auto communicator = everybody(transport, rank, n);
    for (uint32_t round = 0; round < 12; ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds((rank * 7919 + round * 104729) % 5 * 150));
      Rank<float>(*communicator, place, 16).reduceScatter(100, round % 2 == 0, false);
      Rank<float>(*communicator, place, 16).allReduce(33, false, round % 3 == 0);
    }
  });
}

TEST(Communicator, KeepsTwoCommunicatorsApart) {
  const uint32_t n = std::min(4u, maxRanks());
  spawn(n, [n](Transport &transport, uint32_t rank) {
    Workplace here(rank), beside(rank);
    const auto first = everybody(transport, rank, n, 0), second = everybody(transport, rank, n, 1);
    const auto work = [rank](Communicator &communicator, Workplace &place, uint32_t salt) {
      place.enter();
      for (uint32_t round = 0; round < 30; ++round) {
        if ((rank + round + salt) % 3 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        Rank<float>(communicator, place, 16).allGather(50 + salt, true);
        Rank<double>(communicator, place, 16).allReduce(20 + 3 * salt, true, false);
      }
    };
    std::thread other([&] { work(*second, beside, 1); });
    work(*first, here, 0);
    other.join();
  });
}

/// Pairs (0, 1) and (2, 3) beside (0, 2) and (1, 3), as the axes of a mesh would have them.
TEST(Communicator, JoinsParts) {
  if (maxRanks() < 4)
    GTEST_SKIP() << "needs 4 ranks";
  spawn(4, [](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const uint32_t row = rank / 2 * 2, column = rank % 2;
    const auto across = transport.communicator(rank, {row, row + 1}, 0);
    const auto down = transport.communicator(rank, {column, column + 2}, 1);
    const std::vector<int64_t> mine = {int64_t(rank)};
    std::vector<int64_t> sum = {0};
    for (const auto &[communicator, expected] :
         {std::pair{across.get(), 2 * row + 1}, std::pair{down.get(), 2 * column + 2}}) {
      std::byte *into = place.hold(sum);
      const CollectivePart part{place.hold(mine), into,  1,
                                DType::I64,       false, {place.hold(std::vector<int64_t>(8)), 64}};
      EXPECT_TRUE(communicator->run({CollectiveKind::AllReduce, {&part, 1}, "pair", place.stream()}).ok());
      place.fetch(sum, into);
      EXPECT_EQ(sum[0], int64_t(expected));
    }
  });
}

/// (n-1)/n of the payload for all_gather and reduce_scatter, twice that for all_reduce.
TEST(Communicator, CountsTheBytesItSends) {
  for (uint32_t n = 1; n <= maxRanks(); n *= 2)
    spawn(n, [n](Transport &transport, uint32_t rank) {
      Workplace place(rank);
      const auto communicator = everybody(transport, rank, n);
      Rank<float> me(*communicator, place, 16);
      me.allGather(10, false);
      me.allGather(30, true);
      me.reduceScatter(50, true, false);
      me.allReduce(16ul * n, false, false);
      if (ranksMeetOnTheHost())
        me.allToAll(20);
      const auto wire = communicator->wireBytes();
      EXPECT_EQ(wire[size_t(CollectiveKind::AllGather)], (10 + 30) * 4 * (n - 1));
      EXPECT_EQ(wire[size_t(CollectiveKind::ReduceScatter)], 50 * 4 * (n - 1));
      EXPECT_EQ(wire[size_t(CollectiveKind::AllReduce)], 2 * 16 * 4 * (n - 1));
      EXPECT_EQ(wire[size_t(CollectiveKind::AllToAll)], ranksMeetOnTheHost() ? 20 * 4 * (n - 1) : 0);
    });
}

TEST(Communicator, NamesTheRanksThatDoNotCome) {
  const uint32_t n = std::min(4u, maxRanks());
  if (n < 2)
    GTEST_SKIP() << "needs 2 ranks";
  if (!ranksMeetOnTheHost())
    GTEST_SKIP() << "a rank that waits for another by NCCL ends the run of all";
  spawn(n, [n](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const auto communicator = everybody(transport, rank, n, 7);
    const CollectivePart part{place.hold(std::vector<float>(4)), place.hold(std::vector<float>(4ul * n)), 4,
                              DType::F32};
    // From here on the others are within their timeout of each other, on a busy machine too.
    EXPECT_TRUE(communicator->run({CollectiveKind::AllGather, {&part, 1}, "first", place.stream()}).ok());
    if (rank == n - 1)
      return;
    transport.setTimeout(std::chrono::seconds(2));
    const std::string error =
        communicator->run({CollectiveKind::AllGather, {&part, 1}, "h.0.mlp", place.stream()}).message();
    EXPECT_NE(error.find("in all_gather of h.0.mlp"), std::string::npos) << error;
    EXPECT_NE(error.find("ranks " + std::to_string(n - 1) + " are missing"), std::string::npos) << error;
    EXPECT_NE(error.find("ranks " +
                         std::string(n == 2   ? "0"
                                     : n == 3 ? "0, 1"
                                              : "0, 1, 2") +
                         " arrived"),
              std::string::npos)
        << error;
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the others still look at us
    transport.setTimeout(std::chrono::minutes(10));
  });
}

/// Last, since nothing runs after it.
TEST(CommunicatorStop, ReachesEveryRankWithTheFirstError) {
  const uint32_t n = std::min(4u, maxRanks());
  if (!ranksMeetOnTheHost())
    GTEST_SKIP() << "both ends of a channel by NCCL are made together";
  spawnLast(n, [n](Transport &transport, uint32_t rank) {
    Workplace place(rank);
    const auto communicator = everybody(transport, rank, n, 9);
    const auto sending = rank == 0 && n > 1 ? transport.sendingEnd(0, 1, 40, "forward") : nullptr;
    const auto receiving = rank == 2 ? transport.receivingEnd(1, 2, 41, "forward") : nullptr;
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return transport.stop(Status::failure("rank 1 ran out of luck"));
    }
    if (sending != nullptr) {
      const std::vector<std::byte> large(size_t(4) << 20); // more than a transport hands over to nobody
      const std::span<const std::byte> part(place.hold(large), large.size());
      EXPECT_STREQ(sending->send({&part, 1}, "h", place.stream()).message(), "rank 1 ran out of luck");
    }
    if (receiving != nullptr) {
      const std::span<std::byte> part(place.hold(std::vector<std::byte>(1)), 1);
      EXPECT_STREQ(receiving->receive({&part, 1}, "h", place.stream()).message(), "rank 1 ran out of luck");
    }
    const CollectivePart part{place.hold(std::vector<float>(4)), place.hold(std::vector<float>(4ul * n)), 4,
                              DType::F32};
    EXPECT_STREQ(communicator->run({CollectiveKind::AllGather, {&part, 1}, "h", place.stream()}).message(),
                 n > 1 ? "rank 1 ran out of luck" : "");
  });
}

} // namespace
} // namespace ds::test
