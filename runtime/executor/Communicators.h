//===- Communicators.h - the communicators of one rank --------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace ds::runtime {

/// One for each communicator of the plan and kind of queue that enters it, so that collectives of two queues never
/// meet. Roles that share a communicator may number their queues differently; each has one queue of a kind that enters
/// it.
class Communicators {
public:
  /// `transport` may be nullptr where the role has no collectives. Throws ds::Error.
  Communicators(const plan::proto::Plan &plan, const plan::proto::Role &role, uint32_t rank, Transport *transport);

  Communicator &find(uint32_t communicator, plan::proto::Queue::Kind kind) const {
    return *communicators_.at({communicator, kind});
  }
  /// Of all of them.
  WireBytes wireBytes() const noexcept;

private:
  std::map<std::pair<uint32_t, plan::proto::Queue::Kind>, std::unique_ptr<Communicator>> communicators_;
};

} // namespace ds::runtime
