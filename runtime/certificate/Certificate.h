//===- Certificate.h - --certify: the certificate of a plan, and what a run measured ===//
#pragma once

#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// Keeps what a run adds to a certificate, and passes all that it is told on.
class MeasuredRun final : public TrainingObserver {
public:
  static constexpr size_t mostLosses = 10; ///< of the first steps

  explicit MeasuredRun(TrainingObserver &next) : next_(next) { losses_.reserve(mostLosses); }

  void stepDone(const StepReport &report) noexcept override;
  void evaluated(const EvaluationReport &report) noexcept override { next_.evaluated(report); }
  void noted(const char *sentence) noexcept override { next_.noted(sentence); }
  void saved(double seconds) noexcept override { next_.saved(seconds); }
  void shown(const char *table) noexcept override { next_.shown(table); }

  uint64_t steps() const { return steps_; }
  const std::vector<double> &losses() const { return losses_; }

private:
  TrainingObserver &next_;
  uint64_t steps_ = 0;
  std::vector<double> losses_;
};

/// A file that `ds-opt verify --certificate` wrote.
class Certificate {
public:
  /// Throws ds::Error, one sentence, for a file that is no certificate, and for one of another plan or of this plan
  /// before it was edited.
  Certificate(std::string path, const std::string &planPath);

  /// SHA-256 of all that `ds-opt verify` wrote, as hexadecimal digits: runs that append do not change it.
  const std::string &hash() const { return hash_; }
  const std::string &planHash() const { return planHash_; }

  /// That a run's settings are the plan's, of which the claims are. Throws ds::Error for one with --set.
  void requireSettings(const Training &training) const;

  /// Reads the file again and writes it with what was run and measured behind what it has. `training`: of the process
  /// that has rank 0. Throws ds::Error.
  void append(const MeasuredRun &run, const Training &training, const TrainingOptions &options) const;

private:
  const std::string path_;
  std::string hash_, planHash_;
};

} // namespace ds::runtime
