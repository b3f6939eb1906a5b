//===- Run.cpp - threads of a grid, one after another ----------------------===//
#include "core/Error.h"
#include "kernels/ptx/Code.h"
#include "kernels/ptx/Ptx.h"
#include "kernels/ptx/Sentence.h"

#include <algorithm>
#include <cstring>

namespace ds::ptx {

namespace {

constexpr uint32_t mostBlocks = 0x7FFFFFFF;

/// One entry over one grid.
class Machine {
public:
  Machine(const Entry &entry, Grid grid, std::span<const uint64_t> parameters, Memory &memory, const Limits &limits)
      : entry_(entry), code_(*entry.code), grid_(grid), memory_(memory), limits_(limits), slots_(code_.constants),
        defined_(code_.defined) {
    for (size_t place = 0; place < parameters.size(); ++place) {
      const uint32_t bytes = entry.parameterBytes[place];
      const uint64_t mask = bytes == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * bytes)) - 1;
      slots_[code_.parameters[place]] = parameters[place] & mask;
    }
  }

  uint64_t run() {
    const uint64_t first = uint64_t(grid_.firstBlock) * grid_.threads;
    const uint64_t end = uint64_t(std::min(grid_.blocks, grid_.endBlock)) * grid_.threads;
    for (uint64_t place = first; place < end; ++place) {
      const uint64_t thread = grid_.lastFirst ? end - 1 - (place - first) : place;
      begin(uint32_t(thread / grid_.threads), uint32_t(thread % grid_.threads));
      runThread();
    }
    return ran_;
  }

private:
  void begin(uint32_t block, uint32_t thread) {
    block_ = block;
    thread_ = thread;
    memory_.beginThread();
    std::copy(code_.defined.begin(), code_.defined.end(), defined_.begin());
    for (const auto &[slot, special] : code_.specials)
      slots_[slot] = special == Code::Special::Thread    ? thread
                     : special == Code::Special::Threads ? grid_.threads
                     : special == Code::Special::Block   ? block
                                                         : grid_.blocks;
  }

  void runThread() {
    const uint64_t limit = std::min(limits_.instructionsOfThread, limits_.instructions - ran_);
    const Instruction *const all = code_.instructions.data();
    uint64_t count = 0;
    for (const Instruction *at = all; at->kind != Instruction::Kind::End || !isTaken(*at);) {
      if (count++ >= limit)
        refuse(*at, limit == limits_.instructionsOfThread
                        ? sentence("is reached after {} instructions of this thread, as many as it may run", limit)
                        : sentence("is reached after {} instructions of all threads, as many as they may run",
                                   limits_.instructions));
      at = isTaken(*at) ? step(*at, all) : at + 1;
    }
    ran_ += count;
  }

  bool isTaken(const Instruction &at) {
    if (at.guard == none)
      return true;
    checkDefined(at, at.guard);
    return (slots_[at.guard] != 0) != at.negated;
  }

  /// Runs it. Returns the next.
  const Instruction *step(const Instruction &at, const Instruction *all) {
    switch (at.kind) {
    case Instruction::Kind::Compute:
      compute(at);
      break;
    case Instruction::Kind::Load:
      load(at);
      break;
    case Instruction::Kind::Store:
      store(at);
      break;
    case Instruction::Kind::Branch:
      return all + at.offset;
    case Instruction::Kind::Trap:
      refuse(at, "ends the kernel");
    case Instruction::Kind::End:
      break;
    }
    return &at + 1;
  }

  void compute(const Instruction &at) {
    const auto [a, b, c] = at.from;
    if ((defined_[a] & defined_[b] & defined_[c]) == 0)
      for (const Slot slot : at.from)
        checkDefined(at, slot);
    try {
      slots_[at.to] = at.function(slots_[a], slots_[b], slots_[c]);
    } catch (const Error &error) {
      refuse(at, error.what());
    }
    defined_[at.to] = 1;
  }

  uint64_t addressOf(const Instruction &at) {
    checkDefined(at, at.from[0]);
    const uint64_t address = slots_[at.from[0]] + uint64_t(at.offset), bytes = uint64_t(at.elements) * at.bytes;
    if (address % bytes != 0)
      refuse(at, sentence("accesses {} bytes at {}, which is no multiple of {}", bytes, Address{address}, bytes));
    return address;
  }

  void load(const Instruction &at) {
    const uint64_t address = addressOf(at);
    std::byte bytes[16];
    try {
      memory_.load(address, {bytes, size_t(at.elements) * at.bytes});
    } catch (const Error &error) {
      refuse(at, error.what());
    }
    for (size_t place = 0; place < at.elements; ++place)
      if (const Slot to = at.vector[place]; to != none) {
        uint64_t value = 0;
        std::memcpy(&value, bytes + place * at.bytes, at.bytes);
        slots_[to] = at.function != nullptr ? at.function(value, 0, 0) : value;
        defined_[to] = 1;
      }
  }

  void store(const Instruction &at) {
    const uint64_t address = addressOf(at);
    std::byte bytes[16];
    for (size_t place = 0; place < at.elements; ++place) {
      checkDefined(at, at.vector[place]);
      std::memcpy(bytes + place * at.bytes, &slots_[at.vector[place]], at.bytes);
    }
    try {
      memory_.store(address, {bytes, size_t(at.elements) * at.bytes});
    } catch (const Error &error) {
      refuse(at, error.what());
    }
  }

  void checkDefined(const Instruction &at, Slot slot) {
    if (defined_[slot] == 0)
      refuse(at, sentence("reads {}, which nothing has written", code_.nameOf(slot)));
  }

  [[noreturn]] void refuse(const Instruction &at, std::string_view what) {
    const std::string &text = code_.lines[at.line - code_.firstLine];
    throw Error(sentence("entry '{}', block {}, thread {}, line {} ('{}') {}", entry_.name, block_, thread_, at.line,
                         text, what));
  }

  const Entry &entry_;
  const Code &code_;
  const Grid grid_;
  Memory &memory_;
  const Limits limits_;
  std::vector<uint64_t> slots_;
  std::vector<uint8_t> defined_;
  uint64_t ran_ = 0;
  uint32_t block_ = 0, thread_ = 0;
};

void checkLaunch(const Entry &entry, Grid grid, size_t parameters) {
  if (parameters != entry.parameterBytes.size())
    throw Error(sentence("entry '{}' takes {} parameters, and there are {}", entry.name, entry.parameterBytes.size(),
                         parameters));
  if (grid.blocks == 0 || grid.blocks > mostBlocks || grid.threads == 0)
    throw Error(sentence("entry '{}': a grid of {} blocks of {} threads", entry.name, grid.blocks, grid.threads));
  if (entry.exactThreads != 0 && grid.threads != entry.exactThreads)
    throw Error(sentence("entry '{}' runs with {} threads a block (.reqntid), not {}", entry.name, entry.exactThreads,
                         grid.threads));
  if (grid.threads > entry.mostThreads)
    throw Error(sentence("entry '{}' runs with at most {} threads a block, not {}", entry.name, entry.mostThreads,
                         grid.threads));
}

} // namespace

uint64_t run(const Module &module, std::string_view entry, Grid grid, std::span<const uint64_t> parameters,
             Memory &memory, const Limits &limits) {
  const Entry *found = module.find(entry);
  if (found == nullptr)
    throw Error(sentence("the PTX has no entry '{}'", entry));
  checkLaunch(*found, grid, parameters.size());
  return Machine(*found, grid, parameters, memory, limits).run();
}

} // namespace ds::ptx
