//===- ByteMover.h - how bytes move between ranks of one process ----------===//
#pragma once

#include "core/DType.h"
#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace ds::runtime {

/// What one member of a group, or one end of a channel, moves bytes with: at once where ranks run on the host, by
/// enqueueing on `stream` where they run on accelerators. Ranks meet on the host (InProcessGroup.h); before
/// each rendezvous everyone marks how far its stream has come and after it everyone follows the others' marks, so that
/// what it enqueues then comes after all that they enqueued before. Nothing allocates.
class ByteMover {
public:
  virtual ~ByteMover() = default;

  /// Marks, as number `mark`, what was enqueued so far. Marks are numbered 1, 2, 3, ...; the last two are kept, and
  /// nobody is more than one behind. Cf. cudaEventRecord.
  virtual Status mark(uint64_t mark, void *stream) noexcept = 0;
  /// What is enqueued from now on waits for the peer's mark, which was made. Cf. cudaStreamWaitEvent.
  virtual Status follow(const ByteMover &peer, uint64_t mark, void *stream) noexcept = 0;

  /// Copies unless both are the same bytes.
  virtual Status copy(std::byte *target, const std::byte *source, uint64_t bytes, void *stream) noexcept = 0;
  /// As sumInRankOrder, with its bits.
  virtual Status sum(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count,
                     bool accumulate, void *stream) noexcept = 0;
};

/// Makes one for a rank of the run; throws ds::Error.
using MakeByteMover = std::function<std::unique_ptr<ByteMover>(uint32_t rank)>;

/// Moves bytes on the calling thread.
std::unique_ptr<ByteMover> makeHostMover(uint32_t rank);

} // namespace ds::runtime
