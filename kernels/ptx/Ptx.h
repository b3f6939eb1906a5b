//===- Ptx.h - PTX of elementwise kernels, run on a host -------------------===//
//
// An emulator of the subset of NVIDIA's PTX that LLVM writes for kernels whose threads do not talk to each other. It
// needs no GPU and no compiler. Its readers are the checker, which runs kernels that a plan carries on drawn values,
// and the fake CUDA runtime, which trains by them. "ISA" is the manual "Parallel Thread Execution ISA", version 9.0.
//
// Bits are those of a GPU, by the ISA, with these exceptions:
// - Instructions ".approx" and ".full" are computed in double and then rounded. A GPU's may differ by the errors that
//   the ISA lists; Entry::approximations names them.
// - mul, add and sub of floats without a rounding (".rn") are refused: ptxas may fuse them, so PTX does not say which
//   bits they have.
// - A float result that is no number is 0x7FFFFFFF (0x7FFF in 16 bits), as GPUs make it; in float64 the host's.
// - min and max take -0 as less than +0, as GPUs do; the ISA leaves it open for float32 and float64.
// - Division of integers by zero, whose result the ISA leaves open, is an error.
//
// Threads run one after another. Whether a target has an instruction is not checked, nor are races between threads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::ptx {

struct Code; // kernels/ptx/Code.h

/// A kernel.
struct Entry {
  std::string name;
  std::vector<uint32_t> parameterBytes; ///< 1, 2, 4 or 8 each
  uint32_t mostThreads = 1024;          ///< .maxntid
  uint32_t exactThreads = 0;            ///< .reqntid, or 0
  std::set<std::string> approximations; ///< instructions whose bits a GPU may have otherwise, "ex2.approx.f32"
  std::shared_ptr<const Code> code;
};

struct Module {
  std::string version; ///< of PTX, "7.8"
  std::string target;  ///< "sm_90"
  std::vector<Entry> entries;

  /// nullptr if there is none.
  const Entry *find(std::string_view name) const;
};

/// Text of at most `mostTextBytes`. Throws ds::Error that names line, text and rule.
Module parse(std::string_view text);
inline constexpr size_t mostTextBytes = size_t(1) << 20;
inline constexpr uint32_t mostRegisters = 1 << 16; ///< of an entry

struct Grid {
  uint32_t blocks, threads;
  bool lastFirst = false; ///< the last thread of the last block runs first
  /// The blocks that run, of those above: [first, end).
  uint32_t firstBlock = 0, endBlock = UINT32_MAX;
};

/// Device memory as a kernel sees it. Both may refuse by throwing ds::Error, a sentence such as "reads 4 bytes at 0x10,
/// which lie outside of every buffer"; run() puts the place in front. Addresses are multiples of the bytes: 1 to 16.
class Memory {
public:
  virtual ~Memory() = default;
  /// The next thread runs.
  virtual void beginThread() {}
  virtual void load(uint64_t address, std::span<std::byte> to) = 0;
  virtual void store(uint64_t address, std::span<const std::byte> from) = 0;
};

struct Limits {
  uint64_t instructionsOfThread = uint64_t(1) << 20;
  uint64_t instructions = UINT64_MAX; ///< of all threads
};

/// Runs the entry over the grid; parameters[i] holds parameter i in its low bytes. Returns how many instructions ran.
/// Throws ds::Error: "entry 'scale', block 3, thread 17, line 12 ('add.rn.f32 %f1, %f2, %f3;') reads %f2, which ...".
uint64_t run(const Module &module, std::string_view entry, Grid grid, std::span<const uint64_t> parameters,
             Memory &memory, const Limits &limits = {});

} // namespace ds::ptx
