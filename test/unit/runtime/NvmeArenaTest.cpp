//===- NvmeArenaTest.cpp - runs that keep state in a file -----------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/nvme/NvmeFaults.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/TestKernels.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Block;
using runtime::CpuDevice;
using runtime::Direction;
using runtime::Executor;

/// Fails what goes one way, from some time on.
struct FailingDrive final : runtime::NvmeFaults {
  int64_t allowed(const Block &block) noexcept override {
    return fails && block.direction == way ? -EIO : int64_t(block.range.bytes);
  }
  std::atomic<bool> fails = false;
  Direction way = Direction::Read;
};

/// Moves a buffer to the start of an arena.
void put(PlanBuilder &b, const PlanBuilder::Tensor &tensor, uint32_t arena) {
  b.role().mutable_buffers(int(tensor.buffer))->set_arena(arena);
  b.role().mutable_buffers(int(tensor.buffer))->set_offset(0);
}

/// Each step reads the state, doubles it on the host and writes it back.
proto::Plan doubledInAFile() {
  PlanBuilder b;
  b.plan.mutable_nvme()->set_folder(".");
  b.plan.mutable_nvme()->set_block_bytes(4096);
  b.plan.mutable_nvme()->set_queue_depth(2);
  const uint32_t in = b.queue("nvme_read", proto::Queue::IO), out = b.queue("nvme_write", proto::Queue::IO),
                 host = b.queue("host", proto::Queue::HOST);
  const uint32_t read = b.event("read"), done = b.event("done");
  const auto state = b.variable("state", DType::F32, {3000}, 3);
  const auto near = b.tensor("near", DType::F32, {3000}, proto::Buffer::CALL);
  for (const char *space : {"host", "nvme"}) {
    b.role().add_arenas()->set_space(space);
    b.role().mutable_arenas(b.role().arenas_size() - 1)->set_bytes(12288);
  }
  put(b, near, 1);
  put(b, state, 2);
  const uint32_t update = b.routine("update");
  signal(b.copy(update, in, state, near), read);
  auto &doubles = b.kernel(update, host, "accumulate", "rm", {near, near});
  wait(doubles, read);
  signal(doubles, done);
  wait(b.copy(update, out, near, state), done);
  const uint32_t step = b.program("step");
  b.call(step, update);
  b.life(near, step, update, 0, update, 2);
  return b.plan;
}

struct FileRun {
  FileRun()
      : device(runtime::NvmePlace{.folder = std::filesystem::current_path(),
                                  .options = {.blockBytes = 4096, .queueDepth = 2, .faults = &drive}}) {
    plan::validatePlan(plan);
    executor = std::make_unique<Executor>(plan, device, testKernels(), runtime::ExecutorOptions{.threads = 1});
    executor->initialize(runtime::VariableSources(plan, {}));
  }
  Status run() { return executor->execute({.program = 0}); }
  std::vector<float> state() {
    std::vector<float> elements;
    executor->readVariable(0, [&](std::span<const std::byte> part) {
      elements.resize(elements.size() + part.size() / sizeof(float));
      std::memcpy(&elements[elements.size() - part.size() / sizeof(float)], part.data(), part.size());
    });
    return elements;
  }

  proto::Plan plan = doubledInAFile();
  FailingDrive drive; // outlives the file
  CpuDevice device;
  std::unique_ptr<Executor> executor;
};

TEST(NvmeArena, StateLivesInAFile) {
  FileRun run;
  EXPECT_EQ(run.device.allocatedBytes("nvme"), 12288u);
  EXPECT_FALSE(run.device.isMainMemory("nvme"));
  EXPECT_NE(run.device.note().find("rank 0 keeps 12288 bytes in a file of "), std::string::npos);
  for (int step = 0; step < 3; ++step)
    EXPECT_TRUE(run.run().ok());
  EXPECT_EQ(run.state(), std::vector<float>(3000, 24));
}

TEST(NvmeArena, AnErrorEndsTheRunAndNamesThePlace) {
  for (const auto &[way, text] : {std::pair(Direction::Read, "read of "), {Direction::Write, "write of "}}) {
    FileRun run;
    EXPECT_TRUE(run.run().ok());
    run.drive.way = way;
    run.drive.fails = true;
    const Status status = run.run();
    EXPECT_NE(std::string_view(status.message()).find(text), std::string_view::npos) << status.message();
    EXPECT_NE(std::string_view(status.message()).find(" failed: Input/output error"), std::string_view::npos)
        << status.message();
    run.drive.fails = false;
    EXPECT_FALSE(run.run().ok()) << "a run that has failed goes on";
  }
}

TEST(NvmeArena, ReadingForAnExportFailsTheDevice) {
  FileRun run;
  run.drive.fails = true;
  (void)run.state();
  EXPECT_NE(std::string_view(run.device.failure().message()).find("read of "), std::string_view::npos);
}

/// Six pages of which 1, 2 and 4, 5 are a pair, and 0 and 3 another. Byte i is i / 512, so each page has eight.
TEST(NvmeArena, PairsExchangeTheirBytes) {
  CpuDevice device(runtime::NvmePlace{.folder = std::filesystem::current_path(), .options = {.checksums = true}});
  constexpr uint64_t page = 4096;
  const auto arena = device.createArena("nvme", 6 * page, 64);
  arena->pair(page, 4 * page, 2 * page);
  arena->pair(3 * page, 0, page - 1);
  std::vector<std::byte> bytes(6 * page);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(i / 512);
  const auto write = [&](uint64_t first, uint64_t count) {
    device.write(arena->base() + first, std::span(bytes).subspan(first, count));
  };
  const auto at = [&](uint64_t offset) {
    std::byte byte;
    device.read({&byte, 1}, arena->base() + offset);
    return int(byte);
  };
  for (uint64_t i = 0; i < 6; ++i)
    write(i * page, page - 1);
  arena->exchange(page, 4 * page);
  for (const auto &[offset, value] : {std::pair(page, 32), {3 * page - 2, 47}, {4 * page, 8}, {6 * page - 2, 23}})
    EXPECT_EQ(at(offset), value) << offset;
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(3 * page + 1000), 25) << "of the other pair";
  arena->exchange(0, 3 * page);
  EXPECT_EQ(at(0), 24);
  write(2 * page + 100, 1000); // of what lies elsewhere now
  arena->exchange(4 * page, page);
  EXPECT_EQ(at(5 * page + 99), 40);
  EXPECT_EQ(at(5 * page + 100), 16);
  EXPECT_EQ(at(2 * page + 700), 17);
  EXPECT_TRUE(device.failure().ok()) << device.failure().message();
}

TEST(NvmeArena, NeedsAFolderAndTakesOneArena) {
  const proto::Plan plan = doubledInAFile();
  CpuDevice nowhere;
  EXPECT_THROW(Executor(plan, nowhere, testKernels(), runtime::ExecutorOptions{}), Error);
  CpuDevice device(runtime::NvmePlace{.folder = std::filesystem::current_path(), .options = {}});
  const auto first = device.createArena("nvme", 4096, 64);
  EXPECT_THROW(device.createArena("nvme", 4096, 64), Error);
}

} // namespace
} // namespace ds::test
