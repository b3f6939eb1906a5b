//===- CpuQueue.h - a queue that is a thread ------------------------------===//
#pragma once

#include "runtime/device/Queue.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/device/cpu/WaitPoint.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ds::runtime {

class CpuDevice;

/// One thread that carries out submissions in order; its kernels spread over the queue's own pool. A task is done when
/// its run() has returned.
class CpuQueue final : public Queue {
public:
  CpuQueue(CpuDevice &device, const QueueOptions &options);
  ~CpuQueue() override;

  void submit(const CommandList &commands, const Call &call) noexcept override;
  void finish() noexcept override;
  void fill(void *target, uint8_t value, uint64_t bytes) noexcept override;
  void copy(void *target, const void *source, uint64_t bytes) noexcept override;
  kernels::Parallel *parallel() noexcept override { return parallel_.get(); }

private:
  struct Submission {
    const CommandList *commands;
    Call call;
  };

  void serve() noexcept;
  void carryOut(const Submission &submission) noexcept;

  CpuDevice &device_;
  std::unique_ptr<kernels::Parallel> parallel_;
  std::vector<Submission> ring_;
  std::atomic<uint64_t> submitted_ = 0; // counts up for ever; the ring's place is its remainder
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> stop_ = false;
  WaitPoint work_; // the thread waits here for submissions
  WaitPoint idle_; // the host waits here for their end
  std::thread thread_;
};

} // namespace ds::runtime
