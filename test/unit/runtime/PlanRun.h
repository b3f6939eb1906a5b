//===- PlanRun.h - a hand-built plan, trained for a few steps -------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/session/Training.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <atomic>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {

/// Four steps on ShardedPlan's data, all ranks in this process.
class PlanRun : public testing::Test {
protected:
  PlanRun() {
    writeShardedData(folder / "d");
    options.planPath = folder / "p.dsplan";
    options.data = {folder / "d"};
    options.metrics = folder / "m.jsonl";
    options.exportPath = folder / "w";
    options.steps = 4;
    options.seed = 3;
  }

  void write(const PlanBuilder &builder) { plan::writePlanFile(options.planPath, builder.plan); }

  /// The losses of a run, and the bytes of its export.
  std::pair<std::vector<double>, std::string> run(const PlanBuilder &builder) {
    write(builder);
    runtime::Training training(options, kernels::cpuKernels());
    Losses observer;
    const std::atomic<bool> stop = false;
    training.run(observer, stop);
    return {observer.losses, readFile(options.exportPath)};
  }

  nlohmann::json summary() { return nlohmann::json::parse(readLines(options.metrics).back())["summary"]["ranks"]; }

  TemporaryFolder folder;
  runtime::TrainingOptions options;

private:
  class Losses final : public runtime::TrainingObserver {
  public:
    void stepDone(const runtime::StepReport &report) noexcept override {
      if (report.loss)
        losses.push_back(report.loss->asDouble());
    }
    void evaluated(const runtime::EvaluationReport &) noexcept override {}
    std::vector<double> losses;
  };
};

} // namespace ds::test
