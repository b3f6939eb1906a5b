//===- Stages.h - pipeline stages, and how their fragments are called ---------===//
//
// A module of one stage has @forward, @backward, @update, @evaluate, @feed; one of several has @"forward::0",
// @"forward::1",
// ... and, for ranks, @"update::0", ... Stage s runs on coordinate s mod P of the P of axis "pipe".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Dist/Dist.h"
#include "dialects/Train/Train.h"

#include "llvm/ADT/SetVector.h"

#include <string>

namespace ds {

/// What ds-cut-pipeline-stages writes on ops of @microbatch and @evaluate, or a user by hand: the stage that runs them.
/// Where some have one, an op without is repeated by every stage that needs it.
inline constexpr llvm::StringLiteral pipelineStageAttribute = "dist.pipeline_stage";

/// The stage of `op`, or nothing.
inline std::optional<int64_t> stageOf(mlir::Operation *op) {
  auto stage = op->getAttrOfType<mlir::IntegerAttr>(pipelineStageAttribute);
  return stage ? std::optional(stage.getInt()) : std::nullopt;
}

/// "forward" of one stage, "forward::2" of several.
inline std::string fragmentName(llvm::StringRef kind, int64_t number, int64_t count) {
  return count == 1 ? kind.str() : (kind + "::" + llvm::Twine(number)).str();
}
/// "forward" of "forward::2".
inline llvm::StringRef fragmentKind(llvm::StringRef name) { return name.split("::").first; }

/// 2 of "forward::2"; nothing for a name without a number.
inline std::optional<int64_t> fragmentNumber(llvm::StringRef name) {
  int64_t number = 0;
  return name.rsplit("::").second.getAsInteger(10, number) ? std::nullopt : std::optional(number);
}

/// The fragments of a kind, by number.
llvm::SmallVector<dist::FragmentOp> fragmentsOf(mlir::ModuleOp module, llvm::StringRef kind);

/// Which roles' fragments name a symbol: a variable, a bucket. Made once calls are scheduled.
class RoleUses {
public:
  explicit RoleUses(mlir::ModuleOp module);

  /// Indices of roles, in the order of the module, ascending.
  llvm::ArrayRef<int64_t> rolesOf(mlir::StringAttr symbol) const;
  /// Fragments that a role calls, in the order of their first calls.
  const llvm::SetVector<dist::FragmentOp> &fragmentsOf(int64_t role) const { return fragments_[size_t(role)]; }
  int64_t roles() const { return int64_t(fragments_.size()); }

private:
  std::vector<llvm::SetVector<dist::FragmentOp>> fragments_;              // by role
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<int64_t, 2>> roles_; // looked up, never iterated
};

} // namespace ds
