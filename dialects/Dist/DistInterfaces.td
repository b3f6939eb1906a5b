//===- DistInterfaces.td - what all collectives have in common ------------===//
#ifndef DS_DIST_INTERFACES_TD
#define DS_DIST_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::ds::dist";
  let description = "A collective, whole or its start: one launch of several parts, one an input.";
  let methods = [
    InterfaceMethod<"What it does.", "::ds::dist::CollectiveKind", "getKind">,
    InterfaceMethod<"What each part contributes.", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"The mesh.", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"Ranks whose coordinates differ on this axis alone take part.", "::mlir::StringAttr", "getAxisAttr">,
    InterfaceMethod<"The state that takes each part's result, or null: then it is a tensor.", "::mlir::ArrayAttr",
                    "getIntoAttr">,
    InterfaceMethod<"Whether sums are added to what is there.", "bool", "getAccumulate">,
    InterfaceMethod<"The dimension that is cut or joined.", "uint64_t", "getDim">,
    InterfaceMethod<"What a rank has of the results, or null: that is not said.", "::ds::dist::ShardingAttr",
                    "getShardingAttr">];
}

#endif // DS_DIST_INTERFACES_TD
