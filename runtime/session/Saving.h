//===- Saving.h - --save: checkpoints while a run goes on -----------------===//
#pragma once

#include "core/Status.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StateWriter.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/Resuming.h"

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// --save, --save-interval, --keep.
struct SavingOptions {
  std::string folder;    ///< empty: nothing is saved
  uint64_t interval = 0; ///< in steps; 0: only when the run ends
  uint64_t keep = 0;     ///< newest that stay; 0: all
};

/// Writes checkpoints beside training. A save has two halves: each process writes the files of its ranks; when all
/// have, rank 0 writes the manifest and gives the folder its name. All processes call its functions alike, between
/// steps.
class Saving {
public:
  /// How a save ended; the same on every process.
  struct Outcome {
    uint64_t step = 0;
    bool saved = false;
    Status problem; ///< a sentence with the file and the reason; one that is not `saved` leaves the older ones whole
  };

  /// The plan lies at `planPath`. It and `beginning` need not outlive this. Throws ds::Error for what can be seen
  /// before the first step: no folder can be made, another run writes to it.
  Saving(const plan::proto::Plan &plan, const StateShares &shares, const LocalRanks &ranks, Transport &transport,
         const SavingOptions &options, const std::string &planPath, const Beginning &beginning);

  /// Whether a step waits for the end of a save that is due before it.
  bool isBlocking() const { return plan_.training().checkpoint_buffer_bytes() == 0; }
  bool isDue(uint64_t stepsDone) const { return options_.interval > 0 && stepsDone % options_.interval == 0; }

  /// Begins to save the state after so many steps, which may be written by steps from now on. Returns how the save
  /// before ended, which it waits for, if there was one.
  std::optional<Outcome> begin(uint64_t stepsDone);
  /// After every step: goes on to the second half where the first is done on every process.
  void poll();
  /// Waits for the end of the save that was begun last; nothing if its outcome is known already.
  std::optional<Outcome> wait();
  /// Whether the state after so many steps is a checkpoint.
  bool has(uint64_t stepsDone) const { return saved_ == stepsDone; }
  /// The run's id, the same on every process.
  const std::string &run() const { return beginning_.run; }

private:
  /// What rank 0 must know of the file of a rank.
  struct Written {
    Status status;
    uint64_t bytes = 0;
    std::array<char, 64> sha256{};
  };
  enum class State : uint8_t { Idle, Writing, Publishing };

  std::string pathOf(uint64_t stepsDone) const { return options_.folder + "/" + checkpointName(stepsDone); }
  std::string partPath(uint64_t stepsDone) const { return pathOf(stepsDone) + "." + beginning_.run + ".part"; }
  void describeRun(const std::string &planPath);
  void shareRunId();
  void requireSavable() const;
  void gather();
  Outcome publish(uint64_t stepsDone, const std::vector<Written> &written) const;

  const plan::proto::Plan &plan_;
  const StateShares &shares_;
  const LocalRanks &ranks_;
  Transport &transport_;
  const SavingOptions options_;
  Manifest beginning_; // what all manifests of the run have in common, with step and samples at its start
  std::unique_ptr<FolderLock> lock_;
  StateWriter writer_;
  State state_ = State::Idle;
  uint64_t step_ = 0;              // of the save under way
  std::future<Outcome> published_; // on rank 0
  std::optional<uint64_t> saved_;  // steps of the newest
};

} // namespace ds::runtime
