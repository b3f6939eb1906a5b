//===- StateWriter.h - the files of ranks, written beside training --------===//
#pragma once

#include "core/Status.h"
#include "runtime/checkpoint/ByteRing.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {

/// Writes what the ranks of this process have to write of a checkpoint. One thread copies the state into a buffer and
/// opens the gate of each part that is copied; another writes the buffer to files. So a step waits for the disk only as
/// far as the buffer is smaller than the state.
class StateWriter {
public:
  struct Rank {
    const Executor *executor;
    std::span<const HeldPart> parts; ///< in the order of its gate
  };
  struct Written {
    Status status;
    Manifest::File file;
  };

  /// All outlive it. `bufferBytes`: allocated here, of all ranks together.
  StateWriter(const plan::proto::Plan &plan, std::vector<Rank> ranks, uint64_t bufferBytes);
  /// Waits for what is being written.
  ~StateWriter();

  /// Begins to write the ranks' files into a folder, which is made. While no queue has anything to do, and after the
  /// last save's files() were taken. State in another memory than the host's is copied before it returns.
  void begin(std::string folder);
  /// Whether the files are written, or could not be.
  bool done() const noexcept { return done_; }
  /// Waits for them; by rank, as in the constructor.
  std::vector<Written> files();

private:
  void copyAll();
  void copyPart(const Executor &executor, const HeldPart &part);
  void writeAll();
  Written write(const Rank &rank);
  uint64_t bytesOf(const HeldPart &part) const;

  const plan::proto::Plan &plan_;
  const std::vector<Rank> ranks_;
  ByteRing ring_;
  std::string folder_;
  std::vector<Written> written_;
  std::atomic<bool> done_ = true;
  std::thread copier_, writer_;
};

} // namespace ds::runtime
