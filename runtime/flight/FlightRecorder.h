//===- FlightRecorder.h - --flight-recorder -------------------------------===//
#pragma once

#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRank.h"
#include "runtime/plan/plan.pb.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <semaphore.h>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ds::runtime {

/// Keeps what the ranks of this process did last, and writes a file for each when the run fails or somebody asks. A
/// thread of its own writes, so that no folder, however slow, holds up a run or the news of its failure.
class FlightRecorder final : public FlightRanks {
public:
  /// What the files say of the whole run.
  struct Run {
    std::string folder; ///< made when something is written
    std::string id;     ///< the same in every process
    uint32_t ranks = 1, plan = 0;
    std::vector<std::string> data;
    int64_t clockMs = 0; ///< how far the clock of rank 0's host is ahead of this one's
  };

  /// `say` is told a sentence about each record that somebody asked for.
  explicit FlightRecorder(std::function<void(const std::string &)> say);
  /// Writes what was asked for before.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder &) = delete;
  FlightRecorder &operator=(const FlightRecorder &) = delete;

  /// Until then there is nothing to write.
  void begin(Run run);
  FlightRank &addRank(const plan::proto::Plan &plan, uint32_t rank) override;

  /// What the thread that drives the ranks is about from now on, as "step", 12. Every process calls it as often.
  /// Allocates nothing. `step` 0: there is none.
  void hostNow(HostState state, std::string_view work, uint64_t step = 0) noexcept;

  /// The run has failed: it is written what stands still now. The first counts. `missed`: FlightFile's.
  void failed(const std::string &error, const std::vector<uint32_t> &missed = {}) noexcept;
  /// The run ends as it should, or as it was asked to: nothing that comes is a failure.
  void rest() noexcept { rests_ = true; }
  /// From a signal handler, too: write, and go on.
  void ask() noexcept;
  /// Waits until all is written. What came of failed(): a sentence, or nothing if there was no failure.
  std::string finish() noexcept;

private:
  struct Stage {
    HostState state = HostState::Works;
    std::array<char, 256> work{};
    uint64_t step = 0, number = 0;
    int64_t sinceMs = 0;
  };
  /// A process that was stopped goes on for a moment before it writes, and may begin and end a few things.
  static constexpr size_t keptStages = 16, keptStills = 16;

  void serve() noexcept;
  /// Until there is something to write or a moment has passed. Notes when that moment was a long one.
  void await() noexcept;
  std::vector<HostStage> stages(int64_t shiftMs) const;
  /// The sentence about it.
  std::string write(const std::string &reason, const std::string &error) noexcept;
  void stop() noexcept;

  const std::function<void(const std::string &)> say_;
  mutable std::mutex mutex_; // of the seven below
  Run run_;
  bool begun_ = false;
  std::array<Stage, keptStages> stages_; // a ring
  uint64_t stagesBegun_ = 0;
  // Of the failure.
  std::string error_;
  std::vector<uint32_t> missed_;
  std::deque<FlightRank> ranks_;
  // Of the writer's, until it has ended.
  std::string outcome_;
  int64_t beatMs_;                // when it last ran
  std::vector<Stillness> stills_; // the last ones
  sem_t wake_;
  std::atomic<bool> asked_ = false, failed_ = false, rests_ = false, ends_ = false;
  std::thread writer_; // last: it uses everything
};

/// Milliseconds since 1970, by this host's clock.
int64_t wallMs();

/// The folder where a run of a plan leaves its records unless told otherwise: beside the plan, which all hosts see.
std::string flightFolder(const std::string &planPath);

} // namespace ds::runtime
