//===- Layout.h - which variables lie where in a buffer -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
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

/// A role has one place for a variable: a buffer of its own, or a bucket. All of it lies there, whole or by slices, as
/// plan::validatePlan has seen. Every parameter that is trained has a role that holds it. Refuses ("coverage") others.
void checkVariableLayout(const proto::Plan &plan);

} // namespace ds::check
