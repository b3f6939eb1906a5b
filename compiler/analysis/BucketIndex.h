//===- BucketIndex.h - which bucket a variable lies in ----------------------===//
#pragma once

#include "dialects/Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace ds {

// What ds-plan-buckets writes on parameters, or a user by hand.
/// The bucket's name: parameters of one name share a bucket.
inline constexpr llvm::StringLiteral bucketAttribute = "dist.bucket";
/// The ZeRO stage by which the bucket is treated, 0 to 3.
inline constexpr llvm::StringLiteral zeroStageAttribute = "dist.zero_stage";
/// Under stages 1 and 2: the 16-bit type that all uses of the parameter read. A rank holds its slice as it is, and what
/// it computes with is gathered in this type.
inline constexpr llvm::StringLiteral workingTypeAttribute = "dist.working_type";

/// On a dist.bucket: how often it is gathered, and why.
inline constexpr llvm::StringLiteral gatheredAttribute = "dist.gathered";

/// The parameter that an op of the optimizer updates; nothing for other ops.
inline std::optional<mlir::StringAttr> updatedParameter(mlir::Operation *op) {
  auto parameter = op->getAttrOfType<mlir::FlatSymbolRefAttr>("parameter");
  if (!parameter || !op->getAttrOfType<mlir::FlatSymbolRefAttr>("gradient"))
    return std::nullopt;
  return parameter.getAttr();
}

/// A member of a bucket.
struct Membership {
  dist::BucketOp bucket; // null: of none
  int64_t offset = 0;    // elements
};

/// Looks variables up in the buckets of a module.
class BucketIndex {
public:
  explicit BucketIndex(mlir::ModuleOp module) {
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getOf())
        parameters_[variable.getSymNameAttr()] = variable.getOfAttr().getAttr();
    for (auto bucket : module.getOps<dist::BucketOp>())
      for (auto [member, offset] :
           llvm::zip(bucket.getMembers().getAsRange<mlir::FlatSymbolRefAttr>(), bucket.getOffsets()))
        memberships_[member.getAttr()] = {bucket, offset};
  }

  Membership find(mlir::StringAttr variable) const { return memberships_.lookup(variable); }
  dist::BucketOp bucketOf(mlir::StringAttr variable) const { return find(variable).bucket; }
  /// Whether a rank holds but a slice of the variable's bucket.
  bool isSharded(mlir::StringAttr variable) const {
    dist::BucketOp bucket = bucketOf(variable);
    return bucket && bucket.isSharded();
  }
  /// The parameter whose gradient or state is a bucket's first member; null where that is neither.
  mlir::StringAttr parameterOf(dist::BucketOp bucket) const {
    return bucket.getMembers().empty()
               ? mlir::StringAttr()
               : parameters_.lookup(mlir::cast<mlir::FlatSymbolRefAttr>(bucket.getMembers()[0]).getAttr());
  }

private:
  // Looked up, never iterated.
  llvm::DenseMap<mlir::StringAttr, Membership> memberships_;
  llvm::DenseMap<mlir::StringAttr, mlir::StringAttr> parameters_; // by gradient or state
};

} // namespace ds
