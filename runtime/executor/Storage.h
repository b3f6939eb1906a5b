//===- Storage.h - the arenas of a rank and addresses in them -------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ds::runtime {

/// Where an operand lies: base + (microbatch mod slots) * stride.
struct Address {
  std::byte *base = nullptr;
  uint64_t stride = 0;
  uint32_t slots = 1;

  std::byte *at(uint64_t microbatch) const { return base + microbatch % slots * stride; }
};

/// Owns a role's arenas for one rank.
class Storage {
public:
  /// Reserves address space; touches nothing. Throws ds::Error when the machine has less memory than the arenas need.
  Storage(Device &device, const plan::proto::Role &role, uint64_t alignment);

  Address buffer(uint32_t index) const;
  Address operand(const plan::proto::Operand &operand) const;
  const std::vector<std::unique_ptr<Arena>> &arenas() const { return arenas_; }

private:
  const plan::proto::Role &role_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

/// Bytes that a new allocation may touch before the machine, or this process's memory cgroup, runs out.
uint64_t availableMemory();

} // namespace ds::runtime
