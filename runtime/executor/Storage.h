//===- Storage.h - the arenas of a rank and addresses in them -------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {

/// Where an operand lies: at `base` or, in another slot of its buffer than 0, as far from it as the slots are apart.
struct Address {
  std::byte *base = nullptr;
  uint64_t offset = 0;              // in the arena, of slot 0
  const uint64_t *others = nullptr; // of slots 1, 2, ...: the plan's
  uint32_t slots = 1;

  std::byte *at(uint64_t microbatch) const {
    const uint64_t slot = microbatch % slots;
    return slot == 0 ? base : base + (int64_t(others[slot - 1]) - int64_t(offset));
  }
};

/// Owns a role's arenas for one rank.
class Storage {
public:
  /// Reserves address space; touches nothing. `promisedBytes`: what other ranks of this process have reserved. Throws
  /// ds::Error when the machine has less memory than all of that.
  Storage(Device &device, const plan::proto::Plan &plan, uint32_t rank, uint64_t promisedBytes);

  Address buffer(uint32_t index) const;
  Address operand(const plan::proto::Operand &operand) const;
  const std::vector<std::unique_ptr<Arena>> &arenas() const { return arenas_; }

private:
  const plan::proto::Role &role_;
  std::vector<uint64_t> coordinates_; // of the rank, by communicator
  std::vector<std::unique_ptr<Arena>> arenas_;
};

/// Bytes that a new allocation may touch before the machine, or a memory cgroup that this process is in, runs out.
uint64_t availableMemory();

/// What memory cgroups leave. A group's own limit may be above what the groups around it allow, so all of them count;
/// what the system would drop to make room (inactive pages of files) is not used. `mount`: where cgroups are mounted,
/// /sys/fs/cgroup; `membership`: the text of /proc/self/cgroup.
uint64_t cgroupMemory(const std::string &mount, const std::string &membership);

} // namespace ds::runtime
