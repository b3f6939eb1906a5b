//===- NvmeFileTest.cpp - a rank's file of bytes --------------------------===//
#include "runtime/nvme/NvmeFile.h"

#include "runtime/nvme/BlockCutter.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/HeapWatch.h"
#include "test/unit/runtime/NvmeFiles.h"
#include "test/unit/runtime/SmallFileSystem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

using runtime::Alignment;
using runtime::BlockCutter;
using runtime::Range;

std::vector<std::vector<uint64_t>> cutsOf(const Range &range, const Alignment &alignment, uint64_t blockBytes) {
  std::vector<std::vector<uint64_t>> cuts;
  for (BlockCutter cutter(range, alignment, blockBytes); !cutter.done();) {
    const BlockCutter::Cut cut = cutter.next();
    cuts.push_back({cut.offset, cut.bytes, cut.straight});
  }
  return cuts;
}

alignas(page) std::array<std::byte, page> memory; // nothing looks into it

TEST(BlockCutter, SendsWholePagesStraightAndTheirEdgesByBuffers) {
  using Cuts = std::vector<std::vector<uint64_t>>;
  const Alignment direct{.offset = page, .memory = 512};
  const uint64_t mebibyte = 1 << 20;
  EXPECT_EQ(cutsOf({1000, &memory[1000], 2099000}, direct, mebibyte),
            (Cuts{{0, 4096, 0}, {4096, mebibyte, 1}, {1052672, 1044480, 1}, {2097152, 4096, 0}}));
  EXPECT_EQ(cutsOf({4096, memory.data(), 3 * page}, direct, 2 * page), (Cuts{{4096, 8192, 1}, {12288, 4096, 1}}));
  EXPECT_EQ(cutsOf({4096, &memory[8], 3 * page}, direct, 2 * page), (Cuts{{4096, 8192, 0}, {12288, 4096, 0}}));
  EXPECT_EQ(cutsOf({5000, memory.data(), 10}, direct, 2 * page), (Cuts{{4096, 4096, 0}}));
  EXPECT_EQ(cutsOf({5000, &memory[3], 10000}, Alignment(), 2 * page), (Cuts{{5000, 8192, 1}, {13192, 1808, 1}}));
  EXPECT_EQ(cutsOf({5000, memory.data(), 0}, direct, page), Cuts());
}

TEST(NvmeFile, HoldsWhatIsWrittenAtAnyOffsetAddressAndLength) {
  const TemporaryFolder folder;
  for (const NvmeOptions &way : everyWay()) {
    constexpr uint64_t bytes = 100 * page + 1234;
    NvmeFile file(folder.path(), 0, bytes, way);
    SCOPED_TRACE(file.note());
    ModelledFile model(file, 0, bytes, 1);
    for (int i = 0; i < 400; ++i)
      model.doSomething();
  }
}

/// More threads than lanes, so that some wait.
TEST(NvmeFile, ServesSeveralThreadsOnPagesOfTheirOwn) {
  const TemporaryFolder folder;
  for (const NvmeOptions &way : everyWay()) {
    constexpr uint64_t share = 30 * page;
    constexpr int threads = NvmeFile::lanes + 2;
    NvmeFile file(folder.path(), 0, threads * share, way);
    SCOPED_TRACE(file.note());
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i)
      running.emplace_back([&file, i] {
        ModelledFile model(file, uint64_t(i) * share, uint64_t(i + 1) * share, uint32_t(i));
        for (int step = 0; step < 100; ++step)
          model.doSomething();
      });
    for (std::thread &thread : running)
      thread.join();
  }
}

TEST(NvmeFile, HasZerosWhereNothingWasWritten) {
  const TemporaryFolder folder;
  for (const NvmeOptions &way : everyWay()) {
    NvmeFile file(folder.path(), 0, 10 * page + 5, way);
    std::vector<std::byte> bytes = randomBytes(file.bytes(), 1);
    EXPECT_OK(file.write(3 * page + 100, std::span(bytes).first(50)));
    std::vector<std::byte> expected(file.bytes());
    std::copy_n(bytes.begin(), 50, expected.begin() + 3 * page + 100);
    EXPECT_OK(file.read(0, bytes));
    EXPECT_EQ(bytes, expected);
  }
}

