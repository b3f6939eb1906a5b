//===- MemoryKinds.cpp - bytes, lives, slots -------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace ds::mutation {

namespace {

std::string nameOf(const proto::Buffer &buffer) { return "buffer " + buffer.name(); }

/// Buffers of a role that are wanted.
template <typename IsWanted> std::vector<proto::Buffer *> buffers(proto::Plan &plan, IsWanted isWanted) {
  std::vector<proto::Buffer *> found;
  for (proto::Buffer &buffer : *plan.mutable_roles(0)->mutable_buffers())
    if (buffer.bytes() > 0 && isWanted(buffer))
      found.push_back(&buffer);
  return found;
}

bool isTransient(const proto::Buffer &buffer) { return buffer.scope() != proto::Buffer::PLAN; }

std::string shiftOffset(proto::Plan &plan, Random &random) {
  const uint64_t step = plan.machine().alignment();
  const auto buffer = random.pick(buffers(plan, [&](const proto::Buffer &one) { return one.offset() >= step; }));
  if (!buffer)
    return "";
  (*buffer)->set_offset((*buffer)->offset() - step);
  return nameOf(**buffer) + " " + std::to_string(step) + " bytes lower";
}

/// Two buffers that one command reads are both alive there.
std::string overlap(proto::Plan &plan, Random &random) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); })) {
    const auto operands = operandsOf(std::as_const(at(plan, place)));
    for (const proto::Operand *a : operands)
      for (const proto::Operand *b : operands)
        if (reads(*a) && reads(*b) && a->buffer() < b->buffer() && place.role == 0 &&
            isTransient(bufferOf(plan, place, *a)) && isTransient(bufferOf(plan, place, *b)))
          pairs.emplace_back(a->buffer(), b->buffer());
  }
  const auto pair = random.pick(pairs);
  if (!pair)
    return "";
  proto::Buffer &a = *plan.mutable_roles(0)->mutable_buffers(int(pair->first));
  proto::Buffer &b = *plan.mutable_roles(0)->mutable_buffers(int(pair->second));
  proto::Buffer &larger = a.bytes() * a.slots() > b.bytes() * b.slots() ? a : b, &smaller = &larger == &a ? b : a;
  smaller.set_offset(larger.offset());
  return nameOf(smaller) + " on " + nameOf(larger);
}

std::string shrink(proto::Plan &plan, Random &random) {
  std::vector<proto::Buffer *> filled; // those that an operand fills to the end
  for (const Place &place : find(plan, [](const proto::Command &) { return true; }))
    for (const proto::Operand *operand : operandsOf(std::as_const(at(plan, place)))) {
      const proto::Buffer &buffer = bufferOf(plan, place, *operand);
      if (place.role == 0 && operand->rank_stride() == 0 && bytesOf(*operand) > 0 &&
          operand->byte_offset() + bytesOf(*operand) == buffer.bytes())
        filled.push_back(plan.mutable_roles(0)->mutable_buffers(int(operand->buffer())));
    }
  const auto buffer = random.pick(filled);
  if (!buffer)
    return "";
  (*buffer)->set_bytes((*buffer)->bytes() - 1);
  return nameOf(**buffer) + " one byte smaller";
}

/// Whether a step holds a buffer for some micro-batch and the next one at once.
bool isInFlightTwice(const proto::Role &role, const proto::Buffer &buffer) {
  for (const proto::Life &life : buffer.lives()) {
    const proto::Program &program = role.programs(int(life.program()));
    std::map<uint32_t, int> births, deaths; // calls by micro-batch
    for (int call = 0; call < program.calls_size(); ++call) {
      if (program.calls(call).routine() == life.birth_routine())
        births.try_emplace(program.calls(call).microbatch(), call);
      if (program.calls(call).routine() == life.death_routine())
        deaths[program.calls(call).microbatch()] = call;
    }
    for (const auto &[microbatch, death] : deaths)
      if (const auto next = births.find(microbatch + 1);
          births.contains(microbatch) && next != births.end() && next->second < death)
        return true;
  }
  return false;
}

/// One that needs its slots: others have more than that, which may lie anywhere that is free.
std::optional<proto::Buffer *> pickInFlight(proto::Plan &plan, Random &random) {
  return random.pick(buffers(plan, [&](const proto::Buffer &one) {
    return one.slots() > 1 && one.bytes() > 0 && isInFlightTwice(plan.roles(0), one);
  }));
}

std::string oneSlot(proto::Plan &plan, Random &random) {
  const auto buffer = pickInFlight(plan, random);
  if (!buffer || plan.training().accumulation_steps() < 2)
    return "";
  (*buffer)->set_slots(1);
  (*buffer)->clear_slot_offsets();
  return nameOf(**buffer) + " with one slot";
}

std::string slotsOverlap(proto::Plan &plan, Random &random) {
  const auto buffer = pickInFlight(plan, random);
  if (!buffer)
    return "";
  for (uint64_t &offset : *(*buffer)->mutable_slot_offsets())
    offset = (*buffer)->offset();
  return nameOf(**buffer) + " with all slots in one place";
}

