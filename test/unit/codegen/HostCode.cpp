#include "HostCode.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <bit>

namespace ds::codegen::test {

namespace {

std::unique_ptr<llvm::orc::LLJIT> makeJit() {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  auto machine = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return initialized ? llvm::cantFail(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine).create()) : nullptr;
}

} // namespace

HostCode::HostCode(const kernels::Invocation &invocation, const std::vector<uint64_t> &alignments) {
  auto context = std::make_unique<llvm::LLVMContext>();
  ElementwiseCode code = elementwiseCode(invocation, alignments, "kernel", Target::Host, *context);
  if (!code.module)
    return;
  EXPECT_FALSE(llvm::verifyModule(*code.module, &llvm::errs()));
  // The function takes an address a parameter; callers of any number of operands pass a list.
  llvm::Function *kernel = code.module->getFunction("kernel");
  llvm::IRBuilder<> b(*context);
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}, false);
  auto *caller = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "caller", *code.module);
  b.SetInsertPoint(llvm::BasicBlock::Create(*context, "", caller));
  std::vector<llvm::Value *> arguments = {caller->getArg(0), caller->getArg(1)};
  for (unsigned i = 2; i < kernel->arg_size(); ++i)
    arguments.push_back(b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_32(b.getInt64Ty(), caller->getArg(2), i - 2)));
  b.CreateCall(kernel, arguments);
  b.CreateRetVoid();
  jit_ = makeJit();
  code.module->setDataLayout(jit_->getDataLayout());
  llvm::cantFail(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(code.module), std::move(context))));
  function_ = llvm::cantFail(jit_->lookup("caller")).getValue();
  blocks_ = code.blocks;
}

HostCode::~HostCode() = default;

void HostCode::run(const std::vector<kernels::test::Buffer *> &operands) const {
  std::vector<uint64_t> addresses;
  for (kernels::test::Buffer *operand : operands)
    addresses.push_back(reinterpret_cast<uint64_t>(operand->data()));
  const auto function = std::bit_cast<void (*)(uint32_t, uint32_t, const uint64_t *)>(function_);
  for (int64_t block = 0; block < blocks_; ++block)
    for (int thread = 0; thread < blockThreads; ++thread)
      function(uint32_t(block), uint32_t(thread), addresses.data());
}

} // namespace ds::codegen::test
