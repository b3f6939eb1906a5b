//===- RecordedPrograms.h - which runs are recorded, which launched -------===//
#pragma once

#include "runtime/device/RecordedRun.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ds::runtime {

/// For each program of a rank, what becomes of its next run. The first run of a program that may be recorded is
/// enqueued as any other, so that whatever is set up at a first use (modules, connections) is set up outside of the
/// recording; the second is recorded and launched, later ones are only launched.
class RecordedPrograms {
public:
  enum class Form { Enqueue, Record, Launch };

  /// `recordable`: by program, whether the plan, the device and the run's options allow it.
  explicit RecordedPrograms(std::vector<bool> recordable) {
    for (const bool may : recordable)
      states_.push_back({may, false, nullptr});
  }

  Form next(uint32_t program) const noexcept {
    const State &state = states_[program];
    if (!state.recordable || !state.hasRun)
      return Form::Enqueue;
    return state.run ? Form::Launch : Form::Record;
  }
  void enqueued(uint32_t program) noexcept { states_[program].hasRun = true; }
  void recorded(uint32_t program, std::unique_ptr<RecordedRun> run) noexcept { states_[program].run = std::move(run); }
  /// It cannot be recorded: its runs are enqueued from here on.
  void giveUp(uint32_t program) noexcept {
    states_[program].recordable = false;
    states_[program].run.reset();
  }
  void giveUpAll() noexcept {
    for (uint32_t program = 0; program < states_.size(); ++program)
      giveUp(program);
  }
  bool any() const noexcept {
    return std::ranges::any_of(states_, [](const State &state) { return state.recordable; });
  }
  RecordedRun &run(uint32_t program) const noexcept { return *states_[program].run; }

private:
  struct State {
    bool recordable, hasRun;
    std::unique_ptr<RecordedRun> run;
  };
  std::vector<State> states_;
};

} // namespace ds::runtime
