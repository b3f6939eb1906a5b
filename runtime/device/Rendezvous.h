//===- Rendezvous.h - where a queue meets other ranks ---------------------===//
#pragma once

#include <vector>

namespace ds::runtime {

class QueueStanding;

/// One rank's end of a communicator or channel, as far as who waits for whom is concerned. Ends whose other ranks are
/// processes know nothing of their queues.
class Rendezvous {
public:
  virtual ~Rendezvous() = default;
  /// Told before the first run: the queue that comes here, which outlives all runs.
  virtual void belongsTo(const QueueStanding &queue) {}
  /// Adds the queues that the one which is here waits for; nullptr: one that is not known.
  virtual void addMissing(std::vector<const QueueStanding *> &queues) const {}
};

} // namespace ds::runtime
