//===- CudaHostTest.cpp - what is decided for GPUs without one ------------===//
#include "runtime/device/cuda/EventRing.h"
#include "runtime/device/cuda/GpuVerdicts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using namespace ds::runtime;

TEST(EventRing, FindsTheOldestRecordThatIsHighEnough) {
  EventRing ring;
  EXPECT_EQ(ring.find(1), std::nullopt);
  EXPECT_EQ(ring.record(1), 0u);
  EXPECT_EQ(ring.record(4), 1u);
  EXPECT_EQ(ring.record(5), 2u);
  EXPECT_EQ(ring.find(1), 0u);
  EXPECT_EQ(ring.find(2), 1u);
  EXPECT_EQ(ring.find(5), 2u);
  EXPECT_EQ(ring.find(6), std::nullopt);
}

TEST(EventRing, DoesNotRecordWhatRaisesNothing) {
  EventRing ring;
  EXPECT_EQ(ring.record(5), 0u);
  EXPECT_EQ(ring.record(5), std::nullopt);
  EXPECT_EQ(ring.record(2), std::nullopt);
  EXPECT_EQ(ring.find(2), 0u);
  ring.clear();
  EXPECT_EQ(ring.find(1), std::nullopt);
  EXPECT_EQ(ring.record(2), 0u);
}

/// Against a list of all records: the one found stands for enough, and is the oldest still there.
TEST(EventRing, KeepsTheNewestPlaces) {
  EventRing ring;
  std::vector<std::pair<uint64_t, size_t>> records; // value, place
  for (uint64_t value = 1; value < 200; value += 1 + value % 3) {
    records.emplace_back(value, *ring.record(value));
    const size_t first = records.size() - std::min(records.size(), EventRing::places);
    for (uint64_t wanted = 1; wanted <= value; ++wanted) {
      size_t i = first;
      while (records[i].first < wanted)
        ++i;
      EXPECT_EQ(ring.find(wanted), records[i].second) << value << " " << wanted;
    }
  }
}

