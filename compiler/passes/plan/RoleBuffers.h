//===- RoleBuffers.h - buffers of a role's variables, buckets and values ------===//
#pragma once

#include "compiler/analysis/BucketIndex.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

namespace ds {

/// Where a tensor begins: `offset` bytes into a buffer and, on the rank at coordinate c of the communicator, c *
/// `rankStride` bytes further.
struct BufferView {
  mlir::Value buffer;
  int64_t offset = 0, rankStride = 0;

  explicit operator bool() const { return bool(buffer); }
  BufferView at(int64_t bytes) const { return {buffer, offset + bytes, rankStride}; }
};

/// Makes the buffers of a role, those of variables, buckets and values at their first use.
class RoleBuffers {
public:
  /// Buffers go where `builder` stands; constants become variables before `role`.
  RoleBuffers(mlir::SymbolTable &symbols, dist::RoleOp role, mlir::OpBuilder &builder);

  /// In device memory, unless `space` is another.
  mlir::Value make(llvm::StringRef name, int64_t bytes, plan::Scope scope, plan::Category category,
                   plan::MemorySpace space = plan::MemorySpace::Device);

  /// Of a variable, or of this rank's slice of a bucket.
  BufferView ofState(mlir::StringAttr name);
  /// Of all of a replicated bucket.
  BufferView ofWhole(dist::BucketOp bucket);
  BufferView ofValue(mlir::StringAttr name);
  /// A constant that a kernel reads from memory is a variable with a literal value; equal constants share one.
  BufferView ofConstant(mlir::ElementsAttr value, mlir::Location location);

  /// The bucket that a variable is a member of, or null.
  dist::BucketOp bucketOf(mlir::StringAttr variable) const { return buckets_.bucketOf(variable); }
  /// Whether a variable or bucket is zero at the start of every step, and gone after it.
  bool isOfStep(mlir::StringAttr state) const;

private:
  mlir::Value makeState(mlir::StringAttr name, int64_t bytes);
  mlir::Value bufferOfVariable(train::VariableOp variable);
  mlir::Value bufferOfBucket(dist::BucketOp bucket);
  train::VariableKind kindOf(mlir::StringAttr state) const;

  BucketIndex buckets_;
  mlir::SymbolTable &symbols_;
  dist::RoleOp role_;
  mlir::OpBuilder &builder_;

  // Looked up, never iterated.
  llvm::DenseMap<mlir::StringAttr, mlir::Value> state_, values_;
  llvm::DenseMap<mlir::Attribute, mlir::StringAttr> constants_;
};

} // namespace ds
