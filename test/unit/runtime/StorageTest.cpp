//===- StorageTest.cpp - how much memory there is -------------------------===//
#include "runtime/executor/Storage.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"

#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

namespace ds::test {
namespace {

class CgroupMemory : public testing::Test {
protected:
  void group(const std::string &path, const std::string &max, const std::string &current, uint64_t inactive = 0) {
    std::filesystem::create_directories(folder / path);
    writeFile(folder / (path + "/memory.max"), max + "\n");
    writeFile(folder / (path + "/memory.current"), current + "\n");
    writeFile(folder / (path + "/memory.stat"), "anon 5\ninactive_file " + std::to_string(inactive) + "\nfile 7\n");
  }
  uint64_t left(const std::string &membership) { return runtime::cgroupMemory(folder.path().string(), membership); }

  TemporaryFolder folder;
};

/// A job of a scheduler: the limit stands two groups above the process's own.
TEST_F(CgroupMemory, TheLimitsOfTheGroupsAroundCount) {
  group("job", "1000", "300");
  group("job/step", "max", "290");
  group("job/step/task", "5000", "200");
  EXPECT_EQ(left("0::/job/step/task\n"), 700u);
  EXPECT_EQ(left("0::/job/step\n"), 700u);
  group("job/step/task", "500", "200");
  EXPECT_EQ(left("0::/job/step/task\n"), 300u);
  EXPECT_EQ(left("0::/elsewhere\n"), UINT64_MAX);
  EXPECT_EQ(left("0::/\n"), UINT64_MAX);
  EXPECT_EQ(left(""), UINT64_MAX);
}

TEST_F(CgroupMemory, PagesOfFilesThatCanBeDroppedAreFree) {
  group("job", "1000", "900", 400);
  EXPECT_EQ(left("0::/job\n"), 500u);
  group("job", "1000", "1200");
  EXPECT_EQ(left("0::/job\n"), 0u);
}

TEST_F(CgroupMemory, TheFirstVersionHasItsOwnNames) {
  std::filesystem::create_directories(folder / "memory/job/step");
  writeFile(folder / "memory/job/memory.limit_in_bytes", "1000\n");
  writeFile(folder / "memory/job/memory.usage_in_bytes", "600\n");
  writeFile(folder / "memory/job/memory.stat", "total_inactive_file 100\n");
  EXPECT_EQ(left("5:cpu,cpuacct:/other\n4:memory:/job/step\n0::/\n"), 500u);
  EXPECT_EQ(left("5:cpu:/job\n"), UINT64_MAX);
}

TEST(Storage, SaysWhatWouldTakeLess) {
  plan::proto::Plan plan;
  plan.mutable_machine()->set_alignment(64);
  plan::proto::Role &role = *plan.add_roles();
  role.add_ranks(0);
  role.add_ranks(0);
  const auto add = [&](const char *space, uint64_t bytes) {
    role.add_arenas()->set_space(space);
    role.mutable_arenas()->rbegin()->set_bytes(bytes);
  };
  add("device", uint64_t(1) << 50);
  runtime::CpuDevice device;
  EXPECT_ERROR(runtime::Storage(device, plan, 0, 0), "compile for a smaller micro-batch or use a larger machine");
  add("host", 4096);
  EXPECT_ERROR(runtime::Storage(device, plan, 0, 0),
               "compile for a smaller micro-batch, or with less than 4096 by --host-memory, or use a larger machine");
}

} // namespace
} // namespace ds::test
