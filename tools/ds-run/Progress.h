//===- Progress.h - what a user sees while training -----------------------===//
#pragma once

#include "runtime/session/Training.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace ds::run {

/// On stderr: a bar on a terminal, in one line of it, else a line for every tenth of the steps. Allocates nothing.
class Progress final : public runtime::TrainingObserver {
public:
  enum class Detail { None, Tenths, EveryStep };

  /// `steps`: nothing where nobody knows how many there will be; then each is said, in a line of its own.
  Progress(std::optional<uint64_t> steps, Detail detail);

  void stepDone(const runtime::StepReport &report) noexcept override;
  void evaluated(const runtime::EvaluationReport &report) noexcept override;
  void noted(const char *sentence) noexcept override; // whatever the detail
  void shown(const char *table) noexcept override;    // likewise
  bool isOnTerminal() const noexcept { return terminal_; }
  /// Leaves the bar's line, if there is one.
  void finish() noexcept;

private:
  void drawBar(const runtime::StepReport &report) noexcept;
  double secondsLeft(const runtime::StepReport &report) const noexcept;

  const uint64_t steps_; // 0: unknown
  const Detail detail_;
  const bool terminal_;
  bool barStands_ = false;
  uint64_t done_ = 0; // since begin_; a resumed run's first step is not step 1
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), drawn_{};
};

} // namespace ds::run
