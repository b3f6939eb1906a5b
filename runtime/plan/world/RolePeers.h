//===- RolePeers.h - which roles wait for each other ----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ds::plan {

/// Pairs of roles, by index.
using RolePairs = std::set<std::pair<int, int>>;

/// Where ranks of different roles meet. Of a plan whose world, roles' ranks, communicators and channels are checked.
class RolePeers {
public:
  explicit RolePeers(const proto::Plan &plan);

  /// Roles that have ranks in one group of the communicator, the first named first.
  const RolePairs &inCommunicator(uint32_t communicator);
  /// Roles at the two ends of some line of the channel: who may send, who may receive.
  const RolePairs &onChannel(uint32_t channel);

private:
  const proto::Plan &plan_;
  std::vector<int> roles_; // by rank
  std::map<uint32_t, RolePairs> inCommunicator_;
  std::map<std::array<uint32_t, 3>, RolePairs> onLine_; // by axis, from and to
};

} // namespace ds::plan
