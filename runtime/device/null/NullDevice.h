//===- NullDevice.h - walks plans and executes nothing --------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/FirstFailure.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {

class NullQueue;

class NullEvent final : public Event {
public:
  uint64_t value() const noexcept override { return value_; }
  void reset() noexcept override { value_ = 0; }
  void raise(uint64_t value) noexcept { value_ = value > value_ ? value : value_; }

private:
  uint64_t value_ = 0;
};

/// For plans of any size on any machine: arenas are addresses without memory, tasks count as done when their turn
/// comes, and waits and signals are obeyed on the host's own thread, so that a plan that would hang fails instead.
class NullDevice final : public Device {
public:
  ~NullDevice() override;

  std::string_view name() const noexcept override { return "null"; }
  bool executes() const noexcept override { return false; }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override;
  Event &createEvent() override { return events_.emplace_back(); }
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override;
  uint64_t allocatedBytes(const std::string &space) const noexcept override { return 0; }
  void write(void *target, std::span<const std::byte> source) noexcept override {}
  void read(std::span<std::byte> target, const void *source) noexcept override;
  Status failure() const noexcept override { return failure_.get(); }
  void fail(const Status &status) noexcept override { (void)failure_.report(status); }
  void onFailure(Agree) override {} // nothing runs that could fail beside the host

  /// Tasks whose turn has come since the beginning.
  uint64_t walkedTasks() const noexcept { return walked_; }

private:
  friend class NullQueue;
  /// Lets every queue go as far as events allow; a queue that `finish` then finds waiting would wait for ever.
  void walk() noexcept;

  FirstFailure failure_;
  uint64_t walked_ = 0;
  std::deque<NullEvent> events_;
  std::vector<NullQueue *> queues_;
};

} // namespace ds::runtime
