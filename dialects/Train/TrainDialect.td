//===- TrainDialect.td - what is computed ---------------------------------===//
#ifndef DS_TRAIN_DIALECT_TD
#define DS_TRAIN_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::ds::train";
  let summary = "what is computed: a training graph on static tensors";
  let description = [{
    The mathematics of one training run without devices, ranks or memory. Functions are `func.func`:

    - `@forward(inputs) -> loss`, as imported;
    - `@microbatch(inputs)`, forward and backward of one micro-batch, adds its gradients into accumulators;
    - `@update()`, one optimizer step from the accumulators;
    - `@evaluate(inputs)`, the forward pass without dropout and with means for random numbers.

    Everything that outlives a function is a `train.variable`: parameters, buffers, optimizer state, accumulators.
    Their values never enter the IR; a variable names where its first value comes from. Tensors are static: symbolic
    dimensions are bound before import, and axes, shapes and pads are attributes.

    Elementwise operations broadcast as in NumPy. Element types are f32, f64, bf16 and f16 where gradients flow, i64, i32 and
    i1 elsewhere; bf16 and f16 come from `ds-lower-precision`, never from a file. Locations carry the ONNX node's name and its module scope.
  }];
  let useDefaultAttributePrinterParser = 1;
  let usePropertiesForAttributes = 1;
  let hasConstantMaterializer = 1;
}

//===-- types -------------------------------------------------------------===//

def Train_Float : AnyTypeOf<[F32, F64, BF16, F16]>;
def Train_Integer : AnyTypeOf<[I64, I32]>;
def Train_Element : AnyTypeOf<[F32, F64, BF16, F16, I64, I32, I1]>;

def Train_Tensor : StaticShapeTensorOf<[Train_Element]>;
def Train_FloatTensor : StaticShapeTensorOf<[F32, F64, BF16, F16]>;
def Train_NumberTensor : StaticShapeTensorOf<[F32, F64, BF16, F16, I64, I32]>;
def Train_BoolTensor : StaticShapeTensorOf<[I1]>;
def Train_IndexTensor : StaticShapeTensorOf<[I64, I32]>;
def Train_F64Scalar : 0DTensorOf<[F64]>;
def Train_I64Scalar : 0DTensorOf<[I64]>;

//===-- traits and base classes -------------------------------------------===//

/// Works element by element on operands that broadcast to the result's shape.
def Train_Elementwise : NativeOpTrait<"Elementwise"> {
  let cppNamespace = "::ds::train";
}

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

/// An op without effects whose result types follow from operands and attributes.
class Train_PureOp<string mnemonic, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor], traits)>;

#endif // DS_TRAIN_DIALECT_TD
