//===- GatherUses.h - what is gathered in a fragment, and when it is used -----===//
#pragma once

#include "dialects/Dist/Dist.h"
#include "dialects/Train/Train.h"

#include <vector>

namespace ds {

/// A bucket of parameters made whole for a while: by an all_gather, or by an earlier fragment that kept it.
struct Gather {
  mlir::Value whole;
  dist::BucketOp bucket;
  int64_t first = 0, last = -1; // instants of its first and last use

  dist::AllGatherOp op() const { return whole.getDefiningOp<dist::AllGatherOp>(); }
  int64_t elements() { return bucket.getWholeType().getNumElements(); }
};

/// The gathers of a fragment in program order. An instant is one use of a parameter, a dist.view of a gathered bucket.
class GatherUses {
public:
  GatherUses(dist::FragmentOp fragment, const mlir::SymbolTable &symbols);

  std::vector<Gather> gathers;
  std::vector<dist::ViewOp> views; // by instant

  int64_t instants() const { return int64_t(views.size()); }
  /// Elements of the parameters used in instants [begin, end).
  int64_t usedBetween(int64_t begin, int64_t end) const { return used_[size_t(end)] - used_[size_t(begin)]; }
  /// Whether `elements` more may be gathered in instants [begin, end) if `max` may be at once.
  bool fits(int64_t begin, int64_t end, int64_t elements, int64_t max) const;
  void occupy(int64_t begin, int64_t end, int64_t elements);

private:
  std::vector<int64_t> used_{0}; // before each instant, and at the end
  std::vector<int64_t> live_;    // elements gathered, by instant
};

} // namespace ds
