//===- CpuDevice.h - the processor as a device ----------------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cpu/CpuEvent.h"
#include "runtime/device/cpu/NvmeArena.h"
#include "runtime/device/cpu/NvmeSpace.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ds::runtime {

/// Arenas are anonymous memory between guard pages, queues are threads, events are counters that threads wait for.
/// Spaces: "device" and "host", both in main memory and kept apart, and "nvme", one file.
class CpuDevice final : public Device {
public:
  /// Without a place there is no space "nvme".
  explicit CpuDevice(std::optional<NvmePlace> nvme = std::nullopt) : nvme_(std::move(nvme)) {}
  std::string_view name() const noexcept override { return "cpu"; }
  bool executes() const noexcept override { return true; }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override;
  Event &createEvent() override { return events_.emplace_back(guard_); }
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override;
  bool isMainMemory(std::string_view space) const noexcept override { return space != "nvme"; }
  uint64_t allocatedBytes(const std::string &space) const noexcept override;
  std::string note() const override { return nvme_.note(); }
  void write(void *target, std::span<const std::byte> source) noexcept override;
  void read(std::span<std::byte> target, const void *source) noexcept override;
  Status failure() const noexcept override { return guard_.get(); }

  void fail(const Status &status) noexcept override;
  void onFailure(Agree agree) override { agree_ = std::move(agree); }

  // For its queues.
  RunGuard &guard() noexcept { return guard_; }
  NvmeSpace &nvme() noexcept { return nvme_; }

private:
  RunGuard guard_; // first: queues and events wait by it
  Agree agree_;
  NvmeSpace nvme_;
  std::atomic<uint64_t> deviceBytes_ = 0, hostBytes_ = 0;
  std::deque<CpuEvent> events_; // never move: queues point at them
};

} // namespace ds::runtime
