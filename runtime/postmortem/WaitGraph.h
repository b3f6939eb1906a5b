//===- WaitGraph.h - which ranks wait for which, and who held up all ------===//
#pragma once

#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"
#include "runtime/postmortem/Standing.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// A rank that waits for others, in a collective, a message or between steps.
struct RemoteWait {
  std::string what; ///< "in all_gather #41 of communicator data (h.0.attn)", "between steps (...)"
  double seconds = 0;
  std::vector<uint32_t> behind = {}; ///< ranks that have not come to it yet
  std::string lost = {};             ///< where all have come: a sentence about that
};

/// What a rank does on its own.
struct OwnWork {
  std::string what; ///< "reads input x from d.bin, step 12, micro-batch 0"
  double seconds = 0;
  bool files = false; ///< it reads or writes one
};

struct RankState {
  std::vector<Standing> standings; ///< of queues that have not ended what they were given
  std::vector<RemoteWait> waits;
  std::optional<OwnWork> own; ///< what has lasted longest
};

enum class Blame : uint8_t { NoRecord, Still, Files, Works, Lost, Stands, Circle };

struct Culprit {
  Blame blame;
  std::vector<uint32_t> ranks;
  std::string sentence;
};

/// Of the moment of the hang (Moment.h).
class WaitGraph {
public:
  /// The plan outlives it.
  WaitGraph(const plan::proto::Plan &plan, const Records &records);
  WaitGraph(const WaitGraph &) = delete;
  WaitGraph &operator=(const WaitGraph &) = delete;

  const std::vector<RankState> &ranks() const { return ranks_; }
  /// As of that moment.
  const Records &records() const { return records_; }
  /// Who held up the others, the likeliest first; empty if nobody waits for anything.
  std::vector<Culprit> culprits() const;

private:
  RankState stateOf(const FlightFile &file) const;
  RemoteWait hostWait(const FlightFile &file) const;
  RemoteWait remoteWait(const Standing &standing) const;
  void compareEntrances(RemoteWait &wait, const Standing &standing, const std::vector<uint32_t> &others,
                        EntranceCount::Kind kind, uint32_t index) const;
  void compareMessages(RemoteWait &wait, const Standing &standing, const std::vector<uint32_t> &members,
                       uint32_t communicator) const;
  /// The time in which the rank's whole process did not run, if that explains that others have waited; or nullptr.
  const Stillness *stillness(uint32_t rank) const;
  bool holdsUp(uint32_t rank) const;
  Culprit blame(uint32_t rank) const;

  const plan::proto::Plan &plan_;
  const int64_t momentMs_;
  const Records records_;
  std::vector<RankState> ranks_; // by rank
};

} // namespace ds::runtime
