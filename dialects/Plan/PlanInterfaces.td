//===- PlanInterfaces.td - what all commands have in common ---------------===//
#ifndef DS_PLAN_INTERFACES_TD
#define DS_PLAN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::ds::plan";
  let description = "A command on a queue: buffers with what is done to them, events it waits for and signals.";
  let methods = [
    InterfaceMethod<"The buffers.", "::mlir::OperandRange", "getBuffers">,
    InterfaceMethod<"The buffers, to be replaced.", "::mlir::MutableOperandRange", "getBuffersMutable">,
    InterfaceMethod<"An Access a buffer.", "::llvm::ArrayRef<int32_t>", "getAccesses">,
    InterfaceMethod<"The tensor that each is seen as.", "::mlir::ArrayAttr", "getTypes">,
    InterfaceMethod<"Where each tensor begins in its buffer.", "::llvm::ArrayRef<int64_t>", "getByteOffsets">,
    InterfaceMethod<"Sets them.", "void", "setByteOffsets", (ins "::llvm::ArrayRef<int64_t>":$offsets)>,
    InterfaceMethod<"Bytes by which a tensor is further on the next rank; empty: all 0.", "::llvm::ArrayRef<int64_t>",
                    "getRankStrides">,
    InterfaceMethod<"Sets them.", "void", "setRankStrides", (ins "::llvm::ArrayRef<int64_t>":$strides)>,
    InterfaceMethod<"The ranks of strides, and of a collective; or null.", "::mlir::FlatSymbolRefAttr",
                    "getCommunicatorAttr">,
    InterfaceMethod<"Sets it.", "void", "setCommunicatorAttr", (ins "::mlir::FlatSymbolRefAttr":$communicator)>,
    InterfaceMethod<"The queue.", "::mlir::FlatSymbolRefAttr", "getQueueAttr">,
    InterfaceMethod<"Sets it.", "void", "setQueueAttr", (ins "::mlir::FlatSymbolRefAttr":$queue)>,
    InterfaceMethod<"The events that it waits for.", "::mlir::ArrayAttr", "getWaits">,
    InterfaceMethod<"Sets them.", "void", "setWaitsAttr", (ins "::mlir::ArrayAttr":$events)>,
    InterfaceMethod<"Micro-batches before its own, one a wait.", "::llvm::ArrayRef<int64_t>", "getDelays">,
    InterfaceMethod<"Sets them.", "void", "setDelays", (ins "::llvm::ArrayRef<int64_t>":$delays)>,
    InterfaceMethod<"The events that it signals.", "::mlir::ArrayAttr", "getSignals">,
    InterfaceMethod<"Sets them.", "void", "setSignalsAttr", (ins "::mlir::ArrayAttr":$events)>,
    InterfaceMethod<"Ops of the reference program.", "::llvm::ArrayRef<int64_t>", "getReference">];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensor(unsigned index) {
      return ::mlir::cast<::mlir::RankedTensorType>(::mlir::cast<::mlir::TypeAttr>(getTypes()[index]).getValue());
    }
    ::ds::plan::Access getAccess(unsigned index) { return ::ds::plan::Access(getAccesses()[index]); }
    bool reads(unsigned index) {
      return getAccess(index) == ::ds::plan::Access::Read || getAccess(index) == ::ds::plan::Access::ReadWrite;
    }
    /// Scratch is written, too.
    bool writes(unsigned index) { return getAccess(index) != ::ds::plan::Access::Read; }
    int64_t getRankStride(unsigned index) { return getRankStrides().empty() ? 0 : getRankStrides()[index]; }
    /// Bytes of its buffer that a tensor may lie in, [first, second): all of it where that depends on the rank.
    std::pair<int64_t, int64_t> getByteRange(unsigned index);
    bool isOnQueue(::llvm::StringRef queue) { return getQueueAttr().getValue() == queue; }
    /// Waits for `event` of the micro-batch that is `delay` before its own.
    void addWait(::llvm::StringRef event, int64_t delay = 0);
    void addSignal(::llvm::StringRef event);
  }];
}

#endif // DS_PLAN_INTERFACES_TD
