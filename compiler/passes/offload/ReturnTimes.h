//===- ReturnTimes.h - which tensors can be away, and until when ----------===//
#pragma once

#include "compiler/analysis/Cost.h"
#include "dialects/Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <utility>
#include <vector>

namespace ds {

/// When the ops of a fragment begin, by the cost model (compiler/analysis/Cost.h), in seconds from its start.
/// Collectives and transfers count as nothing: they run beside.
class FragmentTimes {
public:
  explicit FragmentTimes(dist::FragmentOp fragment);

  double begin(mlir::Operation *op) const { return begins_.lookup(op); }
  double end() const { return end_; }
  /// The last op that begins no later; the first op, where none does.
  mlir::Operation *at(double seconds) const;

private:
  std::vector<mlir::Operation *> ops_;
  llvm::DenseMap<mlir::Operation *, double> begins_;
  double end_ = 0;
};

/// Decides which tensors can leave device memory so that compute waits for none. A tensor leaves when it is computed,
/// behind those that left before; it must be away when the forward ends, and it must be away before it has to come
/// back. Those that are computed first are used last, so they have the longest time.
class ReturnTimes {
public:
  explicit ReturnTimes(mlir::ModuleOp module)
      : module_(module), host_(linkSpeed(module, "device-host")), nvme_(linkSpeed(module, "host-nvme")) {}

  /// A value that one fragment stores and one loads.
  struct Stay {
    dist::ValueOp value;
    dist::StoreOp store;
    dist::LoadOp load;
    mlir::Operation *firstUse;
  };
  void add(Stay stay) { stays_.push_back(stay); }

  struct Verdict {
    dist::ValueOp value;
    mlir::Operation *load;
    /// When its way back begins at the latest, in seconds from the start of the load's fragment; none: it stays.
    std::optional<double> returnBy;
  };
  /// Of the values that it can decide: the links are known, and the backward of a micro-batch follows its forward. Of
  /// the others there is no verdict.
  std::vector<Verdict> decide() const;

private:
  double secondsOf(dist::ValueOp value) const;
  bool knowsLinkOf(dist::ValueOp value) const;
  bool followsAtOnce(dist::FragmentOp backward, dist::FragmentOp forward) const;

  mlir::ModuleOp module_;
  const LinkSpeed host_, nvme_;
  std::vector<Stay> stays_;
};

} // namespace ds
