//===- StateGate.h - state that is copied while a run goes on -------------===//
#pragma once

#include "runtime/device/Task.h"
#include "runtime/device/WaitPoint.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ds::runtime {

/// Parts in the order in which a step begins to write what holds them: the first to be overwritten is the first to be
/// copied. What no step writes comes last.
std::vector<HeldPart> inOrderOfWrites(const plan::proto::Plan &plan, uint32_t rank, std::vector<HeldPart> parts);

/// State of one rank is constant from the end of an update to the next write of it, so it may be copied elsewhere while
/// the forward and backward of the next step run. The gate holds a command that writes a buffer until all parts in it
/// are copied; likewise one that writes the buffer's next, with which the buffer exchanges its place behind the run.
class StateGate {
public:
  /// `parts`: in the order in which they are copied.
  StateGate(const plan::proto::Role &role, std::span<const HeldPart> parts);

  /// `inner`, or a task added to `wrappers` that waits before it, if the command writes any of the parts.
  Task *around(const plan::proto::Command &command, Task &inner, std::vector<std::unique_ptr<Task>> &wrappers);

  /// From now on nothing is copied yet. `asked` is called by every command that has to wait, before it does. While no
  /// queue has anything to do.
  void close(std::function<void()> asked) noexcept {
    asked_ = std::move(asked);
    copied_ = 0;
  }
  /// So many parts, from the first on, are copied; SIZE_MAX: they need not be.
  void copied(size_t parts) noexcept;
  void wait(size_t parts) noexcept;

private:
  std::vector<size_t> needed_; // by buffer: parts up to its last
  std::function<void()> asked_;
  std::atomic<size_t> copied_ = SIZE_MAX;
  WaitPoint point_;
};

} // namespace ds::runtime
