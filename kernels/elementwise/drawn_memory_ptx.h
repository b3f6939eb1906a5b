//===- drawn_memory_ptx.h - operands of a kernel as drawn numbers ----------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/ptx/Ptx.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace ds::kernels {

/// Mixes bits: the finalizer of MurmurHash3 (Appleby).
uint64_t mixed(uint64_t x);

/// An element of type bool, float32 or a float of 16 bits as a number; `bits` are its bytes.
float floatOf(DType type, uint32_t bits);

/// Device memory of a call's operands, inputs before results. An input's elements are drawn as they are read, whatever
/// the operand's size; what is written is kept. Throws ds::Error where an access leaves its operand, reads a result,
/// writes an input, or writes an element twice; and where a thread reads after it has written, since a result may be
/// the memory of an input.
class DrawnMemory final : public ptx::Memory {
public:
  /// An operand's address is divided by its alignment, 1 to 16 bytes, and by no more. `call` outlives the memory.
  /// Other elements are drawn for another `seed`.
  DrawnMemory(const Invocation &call, size_t inputs, std::span<const uint64_t> alignments, uint64_t seed);

  std::span<const uint64_t> addresses() const { return addresses_; }
  /// By result, then element.
  const std::vector<std::map<int64_t, uint32_t>> &written() const { return written_; }
  uint32_t input(size_t operand, int64_t element) const;

  void beginThread() override { hasWritten_ = false; }
  void load(uint64_t address, std::span<std::byte> to) override;
  void store(uint64_t address, std::span<const std::byte> from) override;

private:
  struct Place {
    size_t operand;
    int64_t element;
    size_t bytes; ///< of an element
  };
  Place placeOf(uint64_t address, size_t bytes) const;

  const Invocation &call_;
  size_t inputs_;
  uint64_t seed_;
  bool hasWritten_ = false; ///< the thread that runs
  std::vector<uint64_t> addresses_;
  std::vector<std::map<int64_t, uint32_t>> written_;
};

} // namespace ds::kernels
