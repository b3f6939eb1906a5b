//===- DsRunTest.cpp - ds-run as a user calls it --------------------------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "test/unit/runtime/Shell.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <signal.h>
#include <stdlib.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::test {
namespace {

Outcome dsRun(const std::string &arguments, const std::string &environment = "") {
  return shell(environment + " " + DS_RUN_PATH + " " + arguments);
}

/// A plan with a kernel of the real registry: step = step + 1, fed by x.
class DsRun : public testing::Test {
protected:
  DsRun() {
    PlanBuilder b(1, 1);
    const uint32_t compute = b.queue("compute"), x = b.input("x", DType::F32, {1, 2});
    const auto counter = b.variable("counter", DType::I64, {}, 41);
    const auto sample = b.tensor("x", DType::F32, {1, 2}, proto::Buffer::CALL);
    const uint32_t forward = b.routine("forward");
    b.feed(forward, compute, x, sample);
    b.kernel(forward, compute, "increment", "m", {counter});
    b.call(b.program("step"), forward);
    b.metric(0, "loss", counter);
    plan = folder / "p.dsplan";
    plan::writePlanFile(plan, b.plan);
    data = folder / "d.safetensors";
    writeFile(data,
              safetensors(R"({"x":{"dtype":"F32","shape":[40,2],"data_offsets":[0,320]}})", std::string(320, '\0')));
  }

  TemporaryFolder folder;
  std::string plan, data;
};

TEST_F(DsRun, TrainsAndExports) {
  const Outcome outcome =
      dsRun(plan + " --data " + data + " --steps 20 --metrics " + folder / "m" + " --export " + folder / "w");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 10); // a line every tenth
  EXPECT_THAT_CONTAINS(outcome.errors, " samples/s  0:00 left\n");
  const auto lines = readLines(folder / "m");
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_THAT_CONTAINS(lines[19], "{\"step\": 20, \"loss\": 61,");
  EXPECT_TRUE(std::filesystem::exists(folder / "w"));
}

TEST_F(DsRun, QuietAndVerbose) {
  EXPECT_EQ(dsRun(plan + " --data " + data + " --quiet").errors, "");
  const Outcome verbose =
      dsRun(plan + " --data " + data + " --verbose --device cpu -n 1 --seed 3 --shuffle --threads 2");
  EXPECT_EQ(verbose.code, 0) << verbose.errors;
  EXPECT_EQ(std::count(verbose.errors.begin(), verbose.errors.end(), '\n'), 41);
  EXPECT_THAT_CONTAINS(verbose.errors, " for 1 rank of 2 threads, on a machine of "); // --threads, not the plan's
}

TEST_F(DsRun, RefusesWrongUsageWithCodeTwo) {
  expectError(dsRun(""), 2, "no plan was given");
  expectError(dsRun(plan + " --frobnicate"), 2, "there is no flag --frobnicate; the nearest is ");
  expectError(dsRun(plan + " --step 3"), 2, "there is no flag --step; the nearest is --steps; ds-run --help lists");
  expectError(dsRun("export " + plan + " --h=there"), 2, "there is no flag --h; the nearest is --hf");
  expectError(dsRun(plan + " here there"), 2, "not expected: ");
  expectError(dsRun(plan + " --steps few"), 2, "--steps");
  expectError(dsRun(plan + " -n 0"), 2, "-n");
  expectError(dsRun(plan + " --device tpu"), 2, "--device");
  expectError(dsRun(plan + " --eval-interval 3"), 2, "--eval-interval needs --eval-data");
  expectError(dsRun(plan + " --eval --steps 3"), 2, "--eval does not train");
  expectError(dsRun(plan + " --quiet --verbose"), 2, "exclude each other");
  EXPECT_EQ(dsRun("--help").code, 0);
}

