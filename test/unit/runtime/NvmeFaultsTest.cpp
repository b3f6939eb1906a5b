//===- NvmeFaultsTest.cpp - a rank's file on a system that fails ----------===//
#include "runtime/nvme/NvmeFaults.h"

#include "runtime/nvme/Block.h"
#include "runtime/nvme/NvmeFile.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/NvmeFiles.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ds::test {
namespace {

using runtime::Block;
using runtime::Direction;

/// Lets everything through until a test says otherwise.
class Faults final : public runtime::NvmeFaults {
public:
  int64_t allowed(const Block &block) noexcept override {
    const std::lock_guard lock(mutex_);
    return rule ? rule(block) : int64_t(block.range.bytes);
  }
  int ringRefusal() noexcept override { return ring; }

  std::function<int64_t(const Block &)> rule;
  int ring = 0;

private:
  std::mutex mutex_;
};

/// The submission after `count` others ends so.
auto atCount(int count, int64_t result) {
  return [count, result](const Block &block) mutable { return count-- == 0 ? result : int64_t(block.range.bytes); };
}

/// The ways of everyWay(), each with a file of its own and its faults.
template <typename Body> void onEveryWay(uint64_t bytes, Body &&body) {
  const TemporaryFolder folder;
  for (NvmeOptions way : everyWay()) {
    Faults faults;
    way.faults = &faults;
    NvmeFile file(folder.path(), 2, bytes, way);
    SCOPED_TRACE(file.note());
    body(file, faults, "rank 2's file in " + folder.path().string());
  }
}

TEST(NvmeFaults, AnErrorOfAnyBlockIsTheCalls) {
  onEveryWay(8 * page, [](NvmeFile &file, Faults &faults, const std::string &name) {
    std::vector<std::byte> bytes = randomBytes(8 * page, 1);
    for (int block = 0; block < 4; ++block) {
      const std::string where = " of 8192 bytes at offset " + std::to_string(block * 8192);
      faults.rule = atCount(block, -EIO);
      EXPECT_EQ(std::string(file.read(0, bytes).message()), name + ": read" + where + " failed: Input/output error");
      faults.rule = atCount(block, -ENOSPC);
      EXPECT_EQ(std::string(file.write(0, bytes).message()),
                name + ": write" + where + " failed: No space left on device");
      faults.rule = nullptr;
      EXPECT_OK(file.write(0, bytes)); // what was written halfway has no checksum that fits
    }
    std::vector<std::byte> again(8 * page);
    EXPECT_OK(file.write(0, bytes));
    EXPECT_OK(file.read(0, again));
    EXPECT_EQ(bytes, again);
  });
}

/// The block that fails is the last to be submitted, with others before it under way.
TEST(NvmeFaults, NothingWritesToTheTargetAfterAFailure) {
  onEveryWay(256 * page, [](NvmeFile &file, Faults &faults, const std::string &) {
    std::vector<std::byte> bytes(256 * page, std::byte(1));
    EXPECT_OK(file.write(0, bytes));
    for (int i = 0; i < 20; ++i) {
      faults.rule = atCount(3 + i, -EIO);
      EXPECT_FALSE(file.read(0, bytes).ok());
      std::fill(bytes.begin(), bytes.end(), std::byte(2));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte(2)), 256 * page);
      faults.rule = nullptr;
      std::fill(bytes.begin(), bytes.end(), std::byte(1));
      EXPECT_OK(file.write(0, bytes));
    }
  });
}

TEST(NvmeFaults, LessThanWasAskedForIsGoneOnWith) {
  onEveryWay(50 * page, [](NvmeFile &file, Faults &faults, const std::string &) {
    std::mt19937 generator(1);
    faults.rule = [&](const Block &block) -> int64_t {
      switch (generator() % 4) {
      case 0:
        return generator() % 8 == 0 ? -EAGAIN : -EINTR;
      case 1: // as a disk would: in its own units
        return int64_t(std::min<uint64_t>(block.range.bytes, 512 * (1 + generator() % 20)));
      default:
        return int64_t(block.range.bytes);
      }
    };
    ModelledFile model(file, 0, 50 * page, 1);
    for (int i = 0; i < 60; ++i)
      model.doSomething();
  });
}

TEST(NvmeFaults, AShortFileIsNoSuccess) {
  onEveryWay(4 * page, [](NvmeFile &file, Faults &faults, const std::string &name) {
    std::vector<std::byte> bytes(4 * page);
    faults.rule = [](const Block &block) { return block.range.offset >= 3 * page ? 0 : int64_t(page); };
    EXPECT_EQ(std::string(file.read(0, bytes).message()),
              name + ": read of 8192 bytes at offset 8192 failed: short read, the file ends at 12288");
    EXPECT_EQ(std::string(file.write(0, bytes).message()),
              name + ": write of 8192 bytes at offset 8192 failed: short write at 12288");
  });
}

