//===- HostMemory.cpp - main memory that is spoken for --------------------===//
#include "runtime/session/HostMemory.h"

#include "core/Crc32c.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

namespace ds::runtime {
namespace {

/// The same for processes that share memory: a container has a name, and perhaps a limit, of its own.
uint64_t hostDigest() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string identity(std::istreambuf_iterator<char>(file), {});
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  identity += name.data();
  return crc32c(std::as_bytes(std::span(identity)));
}

uint64_t mainMemoryOf(const plan::proto::Plan &plan, uint32_t rank) {
  const bool deviceIsMain = plan.machine().device() != "cuda";
  uint64_t bytes = 0;
  for (const plan::proto::Arena &arena : plan::roleOfRank(plan, rank).arenas())
    bytes += arena.space() == "host" || (deviceIsMain && arena.space() == "device") ? arena.bytes() : 0;
  return bytes;
}

} // namespace

uint64_t promisedBytes(const plan::proto::Plan &plan, Transport &transport, bool saves) {
  const uint32_t ranks = transport.ranks(), mine = transport.localRanks()[0];
  const uint64_t buffer = saves ? plan.training().checkpoint_buffer_bytes() : 0;
  uint64_t promised = buffer * transport.localRanks().size();
  if (transport.localRanks().size() == ranks)
    return promised;
  std::vector<uint64_t> hosts(ranks); // by rank
  hosts[mine] = hostDigest();
  for (uint32_t rank = 1; rank < ranks; ++rank)
    transport.copy(rank, 0, std::as_writable_bytes(std::span(&hosts[rank], 1)));
  for (uint32_t rank = 1; rank < ranks; ++rank)
    transport.copy(0, rank, std::as_writable_bytes(std::span(hosts)));
  for (uint32_t rank = 0; rank < mine; ++rank)
    promised += hosts[rank] == hosts[mine] ? mainMemoryOf(plan, rank) + buffer : 0;
  return promised;
}

} // namespace ds::runtime
