//===- KnownSolutions.h - what was found for a problem before ---------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/Pass/AnalysisManager.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace ds {

/// Orders and offsets by their problems: trials of one pass meet problems that the next one has to solve for good. An
/// analysis of a module, of as long as a pipeline runs; a problem says all, so that no pass invalidates it.
class KnownSolutions {
public:
  using Solution = std::vector<int64_t>;

  KnownSolutions() = default;
  explicit KnownSolutions(mlir::Operation *) {}
  static bool isInvalidated(const mlir::AnalysisManager::PreservedAnalyses &) { return false; }

  /// `problem` in numbers, the first of which says what kind of problem it is. `solve` always finds the same for it;
  /// where more than 0 is good enough, that may be less than the best, and is not kept.
  Solution of(llvm::ArrayRef<int64_t> problem, int64_t enough, llvm::function_ref<Solution(int64_t enough)> solve);

private:
  using Key = std::pair<uint64_t, uint64_t>; // 128 bits of a hash
  static Key keyOf(llvm::ArrayRef<int64_t> problem);

  std::map<Key, Solution> solutions_;
};

} // namespace ds
