//===- DistDialect.td - where it is computed ------------------------------===//
#ifndef DS_DIST_DIALECT_TD
#define DS_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::ds::dist";
  let summary = "where it is computed: a mesh, fragments, schedules";
  let description = [{
    Train ops placed on a mesh of ranks. A *fragment* is a piece of the step that runs once per call: feed, forward,
    backward, update. What one fragment computes for a later one of the same micro-batch is a *value*, named, because
    many micro-batches may be in flight. A *role* is the set of ranks that run the same program; a *program* is the list
    of (fragment, micro-batch) calls. Nothing is unrolled over micro-batches but the calls.
  }];
  let usePropertiesForAttributes = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

#endif // DS_DIST_DIALECT_TD
