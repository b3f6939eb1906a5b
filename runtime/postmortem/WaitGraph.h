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

class WaitGraph {
public:
  /// Both outlive it.
  WaitGraph(const plan::proto::Plan &plan, const Records &records);

  const std::vector<RankState> &ranks() const { return ranks_; }
  /// Who held up the others, the likeliest first; empty if nobody waits for anything.
  std::vector<Culprit> culprits() const;

private:
  RankState stateOf(const FlightFile &file) const;
  RemoteWait hostWait(const FlightFile &file) const;
  RemoteWait remoteWait(const Standing &standing) const;
  void compareEntrances(RemoteWait &wait, const Standing &standing, const std::vector<uint32_t> &others,
                        EntranceCount::Kind kind, uint32_t index) const;
  bool stoodStill(uint32_t rank) const;
  bool holdsUp(uint32_t rank) const;
  Culprit blame(uint32_t rank) const;

  const plan::proto::Plan &plan_;
  const Records &records_;
  std::vector<RankState> ranks_; // by rank
  double longestWait_ = 0;       // of any rank for another, s
};

} // namespace ds::runtime