TEST(NvmeFile, RefusesWhatIsOutsideOfIt) {
  const TemporaryFolder folder;
  NvmeFile file(folder.path(), 7, 10, smallBlocks());
  std::vector<std::byte> bytes(11);
  EXPECT_EQ(file.bytes(), 10u);
  EXPECT_EQ(std::string(file.read(0, bytes).message()),
            "rank 7's file in " + folder.path().string() + ": 11 bytes at offset 0 are not in its 10");
  EXPECT_FALSE(file.write(UINT64_MAX, std::span(bytes).first(5)).ok());
  EXPECT_OK(file.write(10, std::span(bytes).first(0)));
  NvmeFile empty(folder.path(), 7, 0, smallBlocks());
  EXPECT_OK(empty.read(0, {}));
}

TEST(NvmeFile, LeavesNothingInItsFolder) {
  const TemporaryFolder folder;
  const NvmeFile file(folder.path(), 0, page, smallBlocks());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(NvmeFile, SaysHowItReads) {
  const TemporaryFolder folder;
  const std::string note = NvmeFile(folder.path(), 0, page, smallBlocks(false, false, true)).note();
  EXPECT_EQ(note, "blocks of 8192 bytes one after another (io_uring is not allowed); through the page cache (direct "
                  "access is not allowed); with checksums");
}

TEST(NvmeFile, RefusesBlocksAndDepthsThatAreNone) {
  const TemporaryFolder folder;
  for (const uint64_t bytes : {uint64_t(0), uint64_t(1000), uint64_t(2) << 30})
    EXPECT_ERROR(NvmeFile(folder.path(), 0, page, {.blockBytes = bytes}), "is not a multiple of 4096 up to");
  for (const int depth : {0, 1025})
    EXPECT_ERROR(NvmeFile(folder.path(), 0, page, {.queueDepth = depth}), "is not in 1 to 1024");
}

TEST(NvmeFile, NamesAFolderInWhichItCannotBe) {
  const TemporaryFolder folder;
  writeFile(folder / "f", "");
  EXPECT_ERROR(NvmeFile(folder / "none", 3, page, {}),
               "rank 3's file in " + folder / "none" + " cannot be made: No such file or directory");
  EXPECT_ERROR(NvmeFile(folder / "f", 3, page, {}), "cannot be made: Not a directory");
  EXPECT_ERROR(NvmeFile("/proc", 3, page, {}), "rank 3's file in /proc cannot be made: ");
}

TEST(NvmeFile, NamesTheBytesThatADiskLacks) {
  const TemporaryFolder folder;
  const SmallFileSystem disk(folder / "small", "64k");
  if (!disk.mounted())
    GTEST_SKIP() << "this machine does not let us mount a small tmpfs";
  disk.fill(8192);
  EXPECT_ERROR(NvmeFile(folder / "small", 1, 3 * page, {}), "rank 1's file in " + folder / "small" +
                                                                " needs 12288 bytes, but " + folder / "small" +
                                                                " has 8192 available; make room or name a folder");
  NvmeFile file(folder / "small", 1, 2 * page, smallBlocks());
  EXPECT_ERROR(NvmeFile(folder / "small", 1, 1, smallBlocks()), "has 0 available"); // its bytes are taken
  const std::vector<std::byte> bytes = randomBytes(2 * page, 1);
  EXPECT_OK(file.write(0, bytes));
}

TEST(NvmeFile, NamesTheLimitOnFiles) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{.rlim_cur = page, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_ERROR(NvmeFile(folder.path(), 1, page + 1, {}), "files may have only 4096 here; raise the limit (ulimit -f)");
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

#ifdef DS_HEAP_WATCH
TEST(NvmeFile, LeavesTheHeapAloneOnceItIsThere) {
  const TemporaryFolder folder;
  for (const NvmeOptions &way : everyWay()) {
    NvmeFile file(folder.path(), 0, 64 * page, way);
    const std::vector<std::byte> source = randomBytes(60 * page, 1);
    std::vector<std::byte> target(60 * page);
    watchHeap(true);
    const bool written = file.write(77, source).ok(), read = file.read(77, target).ok();
    watchHeap(false);
    EXPECT_TRUE(written && read && source == target);
    EXPECT_EQ(heapCounts().ours + heapCounts().libraries, 0u) << file.note();
  }
}
#endif

} // namespace
} // namespace ds::test
