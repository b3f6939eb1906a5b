//===- Sharing.h - what data-parallel ranks share out ----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::report {

/// One bucket, as a rank of a role holds it.
struct BucketFacts {
  const plan::proto::Bucket *bucket;
  uint64_t wholeBytes, heldBytes; // a rank holds all of it, or the n-th part
  uint64_t paddingBytes;          // of those held; the ranks' share of what belongs to no variable
  bool oversized;                 // its only member is larger than the buckets that the configuration asks for
};
std::vector<BucketFacts> bucketFacts(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// A row of the ZeRO table: one kind of state.
struct StateFacts {
  uint64_t wholeBytes = 0;   // of all variables, once
  uint64_t heldBytes = 0;    // by a rank, padding left out
  uint64_t paddingBytes = 0; // by a rank
};
/// Of the parameters, the gradients or the optimizer's state: variables and buffers of that category.
StateFacts stateFacts(const plan::proto::Plan &plan, const plan::proto::Role &role,
                      plan::proto::Buffer::Category category);

/// The variables that a rank of the role holds, whole or a part, ascending.
std::vector<uint32_t> variablesHeld(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// Bytes of a buffer that belong to no variable, because a bucket lies in it.
uint64_t paddingOf(const plan::proto::Plan &plan, const plan::proto::Buffer &buffer);

} // namespace ds::report
