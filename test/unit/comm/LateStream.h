//===- LateStream.h - a stream of an accelerator, without one -------------===//
#pragma once

#include "runtime/comm/inprocess/ByteMover.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace ds::test {

/// Carries out what is enqueued in order, on a thread of its own and now and then late, as a GPU does. Only marks order
/// two streams.
class LateStream {
public:
  explicit LateStream(uint32_t seed);
  ~LateStream(); ///< after everything enqueued

  void enqueue(std::function<void()> work);
  void finish();

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false, stop_ = false;
  std::mt19937 random_;
  std::thread thread_;
};

/// Moves bytes by what it enqueues on a LateStream, which is what `stream` points at.
std::unique_ptr<runtime::ByteMover> makeLateMover(uint32_t rank);

} // namespace ds::test
