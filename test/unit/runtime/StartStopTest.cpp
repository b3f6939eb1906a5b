//===- StartStopTest.cpp - runs that start, fail and end, again and again --===//
//
// One rank of 48 fails while the host still hands the run to the others: what lets waiting queues go must reach those,
// too, that begin to wait afterwards. A run that does not end ends the test, since its threads cannot be stopped.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/PlanRun.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <gtest/gtest.h>
#include <string>

namespace ds::test {
namespace {

constexpr std::chrono::seconds limit{60}; ///< of one run, which lasts some 20 ms

/// How often: DS_START_STOPS, or a few hundred times.
int rounds() {
  const char *text = std::getenv("DS_START_STOPS");
  return text != nullptr ? std::atoi(text) : 300;
}

class StartStopTest : public PlanRun {
protected:
  StartStopTest() {
    options.metrics = options.exportPath = "";
    writeBadShardedData(folder / "d");
  }

  /// The error that a run of the plan at options.planPath ends with.
  std::string errorOfRun() {
    try {
      runtime::Training training(options, kernels::cpuKernels());
      Silence observer;
      const std::atomic<bool> stop = false;
      training.run(observer, stop);
      return "";
    } catch (const Error &error) {
      return error.what();
    }
  }

  void expectFailures(const PlanBuilder &builder, int count) {
    write(builder);
    for (int round = 0; round < count; ++round) {
      std::future<std::string> error = std::async(std::launch::async, [this] { return errorOfRun(); });
      if (error.wait_for(limit) != std::future_status::ready) {
        std::fprintf(stderr, "start and stop %d of %d has not ended after %d s\n[  FAILED  ] 1 test\n", round, count,
                     int(limit.count()));
        std::_Exit(1);
      }
      EXPECT_THAT_CONTAINS(error.get(), "has value 11 at element 0 of input x");
    }
  }

private:
  class Silence final : public runtime::TrainingObserver {
  public:
    void stepDone(const runtime::StepReport &) noexcept override {}
    void evaluated(const runtime::EvaluationReport &) noexcept override {}
  };
};

TEST_F(StartStopTest, FortyEightRanksOfWhichOneFails) { expectFailures(failingShardedPlan(48, 2), rounds()); }

} // namespace
} // namespace ds::test
