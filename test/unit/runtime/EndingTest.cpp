//===- EndingTest.cpp - signals and dead disks, in every phase of a run ---===//
//
// A shim makes one file slow, so that a phase lasts as long as a test needs to send a signal in the middle of it.
//
//===----------------------------------------------------------------------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanFile.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"
#include "test/unit/runtime/Shell.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// 4 MB of float32 that steps leave as they are; data of 400 samples.
class Ending : public testing::Test {
protected:
  Ending() {
    PlanBuilder b(1, 1);
    const uint32_t compute = b.queue("compute"), x = b.input("x", DType::F32, {1, 2});
    const auto counter = b.variable("counter", DType::I64, {}, 0);
    (void)b.variable("weights", DType::F32, {1 << 20}, 1);
    const auto sample = b.tensor("x", DType::F32, {1, 2}, proto::Buffer::CALL);
    const uint32_t forward = b.routine("forward");
    b.feed(forward, compute, x, sample);
    b.kernel(forward, compute, "increment", "m", {counter});
    for (const char *name : {"step", "evaluate"}) {
      const uint32_t program = b.program(name);
      b.call(program, forward);
      b.metric(program, "loss", counter);
    }
    plan::writePlanFile(plan, b.plan);
    writeFile(data,
              safetensors(R"({"x":{"dtype":"F32","shape":[400,2],"data_offsets":[0,3200]}})", std::string(3200, '\0')));
    std::filesystem::copy_file(data, slow);
  }

  /// Starts ds-run with a file that is slow by `ms` from the `after`-th read or write on.
  void start(const std::string &arguments, const std::string &slowFile, int ms, int after = 0) {
    child_ = ::fork();
    if (child_ != 0)
      return;
    const std::string command = "exec env LD_PRELOAD=" DS_SLOW_FILES_PATH " DS_SLOW_FILE=" + slowFile +
                                " DS_SLOW_MS=" + std::to_string(ms) + " DS_SLOW_AFTER=" + std::to_string(after) +
                                " DS_SLOW_FLAG=" + folder / "slow-now" + " " DS_RUN_PATH " " + plan +
                                " --quiet --check-data 0 " + arguments + " 2>" + folder / "err";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char *>(nullptr));
    ::_exit(127);
  }
  void awaitSlowness() {
    for (const auto end = Clock::now() + 20s; !std::filesystem::exists(folder / "slow-now") && Clock::now() < end;)
      std::this_thread::sleep_for(2ms);
    ASSERT_TRUE(std::filesystem::exists(folder / "slow-now"));
  }
  void send(int signal) const { ::kill(child_, signal); }
  /// Awaits the end, for 60 s at most; returns exit code or -signal, and sets lasted.
  int awaitEnd() {
    const auto begin = Clock::now();
    int status = 0;
    while (::waitpid(child_, &status, WNOHANG) == 0) {
      if (Clock::now() > begin + 60s)
        ::kill(child_, SIGKILL);
      std::this_thread::sleep_for(2ms);
    }
    lasted = Clock::now() - begin;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string errors() const { return readFile(folder / "err"); }

  TemporaryFolder folder;
  const std::string plan = folder / "p.dsplan", data = folder / "d", slow = folder / "slow.d";
  std::chrono::duration<double> lasted{};

private:
  pid_t child_ = 0;
};