LocalProcess processOf(const std::map<std::string, std::string> &variables) {
  return localProcess([&](const char *name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(LocalProcess, IsWhatTheLauncherSays) {
  EXPECT_EQ(processOf({}).count, 1u);
  const LocalProcess torchrun = processOf({{"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}});
  EXPECT_EQ(torchrun.index, 3u);
  EXPECT_EQ(torchrun.count, 8u);
  EXPECT_EQ(processOf({{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).index, 1u);
  EXPECT_EQ(processOf({{"SLURM_LOCALID", "5"}}).count, 6u);
  EXPECT_EQ(processOf({{"LOCAL_RANK", "two"}}).index, 0u);
}

TEST(GpuChoice, TakesGpusInTurn) {
  for (uint32_t index = 0; index < 8; ++index) {
    const GpuChoice four = chooseGpu({}, index, 8, 4);
    EXPECT_EQ(four.gpu, int(index % 4));
    EXPECT_TRUE(four.shared);
    EXPECT_FALSE(chooseGpu({}, index, 8, 8).shared);
    EXPECT_EQ(chooseGpu({index, 8}, 0, 1, 8).gpu, int(index));
  }
  EXPECT_TRUE(chooseGpu({}, 0, 3, 2).shared);
  EXPECT_FALSE(chooseGpu({}, 1, 3, 2).shared);
  EXPECT_FALSE(chooseGpu({1, 2}, 0, 1, 4).shared);
  EXPECT_EQ(chooseGpu({1, 2}, 1, 2, 4).gpu, 3);
}

TEST(GpuVerdicts, SayWhatTheDriverLacks) {
  EXPECT_EQ(refuseDriver(13000, 13000, 1, ""), "");
  EXPECT_EQ(refuseDriver(13010, 13000, 1, ""), "");
  EXPECT_EQ(refuseDriver(0, 13000, 0, "CUDA driver version is insufficient for CUDA runtime version"),
            "there is no NVIDIA driver on this machine; install NVIDIA driver 580 or newer, or compile the plan for a "
            "machine with device cpu");
  EXPECT_EQ(refuseDriver(12040, 13000, 0, "insufficient"),
            "the NVIDIA driver is for CUDA 12.4, and this ds-run needs 13.0; install NVIDIA driver 580 or newer, or "
            "compile the plan for a machine with device cpu");
  EXPECT_EQ(refuseDriver(13000, 13000, 0, ""),
            "the NVIDIA driver shows no GPU; see nvidia-smi and the variable CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(refuseDriver(13000, 13000, 0, "system not yet initialized"),
            "the NVIDIA driver answers 'system not yet initialized'; see whether nvidia-smi shows a GPU that is free "
            "and well");
}

TEST(GpuVerdicts, KnowWhatTheLibraryWasCompiledFor) {
  const auto refusal = [](const std::string &code, int major, int minor) {
    return refuseCapability({.index = 1, .name = "G", .major = major, .minor = minor, .code = code});
  };
  for (const auto &[major, minor] : {std::pair(8, 0), {8, 6}, {8, 9}, {9, 0}, {10, 0}, {12, 0}})
    EXPECT_EQ(refusal("sm_80,sm_90a,compute_90", major, minor), "");
  EXPECT_EQ(refusal("sm_80,sm_90a,compute_90", 7, 5),
            "GPU 1 (G) has compute capability 7.5, and this ds-run has code for 8.0 to 8.9, 9.0, 9.0 and newer; choose "
            "another GPU by CUDA_VISIBLE_DEVICES, or build with DS_CUDA_CODE for this one");
  EXPECT_EQ(refusal("sm_90a", 9, 0), "");
  for (const auto &[major, minor] : {std::pair(8, 0), {8, 9}, {10, 0}, {12, 0}})
    EXPECT_NE(refusal("sm_90a", major, minor), "") << major << minor;
  EXPECT_NE(refusal("sm_86", 8, 0), "");
  EXPECT_EQ(refusal("sm_86", 8, 9), "");
}

TEST(GpuVerdicts, SayWhenAPlanWasTunedElsewhere) {
  const GpuDescription gpu{.index = 0, .name = "NVIDIA H200"};
  EXPECT_EQ(noteOfTuning({}, gpu, 130100), "");
  EXPECT_EQ(noteOfTuning({"NVIDIA H200", 130100}, gpu, 130100), "");
  const std::string chooses =
      ": cuBLASLt chooses its algorithms by itself; ds-run --tune PLAN tunes the plan for this machine";
  EXPECT_EQ(noteOfTuning({"NVIDIA H200", 130100}, gpu, 130201),
            "the plan was tuned on NVIDIA H200 with cuBLASLt 13.1.0, and here is NVIDIA H200 with cuBLASLt 13.2.1" +
                chooses);
  EXPECT_EQ(noteOfTuning({"NVIDIA H100", 130100}, gpu, 130100),
            "the plan was tuned on NVIDIA H100 with cuBLASLt 13.1.0, and here is NVIDIA H200 with cuBLASLt 13.1.0" +
                chooses);
}

TEST(GpuVerdicts, SayWhoHoldsTheMemory) {
  const GpuDescription gpu{.index = 0, .name = "NVIDIA H200", .major = 9, .totalBytes = 1000, .freeBytes = 400};
  EXPECT_EQ(refuseMemory({.rank = 2, .bytes = 400, .reserve = 50, .siblingsBytes = 300}, gpu), "");
  EXPECT_EQ(
      refuseMemory({.rank = 2, .bytes = 401, .reserve = 50, .siblingsBytes = 300}, gpu),
      "rank 2 needs 401 bytes for its device arena, but GPU 0 (NVIDIA H200) has 400 of 1000 bytes free: arenas of "
      "other ranks of this process hold 300, CUDA and other processes hold 300 (the plan reserves 50 for what is "
      "outside of arenas); end the other processes that nvidia-smi shows");
  EXPECT_EQ(
      refuseMemory({.rank = 0, .bytes = 2000, .reserve = 50}, gpu),
      "rank 0 needs 2000 bytes for its device arena, but GPU 0 (NVIDIA H200) has 400 of 1000 bytes free: CUDA and "
      "other processes hold 600 (the plan reserves 50 for what is outside of arenas); compile for a smaller "
      "micro-batch, more ranks or a budget of device memory");
}

} // namespace
} // namespace ds::test
