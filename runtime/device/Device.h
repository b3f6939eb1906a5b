//===- Device.h - where the commands of one rank run ----------------------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RecordedRun.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ds::runtime {

/// The device of one rank: makes arenas, queues and events, and keeps the first failure of any of its queues. Cf. a
/// CUDA context. Arenas and queues must be destroyed before it.
class Device {
public:
  virtual ~Device() = default;
  virtual std::string_view name() const noexcept = 0;
  /// Whether commands are carried out; the null device only walks them.
  virtual bool executes() const noexcept = 0;
  /// Before this thread makes kernels or communicators for it. Cf. cudaSetDevice.
  virtual void enter() noexcept {}

  /// Throws ds::Error when the space is unknown or the memory is not there. `alignment`: a power of two.
  virtual std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) = 0;
  /// The device keeps it. Like arenas and queues, made only while no queue has anything to do.
  virtual Event &createEvent() = 0;
  virtual std::unique_ptr<Queue> createQueue(const QueueOptions &options) = 0;

  /// Memory of the host that tasks write and Queue::copy brings to the device; nullptr where tasks write the device's
  /// own. Belongs to no space. Cf. cudaHostAlloc.
  virtual std::unique_ptr<Arena> createStaging(uint64_t bytes) { return nullptr; }
  /// Whether arenas of the space lie in the machine's main memory.
  virtual bool isMainMemory(std::string_view space) const noexcept { return true; }

  /// Bytes that the device's arenas of a space were created with and still hold, counted at each creation.
  virtual uint64_t allocatedBytes(const std::string &space) const noexcept = 0;

  /// What the run does otherwise than the plan says because of the machine, or how it keeps what the plan does not keep
  /// in memory; one line for people, or empty.
  virtual std::string note() const { return {}; }

  /// How many kernels of a name are our own slower ones where a library was to be called; none of a device that calls
  /// no libraries. Counted by the process.
  virtual std::optional<std::map<std::string, int64_t>> fallbacks() const { return std::nullopt; }

  /// Host to device and back, while no queue has anything to do. Cf. cudaMemcpy.
  virtual void write(void *target, std::span<const std::byte> source) noexcept = 0;
  virtual void read(std::span<std::byte> target, const void *source) noexcept = 0;

  // For accelerators, whose kernels are behind the host; while no queue has anything to do.

  /// Makes `step` what kernels::Stream::step shows from now on, and forgets what was refused.
  virtual Status beginRun(uint64_t step) noexcept { return Status::success(); }
  /// What the first kernel to refuse a value left, if any did since beginRun.
  virtual std::optional<kernels::RefusedValue> refused() const noexcept { return std::nullopt; }
  /// Whether a run can be recorded.
  virtual bool records() const noexcept { return false; }
  /// From here to the end tasks' work is written down instead of done. Queue::finish awaits the writing. Cf.
  /// cudaStreamBeginCapture, cudaGraphInstantiate.
  virtual Status beginRecording() noexcept {
    return Status::failure("%s records no runs", std::string(name()).c_str());
  }
  /// Where it fails, the device is as it was before the recording began.
  virtual Status endRecording(std::unique_ptr<RecordedRun> &run) noexcept { return beginRecording(); }

  /// The first failure of any queue, or success. Once there is one, queues drop everything.
  virtual Status failure() const noexcept = 0;
  /// A failure, of a queue or from elsewhere; kept if it is the first.
  virtual void fail(const Status &status) noexcept = 0;
  /// Called with a failure, on the thread that it happened on, before the device keeps it; what it returns is kept. Of
  /// ranks that fail at once all so keep the same. Set while no queue has anything to do.
  using Agree = std::function<Status(const Status &)>;
  virtual void onFailure(Agree agree) = 0;
};

} // namespace ds::runtime