/// The plan's samples are 40, each step takes one.
TEST_F(DsRun, DataThatArrivesIsTheSameRun) {
  const std::string names = "printf '%s\\n' " + data + " " + data + " | ", arriving = plan + " --data - ";
  const auto piped = [&](const std::string &flags) { return shell(names + DS_RUN_PATH + " " + arriving + flags); };
  ASSERT_EQ(dsRun(plan + " --data " + data + " --steps 80 --export " + folder / "w").code, 0);
  const Outcome outcome =
      piped("--export " + folder / "w2" + " --metrics " + folder / "m" + " --save " + folder / "saved");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT_CONTAINS(outcome.errors, "step 80  loss 121"); // of a number that nobody knows
  EXPECT_EQ(readFile(folder / "w"), readFile(folder / "w2"));
  EXPECT_EQ(readLines(folder / "m").size(), 81u);
  const Outcome resumed = piped("--quiet --steps 200 --resume " + folder / "saved" + " --export " + folder / "w3");
  EXPECT_EQ(resumed.errors, "note: --data - ended after step 160 of 200\n");
  ASSERT_EQ(dsRun(plan + " --quiet --data " + data + " --steps 160 --export " + folder / "w4").code, 0);
  EXPECT_EQ(readFile(folder / "w3"), readFile(folder / "w4"));
  EXPECT_EQ(piped("--quiet --steps 3").errors, "");
}

TEST_F(DsRun, DataThatArrivesIsNotAllThere) {
  expectError(dsRun(plan + " --data - " + data), 2, "no other file can stand beside it");
  expectError(dsRun(plan + " --data - --shuffle"), 2, "--shuffle needs all samples from the start");
  expectError(dsRun(plan + " --data - --eval"), 2, "--eval needs all samples from the start");
  ASSERT_EQ(dsRun(plan + " --quiet --shuffle --steps 3 --data " + data + " --save " + folder / "shuffled").code, 0);
  expectError(dsRun(plan + " --data - --resume " + folder / "shuffled"), 1, "is of a run that shuffles its data");
  // Else timeout signals its group, too, and a second signal ends ds-run at once.
  const Outcome waiting =
      shell("sleep 5 | timeout --foreground -s TERM 2 " DS_RUN_PATH " " + plan + " --quiet --data -");
  EXPECT_THAT_CONTAINS(waiting.errors, "error: stopped by a signal after step 0; nothing was saved");
}

