//===- CollectiveState.h - state that a collective under way holds ----------===//
#pragma once

#include "compiler/analysis/BucketIndex.h"

#include "llvm/ADT/DenseSet.h"

namespace ds {

/// The state that a collective reads from and writes into, which nothing else may change, or see half-written, between
/// its start and its done.
class CollectiveState {
public:
  /// `buckets` must outlive it.
  CollectiveState(dist::CollectiveOpInterface collective, const BucketIndex &buckets);

  /// What `op` may not touch before the collective is done: state that the collective writes, or state that it reads
  /// and `op` writes; null if there is none.
  mlir::StringAttr conflictWith(mlir::Operation *op) const;

private:
  /// A variable counts as the bucket that it lies in.
  mlir::StringAttr ownerOf(mlir::StringAttr name) const;

  const BucketIndex &buckets_;
  llvm::DenseSet<mlir::StringAttr> read_, written_; // looked up, never iterated
};

} // namespace ds
