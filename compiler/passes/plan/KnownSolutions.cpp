//===- KnownSolutions.cpp - what was found for a problem before -------------===//
#include "compiler/passes/plan/KnownSolutions.h"

#include "llvm/Support/xxhash.h"

using namespace ds;

KnownSolutions::Key KnownSolutions::keyOf(llvm::ArrayRef<int64_t> problem) {
  const llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(problem.data()), problem.size() * sizeof(int64_t)));
  return {hash.high64, hash.low64};
}

KnownSolutions::Solution KnownSolutions::of(llvm::ArrayRef<int64_t> problem, int64_t enough,
                                            llvm::function_ref<Solution(int64_t enough)> solve) {
  const Key key = keyOf(problem);
  if (const auto known = solutions_.find(key); known != solutions_.end())
    return known->second;
  Solution solution = solve(enough);
  if (enough == 0)
    solutions_.emplace(key, solution);
  return solution;
}
