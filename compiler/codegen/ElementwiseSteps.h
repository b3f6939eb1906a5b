//===- ElementwiseSteps.h - the instructions of a program, in IR ------------===//
#pragma once

#include "compiler/codegen/Lanes.h"
#include "kernels/elementwise/elementwise_call.h"
#include "kernels/elementwise/elementwise_functions.h"

#include <functional>
#include <vector>

namespace ds::codegen {

/// Registers of a program for `count` elements in a row; an input is read when it is first asked for.
class ElementwiseSteps {
public:
  using Load = std::function<LaneValues(size_t input)>;

  ElementwiseSteps(const kernels::ElementwiseCall &call, Builder &builder, Lanes &lanes, size_t count, Load load)
      : call_(call), b_(builder), model_(builder), functions_(model_), lanes_(lanes), count_(count),
        load_(std::move(load)), registers_(call.types.size()) {}

  void run();
  const LaneValues &value(size_t reg);

private:
  const kernels::ElementwiseCall &call_;
  Builder &b_;
  IrModel model_;
  kernels::FloatFunctions<IrModel> functions_;
  Lanes &lanes_;
  size_t count_;
  Load load_;
  std::vector<LaneValues> registers_;

  llvm::Value *evaluate(const kernels::ElementwiseInstruction &, llvm::Value *x, llvm::Value *y, llvm::Value *z);
  llvm::Value *constant(const kernels::ElementwiseInstruction &);
  llvm::Value *cast(llvm::Value *, DType to);
  llvm::Value *binary(const kernels::ElementwiseInstruction &, llvm::Value *x, llvm::Value *y);
  llvm::Value *compared(kernels::ElementwiseOp, llvm::Value *x, llvm::Value *y);
  llvm::Value *unary(kernels::ElementwiseOp, llvm::Value *x);
  IrFloat power(const kernels::ElementwiseInstruction &, IrFloat x, IrFloat y);
};

} // namespace ds::codegen
