//===- LevelSearch.h - the level of recompute that a room asks for ----------===//
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/LevelTrials.h"
#include "compiler/passes/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::driver {

/// Plans a differentiated module again and again, level by level; nothing is estimated. Where all that there is a
/// choice about lies in device memory, levels are tried without plans, and the chosen one is planned (LevelTrials.h).
class LevelSearch {
public:
  /// `module` stays as it is, and what it says of links is read anew for each plan. Both outlive the search.
  LevelSearch(mlir::ModuleOp module, CompileOptions options, const DiagnosticCollector &diagnostics);

  /// ds-choose-recompute takes what there is.
  static constexpr int64_t highest = std::numeric_limits<int64_t>::max();

  struct Planned {
    int64_t level = 0, bytes = 0; // of device memory, on the rank that needs most
    mlir::OwningOpRef<mlir::ModuleOp> module;
    ChooseRecomputeOptions recompute; // as ds-choose-recompute took it
    OffloadOptions offload;
    mlir::Attribute links; // by which it was planned
    size_t role = 0;       // that needs most; where levels are tried
  };

  Planned at(int64_t level);

  /// The plan of a level that needs at most `room` bytes; nothing where it needs more.
  std::optional<Planned> planWithin(int64_t level, int64_t room);

  /// The lowest level that halving finds above `tooLow` to need at most `room` bytes, as `top` does.
  Planned lowest(int64_t room, Planned top, int64_t tooLow = 0);

  /// The lowest level that is found to fit into `room`, or the one that needs least. Where level 0 does not fit, all
  /// that is to leave does, however long compute waits: the module loses `linksAttribute`. Levels are tried in an order
  /// such that more room never means a higher level, even where a higher level needs more.
  Planned within(int64_t room);

  /// Whether the last `planWithin` has shown that state and gradients alone need more, which no level changes, of a
  /// plan so long that not all levels are to be tried in vain.
  bool isHopeless(int64_t room) const;

  /// What `within` finds where it is hopeless: the level that the highest leads to while each step takes fewer bytes.
  Planned inVain(int64_t room);

  /// The first of some levels from 0 up that needs at most `room` bytes, or a lower one that does. Also where neither
  /// the highest level fits nor the lowest.
  std::optional<Planned> first(int64_t room);

  /// Of a plan that fits, in which all activations leave: with as few of them as are found to do. First the least
  /// number of those that are away longest; then the largest of these stay for which there is room.
  Planned fewest(int64_t room, Planned best);

private:
  // Of these, what is planned may lack its module, and `bytes` may be more than it needs.

  /// A level that needs at most `room`; nothing where it needs more.
  std::optional<Planned> fitting(int64_t level, int64_t room);

  /// The same, with the exact bytes.
  std::optional<Planned> needing(int64_t level, int64_t room = highest);

  /// From the highest level down as long as that takes fewer bytes, or no more where it is not `strict`: a layer whose
  /// backward comes soon may cost more to repeat than to keep.
  Planned smallest(bool strict);

  /// From what `smallest` finds: as little recompute as fits, or the least bytes.
  Planned fromSmallest(int64_t room);

  /// As `lowest`.
  Planned halve(int64_t room, Planned top, int64_t tooLow);

  /// For less room than `top` needs, which is what `smallest` found. No level below the one that is chosen for its
  /// bytes may be taken, for more room would then mean more recompute; from there up, the first of some that fits, or
  /// the one that needs least.
  Planned below(int64_t room, Planned top);

  /// With its module.
  Planned complete(Planned planned);

  Planned planned(mlir::OwningOpRef<mlir::ModuleOp> module);
  mlir::OwningOpRef<mlir::ModuleOp> makePlan();
  /// Where updates that wait, later reads or gradients in files may help.
  bool lacksHostMemory(mlir::ModuleOp planned) const;
  Planned leaving(const std::vector<std::string> &values, const std::vector<char> &leaves);

  mlir::ModuleOp module_;
  CompileOptions options_;
  const DiagnosticCollector &diagnostics_;
  std::optional<LevelTrials> trials_; // where levels are tried
  bool spared_ = false; // what spares host memory was tried, and more is lacking: not tried at each level anew
};

/// What ds-choose-recompute has chosen for a planned module; nothing where it was not asked.
train::RecomputeSummaryAttr summaryOf(mlir::ModuleOp module);

} // namespace ds::driver
