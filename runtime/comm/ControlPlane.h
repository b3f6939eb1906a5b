//===- ControlPlane.h - what the processes of a run say to each other -----===//
#pragma once

#include "core/Status.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// How much longer a rank waits for rank 0 to take or send bytes between steps than rank 0 for it: rank 0 turns to one
/// after another, so it may be waiting for a third, and has the time to name it.
constexpr std::chrono::seconds graceOfRankZero{3};

/// Everything between the processes of a run that is no collective or message of the plan: few bytes, on the host.
/// Accelerators have a transport of their own beside it. Cf. MPI_COMM_WORLD, torch.distributed.Store.
class ControlPlane {
public:
  virtual ~ControlPlane() = default;

  virtual uint32_t ranks() const noexcept = 0;
  /// Ranks that run in this process, ascending.
  virtual const std::vector<uint32_t> &localRanks() const noexcept = 0;

  /// How long a rank waits for the others.
  virtual void setTimeout(std::chrono::milliseconds timeout) noexcept = 0;

  /// Called once when some rank has failed, from any thread; by processes also if that was before it was set. Set
  /// before the first run; once it is set again, to nothing, the old one is not running any more.
  virtual void onStop(std::function<void(const Status &)> callback) = 0;
  /// A rank of this process has failed: every collective and message of every rank ends with this status, if it is the
  /// first.
  virtual void stop(const Status &status) noexcept = 0;
  /// The first failure that this process knows of, its own or another rank's.
  virtual Status failure() const noexcept = 0;

  // Between runs, for whole processes. They throw ds::Error.

  /// Copies bytes of `from`'s process into the same span of `to`'s; others may call it too and return at once. Both
  /// call it in the same order. Cf. MPI_Send, MPI_Recv.
  virtual void copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) = 0;
  /// Whether any process says so. Cf. MPI_Allreduce with MPI_LOR. Does not throw: a failure, which may be that some do
  /// not come in time, says so too. Like the two below it is called by every process, in the same order.
  virtual bool anyOf(bool mine) noexcept = 0;
  /// Throws on every process, naming ranks, if `digest` of what `what` names is not the same everywhere.
  virtual void requireEqual(const std::string &what, uint64_t digest) = 0;
  /// Ranks that this process waited for in vain in one of the two above; from any thread.
  virtual std::vector<uint32_t> missing() const { return {}; }
  /// The run is over on every rank. A process that is destroyed without has failed. Cf. MPI_Finalize.
  virtual void finish() = 0;
};

} // namespace ds::runtime
