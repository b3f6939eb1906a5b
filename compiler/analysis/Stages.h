//===- Stages.h - pipeline stages and their fragments -------------------------===//
//
// Stage s runs on coordinate s mod P of the P of the mesh's axis pipe. A fragment says in attributes of which phase and
// stage it is (dist.fragment); an update is of a coordinate. Names are for people: @forward of one stage, @"forward::1"
// of several.
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

/// What number `number` of `count` is called: "forward" of one, "forward::2" of several.
inline std::string numberedName(llvm::StringRef name, int64_t number, int64_t count) {
  return count == 1 ? name.str() : (name + "::" + llvm::Twine(number)).str();
}

/// The fragments of a phase, by stage or coordinate.
llvm::SmallVector<dist::FragmentOp> fragmentsOf(mlir::ModuleOp module, dist::Phase phase);

/// Looks the fragments of a module up by what they are.
class FragmentIndex {
public:
  explicit FragmentIndex(mlir::ModuleOp module);

  int64_t stages() const { return stages_; } ///< at least 1
  /// The fragment of a phase and a stage or, of an update, a coordinate of axis pipe; null if there is none.
  dist::FragmentOp find(dist::Phase phase, int64_t number) const { return byNumber_.lookup({int64_t(phase), number}); }
  /// The fragment that receives ahead of `fragment`, or null.
  dist::FragmentOp receiverFor(dist::FragmentOp fragment) const { return receivers_.lookup(fragment.getSymNameAttr()); }

private:
  int64_t stages_ = 1;
  // Looked up, never iterated.
  llvm::DenseMap<std::pair<int64_t, int64_t>, dist::FragmentOp> byNumber_;
  llvm::DenseMap<mlir::StringAttr, dist::FragmentOp> receivers_;
};

/// Which roles' fragments name a symbol: a variable, a bucket. Made once calls are scheduled.
class RoleUses {
public:
  explicit RoleUses(mlir::ModuleOp module);

  /// Indices of roles, in the order of the module, ascending.
  llvm::ArrayRef<int64_t> rolesOf(mlir::StringAttr symbol) const { return lookUp(roles_, symbol); }
  /// Those that add to a gradient, or to a bucket of gradients, ahead of their update. A role may read a parameter
  /// through which nothing flows back.
  llvm::ArrayRef<int64_t> addersOf(mlir::StringAttr gradient) const { return lookUp(adders_, gradient); }
  /// Fragments that a role calls, in the order of their first calls.
  const llvm::SetVector<dist::FragmentOp> &fragmentsOf(int64_t role) const { return fragments_[size_t(role)]; }
  int64_t roles() const { return int64_t(fragments_.size()); }

private:
  using RolesOf = llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<int64_t, 2>>;

  static void note(RolesOf &map, mlir::StringAttr symbol, int64_t role);
  static llvm::ArrayRef<int64_t> lookUp(const RolesOf &map, mlir::StringAttr symbol);

  std::vector<llvm::SetVector<dist::FragmentOp>> fragments_; // by role
  RolesOf roles_, adders_;                                   // looked up, never iterated
};

} // namespace ds
