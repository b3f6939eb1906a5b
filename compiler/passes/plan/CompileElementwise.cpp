//===- CompileElementwise.cpp - programs of elementwise kernels as PTX ------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/codegen/ElementwiseCode.h"
#include "compiler/codegen/Ptx.h"
#include "compiler/passes/plan/Passes.h"
#include "core/Error.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

#include <numeric>
#include <tuple>

namespace ds {
#define GEN_PASS_DEF_COMPILEELEMENTWISE
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// What a code is for: the call's arguments and tensors, and by what its operands' addresses can be divided.
using Signature = std::tuple<Attribute, Attribute, Attribute>;

std::string nameOf(const Signature &signature) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << std::get<0>(signature) << std::get<1>(signature) << std::get<2>(signature);
  return "elementwise_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
}

struct CompileElementwise : ds::impl::CompileElementwiseBase<CompileElementwise> {
  using CompileElementwiseBase::CompileElementwiseBase;

  void runOnOperation() override {
    codes_.clear();
    for (auto role : getOperation().getOps<plan::RoleOp>())
      for (auto routine : role.getOps<plan::RoutineOp>())
        for (auto kernel : routine.getOps<plan::KernelOp>())
          if (kernel.getKernel() == "elementwise" && !runsOnHost(kernel) && failed(compile(kernel)))
            return signalPassFailure();
  }

private:
  llvm::DenseMap<Signature, FlatSymbolRefAttr> codes_; // looked up, never iterated; null: the interpreter's

  static bool runsOnHost(plan::KernelOp kernel) {
    auto queue = SymbolTable::lookupNearestSymbolFrom<plan::QueueOp>(kernel, kernel.getQueueAttr());
    return queue.getKind() == plan::QueueKind::Host;
  }

  /// The greatest power of two that divides an operand's address, of every rank and slot, up to the arenas' own.
  int64_t alignmentOf(plan::CommandOpInterface command, unsigned index) const {
    auto buffer = command.getBuffers()[index].getDefiningOp<plan::BufferOp>();
    int64_t result = std::gcd(alignment.getValue(), int64_t(*buffer.getOffset()));
    if (auto others = buffer.getSlotOffsets())
      for (int64_t offset : *others)
        result = std::gcd(result, offset);
    return std::gcd(std::gcd(result, command.getByteOffsets()[index]), command.getRankStride(index));
  }

  LogicalResult compile(plan::KernelOp kernel) {
    auto command = cast<plan::CommandOpInterface>(kernel.getOperation());
    const kernels::Invocation call = invocationOf(kernel);
    SmallVector<int64_t> alignments;
    for (unsigned i = 0; i < command.getBuffers().size(); ++i) {
      if (!command.getBuffers()[i].getDefiningOp<plan::BufferOp>().getOffset())
        return kernel.emitOpError("is compiled for where its operands lie, but operand ")
               << i << " has no offset yet; run ds-assign-offsets before";
      alignments.push_back(int64_t(codegen::usefulAlignment(call.operands[i], uint64_t(alignmentOf(command, i)))));
    }
    const Signature signature{kernel.getArguments(), kernel.getTypes(),
                              DenseI64ArrayAttr::get(&getContext(), alignments)};
    const auto [known, isNew] = codes_.try_emplace(signature);
    if (isNew) {
      try {
        known->second = write(kernel.getLoc(), call, alignments, nameOf(signature));
      } catch (const Error &error) {
        return kernel.emitOpError("cannot be compiled: ") << error.what();
      }
    }
    if (known->second)
      kernel.setCodeAttr(known->second);
    return success();
  }

  FlatSymbolRefAttr write(Location location, const kernels::Invocation &call, ArrayRef<int64_t> alignments,
                          const std::string &name) {
    const SmallVector<uint64_t> divisors(alignments.begin(), alignments.end());
    llvm::LLVMContext context;
    const codegen::ElementwiseCode code = codegen::elementwiseCode(call, divisors, name, codegen::Target::Gpu, context);
    if (!code.module)
      return {};
    OpBuilder builder(&getContext());
    builder.setInsertionPoint(*getOperation().getOps<plan::RoleOp>().begin());
    plan::CodeOp::create(builder, location, name, uint64_t(code.blocks), uint64_t(codegen::blockThreads),
                         codegen::ptxOf(*code.module, isa));
    return FlatSymbolRefAttr::get(&getContext(), name);
  }
};

} // namespace
