//===- RolePeers.cpp - which roles wait for each other --------------------===//
#include "runtime/plan/world/RolePeers.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace ds::plan {

RolePeers::RolePeers(const proto::Plan &plan) : plan_(plan) {
  size_t ranks = 1;
  for (const proto::Axis &axis : plan.world().axes())
    ranks *= axis.size();
  roles_.resize(ranks);
  for (int r = 0; r < plan.roles_size(); ++r)
    for (int i = 0; i + 1 < plan.roles(r).ranks_size(); i += 2)
      for (uint64_t rank = plan.roles(r).ranks(i); rank <= plan.roles(r).ranks(i + 1); ++rank)
        roles_[rank] = r;
}

const RolePairs &RolePeers::inCommunicator(uint32_t communicator) {
  const auto [known, isNew] = inCommunicator_.try_emplace(communicator);
  RolePairs &pairs = known->second;
  if (!isNew || plan_.roles_size() < 2)
    return pairs;
  const Group group(plan_, communicator);
  std::map<uint32_t, std::set<int>> groups; // by first rank: the roles seen there
  for (uint32_t rank = 0; rank < roles_.size(); ++rank)
    groups[group.first(rank)].insert(roles_[rank]);
  for (const auto &[first, roles] : groups)
    for (auto a = roles.begin(); a != roles.end(); ++a)
      for (auto b = std::next(a); b != roles.end(); ++b)
        pairs.emplace(*a, *b);
  return pairs;
}

const RolePairs &RolePeers::onChannel(uint32_t channel) {
  const proto::Channel &line = plan_.channels(int(channel));
  const auto [known, isNew] = onLine_.try_emplace({line.axis(), line.from(), line.to()});
  if (!isNew)
    return known->second;
  const uint64_t stride = axisStride(plan_.world(), line.axis());
  const uint64_t block = stride * plan_.world().axes(int(line.axis())).size();
  for (uint64_t outer = 0; outer < roles_.size(); outer += block) // ranks at `from`
    for (uint64_t inner = 0; inner < stride; ++inner) {
      const uint64_t sender = outer + line.from() * stride + inner;
      known->second.emplace(roles_[sender], roles_[receiverOf(plan_, channel, uint32_t(sender))]);
    }
  return known->second;
}

} // namespace ds::plan
