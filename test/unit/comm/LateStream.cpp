//===- LateStream.cpp - a stream of an accelerator, without one -----------===//
#include "test/unit/comm/LateStream.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/SumInRankOrder.h"
#include "runtime/comm/inprocess/ByteMover.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace ds::test {

LateStream::LateStream(uint32_t seed) : random_(seed), thread_([this] { serve(); }) {}

LateStream::~LateStream() {
  finish();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LateStream::enqueue(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void LateStream::finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
}

void LateStream::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty())
      return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    if (random_() % 8 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

namespace {

/// One record of an event: waiting for an event means the record that is the last when the wait is enqueued.
using Record = std::shared_ptr<std::atomic<bool>>;

class LateMover final : public runtime::ByteMover {
public:
  Status mark(uint64_t mark, void *stream) noexcept override {
    const Record record = std::make_shared<std::atomic<bool>>(false);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      events_[mark % 2] = record;
    }
    on(stream).enqueue([record] {
      *record = true;
      record->notify_all();
    });
    return Status::success();
  }

  Status follow(const ByteMover &peer, uint64_t mark, void *stream) noexcept override {
    const LateMover &other = static_cast<const LateMover &>(peer);
    const std::lock_guard<std::mutex> lock(other.mutex_);
    on(stream).enqueue([record = other.events_[mark % 2]] { record->wait(false); });
    return Status::success();
  }

  Status copy(std::byte *target, const std::byte *source, uint64_t bytes, void *stream) noexcept override {
    on(stream).enqueue([=] {
      if (target != source && bytes > 0)
        std::memcpy(target, source, bytes);
    });
    return Status::success();
  }

  Status sum(DType dtype, std::span<const std::byte *const> addends, std::byte *target, uint64_t count, bool accumulate,
             void *stream) noexcept override {
    on(stream).enqueue([=, addends = std::vector<const std::byte *>(addends.begin(), addends.end())] {
      runtime::sumInRankOrder(dtype, addends, target, count, accumulate);
    });
    return Status::success();
  }

private:
  static LateStream &on(void *stream) { return *static_cast<LateStream *>(stream); }

  mutable std::mutex mutex_;
  std::array<Record, 2> events_;
};

} // namespace

std::unique_ptr<runtime::ByteMover> makeLateMover(uint32_t) { return std::make_unique<LateMover>(); }

} // namespace ds::test