/// The file behind stdout is not ours alone, and its link in /dev must stay.
TEST_F(DsRun, MetricsOnStdoutAreAppended) {
  const std::string run =
      std::string(DS_RUN_PATH) + " " + plan + " --quiet --steps 2 --metrics /dev/stdout --data " + data;
  const Outcome file = shell("(echo before; " + run + " --export " + folder / "w" + ")");
  EXPECT_EQ(file.errors, "");
  EXPECT_EQ(std::count(file.output.begin(), file.output.end(), '\n'), 4) << file.output;
  EXPECT_THAT_CONTAINS(file.output, "before\n{");
  const Outcome pipe = shell("(" + run + " --export " + folder / "w" + " | cat)");
  EXPECT_EQ(pipe.errors, "");
  EXPECT_EQ(std::count(pipe.output.begin(), pipe.output.end(), '\n'), 3) << pipe.output;
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

TEST_F(DsRun, AConversionNeedsItsSource) {
  expectError(dsRun("checkpoint convert dir"), 2, "--from-deepspeed is required");
}

TEST_F(DsRun, FlagsOfCheckpointsBelongTogether) {
  expectError(dsRun(plan + " --save-interval 3"), 2, "--save-interval and --keep need --save DIR");
  expectError(dsRun(plan + " --resume-if-present"), 2, "--tag and --resume-if-present need --resume DIR");
  expectError(dsRun(plan + " --resume d --weights w"), 2, "--resume has the weights");
  expectError(dsRun(plan + " --eval --save d"), 2, "--eval does not train, so --save makes no sense with it");
  expectError(dsRun(plan + " --save d --keep 0"), 2, "--keep");
  expectError(dsRun(plan + " --max-time 3y"), 2, "--max-time");
}

TEST_F(DsRun, RefusesBadInputWithCodeOne) {
  expectError(dsRun("none.dsplan"), 1, "none.dsplan: cannot be opened");
  expectError(dsRun(plan), 1, "no data file was given");
  expectError(dsRun(plan + " -n 2 --data " + data), 1, "-n 2 does not fit plan");
  expectError(dsRun(plan + " --device cuda --data " + data), 1, "does not run on cuda");
  const std::string bytes = readFile(plan);
  writeFile(folder / "cut", bytes.substr(0, bytes.size() / 2));
  expectError(dsRun((folder / "cut") + " --data " + data), 1, "truncated");
  std::string damaged = bytes;
  damaged[bytes.size() - 3] = char(damaged[bytes.size() - 3] ^ 4);
  writeFile(folder / "damaged", damaged);
  expectError(dsRun((folder / "damaged") + " --data " + data + " --metrics " + folder / "m"), 1, "CRC-32C");
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
}

TEST_F(DsRun, ObeysLaunchersUnlessToldOtherwise) {
  for (const char *variables : {"OMPI_COMM_WORLD_SIZE=2", "PMI_SIZE=2", "OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0"}) {
    const Outcome refused = dsRun(plan + " --data " + data, variables);
    expectError(refused, 1, "mpirun started 2 processes, each to be one rank, but plan " + plan + " is for 1 rank");
    EXPECT_EQ(refused.errors.find("-n 1;"), std::string::npos);                 // each process would run it all
    EXPECT_EQ(dsRun(plan + " -n 1 --quiet --data " + data, variables).code, 0); // -n wins
  }
  EXPECT_EQ(dsRun(plan + " --quiet --data " + data, "OMPI_COMM_WORLD_SIZE=1").code, 0);
  EXPECT_EQ(dsRun(plan + " --quiet --data " + data, "WORLD_SIZE=1").code, 0);
  const Outcome torch = dsRun(plan + " --data " + data, "WORLD_SIZE=4");
  expectError(torch, 1, "torchrun started this as one of 4 processes (WORLD_SIZE), but on the cpu");
  EXPECT_THAT_CONTAINS(torch.errors, "try: mpirun -n 4 ds-run " + plan + " --data " + data);
  // torchrun is the launcher wherever it was started itself.
  expectError(dsRun(plan + " --data " + data, "SLURM_PROCID=0 PMIX_RANK=0 TORCHELASTIC_RUN_ID=x WORLD_SIZE=2"), 1,
              "torchrun started this as one of 2 processes (WORLD_SIZE), but on the cpu");
  expectError(dsRun(plan + " --data " + data, "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2"), 1,
              "without a way to find each other");
}

TEST_F(DsRun, RunsRanksInOneProcess) {
  plan::writePlanFile(plan, shardedPlan(3, 2).plan);
  writeShardedData(data);
  const std::string steps = " --quiet --steps 5 --data " + data;
  EXPECT_EQ(dsRun(plan + steps + " --export " + folder / "w").code, 0); // as many as the plan has
  EXPECT_EQ(dsRun(plan + " -n 3" + steps + " --export " + folder / "w3" + " --trace " + folder / "t").code, 0);
  EXPECT_EQ(readFile(folder / "w"), readFile(folder / "w3"));
  EXPECT_THAT_CONTAINS(readFile(folder / "t"), "rank 2");
  expectError(dsRun(plan + " -n 2" + steps), 1, "-n 2 does not fit plan " + plan + ", which is for 3 ranks");
  EXPECT_EQ(dsRun(plan + " --device null" + steps).code, 0);
  // A rank that fails: its error, once.
  plan::writePlanFile(plan, failingShardedPlan(3, 2).plan);
  writeBadShardedData(data);
  const Outcome failed = dsRun(plan + steps + " --check-data 0 --export " + folder / "none");
  expectError(failed, 1, "the data's sample 1 has value 11");
  EXPECT_EQ(failed.errors.find("error: "), failed.errors.rfind("error: ")) << failed.errors;
  EXPECT_THAT_CONTAINS(failed.errors, "note: what each rank did last is in " + plan + ".flight");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_F(DsRun, FinishesTheStepOnASignal) {
  // Far more steps than a test may last; a signal after the first metrics line.
  const std::string command = std::string(DS_RUN_PATH) + " " + plan + " --quiet --steps 1000000000 --data " + data +
                              " --metrics " + folder / "m" + " --export " + folder / "w" + " 2>" + folder / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), static_cast<char *>(nullptr));
    ::_exit(127);
  }
  while (!std::filesystem::exists(folder / "m") || std::filesystem::file_size(folder / "m") == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  EXPECT_THAT_CONTAINS(readFile(folder / "err"), "error: stopped by a signal after step");
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
  EXPECT_THAT_CONTAINS(readLines(folder / "m").back(), "{\"summary\":");
}

