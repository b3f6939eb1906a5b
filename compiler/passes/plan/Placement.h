//===- Placement.h - where state and kept values lie ------------------------===//
#pragma once

#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/InFlight.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

namespace ds {

/// Where a tensor begins: `offset` bytes into a buffer and, on the rank at coordinate c of the communicator, c *
/// `rankStride` bytes further.
struct Place {
  mlir::Value buffer;
  int64_t offset = 0, rankStride = 0;

  explicit operator bool() const { return bool(buffer); }
  bool operator==(const Place &) const = default;
  Place at(int64_t bytes) const { return {buffer, offset + bytes, rankStride}; }
};

/// Makes the buffers of a role, those of variables, buckets and values at their first use.
class Placement {
public:
  /// Buffers of the role go where `builder` stands; constants become variables before `role`.
  Placement(mlir::SymbolTable &symbols, dist::RoleOp role, mlir::OpBuilder &builder, const InFlight &inFlight);

  /// In device memory.
  mlir::Value make(llvm::StringRef name, int64_t bytes, plan::Scope scope, plan::Category category, int64_t slots = 1,
                   mlir::FlatSymbolRefAttr holds = {}, bool shard = false) {
    return make(plan::MemorySpace::Device, name, bytes, scope, category, slots, holds, shard);
  }
  mlir::Value make(plan::MemorySpace space, llvm::StringRef name, int64_t bytes, plan::Scope scope,
                   plan::Category category, int64_t slots = 1, mlir::FlatSymbolRefAttr holds = {}, bool shard = false);

  /// Of a variable, or of this rank's slice of a bucket.
  Place ofState(mlir::StringAttr name);
  /// Of all of a replicated bucket.
  Place ofWhole(dist::BucketOp bucket);
  Place ofValue(mlir::StringAttr name);
  /// A constant that a kernel reads from memory is a variable with a literal value; equal constants share one.
  Place ofConstant(mlir::ElementsAttr value, mlir::Location location);

  /// The bucket that a variable is a member of, or null.
  dist::BucketOp bucketOf(mlir::StringAttr variable) const { return buckets_.bucketOf(variable); }

private:
  mlir::Value bufferOfVariable(train::VariableOp variable);
  mlir::Value bufferOfBucket(dist::BucketOp bucket);

  BucketIndex buckets_;
  mlir::SymbolTable &symbols_;
  dist::RoleOp role_;
  mlir::OpBuilder &builder_;
  const InFlight &inFlight_;
  // Looked up, never iterated.
  llvm::DenseMap<mlir::StringAttr, mlir::Value> state_, values_;
  llvm::DenseMap<mlir::Attribute, mlir::StringAttr> constants_;
};

} // namespace ds
