//===- Saving.h - --save: checkpoints while a run goes on -----------------===//
#pragma once

#include "core/Status.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/Resuming.h"

#include <array>
#include <cstdint>
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

/// Writes checkpoints. All processes call its functions alike, between steps.
class Saving {
public:
  /// The plan lies at `planPath`. It and `beginning` need not outlive this. Throws ds::Error for what can be seen
  /// before the first step: no folder can be made, another run writes to it.
  Saving(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport, const SavingOptions &options,
         const std::string &planPath, const Beginning &beginning);

  bool isDue(uint64_t stepsDone) const { return options_.interval > 0 && stepsDone % options_.interval == 0; }

  /// The same on every process.
  struct Outcome {
    bool saved = false;
    Status problem; ///< a sentence with the file and the reason; one that is not `saved` leaves the older ones whole
  };
  /// Saves the state after so many steps, unless that is saved.
  Outcome save(uint64_t stepsDone);

  /// The checkpoint of so many steps.
  std::string pathOf(uint64_t stepsDone) const { return options_.folder + "/" + checkpointName(stepsDone); }

private:
  /// What rank 0 must know of the file of a rank.
  struct Written {
    Status status;
    uint64_t bytes = 0;
    std::array<char, 64> sha256{};
  };

  std::string partPath(uint64_t stepsDone) const { return pathOf(stepsDone) + "." + beginning_.run + ".part"; }
  Written writeFile(const std::string &part, uint32_t rank) const;
  Outcome publish(uint64_t stepsDone, const std::vector<Written> &written) const;
  void describeRun(const std::string &planPath);
  void shareRunId();

  const plan::proto::Plan &plan_;
  const LocalRanks &ranks_;
  Transport &transport_;
  const SavingOptions options_;
  Manifest beginning_; // what all manifests of the run have in common, with step and samples at its start
  const StateShares shares_;
  std::unique_ptr<FolderLock> lock_;
  std::optional<uint64_t> saved_; // steps of the newest
};

} // namespace ds::runtime
