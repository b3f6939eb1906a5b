//===- DelayedDevice.cpp - queues that are late at random ------------------===//
#include "test/mutation/DelayedDevice.h"

#include "runtime/device/cpu/CpuDevice.h"

#include <chrono>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace ds::mutation {

namespace {

using namespace ds::runtime;

/// Of one queue, whose thread alone draws from it.
class Delays {
public:
  explicit Delays(uint64_t seed) : engine_(seed) {}
  void sometimesWait() {
    if (engine_() % 8 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(engine_() % 500));
  }

private:
  std::mt19937_64 engine_;
};

class LateTask final : public Task {
public:
  LateTask(Task &inner, Delays &delays) : inner_(inner), delays_(delays) {}
  Status run(const Call &call, Queue &queue) noexcept override {
    delays_.sometimesWait();
    const Status status = inner_.run(call, queue);
    delays_.sometimesWait();
    return status;
  }

private:
  Task &inner_;
  Delays &delays_;
};

class LateQueue final : public Queue {
public:
  LateQueue(std::unique_ptr<Queue> inner, uint64_t seed) : delays_(seed), inner_(std::move(inner)) {}
  void submit(const CommandList &commands, const Call &call) noexcept override { inner_->submit(late(commands), call); }
  void finish() noexcept override { inner_->finish(); }
  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override { inner_->fill(target, value, bytes); }
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override {
    return inner_->copy(target, source, bytes);
  }
  kernels::Parallel *parallel() noexcept override { return inner_->parallel(); }

private:
  const CommandList &late(const CommandList &commands) {
    const auto [place, fresh] = lists_.try_emplace(&commands);
    for (const ListedCommand &command : fresh ? commands : CommandList()) {
      tasks_.push_back(std::make_unique<LateTask>(*command.task, delays_));
      place->second.push_back({tasks_.back().get(), command.waits, command.signals});
    }
    return place->second;
  }

  Delays delays_;
  std::map<const CommandList *, CommandList> lists_; // never move: queues keep pointers
  std::vector<std::unique_ptr<Task>> tasks_;
  std::unique_ptr<Queue> inner_; // last: its thread ends before what it uses
};

class DelayedDevice final : public Device {
public:
  DelayedDevice(uint64_t seed, std::optional<NvmePlace> nvme) : inner_(std::move(nvme)), seed_(seed) {}
  std::string_view name() const noexcept override { return inner_.name(); }
  bool executes() const noexcept override { return true; }
  std::unique_ptr<Arena> createArena(const std::string &space, uint64_t bytes, uint64_t alignment) override {
    return inner_.createArena(space, bytes, alignment);
  }
  Event &createEvent() override { return inner_.createEvent(); }
  std::unique_ptr<Queue> createQueue(const QueueOptions &options) override {
    return std::make_unique<LateQueue>(inner_.createQueue(options), seed_ * 1000 + queues_++);
  }
  uint64_t allocatedBytes(const std::string &space) const noexcept override { return inner_.allocatedBytes(space); }
  void write(void *target, std::span<const std::byte> source) noexcept override { inner_.write(target, source); }
  void read(std::span<std::byte> target, const void *source) noexcept override { inner_.read(target, source); }
  Status failure() const noexcept override { return inner_.failure(); }
  void fail(const Status &status) noexcept override { inner_.fail(status); }
  void onFailure(Agree agree) override { inner_.onFailure(std::move(agree)); }

private:
  CpuDevice inner_;
  uint64_t seed_, queues_ = 0;
};

} // namespace

std::unique_ptr<Device> delayedDevice(uint64_t seed, std::optional<NvmePlace> nvme) {
  return std::make_unique<DelayedDevice>(seed, std::move(nvme));
}

} // namespace ds::mutation
