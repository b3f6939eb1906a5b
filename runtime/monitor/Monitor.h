//===- Monitor.h - what ds_config.json asks to be written while training ---===//
#pragma once

#include "runtime/monitor/Sink.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"

#include <memory>
#include <vector>

namespace ds::runtime {

/// Writes each step's numbers where the plan's configuration says (tensorboard, csv_monitor), under DeepSpeed's names,
/// by the number of samples used so far; and passes all that it is told on. For the process that has rank 0.
class Monitor final : public TrainingObserver {
public:
  /// Throws ds::Error where a file cannot be written.
  Monitor(const plan::proto::Plan &plan, TrainingObserver &next);

  void stepDone(const StepReport &report) noexcept override;
  void evaluated(const EvaluationReport &report) noexcept override;
  void noted(const char *sentence) noexcept override { next_.noted(sentence); }
  void shown(const char *table) noexcept override { next_.shown(table); }

private:
  void write(const char *tag, uint64_t step, const std::optional<Scalar> &value) noexcept;

  TrainingObserver &next_;
  const uint64_t samplesPerStep_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  bool failed_ = false; // said once
};

} // namespace ds::runtime