TEST_F(Ending, InTheEvaluation) {
  start("--steps 1 --data " + data + " --eval-data " + slow + " --export " + folder / "w", "slow.d", 50, 2);
  awaitSlowness();
  send(SIGTERM);
  EXPECT_EQ(awaitEnd(), 1);
  EXPECT_LT(lasted.count(), 5) << "seconds; the whole evaluation lasts 20";
  EXPECT_THAT_CONTAINS(errors(), "error: stopped by a signal during the evaluation after step 1; nothing was saved");
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

TEST_F(Ending, InAnEvaluationAlone) {
  start("--eval --data " + slow, "slow.d", 50, 2);
  awaitSlowness();
  send(SIGINT);
  EXPECT_EQ(awaitEnd(), 1);
  EXPECT_LT(lasted.count(), 5) << "seconds";
  EXPECT_EQ(errors(), "error: stopped by a signal during the evaluation after step 0\n");
}

TEST_F(Ending, WhileLoading) {
  std::string header = R"({"weights":{"dtype":"F32","shape":[1048576],"data_offsets":[0,4194304]},)"
                       R"("counter":{"dtype":"I64","shape":[],"data_offsets":[4194304,4194312]}})";
  writeFile(folder / "slow.w", safetensors(header, std::string((4 << 20) + 8, '\0')));
  start("--steps 1 --data " + data + " --weights " + folder / "slow.w", "slow.w", 10000, 2);
  awaitSlowness();
  send(SIGTERM);
  EXPECT_EQ(awaitEnd(), -SIGTERM);
  EXPECT_LT(lasted.count(), 3) << "seconds; a single read lasts 10";
  EXPECT_EQ(errors(), "error: ended by a signal before the run began\n");
}

/// Of the file only its beginning is there, under another name, and that is removed.
TEST_F(Ending, InTheExport) {
  start("--steps 1 --data " + data + " --export " + folder / "slow.out", "slow.out", 500, 2);
  awaitSlowness();
  send(SIGTERM);
  EXPECT_EQ(awaitEnd(), 1);
  EXPECT_LT(lasted.count(), 5) << "seconds";
  EXPECT_THAT_CONTAINS(errors(),
                       "error: stopped by a signal during the export; " + folder / "slow.out" + " was not written");
  for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::path(plan).parent_path()))
    EXPECT_EQ(entry.path().filename().string().find("slow.out"), std::string::npos) << entry.path();
}

/// The first asks, the second does not.
TEST_F(Ending, AtOnceByASecondSignal) {
  for (const auto &[first, second] : {std::pair{SIGTERM, SIGTERM}, std::pair{SIGTERM, SIGINT},
                                      std::pair{SIGINT, SIGTERM}, std::pair{SIGINT, SIGINT}}) {
    std::filesystem::remove(folder / "slow-now");
    start("--steps 5 --data " + slow, "slow.d", 30000, 2);
    awaitSlowness();
    send(first);
    std::this_thread::sleep_for(300ms); // else the two are one
    send(second);
    EXPECT_EQ(awaitEnd(), -second);
    EXPECT_LT(lasted.count(), 3) << "seconds; a step lasts 30";
    EXPECT_THAT_CONTAINS(errors(), "error: ended at once by a second signal");
  }
}

/// SIGUSR1, which schedulers send ahead of SIGTERM, only asks.
TEST_F(Ending, AfterTheStepByAWarning) {
  start("--steps 400 --data " + slow, "slow.d", 100, 2);
  awaitSlowness();
  send(SIGUSR1);
  send(SIGTERM);
  EXPECT_EQ(awaitEnd(), 1);
  EXPECT_THAT_CONTAINS(errors(), "error: stopped by a signal after step ");
}

/// One rank fails while another's read never comes back: nothing can stop that thread but the end of the process.
TEST_F(Ending, ByForceAfterAFailure) {
  plan::writePlanFile(plan, failingShardedPlan(3, 2).plan);
  writeBadShardedData(slow);
  const auto samples = std::filesystem::file_size(slow) - 24 * 5;
  start("--data " + slow,
        "slow.d DS_SLOW_FROM=" + std::to_string(samples + 2 * 5) + " DS_SLOW_HOLD=" + std::to_string(samples), 1000000);
  EXPECT_EQ(awaitEnd(), 1);
  EXPECT_LT(lasted.count(), 40) << "seconds";
  EXPECT_THAT_CONTAINS(errors(), "error: the data's sample 1 has value 11 at element 0 of input x");
  EXPECT_THAT_CONTAINS(errors(), "; the process did not end within 20 s of that and was ended");
}

} // namespace
} // namespace ds::test
