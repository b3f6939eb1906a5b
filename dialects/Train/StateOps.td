//===- StateOps.td - variables: what outlives a function ------------------===//
#ifndef DS_TRAIN_STATE_OPS_TD
#define DS_TRAIN_STATE_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

//===-- where a first value comes from -------------------------------------===//

class Train_Attr<string name, string mnemonicName> : AttrDef<Train_Dialect, name> {
  let mnemonic = mnemonicName;
}
def Train_FileSource : Train_Attr<"FileSource", "file"> {
  let summary = "bytes of a file: little-endian, row-major";
  let description = "`path` as the model names it, relative to the model's folder. `dtype`: of the elements there, as safetensors names it, "
                    "if they are widened to the variable's type, or rounded to its 16 bits.";
  let parameters = (ins StringRefParameter<>:$path, "int64_t":$offset, "int64_t":$length,
                        StringRefParameter<"", "\"\"">:$dtype);
  let assemblyFormat = "`<` $path `,` $offset `,` $length (`,` $dtype^)? `>`";
}
def Train_FillSource : Train_Attr<"FillSource", "fill"> {
  let summary = "one value for every element";
  let parameters = (ins "::mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $value `>`";
}
def Train_RandomSource : Train_Attr<"RandomSource", "random"> {
  let summary = "drawn by Philox from the run's seed";
  let description = "`distribution` is \"normal\" (mean, standard deviation) or \"uniform\" (centre, half width).";
  let parameters = (ins StringRefParameter<>:$distribution, "::mlir::FloatAttr":$mean, "::mlir::FloatAttr":$deviation);
  let assemblyFormat = "`<` $distribution `,` $mean `,` $deviation `>`";
}
def Train_LiteralSource : Train_Attr<"LiteralSource", "literal"> {
  let summary = "the elements themselves, for a few small ones that no file range holds";
  let parameters = (ins "::mlir::ElementsAttr":$value);
  let assemblyFormat = "`<` $value `>`";
}
def Train_MissingSource : Train_Attr<"MissingSource", "missing"> {
  let summary = "must be given to ds-run by --weights";
  let parameters = (ins StringRefParameter<>:$reason);
  let assemblyFormat = "`<` $reason `>`";
}

def Train_VariableKind : I32EnumAttr<"VariableKind", "what a variable is for", [
    I32EnumAttrCase<"Parameter", 1, "parameter">, I32EnumAttrCase<"Buffer", 2, "buffer">,
    I32EnumAttrCase<"Optimizer", 3, "optimizer">, I32EnumAttrCase<"Gradient", 4, "gradient">,
    I32EnumAttrCase<"Metric", 5, "metric">,
    I32EnumAttrCase<"Constant", 6, "constant">]> {
  let cppNamespace = "::ds::train";
  let genSpecializedAttr = 0;
}
def Train_VariableKindAttr : EnumAttr<Train_Dialect, Train_VariableKind, "variable_kind">;

//===-- the variable --------------------------------------------------------===//

def Train_VariableOp : Train_Op<"variable", [Symbol, DeclareOpInterfaceMethods<StateOpInterface>,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a named tensor that outlives functions";
  let description = [{
    A parameter keeps PyTorch's name; a tied weight is one variable read twice, its other names are `aliases`. Gradient
    accumulators and metrics are zero at the start of every optimizer step, all else lives as long as the run. A gradient that
    our optimizers apply, and their state, say `of` which parameter they are. Where ranks hold pieces, the type is a piece's and `whole`
    the shape of the tensor that they make; the source is the whole's, and so is what the reference program reads.

    ```mlir
    train.variable parameter @"wte.weight" : tensor<50257x768xf32> from #train.file<"model.onnx.data", 0, 154389504> {trainable}
    train.variable gradient @"wte.weight::gradient" of @"wte.weight" : tensor<50257x768xf32>
    train.variable parameter @"fc.weight" : tensor<1536x768xf32> whole [3072, 768] from #train.file<"model.onnx.data", 154389504, 9437184>
    ```

    **Constraints**
    - (variable_c1) the type is a static tensor of a known element type.
    - (variable_c2) parameters, buffers and optimizer state have a source, gradients and metrics none.
    - (variable_c3) a file source is as long as the whole tensor, or as its elements are in the file.
    - (variable_c4) only a parameter of a float type is trainable.
    - (variable_c5) only a gradient or optimizer state is `of` something: a parameter of its type and whole; sums of gradients may have 16 bits, and state of a parameter of 16 bits f32.
    - (variable_c6) a file has elements of the tensor's type, or of a float type of fewer bits; f32, bf16 and f16 are rounded to a variable of 16 bits.
    - (variable_c7) `whole` has the type's rank; each of its sizes is a multiple of the type's, and one is larger.
  }];
  let arguments = (ins Train_VariableKindAttr:$kind, SymbolNameAttr:$sym_name, OptionalAttr<FlatSymbolRefAttr>:$of,
                       TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<DenseI64ArrayAttr>:$whole, // variable_c7
                       OptionalAttr<AnyAttr>:$source, UnitAttr:$trainable, UnitAttr:$persistent,
                       OptionalAttr<StrArrayAttr>:$aliases);
  let assemblyFormat = "$kind $sym_name (`of` $of^)? `:` $type (`whole` $whole^)? (`from` $source^)? attr-dict";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "VariableKind":$kind, "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type,
                                 CArg<"::mlir::Attribute", "{}">:$source, CArg<"::mlir::FlatSymbolRefAttr", "{}">:$of), [{
    build($_builder, $_state, VariableKindAttr::get($_builder.getContext(), kind), $_builder.getStringAttr(name), of,
          ::mlir::TypeAttr::get(type), /*whole=*/nullptr, source, /*trainable=*/nullptr, /*persistent=*/nullptr, /*aliases=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::mlir::cast<::mlir::RankedTensorType>(getType()); }
    /// The tensor that the ranks' pieces make; `type` where each rank has all of it.
    ::mlir::RankedTensorType getWholeType();
  }];
}

def Train_Variables : Resource<"::ds::train::VariableResource">;

class Train_StateOp<string mnemonic, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Train_ReadOp : Train_StateOp<"read", [MemoryEffects<[MemRead<Train_Variables>]>]> {
  let summary = "the present value of a variable";
  let description = [{
    **Constraints**
    - (read_c1) `variable` names a train.variable of the result's type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}

def Train_AccumulateOp
    : Train_StateOp<"accumulate", [MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>]> {
  let summary = "add into an accumulator";
  let description = [{
    `variable += value`. Micro-batches add one after another, so a sum has one order: ((0 + g_0) + g_1) + ...

    **Constraints**
    - (accumulate_c1) `variable` names a gradient or metric of the value's type, or other state that is no variable.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Train_FloatTensor:$value);
  let assemblyFormat = "$value `into` $variable attr-dict `:` type($value)";
}

def Train_StoreOp : Train_StateOp<"store", [MemoryEffects<[MemWrite<Train_Variables>]>]> {
  let summary = "overwrite a variable";
  let description = [{
    **Constraints**
    - (store_c1) `variable` names a train.variable of the value's type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Train_Tensor:$value);
  let assemblyFormat = "$value `into` $variable attr-dict `:` type($value)";
}

def Train_UpdateAverageOp
    : Train_StateOp<"update_average", [MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>]> {
  let summary = "a step of a running average";
  let description = [{
    `variable = momentum * variable + (1 - momentum) * correction * value`, once per micro-batch: running statistics of
    `train.batch_norm`. `correction` is 1, or n / (n - 1) where the variance of a sample of n is wanted. It writes a variable,
    so a pass that computes again what the backward pass needs must leave it out; nothing else depends on it.

    ```mlir
    train.update_average %mean into @"bn1.running_mean" momentum 0.9 correction 1.0 : tensor<64xf32>
    ```

    **Constraints**
    - (update_average_c1) `variable` names a buffer of the value's type.
    - (update_average_c2) 0 <= momentum <= 1.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Train_FloatTensor:$value, F64Attr:$momentum, F64Attr:$correction);
  let assemblyFormat = [{
    $value `into` $variable `momentum` $momentum `correction` $correction attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

#endif // DS_TRAIN_STATE_OPS_TD