/// One place for the whole step, with bytes of its own: a micro-batch finds there what another has left.
std::string keepInStep(proto::Plan &plan, Random &random) {
  const auto picked = pickInFlight(plan, random);
  if (!picked)
    return "";
  proto::Buffer &buffer = **picked;
  proto::Arena &arena = *plan.mutable_roles(0)->mutable_arenas(int(buffer.arena()));
  const uint64_t unit = std::max<uint64_t>(1, plan.machine().alignment());
  buffer.set_scope(proto::Buffer::STEP);
  buffer.set_slots(1);
  buffer.clear_slot_offsets();
  buffer.set_offset((arena.bytes() + unit - 1) / unit * unit);
  arena.set_bytes(buffer.offset() + buffer.bytes());
  return nameOf(buffer) + " has one place for all micro-batches";
}

/// Ends a life before the command that is said to use the buffer last.
std::string dieEarly(proto::Plan &plan, Random &random) {
  std::vector<proto::Life *> lives;
  for (proto::Buffer *buffer : buffers(plan, isTransient))
    for (proto::Life &life : *buffer->mutable_lives()) {
      const Place place{0, int(life.death_routine()), int(life.death_command())};
      const auto operands = operandsOf(std::as_const(at(plan, place)));
      const bool isUsed = std::ranges::any_of(
          operands, [&](const proto::Operand *one) { return &bufferOf(plan, place, *one) == buffer; });
      if (isUsed && life.death_command() > 0 &&
          (life.death_routine() != life.birth_routine() || life.death_command() > life.birth_command()))
        lives.push_back(&life);
    }
  const auto life = random.pick(lives);
  if (!life)
    return "";
  (*life)->set_death_command((*life)->death_command() - 1);
  return "a life that ends before command " + std::to_string((*life)->death_command() + 1) + " of routine " +
         plan.roles(0).routines(int((*life)->death_routine())).name();
}

std::string arenaTooSmall(proto::Plan &plan, Random &) {
  proto::Arena &arena = *plan.mutable_roles(0)->mutable_arenas(0);
  arena.set_bytes(arena.bytes() / 2);
  return "half the arena";
}

std::string machineTooSmall(proto::Plan &plan, Random &random) {
  plan.mutable_machine()->set_device_memory(1 + random.below(size_t(plan.roles(0).arenas(0).bytes()) - 1));
  return "a machine with " + std::to_string(plan.machine().device_memory()) + " bytes";
}

/// Moves a read within a buffer that holds more than is read.
std::string shiftRead(proto::Plan &plan, Random &random) {
  std::vector<proto::Operand *> operands;
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); }))
    for (proto::Operand *operand : operandsOf(at(plan, place)))
      if (operand->access() == proto::Operand::READ && operand->rank_stride() == 0 && bytesOf(*operand) > 0 &&
          operand->byte_offset() + bytesOf(*operand) + 64 <= bufferOf(plan, place, *operand).bytes())
        operands.push_back(operand);
  const auto operand = random.pick(operands);
  if (!operand)
    return "";
  (*operand)->set_byte_offset((*operand)->byte_offset() + 64);
  return "a read of " + nameOf(plan.roles(0).buffers(int((*operand)->buffer()))) + " 64 bytes further on";
}

/// A kernel reads another buffer of the same size that is alive and written: another operand's.
std::string otherBuffer(proto::Plan &plan, Random &random) {
  std::vector<std::pair<proto::Operand *, proto::Operand *>> pairs;
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); })) {
    const std::vector<proto::Operand *> operands = operandsOf(at(plan, place));
    for (proto::Operand *a : operands)
      for (proto::Operand *b : operands)
        if (a != b && reads(*a) && a->access() == b->access() && a->dtype() == b->dtype() &&
            bytesOf(*a) == bytesOf(*b) && a->buffer() != b->buffer() && bytesOf(*a) > 0)
          pairs.emplace_back(a, b);
  }
  const auto pair = random.pick(pairs);
  if (!pair)
    return "";
  const std::string text = "a read of " + nameOf(plan.roles(0).buffers(int(pair->first->buffer()))) + " reads " +
                           nameOf(plan.roles(0).buffers(int(pair->second->buffer())));
  pair->first->set_buffer(pair->second->buffer());
  pair->first->set_byte_offset(pair->second->byte_offset());
  return text;
}

/// A type whose elements have as many bytes; itself where none is exchanged for it.
proto::DType exchanged(proto::DType dtype) {
  switch (dtype) {
  case proto::DTYPE_F32:
    return proto::DTYPE_I32;
  case proto::DTYPE_BF16:
    return proto::DTYPE_F16;
  case proto::DTYPE_F16:
    return proto::DTYPE_BF16;
  default:
    return dtype;
  }
}

