#include "EmulatedCode.h"

#include "compiler/codegen/ElementwiseCode.h"
#include "compiler/codegen/Ptx.h"
#include "kernels/ptx/Buffers.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <algorithm>

namespace ds::codegen::test {

void runPtx(const kernels::Invocation &invocation, const std::vector<uint64_t> &alignments,
            const std::vector<kernels::test::Buffer *> &operands) {
  llvm::LLVMContext context;
  const ElementwiseCode code = elementwiseCode(invocation, alignments, "kernel", Target::Gpu, context);
  ASSERT_TRUE(code.module);
  const ptx::Module module = ptx::parse(ptxOf(*code.module, "sm_90"));
  EXPECT_TRUE(module.find("kernel")->approximations.empty());
  ptx::Buffers memory;
  std::vector<uint64_t> addresses;
  for (kernels::test::Buffer *operand : operands) {
    const auto address = reinterpret_cast<uint64_t>(operand->data());
    if (std::ranges::find(addresses, address) == addresses.end()) // a result may lie over an input
      memory.add(address, std::span(operand->data(), operand->bytes()));
    addresses.push_back(address);
  }
  const ptx::Grid grid{.blocks = uint32_t(code.blocks), .threads = uint32_t(blockThreads)};
  EXPECT_NO_THROW((void)ptx::run(module, "kernel", grid, addresses, memory));
}

} // namespace ds::codegen::test
