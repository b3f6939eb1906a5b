//===- CheckPrograms.cpp - calls, tails, metrics, and lives of buffers ------===//
#include "core/DType.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ds::plan {
namespace {

/// Micro-batches of one run that a plan may name.
constexpr uint32_t maxMicrobatches = 1u << 20;

/// Calls of one run. What is checked call by call takes about so many bytes of each: 2 GiB in all.
constexpr int maxCalls = 1 << 18;
constexpr uint64_t callBytes = 8192;

/// Commands that one run may execute: more is no plan that a machine would finish, and would stall its reader.
constexpr uint64_t maxCommands = uint64_t(1) << 26;

void checkCalls(const proto::Plan &plan, const proto::Role &role, const proto::Program &program,
                const std::string &place) {
  const uint64_t limit = program.name() == "step" ? plan.training().accumulation_steps() : uint64_t(maxMicrobatches);
  uint64_t commands = 0;
  for (int i = 0; i < program.calls_size(); ++i) {
    const proto::Call &call = program.calls(i);
    const std::string here = place + ", call " + std::to_string(i);
    checkIndex(call.routine(), role.routines_size(), "routine", here);
    if (call.microbatch() >= limit)
      refuse(here,
             "it names micro-batch " + std::to_string(call.microbatch()) + ", but a run has " + std::to_string(limit));
    commands += uint64_t(role.routines(int(call.routine())).commands_size());
  }
  if (commands > maxCommands || program.calls_size() > maxCalls)
    refuseSize(place,
               "a run executes " + std::to_string(commands) + " commands in " + std::to_string(program.calls_size()) +
                   " calls, more than 2^26 or 2^18; a checker would need " +
                   std::to_string(uint64_t(program.calls_size()) * callBytes >> 20) + " MiB for its calls alone");
}

/// What the host reads between commands. `types`: "float32 or float64"; `isOne`: whether a type is one of them.
void checkScalar(const proto::Role &role, const proto::Operand &scalar, const char *types, bool (*isOne)(DType),
                 const std::string &place) {
  checkIndex(scalar.buffer(), role.buffers_size(), "buffer", place);
  const proto::Buffer &buffer = role.buffers(int(scalar.buffer()));
  const uint64_t bytes = checkTensorBytes(scalar.dtype(), scalar.shape(), place);
  const DType dtype = checkDType(scalar.dtype(), place);
  if (!isOne(dtype))
    refuse(place, "it is " + std::string(name(dtype)) + ", not " + types);
  if (bytes != uint64_t(byteSize(dtype)))
    refuse(place, "its shape " + shapeText(scalar.shape()) + " is no scalar");
  if (bytes > buffer.bytes() || scalar.byte_offset() > buffer.bytes() - bytes)
    refuse(place, "it passes the end of " + describe("buffer", scalar.buffer(), buffer.name()));
  if (scalar.access() != proto::Operand::READ)
    refuse(place, "its access must be READ");
}

bool isMetricType(DType dtype) { return isWideFloat(dtype) || dtype == DType::I64; }

void checkMetric(const proto::Role &role, const proto::Metric &metric, const std::string &place) {
  checkScalar(role, metric.source(), "float32, float64 or int64", isMetricType, place);
  if (metric.source().rank_stride() != 0)
    refuse(place, "it has a rank_stride, but rank 0's value is the metric");
  const proto::Buffer &buffer = role.buffers(int(metric.source().buffer()));
  if (buffer.scope() != proto::Buffer::PLAN && buffer.scope() != proto::Buffer::STEP)
    refuse(place, "its buffer must have scope PLAN or STEP to be there when the run has ended");
}

void checkTail(const proto::Role &role, const proto::Program &program, const std::string &place) {
  const proto::Tail &tail = program.tail();
  if (program.captured())
    refuse(place, "it is captured and has a tail, but a record is launched whole");
  if (tail.first_call() == 0 || tail.first_call() >= uint32_t(program.calls_size()))
    refuse(place, "its tail begins at call " + std::to_string(tail.first_call()) + ", but must begin behind call 0 " +
                      "and before the end, which is at " + std::to_string(program.calls_size()));
  const std::string here = place + ", unless_one of the tail";
  checkScalar(role, tail.unless_one(), "float32 or float64", isWideFloat, here);
  if (tail.unless_one().rank_stride() != 0)
    refuse(here, "it has a rank_stride, but every rank must find the same value");
  const proto::Buffer &buffer = role.buffers(int(tail.unless_one().buffer()));
  if (buffer.scope() != proto::Buffer::PLAN && buffer.scope() != proto::Buffer::STEP)
    refuse(here, "its buffer must have scope PLAN or STEP to be there when the calls before the tail have ended");
}

/// A record of a run holds what a device does by itself: no cpu keeps one, and nothing that a host does is part of one.
void checkCaptured(const proto::Plan &plan, const proto::Role &role, const std::string &place) {
  if (plan.machine().device() != "cuda")
    refuse(place, "it is captured, but a device " + plan.machine().device() + " records no runs; only cuda does");
  for (int i = 0; i < role.queues_size(); ++i)
    if (const proto::Queue &queue = role.queues(i);
        queue.kind() == proto::Queue::HOST || queue.kind() == proto::Queue::IO)
      refuse(place, "it is captured, but " + describe("queue", i, queue.name()) + " is of kind " +
                        proto::Queue::Kind_Name(queue.kind()) + ", whose work the host does");
}

void checkProgram(const proto::Plan &plan, const proto::Role &role, const proto::Program &program,
                  const std::string &place) {
  checkCalls(plan, role, program, place);
  if (program.captured())
    checkCaptured(plan, role, place);
  if (program.has_tail())
    checkTail(role, program, place);
  OwnNames names("metric");
  for (int i = 0; i < program.metrics_size(); ++i) {
    const proto::Metric &metric = program.metrics(i);
    names.add(metric.name(), i, place + ", metric " + std::to_string(i));
    const std::string here = place + ", " + describe("metric", i, metric.name());
    checkMetric(role, metric, here);
  }
}

void checkLife(const proto::Role &role, const proto::Buffer &buffer, const proto::Life &life,
               const std::string &place) {
  checkIndex(life.program(), role.programs_size(), "program", place);
  checkIndex(life.birth_routine(), role.routines_size(), "routine", place);
  checkIndex(life.death_routine(), role.routines_size(), "routine", place);
  checkIndex(life.birth_command(), role.routines(int(life.birth_routine())).commands_size(), "command", place);
  checkIndex(life.death_command(), role.routines(int(life.death_routine())).commands_size(), "command", place);
  if (life.birth_routine() == life.death_routine() && life.birth_command() > life.death_command() &&
      buffer.scope() != proto::Buffer::STEP)
    refuse(place, "it dies at command " + std::to_string(life.death_command()) + ", before its birth at " +
                      std::to_string(life.birth_command()));
  if (buffer.scope() == proto::Buffer::CALL && life.birth_routine() != life.death_routine())
    refuse(place, "its scope is CALL, but it is born in routine " + std::to_string(life.birth_routine()) +
                      " and dies in " + std::to_string(life.death_routine()));
}

} // namespace

