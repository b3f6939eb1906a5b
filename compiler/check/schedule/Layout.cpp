//===- Layout.cpp - which variables lie where in a buffer -----------------===//
#include "compiler/check/schedule/Layout.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <map>

namespace ds::check {

namespace {

uint64_t elementsOf(const proto::Variable &variable) {
  uint64_t elements = 1;
  for (int64_t dim : variable.shape())
    elements *= uint64_t(dim);
  return elements;
}

/// The members of a bucket in bytes [first, first + bytes) of it, told from `first` on.
std::vector<Member> bucketMembers(const proto::Plan &plan, const proto::Bucket &bucket, uint64_t first,
                                  uint64_t bytes) {
  const uint64_t size = elementBytes(bucket.dtype());
  std::vector<Member> members;
  for (const proto::BucketMember &member : bucket.members()) {
    const uint64_t begin = member.element() * size;
    const uint64_t end = begin + elementsOf(plan.variables(int(member.variable()))) * size;
    const uint64_t from = std::max(begin, first), to = std::min(end, first + bytes);
    if (from < to)
      members.push_back({member.variable(), from - first, to - first, from - begin});
  }
  return members;
}

} // namespace

Layout::Layout(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank) {
  if (buffer.has_variable())
    members_ = {{buffer.variable(), 0, buffer.bytes(),
                 buffer.first_element() * elementBytes(plan.variables(int(buffer.variable())).dtype())}};
  if (!buffer.has_bucket())
    return;
  const proto::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  const uint64_t coordinate = buffer.shard() ? plan::groupCoordinate(plan, bucket.communicator(), rank) : 0;
  members_ = bucketMembers(plan, bucket, coordinate * buffer.bytes(), buffer.bytes());
}

std::vector<Member> Layout::within(uint64_t offset, uint64_t bytes) const {
  std::vector<Member> members;
  for (Member member : members_) {
    const uint64_t begin = std::max(member.begin, offset), end = std::min(member.end, offset + bytes);
    if (begin < end)
      members.push_back({member.variable, begin, end, member.firstByte + begin - member.begin});
  }
  return members;
}

std::set<std::string> trainedParameters(const proto::Plan &plan) {
  std::set<std::string> trained;
  for (const proto::Variable &variable : plan.variables())
    if (variable.kind() == proto::Variable::GRADIENT && variable.has_of())
      trained.insert(plan.variables(int(variable.of())).name());
  for (const proto::ReferenceOp &op : plan.reference().ops())
    for (uint32_t variable : op.variables())
      if (isOptimizer(op) && plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
        trained.insert(plan.variables(int(variable)).name());
  return trained;
}

void checkVariableLayout(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> parts; // by variable: elements [first, last)
  for (const proto::Buffer &buffer : role.buffers()) {
    if (buffer.has_variable()) {
      const uint64_t count = buffer.bytes() / elementBytes(plan.variables(int(buffer.variable())).dtype());
      parts[buffer.variable()].emplace_back(buffer.first_element(), buffer.first_element() + count);
    }
    if (buffer.has_bucket()) // slices of all ranks together are the whole
      for (const proto::BucketMember &member : plan.buckets(int(buffer.bucket())).members())
        parts[member.variable()].emplace_back(0, elementsOf(plan.variables(int(member.variable()))));
  }
  for (auto &[index, ranges] : parts) {
    const proto::Variable &variable = plan.variables(int(index));
    std::ranges::sort(ranges);
    uint64_t end = 0;
    for (auto [first, last] : ranges) {
      if (first != end)
        throw Refusal{"coverage", "role " + role.name() + ": elements " + std::to_string(std::min(first, end)) +
                                      " to " + std::to_string(std::max(first, end) - 1) + " of variable " +
                                      variable.name() + (first > end ? " lie nowhere" : " lie in two places")};
      end = last;
    }
    if (end != elementsOf(variable))
      throw Refusal{"coverage", "role " + role.name() + ": elements " + std::to_string(end) + " to " +
                                    std::to_string(elementsOf(variable) - 1) + " of variable " + variable.name() +
                                    " lie nowhere"};
  }
}

} // namespace ds::check
