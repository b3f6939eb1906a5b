//===- CpuDevice.h - the processor as a device ----------------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cpu/CpuEvent.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace ds::runtime {

/// Arenas are anonymous memory between guard pages, queues are threads, events are counters that threads wait for.
/// Spaces: "device" and "host", both in main memory and kept apart.
class CpuDevice final : public Device {
public:
  std::string_view name() const noexcept override { return "cpu"; }
  bool executes() const noexcept override { return true; }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override;
  Event &createEvent() override { return events_.emplace_back(guard_); }
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override;
  uint64_t allocatedBytes(const std::string &space) const noexcept override;
  void write(void *target, std::span<const std::byte> source) noexcept override;
  void read(std::span<std::byte> target, const void *source) noexcept override;
  Status failure() const noexcept override { return guard_.get(); }

  void fail(const Status &status) noexcept override;
  void onFailure(Agree agree) override { agree_ = std::move(agree); }

  // For its queues.
  RunGuard &guard() noexcept { return guard_; }

private:
  RunGuard guard_; // first: queues and events wait by it
  Agree agree_;
  std::atomic<uint64_t> deviceBytes_ = 0, hostBytes_ = 0;
  std::deque<CpuEvent> events_; // never move: queues point at them
};

} // namespace ds::runtime
