//===- Kernel.cpp - dist.kernel: its operands, and what they must be ------===//
#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace ds::dist;

/// Bits of an access.
static constexpr int32_t readBit = 1, writeBit = 2;

SmallVector<KernelOp::Operand> KernelOp::getOperandsOfKernel() {
  SmallVector<Operand> operands;
  auto input = getInputs().begin();
  auto result = getResults().begin();
  for (auto [index, access, type] : llvm::enumerate(getAccesses(), getTypes().getAsValueRange<TypeAttr>())) {
    Operand operand{{}, {}, cast<RankedTensorType>(type), (access & readBit) != 0, (access & writeBit) != 0, access};
    if (auto name = getVariables().empty() ? nullptr : dyn_cast<FlatSymbolRefAttr>(getVariables()[index]))
      operand.variable = name.getAttr();
    else
      operand.value = operand.writes ? Value(*result++) : *input++;
    operands.push_back(operand);
  }
  return operands;
}

LogicalResult KernelOp::verify() {
  const size_t count = getAccesses().size();
  if (getTypes().size() != count || (!getVariables().empty() && getVariables().size() != count)) // kernel_c1
    return emitOpError() << "has " << count << " accesses, " << getTypes().size() << " tensors and "
                         << getVariables().size() << " places of variables";
  size_t inputs = 0, results = 0;
  for (auto [index, access] : llvm::enumerate(getAccesses())) {
    const Attribute of = getVariables().empty() ? Attribute() : getVariables()[index];
    if (of && !isa<FlatSymbolRefAttr, UnitAttr>(of)) // kernel_c3
      return emitOpError() << "operand " << index << " is of " << of << ", which is neither unit nor a symbol";
    if (isa_and_present<FlatSymbolRefAttr>(of))
      continue;
    inputs += access == readBit;
    results += access == writeBit;
    if (access != readBit && access != writeBit) // kernel_c2
      return emitOpError() << "operand " << index << " has access " << access << "; a value is read (1) or written (2)";
  }
  if (inputs != getInputs().size() || results != getResults().size()) // kernel_c2
    return emitOpError() << "reads " << inputs << " and writes " << results << " values, but has " << getInputs().size()
                         << " inputs and " << getResults().size() << " results";
  if (std::optional<uint64_t> bytes = getWorkspace(); bytes && int64_t(*bytes) < 0) // kernel_c4
    return emitOpError() << "has a workspace of " << int64_t(*bytes) << " bytes";
  return success();
}

LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (Attribute of : getVariables()) {
    auto name = dyn_cast<FlatSymbolRefAttr>(of);
    Operation *state = name ? symbols.lookupNearestSymbolFrom((*this)->getParentOp(), name) : nullptr;
    if (name && !isa_and_present<ds::train::StateOpInterface>(state)) // kernel_c3
      return emitOpError() << name << " is not a train.variable";
  }
  return success();
}
