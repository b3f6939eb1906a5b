//===- Layout.h - which variables lie where in a buffer -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// Elements of a variable in bytes [begin, end) of a buffer.
struct Member {
  uint32_t variable;
  uint64_t begin, end;
  uint64_t firstByte; ///< of the variable, at `begin`

  void skip(uint64_t bytes) {
    begin += bytes;
    firstByte += bytes;
  }
};

/// What a PLAN buffer holds: of a bucket that ranks have windows of, all of these side by side.
std::vector<Member> membersOf(const proto::Plan &plan, const proto::Buffer &buffer);

/// Of pieces one behind the other, those in bytes [begin, end), cut to fit.
template <typename Piece> std::vector<Piece> within(const std::vector<Piece> &pieces, uint64_t begin, uint64_t end) {
  std::vector<Piece> inside;
  auto it = std::ranges::upper_bound(pieces, begin, {}, &Piece::end);
  for (; it != pieces.end() && it->begin < end; ++it) {
    Piece &one = inside.emplace_back(*it);
    one.skip(std::max(one.begin, begin) - one.begin);
    one.end = std::min(one.end, end);
  }
  return inside;
}

/// A role has one place for a variable: a buffer of its own, or a bucket. All of it lies there, whole or by slices, as
/// plan::validatePlan has seen. Every parameter that is trained has a role that holds it. Refuses ("coverage") others.
void checkVariableLayout(const proto::Plan &plan);

} // namespace ds::check
