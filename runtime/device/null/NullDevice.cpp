//===- NullDevice.cpp - walks plans and executes nothing ------------------===//
#include "runtime/device/null/NullDevice.h"

#include "core/Error.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace ds::runtime {
namespace {

/// Addresses that fault when touched.
class NullArena final : public Arena {
public:
  NullArena(const std::string &space, uint64_t bytes, uint64_t alignment)
      : bytes_(bytes), mappingBytes_(bytes + std::max<uint64_t>(alignment, 4096)) {
    mapping_ = ::mmap(nullptr, mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED)
      throw Error("the " + space + " arena of " + std::to_string(bytes) +
                  " bytes has no room in the address space: " + std::strerror(errno));
    const auto address = reinterpret_cast<uintptr_t>(mapping_);
    base_ = static_cast<std::byte *>(mapping_) + ((address + alignment - 1) / alignment * alignment - address);
  }
  ~NullArena() override { ::munmap(mapping_, mappingBytes_); }

  std::byte *base() const noexcept override { return base_; }
  uint64_t bytes() const noexcept override { return bytes_; }
  uint64_t touchedBytes() const noexcept override { return 0; }

private:
  uint64_t bytes_;
  size_t mappingBytes_;
  void *mapping_;
  std::byte *base_;
};

} // namespace

/// Submissions wait until walk() has gone through them.
class NullQueue final : public Queue {
public:
  NullQueue(NullDevice &device, const QueueOptions &options)
      : device_(device), name_(options.name), ring_(std::max<size_t>(1, options.depth)) {
    device_.queues_.push_back(this);
  }
  ~NullQueue() override { std::erase(device_.queues_, this); }

  void submit(const CommandList &commands, const Call &call) noexcept override {
    if (submitted_ - done_ == ring_.size())
      device_.walk();
    if (submitted_ - done_ == ring_.size()) {
      (void)device_.failure_.report(Status::failure("queue %s is full and stands still", name_.c_str()));
      return;
    }
    ring_[submitted_++ % ring_.size()] = {&commands, call};
  }

  void finish() noexcept override {
    device_.walk();
    if (done_ == submitted_ || device_.failure_.failed())
      return;
    const Submission &stuck = ring_[done_ % ring_.size()];
    (void)device_.failure_.report(Status::failure("queue %s would wait for ever before its command %zu of call %u",
                                                  name_.c_str(), next_, stuck.call.index));
  }

  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override {}
  Status copy(void *target, const void *source, uint64_t bytes) noexcept override { return Status::success(); }
  kernels::Parallel *parallel() noexcept override { return nullptr; }

  /// Whether anything moved.
  bool advance() noexcept {
    bool moved = false;
    for (; done_ != submitted_; ++done_, next_ = 0, moved = true) {
      const Submission &submission = ring_[done_ % ring_.size()];
      for (; next_ < submission.commands->size(); ++next_, moved = true)
        if (!carryOut((*submission.commands)[next_], submission.call.microbatch + 1))
          return moved;
    }
    return moved;
  }

private:
  struct Submission {
    const CommandList *commands;
    Call call;
  };

  bool carryOut(const ListedCommand &command, uint64_t reached) noexcept {
    for (const EventWait &wait : command.waits)
      if (wait.event->value() + wait.delay < reached)
        return false;
    ++device_.walked_;
    for (Event *event : command.signals)
      static_cast<NullEvent *>(event)->raise(reached);
    return true;
  }

  NullDevice &device_;
  std::string name_;
  std::vector<Submission> ring_;
  uint64_t submitted_ = 0, done_ = 0;
  size_t next_ = 0; // command of the submission at `done_`
};

NullDevice::~NullDevice() = default;

std::unique_ptr<Arena> NullDevice::createArena(const std::string &space, uint64_t bytes, uint64_t alignment) {
  return std::make_unique<NullArena>(space, bytes, alignment);
}

std::unique_ptr<Queue> NullDevice::createQueue(const QueueOptions &options) {
  return std::make_unique<NullQueue>(*this, options);
}

void NullDevice::read(std::span<std::byte> target, const void *source) noexcept {
  std::fill(target.begin(), target.end(), std::byte{0});
}

void NullDevice::walk() noexcept {
  if (failure_.failed())
    return;
  for (bool moved = true; moved;) {
    moved = false;
    for (NullQueue *queue : queues_)
      moved |= queue->advance();
  }
}

} // namespace ds::runtime
