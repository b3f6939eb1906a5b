//===- MachineTest.cpp - machine files and sizes --------------------------===//
#include "compiler/config/Machine.h"

#include "core/Error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

namespace ds::config {
namespace {

namespace fs = std::filesystem;

template <class Body> std::string failure(const Body &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

class MachineFolder : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) / ("machines-" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  void write(const std::string &name, const std::string &text) { std::ofstream(folder / name) << text; }

  fs::path folder;
};

TEST(Machine, ParsesSizes) {
  EXPECT_EQ(parseBytes("2GiB", "x"), int64_t(2) << 30);
  EXPECT_EQ(parseBytes("80 GB", "x"), 80'000'000'000);
  EXPECT_EQ(parseBytes("1.5KiB", "x"), 1536);
  EXPECT_EQ(parseBytes("4096", "x"), 4096);
  EXPECT_EQ(parseBytes("7B", "x"), 7);
  EXPECT_EQ(parseBytes("3MiB", "x"), 3 << 20);
  EXPECT_EQ(parseBytes("1TiB", "x"), int64_t(1) << 40);
  EXPECT_EQ(parseBytes("0", "x"), 0);
}

TEST(Machine, RefusesWhatIsNoSize) {
  EXPECT_EQ(failure([] { parseBytes("two", "--device-memory"); }),
            "--device-memory is \"two\"; write a number of bytes or a size such as 2GiB or 1500MB");
  EXPECT_EQ(failure([] { parseBytes("2Gib", "x"); }),
            "x is \"2Gib\"; the units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)");
  EXPECT_EQ(failure([] { parseBytes("99999999TiB", "x"); }),
            "x is \"99999999TiB\"; no memory is larger than 2^60 bytes");
  for (const char *text : {"", "-1", "GiB", "nan", "inf", "1e400", "1 2", "0x10"})
    EXPECT_NE(failure([&] { parseBytes(text, "x"); }), "accepted") << text;
}

TEST(Machine, TheBuiltInOneIsTheCpu) {
  const Machine machine = loadMachine("", {});
  EXPECT_EQ(machine.name, "cpu");
  EXPECT_EQ(machine.device, "cpu");
  EXPECT_EQ(machine.threads, 8);
  EXPECT_EQ(machine.alignment, 64);
  EXPECT_EQ(machine.workspaceBytesPerThread, 4 << 20);
  EXPECT_EQ(machine.deviceMemory, 0);
  EXPECT_EQ(loadMachine("cpu", {}), machine);
}

TEST(Machine, ReadsEveryField) {
  const Machine machine = parseMachine(R"(// comment
      {"name": "box", "device": "cuda", "isa": "sm_90", "ranks_per_host": 8, "device_memory": "80GiB",
       "host_memory": 1000, "threads": 1, "workspace_bytes_per_thread": "32MiB", "alignment": 512,
       "reserve_bytes": "1GiB", "links": [{"between": "ranks", "bandwidth_gb_per_s": 450, "latency_us": 2},
                                                    {"between": "hosts", "bandwidth_gb_per_s": 1.25}],
       "rates": {"memory_gb_per_s": 3000, "command_us": 1.5, "float32_tflops": 54, "tf32_tflops": 395,
                 "bfloat16_tflops": 790, "attention_tflops": 0.25, "multiprocessors": 132}})",
                                       "f.json");
  EXPECT_EQ(machine.name, "box");
  EXPECT_EQ(machine.device, "cuda");
  EXPECT_EQ(machine.isa, "sm_90");
  EXPECT_EQ(machine.ranksPerHost, 8);
  EXPECT_EQ(machine.deviceMemory, int64_t(80) << 30);
  EXPECT_EQ(machine.hostMemory, 1000);
  EXPECT_EQ(machine.threads, 1);
  EXPECT_EQ(machine.workspaceBytesPerThread, 32 << 20);
  EXPECT_EQ(machine.alignment, 512);
  EXPECT_EQ(machine.reserve, 1 << 30);
  ASSERT_EQ(machine.links.size(), 2u);
  EXPECT_EQ(machine.links[0], (Link{"ranks", 450e9, 2e-6}));
  EXPECT_EQ(machine.links[1], (Link{"hosts", 1.25e9, 0}));
  EXPECT_EQ(machine.rates, (Rates{3e12, 1.5e-6, 54e12, 395e12, 790e12, 0, 0.25e12, 132}));
}

TEST(Machine, RefusesFieldsByName) {
  const auto refused = [](const std::string &text) { return failure([&] { parseMachine(text, "m.json"); }); };
  EXPECT_EQ(refused("{\nthreds: 4}"), "m.json:2: threds is 4; no such field; the nearest is threads");
  EXPECT_EQ(refused("{alignment: 96}"), "m.json:1: alignment is 96; it takes a power of two");
  EXPECT_EQ(refused("{threads: 0}"), "m.json:1: threads is 0; it takes a whole number from 1 to 4096");
  EXPECT_EQ(refused("{device: \"tpu\"}"), "m.json:1: device is \"tpu\"; it takes \"cpu\" or \"cuda\"");
  EXPECT_EQ(refused("{device: \"cuda\", threads: 2}"),
            "m.json:1: threads is 2; kernels of device cuda are not cut for workers; leave it out");
  EXPECT_EQ(refused("{device: \"cuda\", isa: \"avx512\"}"),
            "m.json:1: isa is \"avx512\"; device cuda takes a compute capability such as \"sm_90\"");
  EXPECT_EQ(refused("{device_memory: -1}"),
            "m.json:1: device_memory is -1; it takes a number of bytes or a size such as \"80GiB\"");
  EXPECT_EQ(refused("{device_memory: \"80 G\"}").substr(0, 38), "m.json:1: device_memory is \"80 G\"; the");
  EXPECT_EQ(refused("{links: 1}"), "m.json:1: links is 1; it takes a list of links");
  EXPECT_EQ(refused("{links: [7]}"), "m.json:1: links is 7; a link takes \"between\" and \"bandwidth_gb_per_s\"");
  EXPECT_EQ(refused("{links: [{between: \"hosts\", bandwidth_gb_per_s: 0}]}"),
            "m.json:1: bandwidth_gb_per_s is 0; it takes a number from 1e-06 to 1000000");
  EXPECT_EQ(refused("{links: [{between: \"hosts\", bandwidth_gb_per_s: 1, latency_us: -1}]}"),
            "m.json:1: latency_us is -1; it takes a number from 0 to 1000000");
  EXPECT_EQ(refused("{links: [{between: \"hosts\", bandwidth_gb_per_s: 1, latency: 1}]}"),
            "m.json:1: latency is 1; no such field; the nearest is latency_us");
  EXPECT_EQ(refused("{links: [{between: \"rank\", bandwidth_gb_per_s: 1}]}"),
            "m.json:1: between is \"rank\"; no such link; there are device-host, host-nvme, hosts and ranks");
  EXPECT_EQ(
      refused("{links: [{between: \"hosts\", bandwidth_gb_per_s: 1}, {between: \"hosts\", bandwidth_gb_per_s: 2}]}"),
      "m.json:1: between is \"hosts\"; it stands twice; remove one of them");
  EXPECT_EQ(refused(""),
            "m.json: says nothing of a machine; give it at least \"device\", or name one of models/machines");
  EXPECT_EQ(refused("{rates: 5}"), "m.json:1: rates is 5; it takes an object");
  EXPECT_EQ(refused("{rates: {memory_gb_per_s: 3000}}"),
            "m.json:1: rates is {\"memory_gb_per_s\": 3000}; it lacks \"attention_tflops\"");
}

TEST(Machine, CapabilitiesAreNumbers) {
  EXPECT_EQ(computeCapability("sm_90"), 90);
  EXPECT_EQ(computeCapability("sm_90a"), 90);
  EXPECT_EQ(computeCapability("sm_120"), 120);
  for (const char *none : {"", "sm_", "sm_a", "sm_-9", "sm_0", "sm_90aa", "sm_90 ", "avx512", "sm_99999999999"})
    EXPECT_EQ(computeCapability(none), 0) << none;
}

TEST(Machine, OfCudaHasOneWorker) { EXPECT_EQ(parseMachine("{device: \"cuda\"}", "m.json").threads, 1); }

TEST_F(MachineFolder, FindsNamesInTheFolders) {
  write("box.json", "{threads: 3}");
  const fs::path folders[] = {folder / "missing", folder};
  const Machine machine = loadMachine("box", folders);
  EXPECT_EQ(machine.name, "box"); // the file's name, where it has none itself
  EXPECT_EQ(machine.threads, 3);
  EXPECT_EQ(loadMachine((folder / "box.json").string(), {}), machine);
  EXPECT_EQ(failure([&] { loadMachine("bx", folders); }),
            "--machine bx: there is no machine of this name; there are box, cpu, or name a file");
  EXPECT_EQ(failure([&] { loadMachine((folder / "none.json").string(), {}); }),
            "--machine " + (folder / "none.json").string() + ": cannot be opened: No such file or directory");
  EXPECT_EQ(failure([&] { loadMachine(folder.string(), {}); }),
            "--machine " + folder.string() + ": is a folder; name a file");
}

// The machines that come with the source read without complaint.
TEST(Machine, TheOnesThatWeShip) {
  const fs::path folders[] = {fs::path(DS_SOURCE_DIR) / "models" / "machines"};
  EXPECT_EQ(loadMachine("cpu", folders), loadMachine("", {})); // the built-in one
  int read = 0;
  for (const auto &entry : fs::directory_iterator(fs::path(DS_SOURCE_DIR) / "models" / "machines"))
    if (entry.path().extension() == ".json") {
      const Machine machine = loadMachine(entry.path().string(), {});
      EXPECT_EQ(machine.name, entry.path().stem().string());
      ++read;
    }
  EXPECT_GE(read, 5);
}

} // namespace
} // namespace ds::config
