//===- Training.h - steps, evaluations, metrics, export -------------------===//
#pragma once

#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/comm/Transport.h"
#include "runtime/data/ArrivingData.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/MetricsFile.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/ReplicaDigests.h"
#include "runtime/session/Resuming.h"
#include "runtime/session/Saving.h"
#include "runtime/session/StateSnapshot.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/TrainingData.h"
#include "runtime/session/TrainingOptions.h"
#include "runtime/trace/Trace.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {

/// The run was asked to end, by a signal or --max-time, and everything is saved. ds-run ends with code 75.
class StoppedAndSaved : public Error {
public:
  using Error::Error;
};

/// Told about a run while it goes on. Called between steps, on the thread that called Training::run.
class TrainingObserver {
public:
  virtual ~TrainingObserver() = default;
  virtual void stepDone(const StepReport &report) noexcept = 0;
  virtual void evaluated(const EvaluationReport &report) noexcept = 0;
  /// Something to know, in a sentence, that ends nothing.
  virtual void noted(const char *sentence) noexcept {}
  /// A step is over, and so is the wait for --save after it; likewise after the last save.
  virtual void saved(double seconds) noexcept {}
  /// A table, of several lines.
  virtual void shown(const char *table) noexcept {}
};

/// A training run: of all ranks, or of this process's among others that do the same.
class Training {
public:
  /// Reads the plan, meets the other processes, opens data and weights, loads variables. Throws ds::Error for anything
  /// that can be refused before the first step. `kernels` outlives it.
  Training(const TrainingOptions &options, const kernels::KernelRegistry &kernels);

  /// All steps, or the evaluation alone. Ends after the step or batch of an evaluation during which `stop` became true,
  /// or in the middle of the export, with an error that says so. Throws ds::Error, of it NonFiniteError where a loss or
  /// norm is the reason, and StoppedAndSaved where it was asked to end and could save; metrics written so far stay, the
  /// export is written only after the last step.
  void run(TrainingObserver &observer, const std::atomic<bool> &stop);

  const plan::proto::Plan &plan() const { return *plan_; }
  /// Steps of the training, those done before it was resumed included; nothing where what arrives decides.
  std::optional<uint64_t> steps() const {
    return steps_ == TrainingData::untilEnd ? std::nullopt : std::optional(steps_);
  }
  /// Where the run began: its seed, its checkpoint, what --set has changed.
  const Beginning &beginning() const { return beginning_; }
  uint64_t samplesPerStep() const { return plan_->training().train_batch_size(); }
  uint32_t ranks() const { return transport_->ranks(); }
  /// Of a rank.
  int threads() const { return options_.threads > 0 ? options_.threads : int(plan_->machine().threads()); }
  /// Whether this process has rank 0, which writes metrics, trace and export, and is to show progress.
  bool hasRankZero() const { return ranks_->hasRankZero(); }
  /// Of this process's first rank.
  SummaryReport summary() const noexcept { return ranks_->summary(ranks_->first().position().rank); }
  /// The ranks of this process, to look at what they hold between steps.
  const LocalRanks &localRanks() const { return *ranks_; }
  /// Names in --weights that the plan has no use for.
  const std::vector<std::string> &unusedWeights() const { return unusedWeights_; }
  /// Sentences to show before the first step.
  const std::vector<std::string> &notes() const { return notes_; }
  /// Where --steps needs more samples than the data has: how often it is gone through, in a sentence; else empty.
  std::string epochs() const;

private:
  /// Of a step: of its products, by all ranks, none twice; and of a sample of the inputs that a stream of tokens may be
  /// cut into, 0: there are none.
  struct Work {
    uint64_t modelFlops = 0, tokens = 0;
  };
  static Work workOf(const plan::proto::Plan &plan);

  void beginFlight() const;
  /// For the flight recorder: what this process is about, and whether it waits for others in it.
  void now(HostState state, std::string_view work, uint64_t step = 0) const;
  void loadVariables();
  void requireEqualInputs(uint64_t weights) const;
  void openData();
  std::optional<ArrivingData::Samples> samplesOf(uint64_t stepsDone, const std::atomic<bool> &stop) const;
  void endOfData(uint64_t stepsDone, TrainingObserver &observer, const std::atomic<bool> &stop);
  std::string place(uint64_t stepsDone) const;
  void checkData() const;
  uint64_t stepsLeft() const;
  std::vector<SummaryReport> summaries() const;
  void runAll(TrainingObserver &observer, const std::atomic<bool> &stop);
  /// `together`: with the rows of other processes, which must then call it too.
  void writeTrace(bool together, TrainingObserver &observer) const;
  void tell(const Status &metrics, TrainingObserver &observer) noexcept;
  void step(uint64_t number, ArrivingData::Samples samples, TrainingObserver &observer);
  void evaluate(uint64_t stepsDone, TrainingObserver &observer, const std::atomic<bool> &stop);
  void compareReplicas(uint64_t stepsDone) const;
  /// Ends the run, on every process, since one of them was asked to. `where`: "after step 3 of 9". Throws ds::Error.
  [[noreturn]] void endAsAsked(uint64_t stepsDone, const std::string &where, TrainingObserver &observer);
  bool timeIsUp() const;
  void saveIfDue(uint64_t stepsDone, TrainingObserver &observer);
  void saveNow(uint64_t stepsDone, TrainingObserver &observer);
  void tell(const std::optional<Saving::Outcome> &outcome, TrainingObserver &observer) const;
  void endTogether(TrainingObserver &observer);
  bool evaluationIsDue(uint64_t stepsDone) const;
  bool settle(uint64_t stepsDone, bool stop, TrainingObserver &observer);

  const TrainingOptions options_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  std::unique_ptr<plan::proto::Plan> plan_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<StateShares> shares_; // what of the state each rank saves
  std::unique_ptr<LocalRanks> ranks_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<ReplicaDigests> replicas_; // where they are compared
  std::unique_ptr<Saving> saving_;           // of --save
  Beginning beginning_;
  std::string unsaved_;                  // why the last checkpoint was not saved
  std::vector<StateSnapshot> snapshots_; // of --on-nonfinite skip, one a rank of this process
  NonFinite nonFinite_;                  // of the last step or evaluation
  bool metricsLost_ = false;             // a line could not be written
  std::vector<std::string> unusedWeights_, notes_;
  uint64_t steps_ = 0;
  std::map<uint64_t, Work> work_; // by size of the plan's dimension; 0: it has one
};

} // namespace ds::runtime
