//===- CheckCommands.cpp - queues, events, and the commands of routines ---===//
#include "core/DType.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

namespace ds::plan {
namespace {

/// Where a command stands, for errors.
std::string placeOf(const proto::Routine &routine, int routineIndex, int command) {
  return describe("routine", routineIndex, routine.name()) + ", command " + std::to_string(command);
}

void checkQueuesAndEvents(const proto::Role &role) {
  OwnNames names("queue");
  for (int i = 0; i < role.queues_size(); ++i) {
    const proto::Queue &queue = role.queues(i);
    const std::string place = describe("queue", i, "");
    names.add(queue.name(), i, place);
    if (queue.kind() < proto::Queue::COMPUTE || queue.kind() > proto::Queue::HOST)
      refuse(place, "there is no queue kind " + std::to_string(queue.kind()));
  }
  if (role.queues_size() > 64)
    refuse("queues", "there are " + std::to_string(role.queues_size()) + ", more than 64");
  for (int i = 0; i < role.events_size(); ++i)
    checkName(role.events(i).name(), describe("event", i, ""));
}

/// The slice of the last rank ends within the buffer: `room` bytes follow the slice of the first.
void checkRankStride(const proto::Plan &plan, const proto::Operand &operand, uint64_t room, const std::string &place) {
  checkIndex(operand.communicator(), plan.communicators_size(), "communicator", place);
  const uint64_t ranks = Group(plan, operand.communicator()).size();
  if (ranks > 1 && operand.rank_stride() > room / (ranks - 1))
    refuse(place, "with a rank_stride of " + std::to_string(operand.rank_stride()) + " the slice of rank " +
                      std::to_string(ranks - 1) + " of " + std::to_string(ranks) + " passes the end of its buffer");
}

/// An operand wherever its buffer lies.
void checkRange(const proto::Plan &plan, const proto::Role &role, const proto::Operand &operand,
                const std::string &place) {
  checkIndex(operand.buffer(), role.buffers_size(), "buffer", place);
  const proto::Buffer &buffer = role.buffers(int(operand.buffer()));
  const uint64_t bytes = checkTensorBytes(operand.dtype(), operand.shape(), place);
  if (operand.access() < proto::Operand::READ || operand.access() > proto::Operand::SCRATCH)
    refuse(place, "there is no access " + std::to_string(operand.access()));
  if (bytes > buffer.bytes() || operand.byte_offset() > buffer.bytes() - bytes)
    refuse(place, std::to_string(bytes) + " bytes at " + std::to_string(operand.byte_offset()) + " pass the end of " +
                      describe("buffer", operand.buffer(), buffer.name()) + " of " + std::to_string(buffer.bytes()));
  const uint64_t elementBytes = uint64_t(byteSize(checkDType(operand.dtype(), place)));
  // The arena's base has the machine's alignment, at least; offsets of buffers were checked against it.
  if (operand.byte_offset() % elementBytes != 0 || buffer.offset() % elementBytes != 0 ||
      operand.rank_stride() % elementBytes != 0 ||
      std::ranges::any_of(buffer.slot_offsets(), [&](uint64_t offset) { return offset % elementBytes != 0; }))
    refuse(place, "its address is no multiple of its element size " + std::to_string(elementBytes));
  if (operand.rank_stride() != 0)
    checkRankStride(plan, operand, buffer.bytes() - bytes - operand.byte_offset(), place);
}

} // namespace

void checkOperand(const proto::Plan &plan, const proto::Role &role, const proto::Operand &operand,
                  const std::string &place) {
  checkRange(plan, role, operand, place);
  const proto::Buffer &buffer = role.buffers(int(operand.buffer()));
  if (const std::string &space = role.arenas(int(buffer.arena())).space(); space != "device")
    refuse(place, describe("buffer", operand.buffer(), buffer.name()) + " lies in space " + space +
                      ", which only copies, and kernels and fills on queues of kind HOST, read and write");
}

namespace {

/// Of a kernel or a fill on a queue of kind HOST.
void checkHostOperand(const proto::Plan &plan, const proto::Role &role, const proto::Operand &operand,
                      const std::string &place) {
  checkRange(plan, role, operand, place);
  const proto::Buffer &buffer = role.buffers(int(operand.buffer()));
  if (const std::string &space = role.arenas(int(buffer.arena())).space(); space != "host")
    refuse(place, describe("buffer", operand.buffer(), buffer.name()) + " lies in space " + space +
                      ", but kernels and fills on queues of kind HOST read and write space host alone");
}

/// Of a kernel or a fill, which computes where its queue does.
void checkComputed(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
                   const proto::Operand &operand, const std::string &place) {
  const bool onHost = role.queues(int(command.queue())).kind() == proto::Queue::HOST;
  (onHost ? checkHostOperand : checkOperand)(plan, role, operand, place);
}

/// Ranks say by steps where their part begins, and by nothing else. Steps stay small, so that no sum of them wraps.
void checkSteps(const proto::Plan &plan, const std::string &kernel, const proto::Attribute &attribute,
                const std::string &place) {
  constexpr int64_t most = int64_t(1) << 40;
  const auto areSmall = [](const auto &values) {
    return std::ranges::all_of(values, [](int64_t value) { return value >= 0 && value <= most; });
  };
  const proto::Integers &integers = attribute.integers();
  if (attribute.name() != "first" && (kernel != "slice" || attribute.name() != "starts"))
    refuse(place,
           "ranks add steps to it, but they may only to where a part begins, \"first\", or \"starts\" of a slice");
  for (int i = 0; i < integers.rank_steps_size(); ++i) {
    const proto::RankSteps &steps = integers.rank_steps(i);
    checkIndex(steps.communicator(), plan.communicators_size(), "communicator", place);
    if (i > 0 && steps.communicator() <= integers.rank_steps(i - 1).communicator())
      refuse(place, "its steps are not in the order of communicators, one for each");
    if (steps.values_size() != integers.values_size())
      refuse(place, "ranks add " + std::to_string(steps.values_size()) + " steps to " +
                        std::to_string(integers.values_size()) + " numbers; it must be one to each");
    if (!areSmall(steps.values()) || !areSmall(integers.values()))
      refuse(place, "steps, and numbers to which ranks add them, must be 0 to " + std::to_string(most));
  }
  if (integers.rank_steps_size() > plan.world().axes_size())
    refuse(place, "it has steps over " + std::to_string(integers.rank_steps_size()) + " communicators, more than the " +
                      std::to_string(plan.world().axes_size()) + " axes of the mesh");
}

void checkKernel(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
                 const std::string &place) {
  const proto::KernelCommand &kernel = command.kernel();
  checkName(kernel.kernel(), place);
  if (kernel.kernel().empty())
    refuse(place, "it names no kernel");
  for (int i = 0; i < kernel.operands_size(); ++i)
    checkComputed(plan, role, command, kernel.operands(i),
                  place + " (" + kernel.kernel() + "), operand " + std::to_string(i));
  if (kernel.has_code()) {
    checkIndex(kernel.code(), plan.codes_size(), "code", place);
    if (kernel.kernel() != "elementwise" || role.queues(int(command.queue())).kind() == proto::Queue::HOST)
      refuse(place, "it has a code, but only kernel elementwise on a queue of the device may");
  }
  if (kernel.has_algorithm()) {
    checkIndex(kernel.algorithm(), plan.tuning().algorithms_size(), "algorithm", place);
    if (!kernels::isProduct(kernel.kernel()) || role.queues(int(command.queue())).kind() == proto::Queue::HOST)
      refuse(place, "it has an algorithm of cuBLASLt, but only a product on a queue of the device may");
  }
  std::unordered_set<std::string> names;
  for (const proto::Attribute &attribute : kernel.attributes()) {
    checkAttribute(attribute, place);
    if (!names.insert(attribute.name()).second)
      refuse(place, "it has two attributes " + attribute.name());
    if (!attribute.integers().rank_steps().empty())
      checkSteps(plan, kernel.kernel(), attribute, place + ", attribute " + attribute.name());
  }
}

void checkAccess(const proto::Operand &operand, proto::Operand::Access access, const std::string &place) {
  if (operand.access() != access)
    refuse(place, "its access must be " + proto::Operand::Access_Name(access));
}

template <typename A, typename B> bool equalShapes(const A &a, const B &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

const std::string &spaceOf(const proto::Role &role, const proto::Operand &operand) {
  return role.arenas(int(role.buffers(int(operand.buffer())).arena())).space();
}

bool mayRunOnHost(const proto::Role &role, const proto::Command &command) {
  if (command.has_copy())
    return spaceOf(role, command.copy().source()) == "host" && spaceOf(role, command.copy().target()) == "host";
  return command.has_kernel() || command.has_fill();
}

/// Whether a copy is between a file and host memory, by queues of kind IO alone.
void checkFileCopy(const proto::Role &role, const proto::Command &command, const std::string &place) {
  const std::array ends{&command.copy().source(), &command.copy().target()};
  const proto::Queue &queue = role.queues(int(command.queue()));
  const auto isInFile = [&](const proto::Operand *end) { return spaceOf(role, *end) == "nvme"; };
  if (std::ranges::none_of(ends, isInFile)) {
    if (queue.kind() == proto::Queue::IO)
      refuse(place, "it is no copy to or from space nvme, but queue " + queue.name() + " is of kind IO");
    return;
  }
  if (queue.kind() != proto::Queue::IO)
    refuse(place, "it copies to or from space nvme, but queue " + queue.name() + " is not of kind IO");
  for (const proto::Operand *end : ends)
    if (!isInFile(end) && spaceOf(role, *end) != "host")
      refuse(place,
             "it copies between space nvme and space " + spaceOf(role, *end) + "; only host memory may be there");
}

/// What writes part of a page of a file reads the rest of it, so that two must not do so at once: one queue writes.
void checkFileWriters(const proto::Role &role) {
  std::optional<uint32_t> writer;
  for (int r = 0; r < role.routines_size(); ++r)
    for (int c = 0; c < role.routines(r).commands_size(); ++c) {
      const proto::Command &command = role.routines(r).commands(c);
      if (!command.has_copy() || spaceOf(role, command.copy().target()) != "nvme")
        continue;
      if (writer.value_or(command.queue()) != command.queue())
        refuse(placeOf(role.routines(r), r, c), "it writes to space nvme on queue " +
                                                    role.queues(int(command.queue())).name() + ", but queue " +
                                                    role.queues(int(*writer)).name() + " does so too; one may");
      writer = command.queue();
    }
}

void checkCopy(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
               const std::string &place) {
  const proto::CopyCommand &copy = command.copy();
  checkRange(plan, role, copy.source(), place + " (copy), source");
  checkRange(plan, role, copy.target(), place + " (copy), target");
  checkAccess(copy.source(), proto::Operand::READ, place + " (copy), source");
  checkAccess(copy.target(), proto::Operand::WRITE, place + " (copy), target");
  checkFileCopy(role, command, place + " (copy)");
  if (copy.source().dtype() != copy.target().dtype() || !equalShapes(copy.source().shape(), copy.target().shape()))
    refuse(place, "it copies " + shapeText(copy.source().shape()) + " to " + shapeText(copy.target().shape()) +
                      ", but both ends must have one dtype and shape");
}

void checkFeed(const proto::Plan &plan, const proto::Role &role, const proto::FeedCommand &feed,
               const std::string &place) {
  checkIndex(feed.input(), plan.inputs_size(), "input", place);
  checkOperand(plan, role, feed.target(), place + " (feed), target");
  checkAccess(feed.target(), proto::Operand::WRITE, place + " (feed), target");
  const proto::Input &input = plan.inputs(int(feed.input()));
  if (input.dtype() != feed.target().dtype() || !equalShapes(input.shape(), feed.target().shape()))
    refuse(place, "it feeds input " + input.name() + " of shape " + shapeText(input.shape()) + " into " +
                      shapeText(feed.target().shape()) + ", but both must have one dtype and shape");
}

void checkKind(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
               const std::string &place) {
  switch (command.kind_case()) {
  case proto::Command::kKernel:
    return checkKernel(plan, role, command, place);
  case proto::Command::kFill:
    checkComputed(plan, role, command, command.fill().target(), place + " (fill), target");
    return checkAccess(command.fill().target(), proto::Operand::WRITE, place + " (fill), target");
  case proto::Command::kCopy:
    return checkCopy(plan, role, command, place);
  case proto::Command::kFeed:
    return checkFeed(plan, role, command.feed(), place);
  case proto::Command::kCollective:
    return checkCollective(plan, role, command.collective(), place);
  case proto::Command::kSend:
  case proto::Command::kReceive:
    return checkMessage(plan, role, command, place);
  case proto::Command::KIND_NOT_SET:
    refuse(place, "it does nothing that this build knows; use a newer ds-run or compile the plan again");
  }
}

void checkCommand(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
                  const std::string &place) {
  checkIndex(command.queue(), role.queues_size(), "queue", place);
  for (const proto::Wait &wait : command.waits()) {
    checkIndex(wait.event(), role.events_size(), "event", place);
    if (wait.delay() > (1u << 20))
      refuse(place, "it waits with a delay of " + std::to_string(wait.delay()) + " micro-batches, more than 2^20");
  }
  for (uint32_t event : command.signals())
    checkIndex(event, role.events_size(), "event", place);
  for (uint32_t op : command.reference())
    checkIndex(op, plan.reference().ops_size(), "reference op", place);
  if (role.queues(int(command.queue())).kind() == proto::Queue::HOST && !mayRunOnHost(role, command))
    refuse(place, "it is no kernel, fill or copy within host memory, but queue " +
                      role.queues(int(command.queue())).name() + " is of kind HOST, which runs these alone");
  if (role.queues(int(command.queue())).kind() == proto::Queue::IO && !command.has_copy())
    refuse(place, "it is no copy, but queue " + role.queues(int(command.queue())).name() +
                      " is of kind IO, which copies to and from space nvme alone");
  checkKind(plan, role, command, place);
}

} // namespace

void checkCommands(const proto::Plan &plan, const proto::Role &role) {
  checkQueuesAndEvents(role);
  if (role.routines_size() > (1 << 20))
    refuse("routines", "there are " + std::to_string(role.routines_size()) + ", more than 2^20");
  for (int r = 0; r < role.routines_size(); ++r) {
    checkName(role.routines(r).name(), describe("routine", r, ""));
    for (int c = 0; c < role.routines(r).commands_size(); ++c)
      checkCommand(plan, role, role.routines(r).commands(c), placeOf(role.routines(r), r, c));
  }
  checkFileWriters(role);
  checkCollectiveQueues(plan, role);
  checkMessageQueues(plan, role);
}

} // namespace ds::plan
