//===- FakeAccelerator.cpp - a device whose memory is not the host's ------===//
#include "test/unit/runtime/FakeAccelerator.h"

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Counter.h"
#include "runtime/device/Device.h"
#include "runtime/device/Event.h"
#include "runtime/device/HostThreadQueue.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RecordedRun.h"
#include "runtime/device/RunGuard.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using namespace ds::runtime;
using Work = std::function<void()>;

/// Does work as it comes, or writes it down. Knows where what the device's addresses name really lies.
class Engine {
public:
  explicit Engine(FakeCounts &counts) : counts(counts) {}

  void enqueue(Work work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (recording) {
      recorded.push_back(std::move(work));
      return;
    }
    ++counts.enqueued;
    work();
  }

  void *real(const void *address) const {
    const auto *byte = static_cast<const std::byte *>(address);
    for (const Range &range : ranges)
      if (byte >= range.fake && byte < range.fake + range.bytes)
        return range.real + (byte - range.fake);
    return const_cast<void *>(address);
  }

  struct Range {
    const std::byte *fake;
    std::byte *real;
    uint64_t bytes;
  };
  std::vector<Range> ranges;
  std::vector<Work> recorded;
  bool recording = false;
  FakeCounts &counts;
  uint64_t step = 0;
  kernels::RefusedValue refused{};

private:
  std::mutex mutex_;
};

/// Addresses that fault when touched, for bytes that lie elsewhere.
class FarArena final : public Arena {
public:
  FarArena(Engine &engine, uint64_t bytes, uint64_t alignment)
      : mappingBytes_(bytes + alignment + 4096), real_(bytes + 1), bytes_(bytes) {
    mapping_ = ::mmap(nullptr, mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const auto address = reinterpret_cast<uintptr_t>(mapping_);
    base_ = static_cast<std::byte *>(mapping_) + ((address + alignment - 1) / alignment * alignment - address);
    engine.ranges.push_back({base_, real_.data(), bytes});
  }
  ~FarArena() override { ::munmap(mapping_, mappingBytes_); }
  std::byte *base() const noexcept override { return base_; }
  uint64_t bytes() const noexcept override { return bytes_; }
  uint64_t touchedBytes() const noexcept override { return 0; }

private:
  size_t mappingBytes_;
  std::vector<std::byte> real_;
  uint64_t bytes_;
  void *mapping_;
  std::byte *base_;
};

class FakeEvent final : public Event {
public:
  explicit FakeEvent(RunGuard &guard) : counter(guard) {}
  uint64_t value() const noexcept override { return counter.value(); }
  void reset() noexcept override { counter.reset(); }
  Counter counter;
};

class FakeQueue final : public HostThreadQueue {
public:
  FakeQueue(Device &device, RunGuard &guard, Engine &engine, const QueueOptions &options)
      : HostThreadQueue(device, guard, options), engine_(engine),
        stream_{.handle = &engine, .step = &engine.step, .refused = &engine.refused} {
    start();
  }
  ~FakeQueue() override { stop(); }

  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override {
    engine_.enqueue([this, target, value, bytes] { std::memset(engine_.real(target), value, bytes); });
  }
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override {
    engine_.enqueue([this, target, source, bytes] { std::memmove(engine_.real(target), engine_.real(source), bytes); });
    return Status::success();
  }
  Status look(const std::byte *&bytes, uint64_t) noexcept override {
    bytes = static_cast<const std::byte *>(engine_.real(bytes));
    return Status::success();
  }
  kernels::Parallel *parallel() noexcept override { return nullptr; }
  const kernels::Stream *stream() noexcept override { return &stream_; }

private:
  Status wait(Event &event, uint64_t value) noexcept override {
    (void)static_cast<FakeEvent &>(event).counter.wait(value);
    return Status::success();
  }
  Status signal(Event &event, uint64_t value) noexcept override {
    static_cast<FakeEvent &>(event).counter.raise(value);
    return Status::success();
  }

