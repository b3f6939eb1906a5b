//===- Layout.h - which variables lie where in a buffer -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// Elements of a variable in bytes [begin, end) of a buffer.
struct Member {
  uint32_t variable;
  uint64_t begin, end;
  uint64_t firstByte; ///< of the variable, at `begin`
};

/// What a PLAN buffer holds: of a bucket that ranks have windows of, all of these side by side.
std::vector<Member> membersOf(const proto::Plan &plan, const proto::Buffer &buffer);

/// Members in bytes [begin, end), cut to fit.
std::vector<Member> within(const std::vector<Member> &members, uint64_t begin, uint64_t end);

/// Names of parameters that have a gradient, or that an optimizer of the reference program updates.
std::set<std::string> trainedParameters(const proto::Plan &plan);

/// Every variable that a role holds lies there once: in a buffer of its own, whose parts tile it, or in one bucket that
/// the role holds, whole or by slices. Refuses ("coverage") others.
void checkVariableLayout(const proto::Plan &plan, const proto::Role &role);

} // namespace ds::check
