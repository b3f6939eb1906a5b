//===- PassBase.td - what all passes have in common ----------------------===//
#ifndef DS_PASS_BASE_TD
#define DS_PASS_BASE_TD

include "mlir/Pass/PassBase.td"

/// `dialects`: those whose ops the pass creates.
class DsPass<string flag, list<string> dialects = []> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = dialects;
}

#endif // DS_PASS_BASE_TD