std::string wrongDtype(proto::Plan &plan, Random &random) {
  std::vector<proto::Operand *> operands;
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); }))
    for (proto::Operand *operand : operandsOf(at(plan, place)))
      if (exchanged(operand->dtype()) != operand->dtype() && bytesOf(*operand) > 0)
        operands.push_back(operand);
  const auto operand = random.pick(operands);
  if (!operand)
    return "";
  (*operand)->set_dtype(exchanged((*operand)->dtype()));
  return "an operand in " + nameOf(plan.roles(0).buffers(int((*operand)->buffer()))) + " is of type " +
         proto::DType_Name((*operand)->dtype());
}

std::string wrongAccess(proto::Plan &plan, Random &random) {
  std::vector<proto::Operand *> operands;
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); }))
    for (proto::Operand *operand : operandsOf(at(plan, place)))
      if (operand->access() == proto::Operand::WRITE && bytesOf(*operand) > 0)
        operands.push_back(operand);
  const auto operand = random.pick(operands);
  if (!operand)
    return "";
  (*operand)->set_access(proto::Operand::READ);
  return "a result in " + nameOf(plan.roles(0).buffers(int((*operand)->buffer()))) + " is said to be read";
}

/// A result of a kernel and an operand of its type, each with a buffer of the step to itself.
struct InPlace {
  Place place;
  int operand, result;
  bool isReadLater; ///< the operand, in the routine
};

std::vector<InPlace> placesForResults(proto::Plan &plan, const IsWanted &isWanted) {
  std::vector<InPlace> found;
  const auto fills = [&](const Place &place, const proto::Operand &operand) {
    const proto::Buffer &buffer = bufferOf(plan, place, operand);
    return operand.dtype() == proto::DTYPE_F32 && buffer.bytes() > 4 && buffer.bytes() == bytesOf(operand) &&
           (buffer.scope() == proto::Buffer::CALL || buffer.scope() == proto::Buffer::SLOT);
  };
  for (const Place &place : find(plan, isWanted)) {
    const auto &operands = std::as_const(at(plan, place)).kernel().operands();
    for (int o = 0; o < operands.size() && place.role == 0; ++o)
      for (int r = 0; r < operands.size(); ++r) {
        if (operands[o].access() != proto::Operand::READ || operands[r].access() != proto::Operand::WRITE ||
            bytesOf(operands[o]) != bytesOf(operands[r]) || operands[o].buffer() == operands[r].buffer() ||
            !fills(place, operands[o]) || !fills(place, operands[r]))
          continue;
        bool isReadLater = false;
        for (int c = place.command + 1; c < routineAt(plan, place).commands_size(); ++c)
          for (const proto::Operand *later : operandsOf(std::as_const(*routineAt(plan, place).mutable_commands(c))))
            isReadLater |= later->buffer() == operands[o].buffer() && reads(*later);
        found.push_back({place, o, r, isReadLater});
      }
  }
  return found;
}

/// Whoever uses the result in the routine uses the operand's bytes.
std::string writeOver(proto::Plan &plan, const InPlace &one) {
  const auto &operands = std::as_const(at(plan, one.place)).kernel().operands();
  const uint32_t from = operands[one.result].buffer(), to = operands[one.operand].buffer();
  for (int c = one.place.command; c < routineAt(plan, one.place).commands_size(); ++c)
    for (proto::Operand *operand : operandsOf(*routineAt(plan, one.place).mutable_commands(c)))
      if (operand->buffer() == from)
        operand->set_buffer(to);
  return describe(plan, one.place) + " writes its result over " + nameOf(plan.roles(0).buffers(int(to)));
}

/// What another command of the routine still wants.
std::string overLiveOperand(proto::Plan &plan, Random &random) {
  std::vector<InPlace> places =
      placesForResults(plan, [](const proto::Command &command) { return isKernel(command, "elementwise"); });
  std::erase_if(places, [](const InPlace &one) { return !one.isReadLater; });
  const auto one = random.pick(places);
  return one ? writeOver(plan, *one) : "";
}

/// By a kernel that reads elements after it has written others.
std::string overOperandTooEarly(proto::Plan &plan, Random &random) {
  const auto one = random.pick(placesForResults(plan, [](const proto::Command &command) {
    return isKernel(command, "matmul") || isKernel(command, "transpose") || isKernel(command, "softmax") ||
           isKernel(command, "attention_grad");
  }));
  return one ? writeOver(plan, *one) : "";
}

} // namespace

std::vector<Kind> memoryKinds() {
  return {{"shift-offset", false, shiftOffset},
          {"overlap", true, overlap},
          {"shrink-buffer", true, shrink},
          {"one-slot-for-two", true, oneSlot},
          {"slots-in-one-place", true, slotsOverlap},
          {"kept-in-the-step", false, keepInStep},
          {"die-early", true, dieEarly},
          {"arena-too-small", true, arenaTooSmall},
          {"machine-too-small", true, machineTooSmall},
          {"shift-read", false, shiftRead},
          {"read-another-buffer", false, otherBuffer},
          {"wrong-dtype", true, wrongDtype},
          {"wrong-access", true, wrongAccess},
          {"result-over-a-live-operand", true, overLiveOperand},
          {"result-over-an-operand-too-early", false, overOperandTooEarly}};
}

} // namespace ds::mutation