TEST(NvmeFaults, ASystemThatNeverGoesOnEndsTheCall) {
  onEveryWay(2 * page, [](NvmeFile &file, Faults &faults, const std::string &) {
    std::vector<std::byte> bytes(2 * page);
    faults.rule = [](const Block &) { return -EINTR; };
    EXPECT_THAT_CONTAINS(file.read(0, bytes).message(), "failed: Interrupted system call");
  });
}

TEST(NvmeFaults, DirectAccessThatIsRefusedLateIsGivenUp) {
  const TemporaryFolder folder;
  if (NvmeFile(folder.path(), 0, page, {}).note().find("; direct") == std::string::npos)
    GTEST_SKIP() << "the file system of " << folder.path() << " has no direct access";
  for (const bool ring : {true, false})
    for (const Direction refused : {Direction::Write, Direction::Read}) {
      Faults faults;
      faults.rule = [refused, once = false](const Block &block) mutable -> int64_t {
        const bool refuse = block.direction == refused && !std::exchange(once, block.direction == refused);
        return refuse ? -EINVAL : int64_t(block.range.bytes);
      };
      NvmeOptions options = smallBlocks(ring);
      options.faults = &faults;
      NvmeFile file(folder.path(), 0, 20 * page, options);
      EXPECT_THAT_CONTAINS(file.note(),
                           "through the page cache (the file system refuses direct reads or writes: Invalid argument)");
      ModelledFile model(file, 0, 20 * page, 1);
      for (int i = 0; i < 50; ++i)
        model.doSomething();
    }
}

TEST(NvmeFaults, ADiskThatRefusesAllIsSaidAtOnce) {
  const TemporaryFolder folder;
  Faults faults;
  faults.rule = [](const Block &) { return -EINVAL; };
  EXPECT_ERROR(NvmeFile(folder.path(), 0, page, {.faults = &faults}), "cannot be written and read: Invalid argument");
  faults.rule = atCount(0, -EIO);
  EXPECT_ERROR(NvmeFile(folder.path(), 0, page, {.faults = &faults}), "cannot be written and read: Input/output error");
}

TEST(NvmeFaults, WithoutARingItReadsBlockAfterBlock) {
  const TemporaryFolder folder;
  Faults faults;
  faults.ring = EPERM;
  NvmeOptions options = smallBlocks();
  options.faults = &faults;
  NvmeFile file(folder.path(), 0, 20 * page, options);
  EXPECT_THAT_CONTAINS(file.note(), "one after another (io_uring is refused: Operation not permitted)");
  ModelledFile model(file, 0, 20 * page, 1);
  for (int i = 0; i < 50; ++i)
    model.doSomething();
}

/// The file without a name in this folder.
int openBehindItsBack(const std::string &folder) {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.starts_with(folder + "/"))
      return ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
  }
  return -1;
}

void damage(const std::string &folder, uint64_t offset) {
  const int file = openBehindItsBack(folder);
  char byte = 0;
  ASSERT_EQ(::pread(file, &byte, 1, off_t(offset)), 1);
  byte ^= 1;
  ASSERT_EQ(::pwrite(file, &byte, 1, off_t(offset)), 1);
  ASSERT_EQ(::fsync(file), 0);
  ::close(file);
}

TEST(NvmeFaults, AChecksumFindsADamagedPage) {
  for (const bool ring : {true, false})
    for (const bool direct : {true, false}) {
      const TemporaryFolder folder;
      NvmeFile file(folder.path(), 2, 16 * page, smallBlocks(ring, direct, true));
      std::vector<std::byte> bytes = randomBytes(16 * page, 1);
      EXPECT_OK(file.write(0, bytes));
      damage(folder.path(), 5 * page + 77);
      const std::string expected = "rank 2's file in " + folder.path().string() +
                                   ": the 4096 bytes at offset 20480 are not what was written there (checksum)";
      EXPECT_EQ(std::string(file.read(0, bytes).message()), expected);
      EXPECT_EQ(std::string(file.read(5 * page + 4000, std::span(bytes).first(1)).message()), expected);
      EXPECT_EQ(std::string(file.write(5 * page, std::span(bytes).first(100)).message()), expected)
          << "part of it would vouch for the rest";
      EXPECT_OK(file.read(0, std::span(bytes).first(5 * page)));
      EXPECT_OK(file.write(5 * page, std::span(bytes).first(page)));
      EXPECT_OK(file.read(0, bytes));
    }
}

TEST(NvmeFaults, APageWhoseWriteFailedIsNotTakenForEither) {
  const TemporaryFolder folder;
  Faults faults;
  NvmeOptions options = smallBlocks(true, true, true);
  options.faults = &faults;
  NvmeFile file(folder.path(), 0, 4 * page, options);
  std::vector<std::byte> bytes = randomBytes(4 * page, 1);
  faults.rule = atCount(1, -EIO);
  EXPECT_FALSE(file.write(0, bytes).ok());
  EXPECT_OK(file.read(0, std::span(bytes).first(2 * page)));
  EXPECT_THAT_CONTAINS(file.read(0, bytes).message(), "at offset 8192 are not what was written");
}

} // namespace
} // namespace ds::test
