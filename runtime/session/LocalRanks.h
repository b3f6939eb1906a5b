//===- LocalRanks.h - the ranks of a plan that run in this process --------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/Transport.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/StepReport.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::runtime {

/// A device and an executor for each, driven together: a run is handed to all of them, then all are awaited. The first
/// failure of any rank, here or in another process, ends the run of every rank with its text.
class LocalRanks {
public:
  using MakeDevice = std::function<std::unique_ptr<Device>(uint32_t rank)>;

  /// `options.rank` and `options.transport` are filled in, and what this process's ranks use is added to
  /// `options.promisedBytes`. All but `makeDevice` outlives it. Throws ds::Error.
  /// `onFailure` hears of the first failure, here or elsewhere, on whatever thread it happens.
  LocalRanks(const plan::proto::Plan &plan, Transport &transport, const MakeDevice &makeDevice,
             const kernels::KernelRegistry &kernels, const ExecutorOptions &options,
             const std::function<void(const std::string &)> &onFailure = {});
  ~LocalRanks();
  LocalRanks(const LocalRanks &) = delete;
  LocalRanks &operator=(const LocalRanks &) = delete;

  void initialize(const VariableSources &sources);

  /// Runs a program on every rank, its tail included where that is due. `run.program` is filled in.
  Status execute(std::string_view program, const Run &run) noexcept;

  /// The first failure of any rank, or success.
  Status failure() const noexcept { return first().device().failure(); }

  /// The first rank of this process: rank 0 in the process that has it.
  Executor &first() const noexcept { return *ranks_[0].executor; }
  bool hasRankZero() const noexcept { return first().position().rank == 0; }

  /// The rank's executor, or nullptr if it runs elsewhere.
  Executor *find(uint32_t rank) const noexcept;

  /// What a rank of this process used, its traffic being that of the last run of the program `step`.
  SummaryReport summary(uint32_t rank) const noexcept;

  /// How many runs of the program `step` made their tail.
  uint64_t stepsRedone() const noexcept { return stepsRedone_; }

private:
  struct LocalRank {
    std::unique_ptr<Device> device;
    std::unique_ptr<Executor> executor;
    Traffic stepTraffic; // of the last step
  };

  /// The first failure of any.
  Status finish() noexcept;

  Transport &transport_;
  std::vector<LocalRank> ranks_;
  uint64_t stepsRedone_ = 0;
};

} // namespace ds::runtime
