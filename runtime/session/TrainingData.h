//===- TrainingData.h - the samples of a run ------------------------------===//
#pragma once

#include "runtime/data/ArrivingData.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/UnreadColumns.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/Resuming.h"
#include "runtime/session/TrainingOptions.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// What a run's data must be for each graph input.
std::vector<InputSpec> inputSpecs(const plan::proto::Plan &plan);

/// The files of --data, or what arrives on stdin, and those of --eval-data.
class TrainingData {
public:
  static constexpr uint64_t untilEnd = UINT64_MAX; ///< of steps: what arrives decides

  /// Opens them; `options` and `beginning` outlive it. Throws ds::Error for files that do not fit the plan's inputs.
  TrainingData(const TrainingOptions &options, const plan::proto::Plan &plan, const Beginning &beginning);

  /// nullptr where data arrives, or where the run only evaluates.
  const Dataset *training() const { return data_.get(); }
  /// nullptr where the run does not evaluate.
  const Dataset *evaluation() const { return evaluation_.get(); }
  /// Whether samples come while the run goes on.
  bool arrives() const { return arriving_ != nullptr; }
  /// Steps of the training, those done before it was resumed included, or untilEnd.
  uint64_t steps() const;
  /// Where --steps needs more samples than the data has: how often it is gone through, in a sentence; else empty. That
  /// is as asked, and yet not always meant.
  std::string epochs(uint64_t stepsLeft) const;
  /// Looks at the values of the samples that will be taken. Throws ds::Error for one that the plan's inputs refuse.
  void check(uint64_t stepsLeft) const;
  /// Samples of the step after so many. Waits for what arrives; nothing when no more comes, and as soon as `ended` says
  /// so. Throws ds::Error.
  std::optional<ArrivingData::Samples> samplesOf(uint64_t stepsDone, const std::function<bool()> &ended) const;
  /// A sentence about columns that no input takes and that were not named before; or "".
  std::string noteOfUnread();
  std::string noteOfUnread(const Dataset &data) { return unread_.note(data.unread()); }

private:
  const TrainingOptions &options_;
  const Beginning &beginning_;
  const uint64_t samplesPerStep_;
  std::unique_ptr<Dataset> data_, evaluation_;
  std::unique_ptr<ArrivingData> arriving_; // instead of data_
  UnreadColumns unread_;
};

} // namespace ds::runtime