  Engine &engine_;
  const kernels::Stream stream_;
};

class FakeRun final : public RecordedRun {
public:
  FakeRun(Engine &engine, std::vector<Work> work) : engine_(engine), work_(std::move(work)) {}
  Status launch() noexcept override {
    ++engine_.counts.launches;
    for (const Work &work : work_)
      work();
    return Status::success();
  }

private:
  Engine &engine_;
  const std::vector<Work> work_;
};

class FakeAccelerator final : public Device {
public:
  FakeAccelerator(FakeCounts &counts, bool records) : engine_(counts), records_(records) {}

  std::string_view name() const noexcept override { return "fake"; }
  bool executes() const noexcept override { return true; }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override {
    if (space != "device")
      return host_.createArena(space, bytes, alignment);
    return std::make_unique<FarArena>(engine_, bytes, alignment);
  }
  std::unique_ptr<Arena> createStaging(uint64_t bytes) override { return host_.createArena("host", bytes, 64); }
  bool isMainMemory(std::string_view space) const noexcept override { return space != "device"; }
  Event &createEvent() override { return events_.emplace_back(guard_); }
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override {
    return std::make_unique<FakeQueue>(*this, guard_, engine_, options);
  }
  uint64_t allocatedBytes(const std::string &) const noexcept override { return 0; }
  void write(void *target, std::span<const std::byte> source) noexcept override {
    host_.write(engine_.real(target), source);
  }
  void read(std::span<std::byte> target, const void *source) noexcept override {
    host_.read(target, engine_.real(source));
  }

  Status beginRun(uint64_t step) noexcept override {
    engine_.step = step;
    engine_.refused = {};
    return Status::success();
  }
  std::optional<kernels::RefusedValue> refused() const noexcept override {
    return engine_.refused.caller == 0 ? std::nullopt : std::optional(engine_.refused);
  }
  bool records() const noexcept override { return records_; }
  Status beginRecording() noexcept override {
    ++engine_.counts.recordings;
    engine_.recording = true;
    return Status::success();
  }
  Status endRecording(std::unique_ptr<RecordedRun> &run) noexcept override {
    engine_.recording = false;
    run = std::make_unique<FakeRun>(engine_, std::exchange(engine_.recorded, {}));
    return Status::success();
  }

  Status failure() const noexcept override { return guard_.get(); }
  void fail(const Status &status) noexcept override {
    if (!guard_.failed())
      (void)guard_.report(agree_ ? agree_(status) : status);
  }
  void onFailure(Agree agree) override { agree_ = std::move(agree); }

private:
  Engine engine_;
  const bool records_;
  CpuDevice host_;
  RunGuard guard_;
  Agree agree_;
  std::deque<FakeEvent> events_;
};

class EnqueuedKernel final : public kernels::Kernel {
public:
  explicit EnqueuedKernel(std::unique_ptr<kernels::Kernel> kernel) : kernel_(std::move(kernel)) {}

  Status execute(const kernels::CallContext &context, std::span<void *const> operands) noexcept override {
    auto &engine = *static_cast<Engine *>(context.stream->handle);
    engine.enqueue(
        [this, context, &engine, addresses = std::vector<void *>(operands.begin(), operands.end())]() mutable {
          for (void *&address : addresses)
            address = engine.real(address);
          OneWorker worker;
          kernels::CallContext onHost = context;
          onHost.parallel = &worker;
          onHost.step = *context.stream->step;
          if (!kernel_->execute(onHost, addresses).ok() && engine.refused.caller == 0)
            engine.refused = {.caller = context.caller + 1, .value = 7};
        });
    return Status::success();
  }
  Status refusal(int64_t value) const noexcept override {
    return Status::failure("it refuses %lld", static_cast<long long>(value));
  }

private:
  const std::unique_ptr<kernels::Kernel> kernel_;
};

} // namespace

std::unique_ptr<Device> fakeAccelerator(FakeCounts &counts, bool records) {
  return std::make_unique<FakeAccelerator>(counts, records);
}

std::unique_ptr<kernels::Kernel> enqueued(std::unique_ptr<kernels::Kernel> kernel) {
  return std::make_unique<EnqueuedKernel>(std::move(kernel));
}

} // namespace ds::test
