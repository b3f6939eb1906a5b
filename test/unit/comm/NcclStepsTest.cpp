//===- NcclStepsTest.cpp - what a collective is made of for NCCL ----------===//
//
// The steps of all ranks are carried out here as NCCL would, and what stands in the targets is compared with what the
// collective means.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/nccl/NcclSteps.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Elements = std::vector<int64_t>;

/// Writes steps down, group by group; additions are groups of their own.
class Recorder final : public NcclSink {
public:
  struct Group {
    std::vector<NcclCall> calls;
    std::vector<Addition> additions;
  };
  std::vector<Group> groups;

  Status beginGroup() noexcept override {
    EXPECT_FALSE(open_);
    open_ = true;
    groups.emplace_back();
    return Status::success();
  }
  Status call(const NcclCall &call) noexcept override {
    EXPECT_TRUE(open_);
    groups.back().calls.push_back(call);
    return Status::success();
  }
  Status endGroup() noexcept override {
    EXPECT_TRUE(open_ && !groups.back().calls.empty());
    open_ = false;
    return Status::success();
  }
  Status add(const Addition &addition) noexcept override {
    EXPECT_FALSE(open_);
    groups.push_back({{}, {addition}});
    return Status::success();
  }

private:
  bool open_ = false;
};

int64_t at(const std::byte *base, uint64_t index) {
  int64_t value = 0;
  std::memcpy(&value, base + index * sizeof value, sizeof value);
  return value;
}

void put(std::byte *base, uint64_t index, int64_t value) {
  std::memcpy(base + index * sizeof value, &value, sizeof value);
}

/// Call `c` of group `g` on all ranks at once.
void carryOut(const std::vector<Recorder> &ranks, size_t g, size_t c) {
  const auto of = [&](size_t rank) -> const NcclCall & { return ranks[rank].groups[g].calls[c]; };
  const NcclCall &first = of(0);
  const auto summed = [&](uint64_t i) {
    int64_t sum = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      sum += at(of(rank).source, i);
    return sum;
  };
  Elements sums;
  const uint64_t read = first.kind == NcclCall::Kind::ReduceScatter ? first.count * ranks.size() : first.count;
  if (first.dtype != DType::U8)
    for (uint64_t i = 0; i < read; ++i)
      sums.push_back(summed(i));
  std::vector<std::vector<std::byte>> sources;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (first.dtype == DType::U8)
      sources.emplace_back(of(rank).source, of(rank).source + first.count);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const NcclCall &mine = of(rank);
    ASSERT_EQ(mine.kind, first.kind);
    ASSERT_EQ(mine.count, first.count);
    ASSERT_EQ(mine.dtype, first.dtype);
    ASSERT_EQ(mine.root, first.root);
    for (uint64_t i = 0; i < mine.count && first.dtype != DType::U8; ++i)
      if (mine.kind == NcclCall::Kind::ReduceScatter)
        put(mine.target, i, sums[rank * mine.count + i]);
      else if (mine.kind == NcclCall::Kind::AllReduce || rank == mine.root)
        put(mine.target, i, sums[i]);
    if (mine.kind == NcclCall::Kind::AllGather)
      for (size_t other = 0; other < ranks.size(); ++other)
        std::copy(sources[other].begin(), sources[other].end(), mine.target + other * mine.count);
    if (mine.kind == NcclCall::Kind::Broadcast)
      std::copy(sources[mine.root].begin(), sources[mine.root].end(), mine.target);
  }
}

void carryOut(const std::vector<Recorder> &ranks) {
  for (const Recorder &rank : ranks)
    ASSERT_EQ(rank.groups.size(), ranks[0].groups.size());
  for (size_t g = 0; g < ranks[0].groups.size(); ++g) {
    for (const Recorder &rank : ranks) {
      ASSERT_EQ(rank.groups[g].calls.size(), ranks[0].groups[g].calls.size());
      for (const Addition &addition : rank.groups[g].additions)
        for (uint64_t i = 0; i < addition.count; ++i)
          put(addition.target, i, at(addition.target, i) + at(addition.addend, i));
    }
    for (size_t c = 0; c < ranks[0].groups[g].calls.size(); ++c)
      carryOut(ranks, g, c);
  }
}

std::byte *bytes(Elements &elements) { return reinterpret_cast<std::byte *>(elements.data()); }

int64_t value(size_t rank, uint64_t i) { return int64_t(rank + 1) * 1000 + int64_t(i); }

struct Rank {
  Elements source, target, scratch;
};

/// What element i of rank's target must be; `n` ranks.
int64_t expected(CollectiveKind kind, size_t rank, size_t n, uint64_t slice, uint64_t i, bool accumulate) {
  const auto summed = [&](uint64_t k) {
    int64_t sum = accumulate ? 7 : 0;
    for (size_t other = 0; other < n; ++other)
      sum += value(other, k);
    return sum;
  };
  switch (kind) {
  case CollectiveKind::AllGather:
    return value(size_t(i / slice), i % slice);
  case CollectiveKind::ReduceScatter:
    return summed(rank * slice + i);
  case CollectiveKind::AllReduce:
    return summed(i);
  case CollectiveKind::Broadcast:
    return value(0, i);
  case CollectiveKind::AllToAll: // refused
    break;
  }
  return 0;
}

