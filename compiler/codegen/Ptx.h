//===- Ptx.h - IR as PTX, the assembly of NVIDIA's GPUs ----------------------===//
#pragma once

#include <string>
#include <string_view>

namespace llvm {
class Module;
}

namespace ds::codegen {

/// The text of a module for GPUs of compute capability `isa` ("sm_80") and later ones. Products and sums are never made
/// one fused multiply-add: whether two steps stand in one program or in two must not change a bit.
std::string ptxOf(llvm::Module &, std::string_view isa);

} // namespace ds::codegen
