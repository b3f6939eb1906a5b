//===- MemoryCheck.cpp - --check-memory -----------------------------------===//
#include "runtime/executor/MemoryCheck.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Device.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint8_t poison = 0xFF;

/// The first element whose bytes are all poison, or -1.
int64_t findPoison(const std::byte *bytes, uint64_t count, DType dtype) noexcept {
  const auto elementBytes = uint64_t(byteSize(dtype));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * elementBytes, elementBytes);
    if (bits == UINT64_MAX >> (64 - 8 * elementBytes))
      return int64_t(i);
  }
  return -1;
}

/// Operands that a command reads and whose elements can tell whether anybody wrote them.
std::vector<const plan::proto::Operand *> floatsRead(const plan::proto::Command &command) {
  std::vector<const plan::proto::Operand *> operands;
  const auto add = [&](const plan::proto::Operand &operand) {
    if (isFloat(DType(operand.dtype())) &&
        (operand.access() == plan::proto::Operand::READ || operand.access() == plan::proto::Operand::READ_WRITE))
      operands.push_back(&operand);
  };
  for (const plan::proto::Operand &operand : command.kernel().operands())
    add(operand);
  if (command.has_copy())
    add(command.copy().source());
  for (const plan::proto::CollectivePart &part : command.collective().parts()) {
    add(part.source());
    add(part.target()); // read where sums accumulate
  }
  for (const plan::proto::Operand &source : command.send().sources())
    add(source);
  return operands;
}

} // namespace

class MemoryCheck::CheckedTask final : public Task {
public:
  CheckedTask(const MemoryCheck &check, const plan::proto::Command &command, std::vector<Moment> births,
              std::vector<Moment> deaths, std::string where, Task &inner)
      : check_(check), births_(std::move(births)), deaths_(std::move(deaths)), where_(std::move(where)), inner_(inner) {
    for (const plan::proto::Operand *operand : floatsRead(command))
      reads_.push_back({operand->buffer(), check.context_.storage.operand(*operand),
                        operandBytes(*operand) / uint64_t(byteSize(DType(operand->dtype()))), DType(operand->dtype())});
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    fill(births_, call, queue);
    if (Status status = look(call, queue); !status.ok())
      return status;
    const Status status = inner_.run(call, queue);
    if (status.ok())
      fill(deaths_, call, queue);
    return status;
  }

private:
  struct Read {
    uint32_t buffer;
    Address address;
    uint64_t elements;
    DType dtype;
  };

  void fill(const std::vector<Moment> &moments, const Call &call, Queue &queue) const noexcept {
    for (const Moment &moment : moments)
      if (check_.applies(moment, call.run->program, call.index))
        queue.fill(check_.context_.storage.buffer(moment.buffer).at(call.microbatch), poison,
                   check_.context_.role.buffers(int(moment.buffer)).bytes());
  }

  Status look(const Call &call, Queue &queue) const noexcept {
    for (const Read &read : reads_) {
      const std::byte *bytes = read.address.at(call.microbatch);
      if (Status status = queue.look(bytes, read.elements * uint64_t(byteSize(read.dtype))); !status.ok())
        return status;
      const int64_t element = findPoison(bytes, read.elements, read.dtype);
      if (element >= 0)
        return Status::failure(
            "rank %u, %s: --check-memory: in micro-batch %llu it reads element %lld of buffer %u (%s), "
            "which nothing has written since the buffer was born",
            check_.context_.position.rank, where_.c_str(), static_cast<unsigned long long>(call.microbatch),
            static_cast<long long>(element), read.buffer,
            check_.context_.role.buffers(int(read.buffer)).name().c_str());
    }
    return Status::success();
  }

  const MemoryCheck &check_;
  const std::vector<Moment> births_, deaths_;
  const std::string where_;
  Task &inner_;
  std::vector<Read> reads_;
};

MemoryCheck::MemoryCheck(const CommandContext &context) : context_(context) {
  for (const plan::proto::Program &program : context.role.programs()) {
    std::vector<CallPosition> &places = places_.emplace_back(size_t(program.calls_size()));
    std::map<uint32_t, size_t> lastOfRoutine;
    std::map<std::pair<uint32_t, uint32_t>, size_t> lastOfMicrobatch;
    for (size_t i = 0; i < places.size(); ++i) {
      const plan::proto::Call &call = program.calls(int(i));
      const std::pair key(call.routine(), call.microbatch());
      places[i].firstOfRoutine = !lastOfRoutine.contains(call.routine());
      places[i].firstOfMicrobatch = !lastOfMicrobatch.contains(key);
      lastOfRoutine[call.routine()] = lastOfMicrobatch[key] = i;
    }
    for (const auto &[routine, call] : lastOfRoutine)
      places[call].lastOfRoutine = true;
    for (const auto &[key, call] : lastOfMicrobatch)
      places[call].lastOfMicrobatch = true;
    std::vector<bool> &metrics = metrics_.emplace_back(size_t(context.role.buffers_size()));
    for (const plan::proto::Metric &metric : program.metrics())
      metrics[metric.source().buffer()] = true;
    if (program.has_tail())
      metrics[program.tail().unless_one().buffer()] = true;
  }
}

void MemoryCheck::fillArenas(Device &device) const {
  const std::vector<std::byte> piece(size_t(1) << 20, std::byte(poison));
  for (const std::unique_ptr<Arena> &arena : context_.storage.arenas())
    for (uint64_t at = 0; at < arena->bytes(); at += piece.size())
      device.write(arena->base() + at, std::span(piece).first(std::min<uint64_t>(piece.size(), arena->bytes() - at)));
}

bool MemoryCheck::applies(const Moment &moment, uint32_t program, uint32_t call) const noexcept {
  if (moment.program != program || (!moment.birth && metrics_[program][moment.buffer]))
    return false;
  const CallPosition &place = places_[program][call];
  switch (context_.role.buffers(int(moment.buffer)).scope()) {
  case plan::proto::Buffer::STEP:
    return moment.birth ? place.firstOfRoutine : place.lastOfRoutine;
  case plan::proto::Buffer::SLOT:
    return moment.birth ? place.firstOfMicrobatch : place.lastOfMicrobatch;
  default:
    return true; // CALL: in every call
  }
}

std::vector<MemoryCheck::Moment> MemoryCheck::momentsAt(uint32_t routine, uint32_t command, bool birth) const {
  std::vector<Moment> moments;
  for (int i = 0; i < context_.role.buffers_size(); ++i)
    for (const plan::proto::Life &life : context_.role.buffers(i).lives())
      if ((birth ? life.birth_routine() : life.death_routine()) == routine &&
          (birth ? life.birth_command() : life.death_command()) == command)
        moments.push_back({uint32_t(i), life.program(), birth});
  return moments;
}

std::unique_ptr<Task> MemoryCheck::around(uint32_t routine, uint32_t command, const std::string &where,
                                          Task &inner) const {
  return std::make_unique<CheckedTask>(*this, context_.role.routines(int(routine)).commands(int(command)),
                                       momentsAt(routine, command, true), momentsAt(routine, command, false), where,
                                       inner);
}

} // namespace ds::runtime