/// Parts of several sizes that share scratch; returns how many steps that took.
size_t check(CollectiveKind kind, size_t n, bool accumulate, uint64_t scratchElements) {
  const std::vector<uint64_t> slices = {5, 0, 3};
  const bool gathers = kind == CollectiveKind::AllGather, scatters = kind == CollectiveKind::ReduceScatter;
  std::vector<std::vector<Rank>> ranks(n, std::vector<Rank>(slices.size()));
  std::vector<Elements> scratch(n, Elements(scratchElements));
  std::vector<Recorder> recorders(n);
  for (size_t rank = 0; rank < n; ++rank) {
    std::vector<CollectivePart> parts;
    for (size_t p = 0; p < slices.size(); ++p) {
      Rank &mine = ranks[rank][p];
      for (uint64_t i = 0; i < slices[p] * (scatters ? n : 1); ++i)
        mine.source.push_back(value(rank, i));
      mine.target.assign(slices[p] * (gathers ? n : 1), 7);
      parts.push_back({bytes(mine.source),
                       bytes(mine.target),
                       mine.source.size(),
                       DType::I64,
                       accumulate,
                       {bytes(scratch[rank]), scratchElements * sizeof(int64_t)}});
    }
    const Status status = issue({kind, parts, "the test"}, uint32_t(rank), uint32_t(n), recorders[rank]);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  carryOut(recorders);
  for (size_t rank = 0; rank < n; ++rank)
    for (size_t p = 0; p < slices.size(); ++p)
      for (uint64_t i = 0; i < ranks[rank][p].target.size(); ++i)
        EXPECT_EQ(ranks[rank][p].target[i], expected(kind, rank, n, slices[p], i, accumulate))
            << name(kind) << " rank " << rank << " of " << n << " part " << p << " element " << i;
  return recorders[0].groups.size();
}

TEST(NcclSteps, MoveAndSumWithoutScratchInOneGroup) {
  for (const CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce, CollectiveKind::Broadcast})
    for (const size_t n : {1, 2, 5})
      EXPECT_EQ(check(kind, n, false, 0), 1u);
}

/// Whole parts take a group and an addition each; the least scratch one of each for every element.
TEST(NcclSteps, AccumulateThroughScratchOfAnySize) {
  for (const CollectiveKind kind : {CollectiveKind::ReduceScatter, CollectiveKind::AllReduce}) {
    for (const size_t n : {2, 3}) {
      EXPECT_EQ(check(kind, n, true, 5), 4u);
      EXPECT_EQ(check(kind, n, true, 2), 2 * (3u + 2u));
      EXPECT_EQ(check(kind, n, true, 1), 2 * (5u + 3u));
    }
    EXPECT_EQ(check(kind, 1, true, 0), 2u); // one rank adds its source
  }
}

TEST(NcclSteps, RefuseToAccumulateWithoutScratch) {
  Elements source(4), target(2);
  const CollectivePart part{bytes(source), bytes(target), 4, DType::I64, true};
  Recorder recorder;
  EXPECT_STREQ(issue({CollectiveKind::ReduceScatter, {&part, 1}, "h.0"}, 0, 2, recorder).message(),
               "reduce_scatter of h.0: its scratch of 0 bytes does not hold one element");
}

TEST(NcclSteps, RefuseToExchangeSlices) {
  Elements source(4), target(4);
  const CollectivePart part{bytes(source), bytes(target), 4, DType::I64};
  Recorder recorder;
  EXPECT_STREQ(issue({CollectiveKind::AllToAll, {&part, 1}, "h.0"}, 0, 2, recorder).message(),
               "all_to_all of h.0: ranks on GPUs exchange no slices as yet; only those on CPUs do");
}

TEST(NcclSteps, CutGroupsThatAreTooLong) {
  Elements elements(3000);
  std::vector<CollectivePart> parts;
  for (size_t i = 0; i < elements.size(); ++i)
    parts.push_back({bytes(elements) + 8 * i, bytes(elements) + 8 * i, 1, DType::I64});
  Recorder recorder;
  EXPECT_TRUE(issue({CollectiveKind::AllReduce, parts, "many"}, 0, 2, recorder).ok());
  ASSERT_EQ(recorder.groups.size(), 3u);
  EXPECT_EQ(recorder.groups[0].calls.size(), 1024u);
  EXPECT_EQ(recorder.groups[2].calls.size(), 3000u - 2048u);
}

TEST(NcclSteps, NothingIsNoStep) {
  Elements none;
  const CollectivePart part{bytes(none), bytes(none), 0, DType::F32};
  Recorder recorder;
  EXPECT_TRUE(issue({CollectiveKind::AllGather, {&part, 1}, "none"}, 0, 2, recorder).ok());
  EXPECT_TRUE(issue({CollectiveKind::AllGather, {}, "none"}, 0, 2, recorder).ok());
  EXPECT_TRUE(recorder.groups.empty());
}

TEST(NcclVersion, OlderThanBuiltWithIsRefused) {
  EXPECT_EQ(refuseNccl(22809, 22809), "");
  EXPECT_EQ(refuseNccl(23001, 22809), "");
  EXPECT_EQ(refuseNccl(22703, 22809),
            "NCCL 2.27.3 was found, but this ds-run needs 2.28.9 or newer, which it was built with; install it "
            "(nvidia-nccl-cu13), or put it first in LD_LIBRARY_PATH");
  EXPECT_EQ(refuseNccl(0, 22809).substr(0, 56), "the NCCL that was found does not tell its version, but t");
}

} // namespace
} // namespace ds::runtime
