//===- Spawn.h - a test's body on every rank ------------------------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Device.h"
#include "runtime/device/Queue.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace ds::test {

/// Where one thread of a rank has its bytes and its stream: on the host, or on a GPU.
class Workplace {
public:
  explicit Workplace(uint32_t rank);
  ~Workplace();

  /// Device memory that holds a copy of `values`.
  template <typename T> std::byte *hold(const std::vector<T> &values) {
    return copyIn(std::as_bytes(std::span(values)));
  }
  /// Reads it back once everything on the stream is done.
  template <typename T> void fetch(std::vector<T> &values, const std::byte *held) {
    copyOut(std::as_writable_bytes(std::span(values)), held);
  }
  /// Everything held may be overwritten from now on.
  void clear() { used_ = 0; }
  /// First on every thread that uses it.
  void enter() { device_->enter(); }
  void *stream() noexcept { return queue_->streamHandle(); }

private:
  std::byte *copyIn(std::span<const std::byte> bytes);
  void copyOut(std::span<std::byte> bytes, const std::byte *held);

  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Arena> arena_;
  std::unique_ptr<runtime::Queue> queue_;
  uint64_t used_ = 0;
};

/// Whether sums have the bits of a sum in rank order, and whether a rank that does not come is named by the others
/// while they go on; NCCL does neither.
bool ranksMeetOnTheHost();

using RankBody = std::function<void(runtime::Transport &, uint32_t rank)>;

/// Most ranks that spawn can make: 8 threads, or as many processes as mpirun has started.
uint32_t maxRanks();

/// Runs the body on ranks 0 to n - 1: threads of this process or, under mpirun, the processes with those ranks. Returns
/// when all have; the first exception stops all ranks and is thrown again. With DS_TEST_GPU in the environment ranks
/// are on GPUs; the test is skipped, and says why, where there is none.
void spawn(uint32_t n, const RankBody &body);
/// The same where the body stops the transport: under mpirun, where all tests share one, none can follow.
void spawnLast(uint32_t n, const RankBody &body);

} // namespace ds::test
