//===- PartSweep.h - what a rank of axis tensor has of each value ------------===//
#pragma once

#include "compiler/passes/tensor/Part.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>
#include <optional>
#include <utility>

namespace ds {

/// What an op's row says of cutting it.
struct OpFactors {
  kernels::FactorMap map;
  /// By operand and result of the op: which operand of the kernel it is, if any, and the shape that the kernel sees.
  llvm::SmallVector<std::optional<size_t>> operands, results;
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  double work = 0; ///< of the whole op, in bytes that could be sent meanwhile
};

/// How an op is run: what it takes of its operands, and what comes of that.
struct PartDecision {
  llvm::SmallVector<Part> operands, results;
  std::optional<FactorCut> cut = {}; ///< absent: it runs as it is, on all ranks alike
  bool joins = false;                ///< an operand is summed or gathered for it
  /// Of a kernel that must know where its part lies: the size of the whole, and how far the next rank's part begins.
  llvm::SmallVector<int64_t> whole = {}, steps = {};
};

/// The ops of a function, one after another, whole as yet.
class PartSweep {
public:
  using PartOfVariable = std::function<Part(mlir::StringAttr)>;
  PartSweep(mlir::func::FuncOp function, const mlir::SymbolTable &symbols, int64_t ranks);

  /// Decides for each op in turn, and hands it to `visit`. Returns a rank's bytes on the wire, and work as such.
  double run(const PartOfVariable &variables,
             const std::function<void(mlir::Operation *, const PartDecision &)> &visit = {});

private:
  PartDecision decide(mlir::Operation *op, const PartOfVariable &variables) const;
  std::optional<Part> joined(train::ConcatOp concat) const;
  PartDecision decideByFactors(mlir::Operation *op) const;
  std::optional<PartDecision> along(mlir::Operation *op, const OpFactors &factors, FactorCut cut) const;
  double work(mlir::Operation *op, const PartDecision &decision) const;
  double costOf(mlir::Operation *op, const PartDecision &decision) const;
  double conversion(mlir::Value value, const Part &to) const;
  Part partOf(mlir::Value value) const { return parts_.lookup(value); }

  mlir::func::FuncOp function_;
  int64_t ranks_;
  llvm::DenseMap<mlir::Operation *, OpFactors> factors_; // looked up
  llvm::DenseMap<mlir::Value, Part> parts_;              // of those that are not whole; looked up
  llvm::DenseSet<mlir::Value> resolved_;                 // that are whole on all ranks as well; looked up
};

} // namespace ds
