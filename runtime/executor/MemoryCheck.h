//===- MemoryCheck.h - --check-memory -------------------------------------===//
//
// Fills every buffer with 0xFF bytes, a NaN in every float dtype, before its first command and after its last, as
// Buffer.lives says, and the arenas before anything is loaded. Nothing computes that NaN by itself (arithmetic gives
// 0x7FC00000 or 0xFFC00000 and passes payloads on), so a command about to read it reads what nobody wrote: that is an
// error naming the buffer. A sound plan gives the same bits with and without.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/executor/Command.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {

class MemoryCheck {
public:
  explicit MemoryCheck(const CommandContext &context);

  /// To be done before variables are loaded.
  void fillArenas(Device &device) const;

  /// A task that runs `inner` with the fills and looks that its place in the plan asks for. The check outlives it.
  std::unique_ptr<Task> around(uint32_t routine, uint32_t command, const std::string &where, Task &inner) const;

private:
  class CheckedTask;

  /// What a call is for the routine that it calls, within a run of its program.
  struct CallPosition {
    bool firstOfRoutine = false, lastOfRoutine = false;       // over all micro-batches
    bool firstOfMicrobatch = false, lastOfMicrobatch = false; // over the calls for its own micro-batch
  };

  /// A buffer that comes to life or dies at some command.
  struct Moment {
    uint32_t buffer, program;
    bool birth;
  };

  bool applies(const Moment &moment, uint32_t program, uint32_t call) const noexcept;
  std::vector<Moment> momentsAt(uint32_t routine, uint32_t command, bool birth) const;

  const CommandContext context_;
  std::vector<std::vector<CallPosition>> places_; // by program and call
  std::vector<std::vector<bool>>
      metrics_; // by program and buffer: the host reads it behind all commands, so not filled at death
};

} // namespace ds::runtime
