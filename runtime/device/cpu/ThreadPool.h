//===- ThreadPool.h - the workers of one compute queue --------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "runtime/device/WaitPoint.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ds::runtime {

/// `workers` threads of which the caller of run() is one, worker 0. Pieces are handed out one by one, in order. run()
/// is for one thread at a time and not from within a body.
///
/// A job is published through `ticket_`: its upper half numbers jobs, its lower half is the next piece. A worker takes
/// a piece by raising the ticket it has seen; that fails once another job is published, so a late worker never runs a
/// piece of one job with the body of another. While the fields change, the ticket is one that has no pieces.
class ThreadPool final : public kernels::Parallel {
public:
  explicit ThreadPool(int workers);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int workers() const override { return workers_; }
  void run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept override;

private:
  void runBlock(int64_t first, uint32_t pieces, int maxWorkers, Body body, void *state) noexcept;
  void takePieces(int worker) noexcept;
  void serve(int worker) noexcept;

  const int workers_;
  std::atomic<uint64_t> ticket_ = 0;
  std::atomic<uint32_t> pieces_ = 0;
  std::atomic<uint32_t> finished_ = 0;
  std::atomic<int64_t> first_ = 0; // piece that the lower half's 0 stands for
  std::atomic<int> maxWorkers_ = 0;
  std::atomic<Body> body_ = nullptr;
  std::atomic<void *> state_ = nullptr;
  std::atomic<bool> stop_ = false;
  WaitPoint wake_; // helpers wait here for a job
  WaitPoint done_; // run() waits here for the helpers' pieces
  std::vector<std::thread> helpers_;
};

/// For queues that have no workers but their own thread.
class OneWorker final : public kernels::Parallel {
public:
  int workers() const override { return 1; }
  void run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept override {
    for (int64_t piece = 0; piece < pieces; ++piece)
      body(state, piece, 0);
  }
};

} // namespace ds::runtime
