//===- Lanes.h - elements in a row, in memory and in registers -------------===//
#pragma once

#include "compiler/codegen/ElementwiseCode.h"
#include "compiler/codegen/IrModel.h"
#include "core/DType.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <utility>

namespace ds::codegen {

/// A register for some elements in a row: float32 of a float type, i1 of a bool.
using LaneValues = llvm::SmallVector<llvm::Value *, 8>;

class Lanes {
public:
  Lanes(Builder &builder, Target target) : b_(builder), target_(target) {}

  /// Memory of the device (global, of PTX), or of the host.
  llvm::Value *pointer(llvm::Value *address);

  /// `count` elements from a pointer on that is a multiple of `alignment` bytes.
  LaneValues load(llvm::Value *from, DType, size_t count, uint64_t alignment);
  void store(llvm::Value *to, DType, const LaneValues &, uint64_t alignment);

  /// Floats rounded to a float of 16 bits and widened again.
  LaneValues rounded(const LaneValues &, DType);

private:
  Builder &b_;
  Target target_;
  /// The word that two floats of bfloat16 or float16 were taken from: they go back into memory as it is.
  llvm::DenseMap<std::pair<llvm::Value *, llvm::Value *>, llvm::Value *> brainWords_, halfWords_;

  llvm::Value *at(llvm::Value *pointer, uint64_t bytes);
  auto &wordsOf(DType type) { return type == DType::BF16 ? brainWords_ : halfWords_; }
  /// Two floats as floats of 16 bits in a word, the first in the lower half.
  llvm::Value *pair(llvm::Value *low, llvm::Value *high, DType);
  llvm::Value *narrowed(llvm::Value *, DType);
  /// As bfloat16.
  llvm::Value *hostBits(llvm::Value *);
  LaneValues unpack(llvm::ArrayRef<llvm::Value *> words, DType);
  llvm::SmallVector<llvm::Value *, 8> pack(const LaneValues &, DType);
};

} // namespace ds::codegen
