//===- Storage.cpp - the arenas of a rank and addresses in them -----------===//
#include "runtime/executor/Storage.h"

#include "core/Error.h"
#include "runtime/device/Device.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>

namespace ds::runtime {
namespace {

std::string textOf(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number in a one-number file of the kernel's, or nothing ("max", no such file).
uint64_t numberIn(const std::string &path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : otherwise;
}

/// The value of a key in a file of "key value" lines.
uint64_t valueOf(const std::string &path, const std::string &wanted) {
  std::ifstream file(path);
  std::string key;
  for (uint64_t value = 0; file >> key >> value;)
    if (key == wanted)
      return value;
  return 0;
}

/// What one group leaves. The two versions name their files differently.
uint64_t leftIn(const std::string &group, bool unified) {
  const uint64_t limit = numberIn(group + (unified ? "/memory.max" : "/memory.limit_in_bytes"), UINT64_MAX);
  const uint64_t current = numberIn(group + (unified ? "/memory.current" : "/memory.usage_in_bytes"), 0);
  const uint64_t droppable = valueOf(group + "/memory.stat", unified ? "inactive_file" : "total_inactive_file");
  const uint64_t used = current - std::min(current, droppable);
  return limit - std::min(limit, used);
}

/// "memory" of "cpu,memory".
bool hasMemory(std::string_view controllers) {
  for (const auto part : std::views::split(controllers, ','))
    if (std::string_view(part.begin(), part.end()) == "memory")
      return true;
  return false;
}

} // namespace

uint64_t cgroupMemory(const std::string &mount, const std::string &membership) {
  uint64_t left = std::min(leftIn(mount, true), leftIn(mount + "/memory", false)); // in a container it may be the group
  std::istringstream lines(membership);                                            // "0::/a/b", "4:cpu,memory:/a/b"
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !hasMemory(controllers))
      continue;
    for (std::string path = line.substr(second + 1); path.size() > 1; path.resize(path.rfind('/')))
      left = std::min(left, leftIn(mount + (unified ? "" : "/memory") + path, unified));
  }
  return left;
}

uint64_t availableMemory() {
  uint64_t available = UINT64_MAX;
  std::ifstream info("/proc/meminfo");
  for (std::string key, rest; info >> key && std::getline(info, rest);)
    if (key == "MemAvailable:")
      available = std::stoull(rest) * 1024;
  return std::min(available, cgroupMemory("/sys/fs/cgroup", textOf("/proc/self/cgroup")));
}

Storage::Storage(Device &device, const plan::proto::Plan &plan, uint32_t rank, uint64_t promisedBytes)
    : role_(plan::roleOfRank(plan, rank)) {
  for (int i = 0; i < plan.communicators_size(); ++i)
    coordinates_.push_back(plan::Group(plan, uint32_t(i)).coordinate(rank));
  uint64_t needed = promisedBytes, host = 0;
  for (const plan::proto::Arena &arena : role_.arenas()) {
    needed += device.isMainMemory(arena.space()) ? arena.bytes() : 0;
    host += arena.space() == "host" ? arena.bytes() : 0;
  }
  const uint64_t available = device.executes() ? availableMemory() : UINT64_MAX;
  if (needed > available)
    throw Error("the plan's arenas" + std::string(device.isMainMemory("device") ? "" : " in main memory") +
                std::string(promisedBytes > 0 ? " of the ranks of this host up to " + std::to_string(rank) : "") +
                " need " + std::to_string(needed) + " bytes, but this machine has " + std::to_string(available) +
                " available; compile for a smaller micro-batch" +
                (host > 0 ? ", or with less than " + std::to_string(host) + " by --host-memory," : "") +
                " or use a larger machine");
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