TEST_F(DsRun, TellsWhatItIs) {
  const Outcome outcome = dsRun("info");
  EXPECT_EQ(outcome.code, 0);
  for (const char *part : {"plan format    2", "devices        cpu, cuda, null", "cuda           ", "threads",
                           "instructions", "oneDNN", "mpi            "})
    EXPECT_THAT_CONTAINS(outcome.output, part);
}

TEST_F(DsRun, NeedsItsLibraryForAPlanOfAGpu) {
  plan::proto::Plan onGpu = plan::readPlan(plan);
  onGpu.mutable_machine()->set_device("cuda");
  plan::writePlanFile(folder / "g.dsplan", onGpu);
  const std::string run = (folder / "g.dsplan") + " --steps 1 --data " + data;
  expectError(dsRun(run + " --device cpu"), 1, "the plan was compiled for device cuda, so it does not run on cpu");
  EXPECT_EQ(dsRun(run + " --device null").code, 0);
  expectError(dsRun(run, "WORLD_SIZE=4"), 1, "torchrun started 4 processes, each to be one rank, but plan");
  const std::string info = dsRun("info").output;
  if (info.find("cuda           available") != std::string::npos)
    GTEST_SKIP() << "there is a GPU; its sentences are for machines without";
  expectError(dsRun(run), 1,
              info.find("cuda           not available: libds-cuda.so is neither") != std::string::npos
                  ? "device cuda is not available: libds-cuda.so is neither in ../lib nor beside ds-run"
                  : "NVIDIA driver");
}

/// NVIDIA's libraries come with libds-cuda.so, when a plan asks for it.
TEST_F(DsRun, LinksNothingOfCuda) {
  const Outcome dynamic = shell(std::string("readelf -d ") + DS_RUN_PATH);
  ASSERT_EQ(dynamic.code, 0);
  for (const char *library : {"cuda", "cublas", "cudnn", "nccl"})
    EXPECT_EQ(dynamic.output.find(std::string("lib") + library), std::string::npos) << library;
}

/// The runtime's promise: the compiler is not in it, neither linked nor linked in.
TEST_F(DsRun, LinksNoCompiler) {
  const Outcome dynamic = shell(std::string("readelf -d ") + DS_RUN_PATH);
  ASSERT_EQ(dynamic.code, 0);
  EXPECT_THAT_CONTAINS(dynamic.output, "libc.so");
  const Outcome needed = shell(std::string("ldd ") + DS_RUN_PATH);
  ASSERT_EQ(needed.code, 0);
  for (const char *library : {"MLIR", "LLVM", "onnx", "mpi", "cuda"}) {
    EXPECT_EQ(dynamic.output.find(library), std::string::npos) << library;
    EXPECT_EQ(needed.output.find(std::string("lib") + library), std::string::npos) << library;
  }
  const Outcome symbols = shell(std::string("nm -C ") + DS_RUN_PATH);
  for (const char *name : {"mlir::", "llvm::", "onnx::", "ds::train::"})
    EXPECT_EQ(symbols.output.find(name), std::string::npos) << name;
}

} // namespace
} // namespace ds::test
