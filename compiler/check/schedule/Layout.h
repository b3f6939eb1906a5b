//===- Layout.h - which variables lie where in a buffer -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"

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

/// What a PLAN buffer holds on one rank (runtime/plan/world/Placement.h), in bytes.
class Layout {
public:
  Layout(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank);
  Layout(const proto::Plan &plan, const std::vector<plan::Held> &held);

  /// Members in bytes [offset, offset + bytes), cut to fit.
  std::vector<Member> within(uint64_t offset, uint64_t bytes) const;

private:
  std::vector<Member> members_;
};

/// A role has one place for a variable: a buffer of its own, or a bucket. All of it lies there, whole or by slices, as
/// plan::validatePlan has seen. Every parameter that is trained has a role that holds it. Refuses ("coverage") others.
void checkVariableLayout(const proto::Plan &plan);

} // namespace ds::check
