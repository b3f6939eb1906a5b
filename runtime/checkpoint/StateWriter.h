//===- StateWriter.h - the files of ranks, written beside training --------===//
#pragma once

#include "core/Status.h"
#include "runtime/checkpoint/ByteRing.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {

/// Writes what the ranks of this process have to write of a checkpoint. One thread writes the state to files, straight
/// from where it lies, and opens the gate of each part that it is past. Once a command of the next step wants to write
/// what is not, another thread copies all the rest into a buffer, from which the first one goes on. So a step waits for
/// memory, and for the disk only as far as the buffer is smaller than that rest.
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
  /// The next bytes of the state, in the order of ranks and parts.
  struct Cursor {
    size_t rank = 0, part = 0;
    uint64_t offset = 0; ///< bytes of the part
  };

  void ask() noexcept;
  void copyRest();
  size_t copyNext(std::span<std::byte> to);
  void skipEmptyParts();
  std::span<const std::byte> next(uint64_t most);
  void writeAll();
  Written write(const Rank &rank);
  uint64_t bytesOf(const HeldPart &part) const;

  const plan::proto::Plan &plan_;
  const std::vector<Rank> ranks_;
  ByteRing ring_;
  std::vector<std::byte> piece_; ///< of what is written without the ring
  uint64_t pending_ = 0;         ///< bytes of the ring that are being written
  std::mutex mutex_;
  std::condition_variable asked_;
  Cursor cursor_;         ///< guarded
  bool buffered_ = false; ///< guarded; from now on only the copier moves the cursor
  std::string folder_;
  std::vector<Written> written_;
  std::atomic<bool> done_ = true;
  std::thread copier_, writer_;
};

} // namespace ds::runtime
