//===- Rendezvous.h - collectives and messages of several roles match -----===//
#pragma once

#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/RolePeers.h"

#include <string>

namespace ds::check {

/// Ties the roles of a run together, which has come to its end: the k-th collective of a communicator, or message of a
/// channel, that a role comes to is the k-th of every role that it meets there. Refuses ("progress") what is not the
/// same for both, a second queue, and a message that no other role can take.
void meet(const proto::Plan &plan, const std::string &program, plan::RolePeers &peers, JointTimeline &joint);

} // namespace ds::check
