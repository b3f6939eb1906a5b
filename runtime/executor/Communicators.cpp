//===- Communicators.cpp - the communicators of one rank ------------------===//
#include "runtime/executor/Communicators.h"

#include "core/Error.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>

namespace ds::runtime {

Communicators::Communicators(const plan::proto::Plan &plan, const plan::proto::Role &role, uint32_t rank,
                             Transport *transport) {
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands())
      if (command.has_collective())
        communicators_[{command.collective().communicator(), role.queues(int(command.queue())).kind()}];
  if (!communicators_.empty() && transport == nullptr)
    throw Error("the plan has collectives, but its ranks were given no way to reach each other");
  // In the order of their numbers, which every rank of a group has in common.
  for (auto &[key, communicator] : communicators_)
    communicator =
        transport->communicator(rank, plan::Group(plan, key.first).ranks(rank), key.first * 64 + uint32_t(key.second));
}

WireBytes Communicators::wireBytes() const noexcept {
  WireBytes sum{};
  for (const auto &[key, communicator] : communicators_) {
    const WireBytes bytes = communicator->wireBytes();
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += bytes[i];
  }
  return sum;
}

} // namespace ds::runtime