void checkPrograms(const proto::Plan &plan, const proto::Role &role) {
  if (role.programs_size() > 16)
    refuse("programs", "there are " + std::to_string(role.programs_size()) + ", more than 16");
  std::map<std::string, int> first; // by name
  for (int i = 0; i < role.programs_size(); ++i) {
    const proto::Program &program = role.programs(i);
    const std::string place = describe("program", i, "");
    const auto [same, isNew] = first.try_emplace(program.name(), i);
    if ((program.name() != "step" && program.name() != "evaluate") || !isNew)
      refuse(place, "its name is neither step nor evaluate, or another program has it" +
                        (isNew ? "" : note(describe("program", same->second, same->first) + " has it first")));
    checkProgram(plan, role, program, "program " + program.name());
  }
  for (int i = 0; i < role.buffers_size(); ++i)
    for (int k = 0; k < role.buffers(i).lives_size(); ++k)
      checkLife(role, role.buffers(i), role.buffers(i).lives(k),
                describe("buffer", i, role.buffers(i).name()) + ", life " + std::to_string(k));
}

namespace {

/// What all roles have in common of a program.
struct Shared {
  uint32_t microbatches; // of a run
  bool captured;         // a rank that launches a record cannot meet one that does not (NCCL)
  bool tail;             // likewise one that makes its tail and one that has ended
  bool operator==(const Shared &) const = default;

  std::string text() const {
    return "of " + std::to_string(microbatches) + " micro-batches" + (captured ? " that is captured" : "") +
           (tail ? " that has a tail" : "");
  }
};

/// Nothing where the role has no such program.
std::optional<Shared> sharedOf(const proto::Role &role, const std::string &name) {
  for (const proto::Program &program : role.programs())
    if (program.name() == name) {
      uint32_t count = 0;
      for (const proto::Call &call : program.calls())
        count = std::max(count, call.microbatch() + 1);
      return Shared{count, program.captured(), program.has_tail()};
    }
  return std::nullopt;
}

} // namespace

/// Every rank runs the same program at the same time, over as many micro-batches, recorded or not, and with a tail or
/// not.
void checkSamePrograms(const proto::Plan &plan) {
  const proto::Role &first = plan.roles(0);
  const auto text = [](const std::optional<Shared> &shared) { return shared ? shared->text() : "that it has not"; };
  for (const proto::Role &role : plan.roles())
    for (const char *name : {"step", "evaluate"})
      if (const auto expected = sharedOf(first, name), own = sharedOf(role, name); own != expected)
        refuse("program " + std::string(name), "role " + role.name() + " has one " + text(own) + ", but role " +
                                                   first.name() + " one " + text(expected) +
                                                   "; ranks run a program together");
}

} // namespace ds::plan
