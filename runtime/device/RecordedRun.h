//===- RecordedRun.h - a run of a program that is launched as one ---------===//
#pragma once

#include "core/Status.h"

namespace ds::runtime {

/// What the queues of a device were given between Device::beginRecording and endRecording. Cf. cudaGraphExec_t.
class RecordedRun {
public:
  virtual ~RecordedRun() = default;
  /// Enqueues all of it, while no queue has anything to do; Queue::finish awaits it. Allocates nothing.
  virtual Status launch() noexcept = 0;
};

} // namespace ds::runtime
