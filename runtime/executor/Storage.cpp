//===- Storage.cpp - the arenas of a rank and addresses in them -----------===//
#include "runtime/executor/Storage.h"

#include "core/Error.h"
#include "runtime/device/Device.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/Ranks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace ds::runtime {
namespace {

/// The number in a one-number file of the kernel's, or nothing ("max", no such file).
uint64_t numberIn(const char *path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : otherwise;
}

} // namespace

uint64_t availableMemory() {
  uint64_t available = UINT64_MAX;
  std::ifstream info("/proc/meminfo");
  for (std::string key, rest; info >> key && std::getline(info, rest);)
    if (key == "MemAvailable:")
      available = std::stoull(rest) * 1024;
  const uint64_t limit = numberIn("/sys/fs/cgroup/memory.max", UINT64_MAX);
  const uint64_t used = numberIn("/sys/fs/cgroup/memory.current", 0);
  return std::min(available, limit - std::min(limit, used));
}

Storage::Storage(Device &device, const plan::proto::Plan &plan, uint32_t rank, uint64_t promisedBytes)
    : role_(plan::roleOfRank(plan, rank)) {
  for (int i = 0; i < plan.communicators_size(); ++i)
    coordinates_.push_back(plan::groupCoordinate(plan, uint32_t(i), rank));
  uint64_t needed = promisedBytes;
  for (const plan::proto::Arena &arena : role_.arenas())
    needed += device.isMainMemory(arena.space()) ? arena.bytes() : 0;
  const uint64_t available = device.executes() ? availableMemory() : UINT64_MAX;
  if (needed > available)
    throw Error("the plan's arenas" + std::string(device.isMainMemory("device") ? "" : " in main memory") +
                std::string(promisedBytes > 0 ? " of the ranks up to " + std::to_string(rank) : "") + " need " +
                std::to_string(needed) + " bytes, but this machine has " + std::to_string(available) +
                " available; compile for a smaller micro-batch or use a larger machine");
  for (const plan::proto::Arena &arena : role_.arenas())
    arenas_.push_back(device.createArena(arena.space(), arena.bytes(), plan.machine().alignment()));
}

Address Storage::buffer(uint32_t index) const {
  const plan::proto::Buffer &buffer = role_.buffers(int(index));
  return {arenas_[buffer.arena()]->base() + buffer.offset(), buffer.offset(), buffer.slot_offsets().data(),
          buffer.slots()};
}

Address Storage::operand(const plan::proto::Operand &operand) const {
  Address address = buffer(operand.buffer());
  address.base += operand.byte_offset();
  if (operand.rank_stride() != 0)
    address.base += coordinates_[operand.communicator()] * operand.rank_stride();
  return address;
}

} // namespace ds::runtime
