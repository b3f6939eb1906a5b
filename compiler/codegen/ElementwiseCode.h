//===- ElementwiseCode.h - a program of kernel `elementwise` as IR ----------===//
//
// One call becomes one function of the addresses of its operands, inputs before results. Shapes, strides and constants
// are in its text. A thread takes a group of elements in a row: full operands are read and written up to 16 bytes at
// once, as far as the call says that they are aligned; a broadcast one is found by dividing by sizes that are constant.
// The threads behind the last group take an element each of what is left. All reads come before the first write, since
// a result may be the memory of an input.
//
// Numbers are those of the interpreter (kernels/elementwise/elementwise_cuda_run.h): float32 in registers, each step
// rounded by itself, to 16 bits where its type has so many.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace ds::codegen {

/// What a function is made for. On the host, which is for tests, block and thread are parameters before the addresses.
enum class Target : uint8_t { Gpu, Host };

inline constexpr int blockThreads = 256;

struct ElementwiseCode {
  std::unique_ptr<llvm::Module> module; ///< null: the interpreter runs the call
  int64_t blocks = 0;                   ///< of blockThreads
};

/// How many bytes of an operand may be read or written at once where its address is a multiple of `alignment`: 16 at
/// most. Calls whose programs, shapes and these are equal have one code.
uint64_t usefulAlignment(const kernels::TensorType &operand, uint64_t alignment);

/// The code of a call whose operands' addresses are multiples of `alignments`, a function `name` in a module of its
/// own. Null for programs with other types than float32, 16-bit floats and bool, without elements, or that keep more
/// values at once than a thread has registers. Throws ds::Error for a call that kernels refuse.
ElementwiseCode elementwiseCode(const kernels::Invocation &, std::span<const uint64_t> alignments,
                                const std::string &name, Target, llvm::LLVMContext &);

} // namespace ds::codegen
