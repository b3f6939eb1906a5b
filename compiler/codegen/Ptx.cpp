#include "compiler/codegen/Ptx.h"

#include "core/Error.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"

#include <charconv>
#include <memory>

namespace ds::codegen {

namespace {

/// The machines that text is written for: a driver compiles it for its own, which may be later.
struct Generation {
  const char *processor, *features; ///< the least version of PTX that knows the processor and what we use
};
Generation generationOf(std::string_view isa) {
  int number = 0;
  const std::string_view digits = isa.substr(std::min<size_t>(isa.size(), 3));
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number >= 90 ? Generation{"sm_90", "+ptx78"} : Generation{"sm_80", "+ptx70"};
}

const llvm::Target &target(const llvm::Triple &triple) {
  static const bool initialized = [] {
    // Named here, NoCompression.cpp is linked before LLVM's archives are searched.
    if (llvm::compression::zlib::isAvailable())
      throw Error("LLVM's own compression is linked");
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  std::string why;
  const llvm::Target *found = initialized ? llvm::TargetRegistry::lookupTarget(triple, why) : nullptr;
  if (!found)
    throw Error("no back end for PTX: " + why);
  return *found;
}

} // namespace

std::string ptxOf(llvm::Module &module, std::string_view isa) {
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  const auto [processor, features] = generationOf(isa);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const std::unique_ptr<llvm::TargetMachine> machine(target(triple).createTargetMachine(
      triple, processor, features, options, llvm::Reloc::Static, std::nullopt, llvm::CodeGenOptLevel::Default));
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw Error("the back end for PTX writes no assembly");
  passes.run(module);
  return std::string(text.substr(text.find(".version"))); // behind LLVM's remark on who wrote it
}

} // namespace ds::codegen
