//===- Sharing.cpp - what data-parallel ranks share out --------------------===//
#include "compiler/report/Sharing.h"

#include "compiler/report/Facts.h"
#include "core/DType.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Bucket;
using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Variable;

uint64_t memberElements(const Plan &plan, const Bucket &bucket) {
  uint64_t count = 0;
  for (const plan::proto::BucketMember &member : bucket.members())
    count += elements(plan.variables(int(member.variable())).shape());
  return count;
}

uint64_t wholeBytesOf(const Bucket &bucket) {
  const auto dtype = dtypeFromNumber(int(bucket.dtype()));
  return dtype ? bucket.elements() * uint64_t(byteSize(*dtype)) : 0;
}

/// The bucket that lies in a buffer: one that outlives a step names it, gradients bear its name.
const Bucket *bucketIn(const Plan &plan, const Buffer &buffer) {
  if (buffer.has_bucket())
    return &plan.buckets(int(buffer.bucket()));
  if (buffer.scope() != Buffer::STEP)
    return nullptr;
  for (const Bucket &bucket : plan.buckets())
    if (bucket.name() == buffer.name())
      return &bucket;
  return nullptr;
}

bool isOf(const Variable &variable, Buffer::Category category) {
  switch (category) {
  case Buffer::WEIGHTS:
    return variable.kind() == Variable::PARAMETER || variable.kind() == Variable::BUFFER;
  case Buffer::GRADIENTS:
    return variable.kind() == Variable::GRADIENT;
  default:
    return variable.kind() == Variable::OPTIMIZER;
  }
}

} // namespace

uint64_t paddingOf(const Plan &plan, const Buffer &buffer) {
  const Bucket *bucket = bucketIn(plan, buffer);
  if (!bucket || bucket->elements() == 0)
    return 0;
  // A slice of n has the n-th part of the members; which rank it is decides where they lie.
  return buffer.bytes() -
         uint64_t(static_cast<unsigned __int128>(buffer.bytes()) * memberElements(plan, *bucket) / bucket->elements());
}

std::vector<uint32_t> variablesHeld(const Plan &plan, const plan::proto::Role &role) {
  std::set<uint32_t> held;
  for (const Buffer &buffer : role.buffers()) {
    if (buffer.has_variable())
      held.insert(buffer.variable());
    if (buffer.has_bucket())
      for (const plan::proto::BucketMember &member : plan.buckets(int(buffer.bucket())).members())
        held.insert(member.variable());
  }
  return {held.begin(), held.end()};
}

std::vector<BucketFacts> bucketFacts(const Plan &plan, const plan::proto::Role &role) {
  std::vector<BucketFacts> facts;
  const uint64_t limit = plan.bucket_elements() > 0 ? plan.bucket_elements() : std::numeric_limits<uint64_t>::max();
  for (const Buffer &buffer : role.buffers())
    if (const Bucket *bucket = bucketIn(plan, buffer))
      facts.push_back({bucket, wholeBytesOf(*bucket), buffer.bytes(), paddingOf(plan, buffer),
                       bucket->members_size() == 1 && memberElements(plan, *bucket) > limit});
  return facts;
}

StateFacts stateFacts(const Plan &plan, const plan::proto::Role &role, Buffer::Category category) {
  StateFacts facts;
  for (const Variable &variable : plan.variables())
    if (isOf(variable, category))
      facts.wholeBytes += bytesOf(variable);
  for (const Buffer &buffer : role.buffers()) {
    if (buffer.category() != category || (category == Buffer::WEIGHTS && buffer.scope() != Buffer::PLAN))
      continue; // what a step rounds of them, or brings near, is no more of them
    const uint64_t padding = paddingOf(plan, buffer);
    facts.heldBytes += buffer.bytes() - padding;
    facts.paddingBytes += padding;
  }
  return facts;
}

} // namespace ds::report
