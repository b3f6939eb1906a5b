//===- RingEngine.h - blocks through io_uring -----------------------------===//
#pragma once

#include "runtime/nvme/BlockEngine.h"

#include <liburing.h>
#include <memory>
#include <string>

namespace ds::runtime {

/// Many blocks under way at once, of one thread and without any other thread of ours.
class RingEngine final : public BlockEngine {
public:
  /// Nothing, and why, where the system refuses: io_uring is off in many containers.
  static std::unique_ptr<RingEngine> make(int file, unsigned depth, NvmeFaults *faults, std::string &refusal);
  ~RingEngine() override;

protected:
  void start(unsigned tag, const Block &block) noexcept override;
  Ended await() noexcept override;

private:
  RingEngine(int file, unsigned depth, NvmeFaults *faults);

  const int file_;
  io_uring ring_{};
  bool open_ = false;
  /// Why the ring takes nothing any more. A submission that it did not take stays in its queue, where a later one would
  /// set it going: so there is no later one.
  int broken_ = 0;
};

} // namespace ds::runtime
