//===- Buffers.h - device memory as a list of buffers ----------------------===//
#pragma once

#include "kernels/ptx/Ptx.h"

namespace ds::ptx {

/// An access must lie within one buffer; between two buffers there is nothing.
class Buffers : public Memory {
public:
  /// `bytes` are seen at `address` and must outlive this. Throws if they overlap another buffer.
  void add(uint64_t address, std::span<std::byte> bytes, bool writable = true);

  void load(uint64_t address, std::span<std::byte> to) override;
  void store(uint64_t address, std::span<const std::byte> from) override;

private:
  struct Buffer {
    uint64_t address;
    std::span<std::byte> bytes;
    bool writable;
    bool holds(uint64_t from, size_t count) const {
      return from >= address && from - address <= bytes.size() && count <= bytes.size() - (from - address);
    }
  };
  /// nullptr if no buffer holds all of it.
  const Buffer *at(uint64_t address, size_t count);

  std::vector<Buffer> buffers_;
  size_t last_ = 0; ///< the buffer of the access before
};

} // namespace ds::ptx
