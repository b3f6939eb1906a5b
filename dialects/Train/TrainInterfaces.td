//===- TrainInterfaces.td - the differentiation interface -----------------===//
#ifndef DS_TRAIN_INTERFACES_TD
#define DS_TRAIN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::ds::train";
  let description = [{
    An op that knows its own vector-Jacobian product. Reverse mode, as in Griewank and Walther, "Evaluating derivatives",
    section 3.2; cf. torch.autograd.Function.backward.
  }];
  let methods = [InterfaceMethod<[{
      Builds the gradients of the operands after the forward pass.

      `resultGradients` has one entry per result, null where no gradient reaches it. For each operand i with
      `needed[i]` the method may set `operandGradients[i]` (pre-filled with null, which means zero) to a value of the
      operand's type. Fails, with a diagnostic on the op, where the gradient does not exist.
    }],
    "::llvm::LogicalResult", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGradients,
         "const ::llvm::BitVector &":$needed,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def StateOpInterface : OpInterface<"StateOpInterface"> {
  let cppNamespace = "::ds::train";
  let description = [{
    A symbol that ops over state name (train.read, train.adamw, ...): a variable, or what a later dialect lays out in its
    place.
  }];
  let methods = [InterfaceMethod<"The tensor that an op sees which names it, on one rank.", "::mlir::RankedTensorType",
                                 "getStateType">];
}

#endif // DS_TRAIN_INTERFACES_TD
