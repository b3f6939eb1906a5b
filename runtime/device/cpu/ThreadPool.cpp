//===- ThreadPool.cpp - the workers of one compute queue ------------------===//
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <cstdint>
#include <thread>

namespace ds::runtime {
namespace {

constexpr uint64_t job(uint64_t ticket) { return ticket >> 32; }
constexpr uint32_t nextPiece(uint64_t ticket) { return uint32_t(ticket); }

/// The lower half of a ticket that has no pieces; blocks of a job stay below it.
constexpr uint32_t closed = UINT32_MAX;
constexpr int64_t maxBlock = int64_t(1) << 31;

} // namespace

ThreadPool::ThreadPool(int workers) : workers_(std::max(1, workers)) {
  for (int worker = 1; worker < workers_; ++worker)
    helpers_.emplace_back([this, worker] { serve(worker); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  wake_.notify();
  for (std::thread &helper : helpers_)
    helper.join();
}

void ThreadPool::run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept {
  if (pieces <= 1 || workers_ == 1 || maxWorkers == 1) {
    for (int64_t piece = 0; piece < pieces; ++piece)
      body(state, piece, 0);
    return;
  }
  for (int64_t first = 0; first < pieces; first += maxBlock)
    runBlock(first, uint32_t(std::min(maxBlock, pieces - first)), maxWorkers == 0 ? workers_ : maxWorkers, body, state);
}

void ThreadPool::runBlock(int64_t first, uint32_t pieces, int maxWorkers, Body body, void *state) noexcept {
  const uint64_t before = job(ticket_);
  ticket_ = (before + 1) << 32 | closed;
  pieces_ = pieces;
  finished_ = 0;
  first_ = first;
  maxWorkers_ = maxWorkers;
  body_ = body;
  state_ = state;
  ticket_ = (before + 2) << 32;
  wake_.notify();
  takePieces(0);
  done_.wait([&] { return finished_ == pieces; });
}

void ThreadPool::takePieces(int worker) noexcept {
  uint64_t ticket = ticket_;
  while (nextPiece(ticket) < pieces_ && worker < maxWorkers_) {
    const Body body = body_;
    void *const state = state_;
    const int64_t piece = first_ + nextPiece(ticket);
    const uint32_t pieces = pieces_;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1))
      continue;
    body(state, piece, worker);
    if (finished_.fetch_add(1) + 1 == pieces)
      done_.notify();
    ticket = ticket_;
  }
}

void ThreadPool::serve(int worker) noexcept {
  uint64_t seen = 0;
  while (!stop_) {
    wake_.wait([&] { return stop_ || job(ticket_) != seen; });
    seen = job(ticket_);
    takePieces(worker);
  }
}

} // namespace ds::runtime
